/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a column of packed bytes, or as numbers, in a day's file, a month's or agents.db
 * that are sound to SQLite: the store opens, answers, rolls up, deletes and verifies, and the next
 * question is answered whatever the first one met. First byte: which column; second: with what
 * number a row of definitions begins. */
#include <dirent.h>
#include <sqlite3.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/log.h"
#include "symbol-server/store/data_directory.h"
#include "symbol-server/store/sqlite/page_checksums.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/store/batches.h"

enum { FILES_MAX = 8, QUARTER_DAY_MS = 6 * 3600000 };

static const char *const changes[] = {
	"UPDATE samples SET data = ?1",
	"UPDATE accounts SET data = ?1",
	"UPDATE rollups SET data = ?1",
	"UPDATE rollups SET hosts = ?1",
	"UPDATE rollup_accounts SET data = ?1",
	"UPDATE moments SET data = ?1",
	"UPDATE definitions SET data = ?1 WHERE kind = ?2 % 5",
	"UPDATE definitions SET first = ?2 + first * (?2 % 2), count = ?2 * 1000003 WHERE kind = "
	"?2 % 5",
	"UPDATE samples SET pairs = -?2, samples = ?2, value = ?2 << 56, series = ?2",
	"UPDATE rollups SET pairs = ?2 << 30, samples = -?2, series = ?2, bucket = bucket + ?2",
	"UPDATE samples SET bucket = ?2 * 30 - 60, type = ?2 % 16 - 2, tenant = ?2 % 3",
	"UPDATE rollup_marks SET through = ?2 << 40, newest = -?2",
	"UPDATE agents SET id = ?1",
	"UPDATE agents SET lost = CAST(?1 AS TEXT), stacks = CAST(?1 AS TEXT), host = CAST(?1 AS "
	"TEXT)",
	"UPDATE reports SET prefix = ?1, count = ?2 << 24",
	"UPDATE facts SET value = ?2 << 40",
	"UPDATE spans SET data = ?1",
	"UPDATE spans SET filter = ?1",
	"UPDATE spans SET count = -?2, series = ?2, type = ?2 % 16 - 2, bucket = ?2 * 30 - 60",
};
enum { CHANGES = sizeof changes / sizeof *changes };

static struct whole {
	char name[40];
	uint8_t *bytes;
	size_t length;
} files[FILES_MAX];
static unsigned file_count;

static const char *new_directory(char path[64])
{
	snprintf(path, 64, "%s/farflame-rows-XXXXXX",
		 access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
	if (!mkdtemp(path))
		abort();
	return path;
}

static void read_files(const char *directory)
{
	DIR *list = opendir(directory);
	struct dirent *entry;
	char path[1024];

	while (list && (entry = readdir(list)) && file_count < FILES_MAX) {
		struct whole *whole = &files[file_count];
		struct stat status;
		FILE *file;

		if (!strstr(entry->d_name, ".db"))
			continue;
		snprintf(whole->name, sizeof whole->name, "%.39s", entry->d_name);
		snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
		file = fopen(path, "rb");
		if (!file || fstat(fileno(file), &status))
			abort();
		whole->bytes = malloc((size_t)status.st_size + 1);
		whole->length = fread(whole->bytes, 1, (size_t)status.st_size, file);
		fclose(file);
		file_count++;
	}
	closedir(list);
}

/* Two days, some of it with times, folded and rolled up. */
static void make_files(void)
{
	static const uint8_t request[24] = "a trace and a span of it";
	uint64_t time_ns = (uint64_t)(noon + 5) * 1000000;
	struct samples_store *store;
	struct batch_maker maker;
	char path[64];

	log_set_level(LOG_ERROR);
	store = open_store(new_directory(path), NULL);
	for (uint32_t n = 0; store && n < 12; n++) {
		batch_report(&maker, n % 2 ? "h1" : "h2", n % 3 ? "a" : "b",
			     noon + n % 2 * 86400000 + n * 60000, n + 1, n, 4);
		for (unsigned i = 0; i < 4; i++)
			maker.batch.samples[i].link = request;
		if (!n) {
			maker.batch.times = &time_ns;
			maker.batch.time_count = maker.batch.samples[0].time_count = 1;
		}
		if (!add_and_wait(store, &maker, NULL, NULL))
			abort();
		arena_release(&maker.arena);
	}
	if (!store || !samples_fold(store, NULL) || !samples_fold(store, NULL))
		abort();
	samples_close(store);
	read_files(path);
	remove_directory(path);
}

static void lay_out(const char *directory, const uint8_t *bytes, size_t length)
{
	char path[1024];

	snprintf(path, sizeof path, "%s/journal", directory);
	mkdir(path, 0700);
	for (unsigned i = 0; i < file_count; i++) {
		sqlite3_stmt *change = NULL;
		sqlite3 *db = NULL;
		FILE *file;

		snprintf(path, sizeof path, "%s/%s", directory, files[i].name);
		file = fopen(path, "wb");
		if (!file || fwrite(files[i].bytes, 1, files[i].length, file) != files[i].length)
			abort();
		fclose(file);
		if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, page_checksums_vfs()) ==
			    SQLITE_OK &&
		    sqlite3_exec(db, "PRAGMA synchronous = OFF", NULL, NULL, NULL) == SQLITE_OK &&
		    sqlite3_prepare_v2(db, changes[bytes[0] % CHANGES], -1, &change, NULL) ==
			    SQLITE_OK) {
			sqlite3_bind_blob64(change, 1, length > 2 ? bytes + 2 : (const void *)"",
					    length - 2, SQLITE_STATIC);
			if (sqlite3_bind_parameter_count(change) > 1)
				sqlite3_bind_int64(change, 2, bytes[1]);
			sqlite3_step(change);
		}
		sqlite3_finalize(change);
		sqlite3_close(db);
	}
}

static bool see_moment(void *context, int64_t time_ms, uint64_t value)
{
	*(uint64_t *)context += (uint64_t)time_ms + value;
	return true;
}

static void ask(struct samples_store *store, int64_t from_ms, int64_t until_ms)
{
	struct samples_query query = {
		.tenant = 1, .from_ms = from_ms, .until_ms = until_ms, .type = "on-cpu"};
	struct type_count *types;
	struct label_count *labels;
	struct arena arena;
	uint64_t sum = 0;
	size_t count;

	samples_result_free(samples_query(store, &query, NULL));
	samples_timeline_free(samples_timeline(store, &query, NULL));
	samples_moments(store, &query, see_moment, &sum, NULL);
	query.by_thread = true;
	samples_result_free(samples_query(store, &query, NULL));
	query.by_span = true;
	samples_result_free(samples_query(store, &query, NULL));
	query.by_span = query.by_thread = false;
	query.trace_id = (const uint8_t *)"a trace and a sp";
	samples_result_free(samples_query(store, &query, NULL));
	query.trace_id = NULL;
	arena_init(&arena, 64 << 20);
	samples_types(store, &query, &arena, &types, &count, NULL);
	samples_labels(store, &query, &arena, &labels, &count, NULL);
	arena_release(&arena);
}

static bool is_b(void *context, const struct series_labels *labels)
{
	(void)context;
	for (uint32_t i = 0; i < labels->count; i++)
		if (!strcmp(labels->names[i], "service"))
			return !strcmp(labels->values[i], "b");
	return false;
}

static bool is_worker(void *context, const char *thread)
{
	(void)context;
	return !strcmp(thread, "worker");
}

static void fuzz_one(const uint8_t *bytes, size_t length)
{
	struct samples_query gone = {
		.tenant = 1, .from_ms = noon, .until_ms = noon + 600000, .series_wanted = is_b};
	struct samples_query of_thread = gone;
	struct verify_report report;
	struct samples_store *store;
	struct samples_deleted deleted;
	char path[64];
	FILE *out;

	if (!file_count)
		make_files();
	if (length < 2 || length > 4096)
		return;
	lay_out(new_directory(path), bytes, length);
	out = fopen("/dev/null", "w");
	data_verify(path, out, &report, NULL);
	fclose(out);
	store = open_store(path, NULL);
	if (store) {
		ask(store, noon, noon + 600000);
		ask(store, noon - QUARTER_DAY_MS, noon + 2 * 86400000);
		of_thread.thread_wanted = is_worker;
		of_thread.until_ms = noon + 180000;
		samples_delete(store, &of_thread, &deleted, NULL);
		samples_delete(store, &gone, &deleted, NULL);
		if (!add_report(store, "h9", "new", noon, 99999, 1, 7))
			abort();
		samples_fold(store, NULL);
		if (query_totals(store, noon - QUARTER_DAY_MS, noon + 2 * 86400000).samples ==
			    UINT64_MAX &&
		    query_totals(store, noon - QUARTER_DAY_MS, noon + 2 * 86400000).samples ==
			    UINT64_MAX)
			abort();
		samples_close(store);
	}
	remove_directory(path);
}
