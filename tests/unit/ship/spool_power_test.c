/* SPDX-License-Identifier: Apache-2.0 */
/* The machine loses its power, again and again: of what was not synced, each file's name and bytes
 * may be on the disk or not, and what was removed may be back. What the spool syncs and removes is
 * seen in place of the C library's functions. */
#include "tests/unit/ship/spool_tally.h"

#include <sys/syscall.h>

enum { NUMBERS = 4096, AGO = 128, LIMIT = 150000 };

static bool has_bytes[NUMBERS + AGO],
	has_name[NUMBERS + AGO]; /* on the disk, by the file's number */
static uint8_t state[1024];      /* on the disk */
static unsigned newest;          /* number; those long before it are gone for good */
static bool is_over;             /* nothing reaches it any more */

static const char *path_of(unsigned number, const char *kind)
{
	static char paths[2][200];
	static unsigned turn;
	char *path = paths[turn++ % 2];

	snprintf(path, sizeof paths[0], "%s/%016x.%s", directory, number, kind);
	return path;
}

static unsigned number_of(const char *name)
{
	unsigned number = (unsigned)strtoul(name, NULL, 16) % NUMBERS;

	newest = number > newest ? number : newest;
	return number;
}

static unsigned oldest(void)
{
	return newest > AGO ? newest - AGO : 0;
}

static bool is_there(unsigned number, const char *kind)
{
	return access(path_of(number, kind), F_OK) == 0;
}

int fdatasync(int fd)
{
	char link[64], path[300] = "";
	const char *name;

	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	if (readlink(link, path, sizeof path - 1) < 0 || is_over)
		return 0;
	name = strrchr(path, '/') + 1;
	if (!strcmp(name, "state"))
		return pread(fd, state, sizeof state, 0) == sizeof state ? 0 : -1;
	has_bytes[number_of(name)] = true;
	return 0;
}

/* Of the directory. */
int fsync(int fd)
{
	(void)fd;
	for (unsigned i = oldest(); i < newest + AGO && !is_over; i++) {
		has_name[i] = is_there(i, "spool");
		unlink(path_of(i, "removed"));
	}
	return 0;
}

int unlinkat(int folder, const char *name, int flags)
{
	unsigned number = number_of(name);

	if (strstr(name, ".spool"))
		link(path_of(number, "spool"), path_of(number, "removed"));
	return (int)syscall(SYS_unlinkat, folder, name, flags);
}

static void lose_power(struct spool *spool)
{
	struct stat status;
	char path[200];

	is_over = true;
	spool_close(spool);
	is_over = false;
	for (unsigned i = oldest(); i < newest + AGO; i++) {
		const char *kind = is_there(i, "spool") ? "spool" : "removed";

		if (stat(path_of(i, kind), &status) == 0 && !has_bytes[i] && rand() % 2)
			CHECK(truncate(path_of(i, kind), rand() % (status.st_size + 1)) == 0);
		if (!has_name[i] && rand() % 2)
			unlink(path_of(i, kind));
		if (rand() % 2)
			rename(path_of(i, "removed"), path_of(i, "spool"));
		unlink(path_of(i, "removed"));
		has_bytes[i] = has_name[i] = is_there(i, "spool");
	}
	if (rand() % 2) {
		int fd;

		snprintf(path, sizeof path, "%s/state", directory);
		fd = open(path, O_WRONLY);
		CHECK(pwrite(fd, state, sizeof state, 0) == sizeof state);
		close(fd);
	}
}

/* Until the power fails. What was sent before goes again first: were it dropped now, it would count
 * as lost besides. */
static void run_once(struct spool *spool)
{
	const struct spool_report *report;

	while ((report = spool_first(spool)) &&
	       (report->is_remainder || report->host.report_seq <= runs[report->run[0]].last_seq))
		deliver(spool, false);
	for (int step = rand() % 60; step > 0; step--) {
		do_anything(spool, false);
		if (rand() % 15)
			continue;
		spool_sync(spool);
		runs[run_number].promised = runs[run_number].taken;
	}
	lose_power(spool);
}

static void check_power(unsigned seed)
{
	struct spool *spool;

	srand(seed);
	start_anew();
	newest = 0;
	memset(has_bytes, 0, sizeof has_bytes);
	memset(has_name, 0, sizeof has_name);
	are_repeats_known = true;
	while (run_number < RUNS - 2)
		run_once(open_limited(LIMIT));
	spool = open_limited(LIMIT);
	deliver_all(spool);
	for (unsigned i = 1; i < RUNS; i++)
		expect(runs[i].told_taken >= runs[i].promised, "promised", runs[i].told_taken,
		       runs[i].promised);
	spool_close(spool);
	remove_directory();
	check_quiet("loss of power");
}

/* spool_power_test [SEEDS] */
int main(int count, char **arguments)
{
	unsigned seeds = count > 1 ? (unsigned)atoi(arguments[1]) : 10;

	start_tally();
	for (unsigned seed = 1; seed <= seeds; seed++)
		check_power(seed);
	shell("rm -rf '%s'", top);
	return checks_done();
}
