/* SPDX-License-Identifier: Apache-2.0 */
/* Reads everything in a data directory and says what is damaged. */
#include "symbol-server/store/data_directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbol-server/store/sqlite/journal/journal.h"
#include "symbol-server/store/sqlite/cells/moments.h"
#include "symbol-server/store/sqlite/journal/record.h"
#include "symbol-server/store/sqlite/cells/spans.h"
#include "symbol-server/store/sqlite/days/day_file.h"
#include "symbol-server/store/sqlite/page_checksums.h"
#include "symbol-server/store/sqlite/upkeep/folder_names.h"
#include "symbol-server/store/sqlite/upkeep/verify.h"

enum { PATH_ROOM = 4200, TYPES_MAX = 64, LEVELS = DAY_1D + 1 };

struct verify {
	const char *data;
	FILE *out;
	struct verify_report *report;
};

/* What one file has; damage: the first thing that is wrong, "" when nothing is. */
struct findings {
	uint64_t rows, samples, bytes;
	char damage[480];
	char note[200];
	bool is_newer; /* than this program: damage says how */
};

#define DAMAGED(findings_, ...) \
	((findings_)->damage[0] \
		 ? 0            \
		 : snprintf((findings_)->damage, sizeof(findings_)->damage, __VA_ARGS__))

/* --- one row --- */

struct row_check {
	const struct catalog *catalog;
	const uint8_t *filter; /* of spans */
	size_t filter_length;
	uint64_t pairs, samples, value;
	bool is_bad;
};

static bool check_pair(void *context, const struct packed_pair *pair)
{
	struct row_check *check = context;

	check->is_bad |= pair->thread >= check->catalog->items[CATALOG_STRINGS].count ||
			 !pair->stack || pair->stack >= check->catalog->items[CATALOG_STACKS].count;
	check->pairs++;
	check->samples += pair->samples;
	check->value += pair->value;
	return true;
}

static bool check_moment(void *context, const struct moment *moment)
{
	struct packed_pair pair = {moment->thread, moment->stack, 1, moment->value};

	return check_pair(context, &pair);
}

static bool check_span(void *context, const struct span_sample *span)
{
	struct row_check *check = context;
	struct packed_pair pair = {span->thread, span->stack, span->samples, span->value};

	check->is_bad |= !spans_may_have(check->filter, check->filter_length, span->ids,
					 TRACE_ID_BYTES) ||
			 !spans_may_have(check->filter, check->filter_length,
					 span->ids + TRACE_ID_BYTES, SPAN_ID_BYTES);
	return check_pair(context, &pair);
}

static bool check_account(void *context, const struct packed_account *account)
{
	struct row_check *check = context;
	uint32_t strings = check->catalog->items[CATALOG_STRINGS].count;

	check->is_bad |= account->host >= strings;
	for (unsigned i = 0; i < account->lost_count; i++)
		check->is_bad |= account->lost[i].reason >= strings;
	check->samples += account->samples;
	return true;
}

/* --- a day --- */

struct day_check {
	struct catalog *catalog;
	struct findings *findings;
	uint64_t stored[LEVELS][TYPES_MAX], accounted[LEVELS][TYPES_MAX]; /* samples */
};

/* Columns: tenant, type, bucket, series, pairs, samples, value, data, level. */
static void check_samples(struct day_check *day, sqlite3_stmt *row)
{
	struct row_check check = {.catalog = day->catalog};
	int64_t tenant = sqlite3_column_int64(row, 0), type = sqlite3_column_int64(row, 1);
	int64_t bucket = sqlite3_column_int64(row, 2), series = sqlite3_column_int64(row, 3);
	int64_t level = sqlite3_column_int64(row, 8);
	const uint8_t *data = sqlite3_column_blob(row, 7);
	size_t length = (size_t)sqlite3_column_bytes(row, 7);
	const char *wrong = NULL;

	if (type < 0 || type >= TYPES_MAX || !profile_type_name((unsigned)type) || level < 0 ||
	    level >= LEVELS || bucket < 0 || bucket >= 31 * MINUTES_PER_DAY)
		wrong = "is of a type or minute that there is not";
	else if (series <= 0 || series >= day->catalog->items[CATALOG_SERIES].count ||
		 catalog_series(day->catalog, (uint32_t)series)->tenant != tenant)
		wrong = "is of a series that is not defined";
	else if (!packed_each(data, length, check_pair, &check))
		wrong = "cannot be decoded";
	else if (check.is_bad)
		wrong = "refers to stacks or threads that are not defined";
	else if ((int64_t)check.pairs != sqlite3_column_int64(row, 4) ||
		 (int64_t)check.samples != sqlite3_column_int64(row, 5) ||
		 (int64_t)check.value != sqlite3_column_int64(row, 6))
		wrong = "has other sums than its samples";
	if (wrong)
		DAMAGED(day->findings,
			"the row of level %" PRId64 ", tenant %" PRId64 ", type %" PRId64
			", minute %" PRId64 ", series %" PRId64 " %s",
			level, tenant, type, bucket, series, wrong);
	else
		day->stored[level][type] += check.samples;
	day->findings->rows++;
	day->findings->samples += level == DAY_RAW ? check.samples : 0;
}

/* Columns: tenant, type, bucket, data, level. */
static void check_accounts(struct day_check *day, sqlite3_stmt *row)
{
	struct row_check check = {.catalog = day->catalog};
	int64_t type = sqlite3_column_int64(row, 1), level = sqlite3_column_int64(row, 4);

	if (type < 0 || type >= TYPES_MAX || !profile_type_name((unsigned)type) || level < 0 ||
	    level >= LEVELS ||
	    !account_each(sqlite3_column_blob(row, 3), (size_t)sqlite3_column_bytes(row, 3),
			  check_account, &check) ||
	    check.is_bad)
		DAMAGED(day->findings,
			"the accounts of type %" PRId64 ", minute %" PRId64 " cannot be decoded",
			type, (int64_t)sqlite3_column_int64(row, 2));
	else
		day->accounted[level][type] += check.samples;
	day->findings->rows++;
}

/* What came beside samples. Columns: tenant, type, bucket, series, count, data. */
static void check_beside(struct day_check *day, sqlite3_stmt *row, const struct row_check *check,
			 bool is_decoded, const char *what)
{
	int64_t type = sqlite3_column_int64(row, 1), series = sqlite3_column_int64(row, 3);

	if (!is_decoded || type < 0 || type >= TYPES_MAX || !profile_type_name((unsigned)type) ||
	    series <= 0 || series >= day->catalog->items[CATALOG_SERIES].count || check->is_bad ||
	    (int64_t)check->pairs != sqlite3_column_int64(row, 4))
		DAMAGED(day->findings,
			"the %s of type %" PRId64 ", minute %" PRId64 ", series %" PRId64
			" cannot be decoded",
			what, type, (int64_t)sqlite3_column_int64(row, 2), series);
	day->findings->rows++;
}

static void check_moments(struct day_check *day, sqlite3_stmt *row)
{
	struct row_check check = {.catalog = day->catalog};
	bool ok = moments_each(sqlite3_column_blob(row, 5), (size_t)sqlite3_column_bytes(row, 5),
			       check_moment, &check);

	check_beside(day, row, &check, ok, "times");
}

/* One column more: filter. */
static void check_spans(struct day_check *day, sqlite3_stmt *row)
{
	struct row_check check = {.catalog = day->catalog,
				  .filter = sqlite3_column_blob(row, 6),
				  .filter_length = (size_t)sqlite3_column_bytes(row, 6)};
	bool ok = check.filter_length &&
		  spans_each(sqlite3_column_blob(row, 5), (size_t)sqlite3_column_bytes(row, 5),
			     check_span, &check);

	check_beside(day, row, &check, ok, "spans");
}

static void each_row(struct day_check *day, sqlite3 *db, const char *sql,
		     void (*check)(struct day_check *, sqlite3_stmt *))
{
	struct error err = {0};
	sqlite3_stmt *statement = database_prepare(db, sql, &err);
	int code = SQLITE_ERROR;

	while (statement && (code = sqlite3_step(statement)) == SQLITE_ROW)
		check(day, statement);
	if (statement && code != SQLITE_DONE)
		database_error(db, "read", &err);
	if (code != SQLITE_DONE)
		DAMAGED(day->findings, "%s", err.message);
	sqlite3_finalize(statement);
}

/* What is stored is what the accounts of hosts say is; roll-ups with and without the labels of
 * single instances are of the same samples. */
static void check_sums(struct day_check *day)
{
	static const struct {
		enum day_level stored, accounted, same;
	} rows[] = {{DAY_RAW, DAY_RAW, DAY_RAW},
		    {DAY_10M, DAY_10M, DAY_10M_FLEET},
		    {DAY_1H, DAY_RAW, DAY_1H_FLEET}};

	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++)
		for (unsigned type = 0; type < TYPES_MAX; type++) {
			uint64_t stored = day->stored[rows[i].stored][type];
			uint64_t same = day->stored[rows[i].same][type];
			uint64_t accounted = day->accounted[rows[i].accounted][type];

			if (stored != same || (stored != accounted && rows[i].stored != DAY_1H))
				DAMAGED(day->findings,
					"%" PRIu64
					" samples of type %s, level %u, are stored, %" PRIu64
					" without labels of instances, %" PRIu64 " accounted for",
					stored, profile_type_name(type), rows[i].stored, same,
					accounted);
		}
}

/* SQLite's own: pages, cells, keys. */
static void check_pages(sqlite3 *db, struct findings *findings)
{
	struct error err = {0};
	sqlite3_stmt *statement = database_prepare(db, "PRAGMA quick_check(1)", &err);
	const char *text = "";

	if (statement && sqlite3_step(statement) == SQLITE_ROW)
		text = (const char *)sqlite3_column_text(statement, 0);
	else
		database_error(db, "read", &err);
	if (!text || strcmp(text, "ok"))
		DAMAGED(findings, "%s", text && *text ? text : err.message);
	sqlite3_finalize(statement);
}

/* Checksums of all pages, used or not, and of the log. */
static void check_checksums(const char *path, struct findings *findings)
{
	struct page_scan scan;
	struct error err = {0};

	if (!page_checksums_scan(path, &scan, &err))
		DAMAGED(findings, "%s", err.message);
	if (scan.damaged)
		DAMAGED(findings, "the checksums of %u of %u pages are wrong, first of page %u",
			scan.damaged, scan.pages, scan.first_damaged);
	if (scan.has_part)
		DAMAGED(findings, "it ends within a page");
	if (scan.log_damaged)
		DAMAGED(findings, "its log is damaged after %u pages", scan.log_frames);
	if (scan.pages && !scan.has_checksums)
		snprintf(findings->note, sizeof findings->note,
			 ", without checksums: made by an earlier version");
	else if (scan.is_log_torn)
		snprintf(findings->note, sizeof findings->note,
			 ", the log's end is not whole (as after a crash, or being written now)");
}

static void check_day(struct day_reader *reader, struct findings *findings)
{
	struct day_check day = {.catalog = catalog_new(), .findings = findings};
	struct error err = {0};

	if (!day.catalog)
		DAMAGED(findings, "no memory to read it");
	else if (!day_reader_catalog(reader, day.catalog, &err))
		DAMAGED(findings, "its dictionary: %s", err.message);
	if (!findings->damage[0]) {
		each_row(&day, reader->db,
			 "SELECT tenant, type, bucket, series, pairs, samples, value, data, 0 "
			 "FROM samples",
			 check_samples);
		each_row(&day, reader->db, "SELECT tenant, type, bucket, data, 0 FROM accounts",
			 check_accounts);
	}
	if (!findings->damage[0] && reader->has_rollups) {
		each_row(&day, reader->db,
			 "SELECT tenant, type, bucket, series, pairs, samples, value, data, level "
			 "FROM rollups",
			 check_samples);
		each_row(&day, reader->db,
			 "SELECT tenant, type, bucket, data, level FROM rollup_accounts",
			 check_accounts);
	}
	if (!findings->damage[0] && reader->has_moments)
		each_row(&day, reader->db,
			 "SELECT tenant, type, bucket, series, count, data FROM moments",
			 check_moments);
	if (!findings->damage[0] && reader->has_spans)
		each_row(&day, reader->db,
			 "SELECT tenant, type, bucket, series, count, data, filter FROM spans",
			 check_spans);
	if (!findings->damage[0])
		check_sums(&day);
	catalog_release(day.catalog);
}

static void verify_day(const char *path, struct findings *findings)
{
	struct error err = {0};
	struct day_reader *reader;
	uint64_t folded;

	check_checksums(path, findings);
	reader = day_reader_open(path, &err);

	if (!reader && err.kind == ERROR_NOT_FOUND) {
		snprintf(findings->note, sizeof findings->note, ", nothing in it yet");
		return;
	}
	if (reader)
		database_leave_log(reader->db);
	if (!reader || !day_reader_begin(reader, &folded, &err)) {
		findings->is_newer = err.kind == ERROR_UNSUPPORTED;
		DAMAGED(findings, "%s", err.message);
	} else {
		if (!findings->damage[0])
			check_pages(reader->db, findings);
		if (!findings->damage[0])
			check_day(reader, findings);
		day_reader_end(reader);
	}
	day_reader_close(reader);
}

/* --- other databases --- */

static bool is_known(sqlite3 *db, const char *path, struct error *err)
{
	if (name_has_ending(path, "/agents.db"))
		return database_is_known(db, &state_file_schema, err);
	return !name_has_ending(path, "/symbols.db") || database_is_known(db, &symbols_schema, err);
}

static void verify_database(const char *path, struct findings *findings)
{
	struct error err = {0};
	sqlite3 *db = NULL;

	check_checksums(path, findings);
	if (findings->damage[0])
		return;
	if (sqlite3_open_v2(path, &db,
			    SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE,
			    page_checksums_vfs()) != SQLITE_OK ||
	    sqlite3_busy_timeout(db, 5000) != SQLITE_OK ||
	    !database_exec(db, "PRAGMA query_only = 1", &err)) {
		database_error(db, "open", &err);
		DAMAGED(findings, "%s", err.message);
	} else {
		database_leave_log(db);
		check_pages(db, findings);
		if (!findings->damage[0] && !is_known(db, path, &err)) {
			findings->is_newer = err.kind == ERROR_UNSUPPORTED;
			DAMAGED(findings, "%s", err.message);
		}
	}
	sqlite3_close_v2(db);
}

/* --- the journal --- */

static bool check_record(void *context, uint64_t end, const uint8_t *bytes, size_t length)
{
	struct findings *findings = context;
	const uint8_t *at = bytes;
	struct record_item item;
	bool ok;

	while ((ok = record_next(&at, bytes + length, &item)) && item.kind != RECORD_END)
		;
	if (!ok)
		DAMAGED(findings, "the record that ends at %" PRIu64 " cannot be decoded", end);
	findings->rows++;
	return true;
}

static bool read_segment(const char *path, uint8_t *bytes, size_t *length)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = 1;

	*length = 0;
	while (fd >= 0 && got > 0 && *length < JOURNAL_SEGMENT_BYTES) {
		got = pread(fd, bytes + *length, JOURNAL_SEGMENT_BYTES - *length, (off_t)*length);
		*length += got > 0 ? (size_t)got : 0;
	}
	if (fd >= 0)
		close(fd);
	return fd >= 0 && got >= 0;
}

static void verify_segment(const char *path, struct findings *findings)
{
	uint8_t *bytes = malloc(JOURNAL_SEGMENT_BYTES);
	const char *name = strrchr(path, '/') + 1;
	bool is_stopped, is_torn;
	uint64_t number = 0;
	const char *damage;
	unsigned gaps;
	size_t length;

	if (!bytes || sscanf(name, "%16" SCNx64, &number) != 1 ||
	    !read_segment(path, bytes, &length)) {
		DAMAGED(findings, "it cannot be read: %s", strerror(errno));
		free(bytes);
		return;
	}
	journal_read_segment(bytes, length, number, check_record, findings, &is_stopped);
	gaps = journal_count_gaps(bytes, length, number, &is_torn);
	if (gaps)
		DAMAGED(findings, "%u gaps between intact records", gaps);
	damage = findings->damage[0] ? NULL : journal_find_damage(bytes, length, number);
	if (damage)
		DAMAGED(findings, "%s", damage);
	if (is_torn)
		snprintf(findings->note, sizeof findings->note,
			 ", the last one is not whole (as after a crash, or being written now)");
	free(bytes);
}

/* --- the directory --- */

static void put_line(struct verify *verify, const char *name, bool is_journal,
		     const struct findings *findings)
{
	struct verify_report *report = verify->report;

	report->files++;
	report->damaged += findings->damage[0] && !findings->is_newer;
	report->newer += findings->is_newer;
	report->samples += findings->samples;
	if (is_journal)
		report->journal_records += findings->rows;
	else
		report->rows += findings->rows;
	fprintf(verify->out, "%s: ", name);
	if (findings->is_newer)
		fprintf(verify->out, "newer: %s\n", findings->damage);
	else if (findings->damage[0])
		fprintf(verify->out, "damaged: %s\n", findings->damage);
	else if (is_journal)
		fprintf(verify->out, "ok, %" PRIu64 " records%s\n", findings->rows, findings->note);
	else if (findings->rows)
		fprintf(verify->out, "ok, %" PRIu64 " rows, %" PRIu64 " samples%s\n",
			findings->rows, findings->samples, findings->note);
	else
		fprintf(verify->out, "ok%s\n", findings->note);
}

static void look_at_file(const char *path, struct findings *findings)
{
	const char *name = strrchr(path, '/') + 1;
	uint32_t day;

	if (name_has_ending(name, ".journal"))
		verify_segment(path, findings);
	else if (day_file_parse(name, &day) || !strncmp(name, "hours-", 6))
		verify_day(path, findings);
	else
		verify_database(path, findings);
}

bool verify_is_damaged(const char *path, char *damage, size_t room)
{
	struct findings findings = {0};

	look_at_file(path, &findings);
	snprintf(damage, room, "%s", findings.damage);
	return findings.damage[0];
}

static bool verify_file(void *context, const char *path, const char *name, struct error *err)
{
	struct verify *verify = context;
	struct findings findings = {0};

	(void)err;
	look_at_file(path, &findings);
	/* A running server deletes what is too old and uses segments again. */
	if (!findings.damage[0] || !access(path, F_OK))
		put_line(verify, name, name_has_ending(name, ".journal"), &findings);
	return true;
}

/* --- what looking left --- */

/* The journal is locked while a server runs. -1: one does. */
static int lock_journal(const char *data)
{
	char path[PATH_ROOM];
	int fd;

	snprintf(path, sizeof path, "%s/journal", data);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* SQLite makes them for who only reads; without a server nobody would delete them, and a root's are
 * in its way later. An empty log has nothing. */
static void remove_traces(const char *data)
{
	int locked = lock_journal(data);
	DIR *directory = locked >= 0 ? opendir(data) : NULL;
	struct dirent *entry;

	while (directory && (entry = readdir(directory))) {
		char name[300];
		struct stat status;

		if (!name_has_ending(entry->d_name, ".db-shm"))
			continue;
		snprintf(name, sizeof name, "%.*swal", (int)strlen(entry->d_name) - 3,
			 entry->d_name);
		if (!fstatat(dirfd(directory), name, &status, 0) && status.st_size)
			continue;
		unlinkat(dirfd(directory), name, 0);
		unlinkat(dirfd(directory), entry->d_name, 0);
	}
	if (directory)
		closedir(directory);
	if (locked >= 0)
		close(locked);
}

bool data_verify(const char *data, FILE *out, struct verify_report *report, struct error *err)
{
	struct verify verify = {data, out, report};
	char path[PATH_ROOM];

	*report = (struct verify_report){0};
	snprintf(path, sizeof path, "%s/journal", data);
	if (!folder_names_each(path, ".journal", verify_file, &verify, err) ||
	    !folder_names_each(data, ".db", verify_file, &verify, err))
		return false;
	remove_traces(data);
	return true;
}
