/* SPDX-License-Identifier: Apache-2.0 */
/* symbols.db: rows, aliases and tables come back as they were put. */
#include "tests/check.h"

#include <fcntl.h>

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
				 .is_uploaded = true};
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
		CHECK(got.is_uploaded);
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
	test_not_a_database(directory);
	remove_directory(directory);
	return checks_done();
}
