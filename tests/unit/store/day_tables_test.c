/* SPDX-License-Identifier: Apache-2.0 */
/* What writers of day files name as columns are all columns of the tables, and no others. */
#include "symbol-server/store/sqlite/days/day_tables.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbol-server/store/sqlite/days/day_file.h"
#include "tests/check.h"

static int compare(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* "b, a" → "a b ". */
static void put_sorted(char *list, char *out)
{
	const char *names[32];
	size_t count = 0;

	for (char *name = strtok(list, ", "); name && count < 32; name = strtok(NULL, ", "))
		names[count++] = name;
	qsort(names, count, sizeof *names, compare);
	*out = '\0';
	for (size_t i = 0; i < count; i++)
		strcat(strcat(out, names[i]), " ");
}

static void check_table(sqlite3 *db, const char *table, const char *columns)
{
	char of_file[400] = "", named[400], expected[400], found[400];
	sqlite3_stmt *list =
		database_prepare(db, "SELECT group_concat(name) FROM pragma_table_info(?)", NULL);

	sqlite3_bind_text(list, 1, table, -1, SQLITE_STATIC);
	if (sqlite3_step(list) == SQLITE_ROW && sqlite3_column_text(list, 0))
		snprintf(of_file, sizeof of_file, "%s", (const char *)sqlite3_column_text(list, 0));
	sqlite3_finalize(list);
	snprintf(named, sizeof named, "%s", columns);
	put_sorted(of_file, expected);
	put_sorted(named, found);
	CHECK_TEXT(found, expected);
}

static void check_tables(sqlite3 *db)
{
	check_table(db, "facts", FACTS_COLUMNS);
	check_table(db, "definitions", DEFINITIONS_COLUMNS);
	check_table(db, "samples", SAMPLES_COLUMNS);
	check_table(db, "accounts", ACCOUNTS_COLUMNS);
	check_table(db, "moments", MOMENTS_COLUMNS);
	check_table(db, "spans", SPANS_COLUMNS);
	check_table(db, "rollups", ROLLUPS_COLUMNS);
	check_table(db, "rollup_accounts", ROLLUP_ACCOUNTS_COLUMNS);
	check_table(db, "rollup_marks", ROLLUP_MARKS_COLUMNS);
}

/* A value for each column, in their order. */
static void check_insert(sqlite3 *db)
{
	sqlite3_stmt *put = database_prepare_insert(db, "INSERT " INTO_ROLLUP_MARKS, NULL);

	CHECK_NUMBER(sqlite3_bind_parameter_count(put), 3);
	CHECK_TEXT(sqlite3_sql(put), "INSERT " INTO_ROLLUP_MARKS " VALUES (?, ?, ?)");
	sqlite3_finalize(put);
}

int main(void)
{
	char directory[] = "/tmp/day_tables_XXXXXX", path[64];
	struct error err = {0};
	sqlite3 *db;

	CHECK(mkdtemp(directory) != NULL);
	snprintf(path, sizeof path, "%s/samples-20260101.db", directory);
	db = day_file_create(path, &err);
	CHECK_TEXT(err.message, "");
	if (db) {
		check_tables(db);
		check_insert(db);
	}
	database_close(db);
	unlink(path);
	rmdir(directory);
	return checks_done();
}
