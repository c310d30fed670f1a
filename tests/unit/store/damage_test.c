/* SPDX-License-Identifier: Apache-2.0 */
/* One day's file is damaged in many ways (DAMAGE_VARIANTS=200 for more): the other days answer as
 * before, nothing crashes, that day answers with what can still be read, its books are balanced,
 * and takes reports again; and whatever changes how many samples it answers is found by
 * data_verify() or set aside. Other numbers, such as what a host took, are there once and have no
 * checksum. */
#include "tests/check.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "symbol-server/store/data_directory.h"
#include "symbol-server/store/sqlite/page_checksums.h"
#include "tests/unit/store/batches.h"
#include "tests/unit/store/kill_shims.h"

enum { VARIANTS = 30, DAYS = 3, REPORTS = 40, STACKS = 60, DAY_MS = 86400000 };

static uint64_t random_state = 42;

static uint32_t random_below(uint32_t limit)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(random_state >> 33) % limit;
}

/* ---- files ---- */

static size_t read_file(const char *path, uint8_t **bytes)
{
	FILE *file = fopen(path, "rb");
	struct stat status;
	size_t length = 0;

	*bytes = NULL;
	if (file && !fstat(fileno(file), &status)) {
		*bytes = malloc((size_t)status.st_size + 1);
		length = fread(*bytes, 1, (size_t)status.st_size, file);
	}
	if (file)
		fclose(file);
	return length;
}

static void write_file(const char *path, const uint8_t *bytes, size_t length)
{
	FILE *file = fopen(path, "wb");

	CHECK(file && fwrite(bytes, 1, length, file) == length);
	if (file)
		fclose(file);
}

struct whole { /* the files as they were */
	char name[32];
	uint8_t *bytes;
	size_t length;
};

static void lay_out(const char *directory, const struct whole *files, unsigned count)
{
	char path[900];

	mkdir(directory, 0700);
	for (unsigned i = 0; i < count; i++) {
		snprintf(path, sizeof path, "%s/%s", directory, files[i].name);
		write_file(path, files[i].bytes, files[i].length);
	}
	snprintf(path, sizeof path, "%s/journal", directory);
	mkdir(path, 0700);
}

/* ---- damage ---- */

static const char *damage(const char *path, const struct whole *file, unsigned variant)
{
	static const char *const names[] = {"a bit", "some bytes", "noise",
					    "zeros", "cut",        "a page from elsewhere"};
	uint8_t *copy = malloc(file->length);
	uint32_t length = (uint32_t)file->length, at = random_below(length - 512);
	unsigned how = variant % 6;

	memcpy(copy, file->bytes, length);
	if (how == 0)
		copy[at] ^= (uint8_t)(1 << random_below(8));
	else if (how == 1)
		for (unsigned i = 0; i < 8; i++)
			copy[random_below(length)] = (uint8_t)random_below(256);
	else if (how == 2)
		for (unsigned i = 0; i < 512; i++)
			copy[at + i] = (uint8_t)random_below(256);
	else if (how == 3)
		memset(copy + at, 0, 512);
	else if (how == 4)
		length = at;
	else
		memcpy(copy + 8192 * random_below(length / 8192),
		       file->bytes + 8192 * random_below(length / 8192), 8192);
	write_file(path, copy, length);
	free(copy);
	return names[how];
}

/* ---- what there is ---- */

static bool make_world(const char *directory)
{
	struct samples_store *store = open_store(directory, NULL);
	bool ok = store;

	for (uint32_t day = 0; ok && day < DAYS; day++)
		for (uint32_t n = 0; ok && n < REPORTS; n++)
			ok = add_report(store, n % 2 ? "h1" : "h2", n % 3 ? "a" : "b",
					noon + day * (int64_t)DAY_MS + n % 8 * 60000,
					day * REPORTS + n + 1, n * STACKS / 2, STACKS);
	samples_close(store);
	return ok;
}

static struct totals day_totals(struct samples_store *store, unsigned day)
{
	return query_totals(store, noon + day * (int64_t)DAY_MS,
			    noon + day * (int64_t)DAY_MS + 3600000);
}

static bool is_whole(const struct totals *totals)
{
	return totals->samples == REPORTS * STACKS && totals->stored == totals->samples &&
	       totals->taken == totals->samples && totals->hosts == 2;
}

static unsigned kept; /* damaged days that still answer */
static uint64_t kept_samples;

static bool has_aside(const char *path)
{
	char aside[1000];

	snprintf(aside, sizeof aside, "%s.damaged", path);
	return !access(aside, F_OK);
}

/* False: something is wrong. *is_found: the damage was noticed. */
static bool survives(const char *directory, const char *path, bool *is_found)
{
	struct samples_store *store;
	struct verify_report report;
	FILE *out = fopen("/dev/null", "w");
	struct totals hurt, others[2], after;
	bool ok = data_verify(directory, out, &report, NULL);

	fclose(out);
	*is_found = report.damaged;
	store = open_store(directory, NULL);
	if (!ok || !store)
		return false;
	hurt = day_totals(store, 0);
	others[0] = day_totals(store, 1);
	others[1] = day_totals(store, 2);
	/* The first question may be the one that finds the damage. */
	if (hurt.samples == UINT64_MAX)
		hurt = day_totals(store, 0);
	ok = is_whole(&others[0]) && is_whole(&others[1]) && hurt.samples != UINT64_MAX &&
	     (hurt.samples == REPORTS * STACKS || *is_found || has_aside(path)) &&
	     hurt.taken == hurt.stored + hurt.lost && hurt.stored == hurt.samples;
	if (getenv("DAMAGE_SHOWN"))
		printf("# kept %lu of %u, lost %lu\n", (unsigned long)hurt.samples,
		       REPORTS * STACKS, (unsigned long)hurt.lost);
	kept += hurt.samples > 0;
	kept_samples += hurt.samples;
	*is_found |= has_aside(path);
	ok = ok && add_report(store, "h9", "new", noon, 99999, 1, 7) && samples_fold(store, NULL);
	after = day_totals(store, 0);
	ok = ok && after.samples != UINT64_MAX && after.samples >= 7 &&
	     after.taken == after.stored + after.lost;
	samples_close(store);
	if (has_aside(path)) { /* what is left has no fault */
		out = fopen("/dev/null", "w");
		ok = ok && data_verify(directory, out, &report, NULL) && !report.damaged;
		fclose(out);
	}
	return ok;
}

static void test_variants(const char *directory, const struct whole *files, unsigned count,
			  unsigned which)
{
	const char *wanted = getenv("DAMAGE_VARIANTS");
	unsigned variants = wanted ? (unsigned)atoi(wanted) : VARIANTS, wrong = 0, found = 0;
	char copy[100], path[900];

	for (unsigned variant = 0; variant < variants; variant++) {
		const char *how;
		bool is_found;

		snprintf(copy, sizeof copy, "%s/copy-%u", directory, variant);
		lay_out(copy, files, count);
		snprintf(path, sizeof path, "%s/%s", copy, files[which].name);
		how = damage(path, &files[which], variant);
		if (!survives(copy, path, &is_found)) {
			printf("# variant %u, %s: wrong\n", variant, how);
			wrong++;
		}
		found += is_found;
		remove_directory(copy);
	}
	printf("# %u of %u found, %u kept something: %.0f %% of all samples\n", found, variants,
	       kept, 100.0 * (double)kept_samples / ((double)variants * REPORTS * STACKS));
	CHECK_NUMBER(wrong, 0);
	CHECK(found > variants / 3); /* the rest hit what is not in use, or texts */
}

/* Rows whose bytes are none of packed.h's, in a file that is whole to SQLite: they are lost, which
 * the accounts say, and the question that finds it is answered. */
static void test_damaged_row(const char *directory, const struct whole *files, unsigned count,
			     unsigned which)
{
	struct samples_store *store;
	struct totals hurt, other;
	char copy[100], path[900];
	sqlite3 *db;

	snprintf(copy, sizeof copy, "%s/row", directory);
	lay_out(copy, files, count);
	snprintf(path, sizeof path, "%s/%s", copy, files[which].name);
	CHECK(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, page_checksums_vfs()) == SQLITE_OK);
	CHECK(sqlite3_exec(db, "UPDATE samples SET data = x'01ffffff'", NULL, NULL, NULL) ==
	      SQLITE_OK);
	sqlite3_close(db);
	store = open_store(copy, NULL);
	hurt = day_totals(store, 0);
	CHECK_NUMBER(hurt.samples, 0);
	CHECK_NUMBER(hurt.taken, REPORTS * STACKS);
	CHECK_NUMBER(hurt.lost, REPORTS * STACKS);
	CHECK(has_aside(path));
	other = day_totals(store, 1);
	CHECK(is_whole(&other));
	samples_close(store);
	remove_directory(copy);
}

static bool count_moment(void *context, int64_t time_ms, uint64_t value)
{
	(void)time_ms, (void)value;
	++*(unsigned *)context;
	return true;
}

/* Times of single samples that are none: what was passed on already cannot be taken back, so only
 * the next question is answered. */
static void test_damaged_times(const char *directory)
{
	const struct samples_query query = {
		.tenant = 1, .from_ms = noon, .until_ms = noon + 60000, .type = "on-cpu"};
	uint64_t time_ns = (uint64_t)(noon + 5) * 1000000;
	struct samples_store *store;
	struct batch_maker maker;
	char data[100], path[900];
	struct error err = {0};
	unsigned count = 0;
	sqlite3 *db;

	snprintf(data, sizeof data, "%s/times", directory);
	store = open_store(data, NULL);
	batch_report(&maker, "h1", "a", noon, 1, 1, 1);
	maker.batch.times = &time_ns;
	maker.batch.time_count = maker.batch.samples[0].time_count = 1;
	CHECK(add_and_wait(store, &maker, NULL, NULL));
	arena_release(&maker.arena);
	CHECK(samples_fold(store, NULL));
	CHECK(samples_moments(store, &query, count_moment, &count, NULL));
	CHECK_NUMBER(count, 1);
	samples_close(store);
	snprintf(path, sizeof path, "%s/samples-20261121.db", data);
	CHECK(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, page_checksums_vfs()) == SQLITE_OK);
	CHECK(sqlite3_exec(db, "UPDATE moments SET data = x'01ffffff'", NULL, NULL, NULL) ==
	      SQLITE_OK);
	sqlite3_close(db);
	store = open_store(data, NULL);
	CHECK(!samples_moments(store, &query, count_moment, &count, &err));
	CHECK(err.kind == ERROR_FORMAT);
	CHECK(has_aside(path));
	CHECK(samples_moments(store, &query, count_moment, &count, NULL));
	CHECK_NUMBER(count, 1);
	CHECK_NUMBER(query_totals(store, noon, noon + 60000).samples, 1); /* it is there */
	samples_close(store);
}

static uint32_t verify_damaged(const char *directory)
{
	FILE *out = fopen("/dev/null", "w");
	struct verify_report report = {0};

	CHECK(data_verify(directory, out, &report, NULL));
	fclose(out);
	return (uint32_t)report.damaged;
}

static void change_file(const char *path, const char *sql)
{
	sqlite3 *db;

	CHECK(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, page_checksums_vfs()) == SQLITE_OK);
	CHECK(sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK);
	sqlite3_close(db);
}

/* Requests of samples that are none: --verify says so, and who asks for requests finds it. */
static void test_damaged_spans(const char *directory)
{
	static const char *const changes[] = {
		"UPDATE spans SET filter = zeroblob(length(filter))",
		"UPDATE spans SET count = count + 1",
		"UPDATE spans SET data = x'01ffffff'",
	};
	struct samples_store *store;
	struct batch_maker maker;
	char data[100], path[900];

	snprintf(data, sizeof data, "%s/spans", directory);
	store = open_store(data, NULL);
	batch_report(&maker, "h1", "a", noon, 1, 1, 1);
	batch_link(&maker, 1);
	CHECK(add_and_wait(store, &maker, NULL, NULL));
	arena_release(&maker.arena);
	CHECK(samples_fold(store, NULL));
	CHECK_NUMBER(query_spans(store, noon, noon + 60000), 1);
	samples_close(store);
	CHECK_NUMBER(verify_damaged(data), 0);
	snprintf(path, sizeof path, "%s/samples-20261121.db", data);
	change_file(path, "CREATE TABLE whole AS SELECT * FROM spans");
	for (unsigned i = 0; i < sizeof changes / sizeof *changes; i++) {
		change_file(path, "DELETE FROM spans; INSERT INTO spans SELECT * FROM whole");
		CHECK_NUMBER(verify_damaged(data), 0);
		change_file(path, changes[i]);
		CHECK_NUMBER(verify_damaged(data), 1);
	}
	store = open_store(data, NULL);
	CHECK(query_spans(store, noon, noon + 60000) != 1);
	CHECK(has_aside(path));
	CHECK_NUMBER(query_spans(store, noon, noon + 60000), 0);
	samples_close(store);
}

static int compare_files(const void *a, const void *b)
{
	return strcmp(((const struct whole *)a)->name, ((const struct whole *)b)->name);
}

int main(void)
{
	const char *directory = make_directory();
	char data[100], path[400];
	struct whole files[16];
	struct dirent *entry;
	unsigned count = 0, which = 0;
	DIR *list;

	snprintf(data, sizeof data, "%s/data", directory);
	CHECK(make_world(data));
	list = opendir(data);
	while (list && (entry = readdir(list)) && count < 16) {
		if (!strstr(entry->d_name, ".db"))
			continue;
		snprintf(files[count].name, sizeof files[count].name, "%.31s", entry->d_name);
		snprintf(path, sizeof path, "%s/%s", data, entry->d_name);
		files[count].length = read_file(path, &files[count].bytes);
		count++;
	}
	closedir(list);
	qsort(files, count, sizeof *files, compare_files);
	while (which < count && strncmp(files[which].name, "samples-20261121", 16))
		which++;
	CHECK(which < count && files[which].length > 8 * 8192);
	if (which < count) {
		test_variants(directory, files, count, which);
		test_damaged_row(directory, files, count, which);
	}
	test_damaged_times(directory);
	test_damaged_spans(directory);
	for (unsigned i = 0; i < count; i++)
		free(files[i].bytes);
	remove_directory(directory);
	return checks_done();
}
