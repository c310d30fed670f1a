/* SPDX-License-Identifier: Apache-2.0 */
/* symbols.db: rows, aliases and tables come back as they were put. */
#include "tests/check.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include "symbol-server/embedded.h"
#include "symbol-server/store/symbols.h"
#include "tests/unit/store/batches.h"

static struct build_id id_of(const char *hex)
{
	struct build_id id = {0};

	build_id_parse(&id, hex, strlen(hex));
	return id;
}

static void test_modules(const char *directory)
{
	struct symbols_store *store = symbols_open(directory, NULL);
	struct build_id id = id_of("aabbccdd00112233"), alias = id_of("0123456789abcdef");
	struct module_row row = {.id = id,
				 .name = "libx.so",
				 .state = MODULE_converting,
				 .quality = QUALITY_SYMTAB,
				 .reason = "a 'quoted' sentence",
				 .source = "upload",
				 .raw_bytes = 1ull << 40,
				 .packed_bytes = 7,
				 .functions = 3,
				 .ranges = 4,
				 .retry_at_ms = 5,
				 .first_seen_ms = 6,
				 .updated_ms = 8,
				 .failures = 9,
				 .is_uploaded = true,
				 .flags = 2,
				 .converter = 3,
				 .files = UINT64_MAX,
				 .file_bytes = 10,
				 .fetch_ms = 11,
				 .conversion_ms = 12,
				 .last_used_ms = 13,
				 .is_dropped = true,
				 .is_gnu = true};
	struct module_row got, *rows;
	struct error err = {0};
	struct arena arena;
	size_t count;

	arena_init(&arena, 1 << 20);
	CHECK(store);
	CHECK(!symbols_module(store, &id, &arena, &got, &err));
	CHECK_NUMBER(err.kind, ERROR_NOT_FOUND);
	CHECK(symbols_put_module(store, &row, NULL));
	CHECK(symbols_put_alias(store, &alias, &id, NULL));
	CHECK(symbols_put_alias(store, &id, &id, NULL)); /* says nothing, harms nothing */
	for (int again = 0; again < 2; again++) {
		CHECK(symbols_module(store, again ? &alias : &id, &arena, &got, NULL));
		CHECK(build_id_equal(&got.id, &id));
		CHECK_TEXT(got.name, "libx.so");
		CHECK_NUMBER(got.state, MODULE_converting);
		CHECK_NUMBER(got.quality, QUALITY_SYMTAB);
		CHECK_TEXT(got.reason, "a 'quoted' sentence");
		CHECK_TEXT(got.source, "upload");
		CHECK_NUMBER(got.raw_bytes, 1ll << 40);
		CHECK_NUMBER(got.packed_bytes, 7);
		CHECK_NUMBER(got.ranges, 4);
		CHECK_NUMBER(got.failures, 9);
		CHECK_NUMBER(got.updated_ms, 8);
		CHECK(got.is_uploaded && got.is_dropped && got.is_gnu);
		CHECK_NUMBER(got.flags, 2);
		CHECK_NUMBER(got.converter, 3);
		CHECK(got.files == UINT64_MAX);
		CHECK_NUMBER(got.file_bytes, 10);
		CHECK_NUMBER(got.fetch_ms, 11);
		CHECK_NUMBER(got.conversion_ms, 12);
		CHECK_NUMBER(got.last_used_ms, 13);
		symbols_close(store);
		store = symbols_open(directory, NULL);
	}
	row.state = MODULE_ready;
	row.reason = "";
	CHECK(symbols_put_module(store, &row, NULL));
	for (unsigned i = 0; i < 200; i++) {
		row.id.bytes[7] = (uint8_t)i;
		CHECK(symbols_put_module(store, &row, NULL));
	}
	CHECK(symbols_modules(store, &arena, &rows, &count, NULL));
	CHECK_NUMBER(count, 200); /* 0x33 was there before */
	CHECK_NUMBER(rows[199].id.bytes[7], 199);
	symbols_close(store);
	arena_release(&arena);
}

static void test_tables(const char *directory)
{
	struct symbols_store *store = symbols_open(directory, NULL);
	struct build_id id = id_of("aabbccdd00112233"), alias = id_of("0123456789abcdef");
	struct error err = {0};
	struct buffer out;
	uint32_t format;

	buffer_init(&out, 1 << 20);
	CHECK(!symbols_get_table(store, &id, &format, &out, &err));
	CHECK_NUMBER(err.kind, ERROR_NOT_FOUND);
	CHECK(symbols_put_table(store, &id, 3, "one\0two", 7, NULL));
	CHECK(symbols_put_table(store, &id, 4, "other\0table", 11, NULL));
	CHECK(symbols_get_table(store, &alias, &format, &out, NULL));
	CHECK_NUMBER(format, 4);
	CHECK(out.length == 11 && !memcmp(out.bytes, "other\0table", 11));
	buffer_release(&out);
	buffer_init(&out, 4);
	CHECK(!symbols_get_table(store, &id, &format, &out, &err));
	CHECK_NUMBER(err.kind, ERROR_LIMIT);
	buffer_release(&out);
	symbols_close(store);
}

static void test_candidates(const char *directory)
{
	struct symbols_store *store = symbols_open(directory, NULL);
	struct build_id id = id_of("aabbccdd00112233"), other = id_of("aabbccdd00112232");
	struct candidate_row here[] = {
		{.source = "upload", .answer = CANDIDATE_used, .detail = "symbols", .bytes = 5},
		{.source = "directory", .answer = CANDIDATE_not_found, .detail = ""},
	};
	struct candidate_row asked = {.source = "http://one",
				      .answer = CANDIDATE_down,
				      .detail = "it's \"away\"",
				      .ms = 6,
				      .at_ms = 7};
	struct candidate_row *rows;
	struct arena arena;
	size_t count;

	arena_init(&arena, 1 << 20);
	CHECK(symbols_put_candidates(store, &id, CANDIDATE_REMOTE, &asked, 1, NULL));
	CHECK(symbols_put_candidates(store, &id, CANDIDATE_HERE, here, 2, NULL));
	CHECK(symbols_put_candidates(store, &id, CANDIDATE_HERE, here, 2, NULL)); /* replaces */
	CHECK(symbols_put_candidates(store, &other, CANDIDATE_HERE, here + 1, 1, NULL));
	symbols_close(store);
	store = symbols_open(directory, NULL);
	CHECK(symbols_candidates(store, &arena, &rows, &count, NULL));
	CHECK_NUMBER(count, 4);
	CHECK(count == 4 && build_id_equal(&rows[0].id, &other));
	CHECK_TEXT(rows[1].source, "upload");
	CHECK_NUMBER(rows[1].bytes, 5);
	CHECK_NUMBER(rows[2].answer, CANDIDATE_not_found);
	CHECK_TEXT(rows[3].detail, "it's \"away\"");
	CHECK_NUMBER(rows[3].answer, CANDIDATE_down);
	CHECK_NUMBER(rows[3].ms, 6);
	CHECK_NUMBER(rows[3].at_ms, 7);
	CHECK(symbols_put_candidates(store, &id, CANDIDATE_HERE, NULL, 0, NULL));
	CHECK(symbols_candidates(store, &arena, &rows, &count, NULL));
	CHECK_NUMBER(count, 2);
	symbols_close(store);
	arena_release(&arena);
}

static long long bytes_of(const char *directory)
{
	char path[4096];
	struct stat stat_of;

	snprintf(path, sizeof path, "%s/symbols.db", directory);
	return stat(path, &stat_of) ? -1 : (long long)stat_of.st_size;
}

/* Room that dropped tables had is the disk's again. */
static void test_dropped(const char *directory)
{
	enum { TABLE_BYTES = 4 << 20, TABLES = 8 };
	struct symbols_store *store = symbols_open(directory, NULL);
	struct build_id id = id_of("00000000000000aa");
	uint8_t *bytes = calloc(1, TABLE_BYTES);
	long long full, empty;
	struct error err = {0};
	struct buffer out;
	uint32_t format;

	for (uint8_t i = 0; i < TABLES; i++) {
		id.bytes[0] = i;
		CHECK(symbols_put_table(store, &id, 1, bytes, TABLE_BYTES, NULL));
	}
	symbols_close(store);
	full = bytes_of(directory);
	store = symbols_open(directory, NULL);
	for (uint8_t i = 1; i < TABLES; i++) {
		id.bytes[0] = i;
		CHECK(symbols_drop_table(store, &id, NULL));
	}
	CHECK(symbols_drop_table(store, &id, NULL)); /* it is gone already */
	while (symbols_give_back(store))
		;
	buffer_init(&out, TABLE_BYTES);
	CHECK(!symbols_get_table(store, &id, &format, &out, &err));
	CHECK_NUMBER(err.kind, ERROR_NOT_FOUND);
	id.bytes[0] = 0;
	CHECK(symbols_get_table(store, &id, &format, &out, NULL));
	CHECK(out.length == TABLE_BYTES && !memcmp(out.bytes, bytes, TABLE_BYTES));
	symbols_close(store);
	empty = bytes_of(directory);
	printf("# %lld bytes, then %lld\n", full, empty);
	CHECK(full > TABLES * (long long)TABLE_BYTES && empty < full / 4);
	buffer_release(&out);
	free(bytes);
}

/* A file of the first version: what is in it stays, and from then on it can shrink. */
static void test_first_version(const char *directory)
{
	struct build_id id = id_of("aabbccdd00112233");
	struct symbols_store *store;
	struct module_row row;
	struct arena arena;
	struct buffer out;
	sqlite3 *db = NULL;
	char path[4096];
	uint32_t format;

	snprintf(path, sizeof path, "%s/first", directory);
	CHECK(!mkdir(path, 0700));
	snprintf(path, sizeof path, "%s/first/symbols.db", directory);
	CHECK(sqlite3_open(path, &db) == SQLITE_OK);
	CHECK(sqlite3_exec(db, embedded_symbols_0001_sql, NULL, NULL, NULL) == SQLITE_OK);
	CHECK(sqlite3_exec(db,
			   "PRAGMA application_id = 0x66667931; PRAGMA user_version = 1;"
			   "INSERT INTO modules VALUES (1, x'aabbccdd00112233', 'old', 'ready', 5, '',"
			   " 'upload', 1, 2, 3, 4, 5, 6, 7, 8, 1);"
			   "INSERT INTO tables VALUES (1, x'aabbccdd00112233', 1, CAST('packed' AS BLOB))",
			   NULL, NULL, NULL) == SQLITE_OK);
	sqlite3_close(db);
	snprintf(path, sizeof path, "%s/first", directory);
	store = symbols_open(path, NULL);
	arena_init(&arena, 1 << 20);
	buffer_init(&out, 1 << 20);
	CHECK(store && symbols_module(store, &id, &arena, &row, NULL));
	CHECK_TEXT(row.name, "old");
	CHECK_NUMBER(row.quality, QUALITY_DWARF);
	CHECK_NUMBER(row.converter, 0);
	CHECK(symbols_get_table(store, &id, &format, &out, NULL));
	CHECK(out.length == 6 && !memcmp(out.bytes, "packed", 6));
	arena_release(&arena);
	buffer_release(&out);
	symbols_close(store);
	test_dropped(path);
}

static void test_not_a_database(const char *directory)
{
	struct symbols_store *store;
	struct error err = {0};
	char path[4096], junk[8192];
	int fd;

	snprintf(path, sizeof path, "%s/symbols.db", directory);
	memset(junk, 'x', sizeof junk);
	fd = open(path, O_WRONLY | O_TRUNC);
	CHECK(write(fd, junk, sizeof junk) == (ssize_t)sizeof junk);
	close(fd);
	store = symbols_open(directory, &err);
	CHECK(store);
	symbols_close(store);
	snprintf(path, sizeof path, "%s/symbols.db.damaged", directory);
	CHECK(!access(path, F_OK)); /* set aside: what is in it can be made again */
	CHECK(!symbols_open("/nonexistent/place", &err));
	CHECK_NUMBER(err.kind, ERROR_SYSTEM);
	symbols_close(NULL);
}

int main(void)
{
	const char *directory = make_directory();

	test_modules(directory);
	test_tables(directory);
	test_candidates(directory);
	test_first_version(directory);
	test_dropped(directory);
	test_not_a_database(directory);
	remove_directory(directory);
	return checks_done();
}
