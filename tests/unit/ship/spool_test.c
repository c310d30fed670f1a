/* SPDX-License-Identifier: Apache-2.0 */
/* The spool on a real directory. What a server would be told is kept by a tally of the test's own:
 * with every report that arrives, taken = samples + lost of that run. */
#include "tests/check.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/crc32c.h"
#include "common/log.h"
#include "node-agent/ship/spool.h"
#include "node-agent/ship/spool_directory.h"

enum { RUNS = 64, BODY = 3000, SMALL = 1 << 20 };

static char top[64], directory[100];

/* --- files --- */

static void remove_tree(const char *path)
{
	char command[300];

	snprintf(command, sizeof command, "rm -rf '%s'", path);
	CHECK(system(command) == 0);
}

static void remove_files(void)
{
	char command[300];

	snprintf(command, sizeof command, "rm -f '%s'/*", directory);
	CHECK(system(command) == 0);
}

static void make_top(void)
{
	snprintf(top, sizeof top, "/tmp/farflame-spool-XXXXXX");
	CHECK(mkdtemp(top));
	snprintf(directory, sizeof directory, "%s/spool", top);
}

/* The nth segment's path, by name. NULL: there are not so many. */
static const char *segment_path(unsigned nth)
{
	static char path[400];
	struct dirent **names;
	int count = scandir(directory, &names, NULL, alphasort);
	bool is_found = false;

	for (int i = 0; i < count; i++) {
		if (strstr(names[i]->d_name, ".spool") && nth-- == 0) {
			snprintf(path, sizeof path, "%s/%s", directory, names[i]->d_name);
			is_found = true;
		}
		free(names[i]);
	}
	if (count >= 0)
		free(names);
	return is_found ? path : NULL;
}

static unsigned segment_count(void)
{
	unsigned count = 0;

	while (segment_path(count))
		count++;
	return count;
}

static void overwrite(const char *path, long at, const void *bytes, size_t length)
{
	int fd = open(path, O_RDWR);

	CHECK(fd >= 0 && pwrite(fd, bytes, length, at) == (ssize_t)length);
	close(fd);
}

/* --- a run of the agent, and what the server makes of it --- */

struct run {
	uint64_t taken, seq, live_refused;                     /* at the agent */
	uint64_t told_taken, samples, told_lost, told_refused; /* at the server */
	uint64_t last_seq;
};
static struct run *runs; /* shared with children */
static unsigned run_number;
static uint8_t body[200000];

static void start_anew(void)
{
	memset(runs, 0, RUNS * sizeof *runs);
	run_number = 0;
	for (size_t i = 0; i < sizeof body; i++)
		body[i] = (uint8_t)(i * 7 + i / 256);
}

static struct spool *open_limited(uint64_t limit)
{
	struct spool_options options = {
		.directory = directory, .limit_bytes = limit, .sync_ms = 1000};
	struct error err = {0};
	struct spool *spool;

	options.run[0] = (uint8_t)++run_number;
	spool = spool_open(&options, &err);
	if (!CHECK(spool))
		printf("# %s\n", err.message);
	return spool;
}

/* Facts are some hundred bytes in life, too. */
static const char long_release[] =
	"6.1.0-with-a-name-that-some-distribution-gave-it-to-say-what-it-is-built-for-and-when-and-"
	"by-"
	"which-compiler-and-which-of-its-hundreds-of-options-are-not-as-everybody-else-has-them-"
	"and-"
	"which-patches-it-has-that-nobody-else-has-and-whom-to-ask-about-them-on-working-days-and-"
	"on-"
	"others-and-in-which-language-and-what-to-say-first-0123456789-0123456789-0123456789";

static bool add_sized(struct spool *spool, uint64_t samples, size_t length)
{
	struct run *run = &runs[run_number];
	static const char *const names[] = {"zone"}, *const values[] = {"a=b, c"};
	const struct profile_counter counters[] = {{"taken", run->taken + samples},
						   {"lost.refused", run->live_refused}};
	const struct profile_host host = {.host = "tester",
					  .kernel_release = long_release,
					  .architecture = "x86_64",
					  .agent_version = "0",
					  .agent_id = {(uint8_t)run_number},
					  .report_seq = run->seq + 1,
					  .start_ns = 1000 * (run->seq + 1),
					  .duration_ns = 1000,
					  .rate_hz = 19,
					  .label_names = names,
					  .label_values = values,
					  .label_count = 1,
					  .counters = counters,
					  .counter_count = 2};
	struct spool_report report = {.samples = samples, .body = {body, length}};

	spool_report_set_host(&report, &host);
	if (!spool_add(spool, &report, 0, NULL))
		return false;
	run->taken += samples;
	run->seq++;
	return true;
}

static bool add(struct spool *spool, uint64_t samples)
{
	return add_sized(spool, samples, BODY);
}

static uint64_t counter_of(const struct spool_report *report, const char *name)
{
	for (size_t i = 0; i < report->host.counter_count; i++)
		if (!strcmp(report->counters[i].name, name))
			return report->counters[i].value;
	return 0;
}

static int quiet_failures;
static bool are_repeats_known; /* as the server knows them by their ids */

/* Not a line of TAP for each of thousands. */
static void expect(bool good, const char *what, uint64_t got, uint64_t want)
{
	if (!good && ++quiet_failures < 20)
		printf("# %s: got %" PRIu64 ", want %" PRIu64 "\n", what, got, want);
}

static void higher(uint64_t *to, uint64_t value)
{
	if (value > *to)
		*to = value;
}

/* The server takes it, or refuses it. */
static void deliver(struct spool *spool, bool is_refused)
{
	const struct spool_report *report = spool_first(spool);
	struct run *run;

	if (!report)
		return;
	run = &runs[report->run[0]];
	expect(!strcmp(report->host.host, "tester") &&
		       (report->is_remainder || (report->host.label_count == 1 &&
						 !strcmp(report->host.label_values[0], "a=b, c"))),
	       "facts", report->host.label_count, 1);
	expect(report->body.length <= sizeof body &&
		       !memcmp(report->body.at, body, report->body.length),
	       "body", report->body.length, 0);
	expect(report->host.start_ns == 1000 * report->host.report_seq, "time",
	       report->host.start_ns, 1000 * report->host.report_seq);
	if (is_refused) {
		if (report->run[0] == run_number && !report->is_remainder)
			run->live_refused = counter_of(report, "lost.refused") + report->samples;
		spool_remove_first(spool, SPOOL_REFUSED);
		return;
	}
	if (are_repeats_known && !report->is_remainder &&
	    report->host.report_seq <= run->last_seq) {
		spool_remove_first(spool, SPOOL_SENT);
		return;
	}
	expect(report->is_remainder || report->host.report_seq > run->last_seq, "order",
	       report->host.report_seq, run->last_seq + 1);
	higher(&run->last_seq, report->host.report_seq);
	higher(&run->told_taken, counter_of(report, "taken"));
	higher(&run->told_lost, counter_of(report, "lost.spool"));
	higher(&run->told_refused, counter_of(report, "lost.refused"));
	run->samples += report->samples;
	expect(run->told_taken == run->samples + run->told_lost + run->told_refused,
	       "taken = samples + lost", run->samples + run->told_lost + run->told_refused,
	       run->told_taken);
	spool_remove_first(spool, SPOOL_SENT);
}

static void deliver_all(struct spool *spool)
{
	for (int i = 0; i < 100000 && spool_first(spool); i++)
		deliver(spool, false);
	CHECK(spool_is_empty(spool));
}

static void check_quiet(const char *what)
{
	printf("# %s\n", what);
	CHECK_NUMBER(quiet_failures, 0);
	quiet_failures = 0;
}

/* Of a run whose last report arrived. */
static void check_run(unsigned number, uint64_t samples, uint64_t lost)
{
	CHECK_NUMBER(runs[number].told_taken, runs[number].taken);
	CHECK_NUMBER(runs[number].samples, samples);
	CHECK_NUMBER(runs[number].told_lost, lost);
}

/* --- order, over restarts --- */

static void check_order(void)
{
	struct spool_counters counters;
	struct spool *spool;

	start_anew();
	spool = open_limited(SMALL);
	CHECK(spool_is_empty(spool));
	CHECK(!spool_first(spool));
	CHECK_NUMBER(spool_sync_due_ms(spool), INT64_MAX);
	for (int i = 1; i <= 10; i++)
		CHECK(add(spool, (uint64_t)i));
	CHECK_NUMBER(spool_sync_due_ms(spool), 1000);
	for (int i = 0; i < 4; i++)
		deliver(spool, false);
	CHECK_NUMBER(spool_first(spool)->host.report_seq, 5);
	CHECK_NUMBER(spool_first(spool)->host.acknowledged_seq, 4);
	spool_close(spool);
	spool = open_limited(SMALL); /* the next run goes on where that one was */
	CHECK_NUMBER(spool_first(spool)->host.report_seq, 5);
	CHECK_NUMBER(spool_first(spool)->run[0], 1);
	for (int i = 0; i < 5; i++)
		add(spool, 100);
	deliver(spool, true); /* 5 samples refused: the next one tells */
	deliver(spool, false);
	CHECK_NUMBER(runs[1].told_refused, 5);
	spool_close(spool);
	spool = open_limited(SMALL);
	deliver_all(spool);
	check_run(1, 50, 0);
	check_run(2, 500, 0);
	CHECK_NUMBER(segment_count(), 0);
	spool_counters(spool, &counters);
	CHECK_NUMBER(counters.bytes, 0);
	add(spool, 7); /* and once more after having been empty */
	deliver_all(spool);
	check_run(3, 7, 0);
	spool_close(spool);
	remove_tree(directory);
	check_quiet("order, over restarts");
}

/* --- the process ends without a word --- */

static void check_kill(void)
{
	struct spool *spool;
	pid_t child;

	start_anew();
	run_number = 1;
	fflush(stdout); /* what the child checks is its own matter */
	child = fork();
	if (!child && freopen("/dev/null", "w", stdout)) {
		run_number = 0;
		spool = open_limited(SMALL);
		for (int i = 0; i < 20; i++)
			add(spool, 3);
		for (int i = 0; i < 6; i++)
			deliver(spool, false);
		kill(getpid(), SIGKILL);
	}
	waitpid(child, NULL, 0);
	spool = open_limited(SMALL);
	CHECK_NUMBER(spool_first(spool)->host.report_seq, 7);
	deliver_all(spool);
	check_run(1, 60, 0);
	spool_close(spool);
	remove_tree(directory);
	check_quiet("SIGKILL");
}

/* A run that does anything until it is killed. What it sends a second time the server knows. */
static void run_until_killed(unsigned seed)
{
	struct spool *spool = open_limited(150000);

	srand(seed);
	deliver(spool, false);
	for (;;) {
		if (rand() % 5 < 3)
			add_sized(spool, (uint64_t)(rand() % 50), (size_t)(rand() % 9000));
		else
			deliver(spool, false);
	}
}

static void check_kills(void)
{
	struct spool *spool;
	uint64_t lost = 0, samples = 0;

	start_anew();
	for (unsigned i = 0; i < RUNS - 2; i++) {
		pid_t child;

		fflush(stdout);
		child = fork();
		if (!child && freopen("/dev/null", "w", stdout)) {
			are_repeats_known = true;
			run_until_killed(i);
		}
		usleep(2000 + i * 997 % 17000);
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
		run_number++;
	}
	are_repeats_known = true;
	spool = open_limited(150000);
	deliver_all(spool);
	for (unsigned i = 1; i < RUNS; i++) {
		expect(runs[i].told_taken == runs[i].samples + runs[i].told_lost, "of a run",
		       runs[i].samples + runs[i].told_lost, runs[i].told_taken);
		/* At most the last report was not spooled yet. */
		samples += runs[i].samples;
		lost += runs[i].told_lost;
	}
	are_repeats_known = false;
	printf("# %d killed runs: %" PRIu64 " samples, %" PRIu64 " lost\n", RUNS - 2, samples,
	       lost);
	CHECK(samples > 1000);
	spool_close(spool);
	remove_tree(directory);
	check_quiet("killed again and again");
}

/* --- the limit --- */

static void check_limit(void)
{
	struct spool_counters counters;
	struct spool *spool;
	uint64_t told;

	start_anew();
	spool = open_limited(SMALL);
	for (int i = 0; i < 1000; i++) {
		expect(add(spool, 2), "added", (uint64_t)i, 0);
		spool_counters(spool, &counters);
		expect(counters.bytes <= SMALL, "bytes", counters.bytes, SMALL);
	}
	expect(counters.bytes > SMALL * 14 / 16, "bytes, nearly full", counters.bytes, SMALL);
	CHECK(counters.lost > 0 && counters.lost % 2 == 0);
	told = counters.lost;
	CHECK_NUMBER(spool_first(spool)->host.report_seq, told / 2 + 1);
	CHECK_NUMBER(counter_of(spool_first(spool), "lost.spool"), told);
	spool_close(spool);
	spool = open_limited(SMALL); /* which knows it from the disk */
	CHECK_NUMBER(counter_of(spool_first(spool), "lost.spool"), told);
	/* All of the first run goes: its remainder tells, at the end of the line. */
	for (int i = 0; i < 400; i++)
		add(spool, 5);
	CHECK_NUMBER(spool_first(spool)->run[0], 2);
	deliver_all(spool);
	check_run(1, 0, 2000);
	CHECK_NUMBER(runs[2].told_taken, 2000);
	CHECK_NUMBER(runs[2].samples + runs[2].told_lost, 2000);
	/* Records as large as a segment: remainders stand alone in theirs, and go round. */
	add_sized(spool, 4, 65000);
	spool_close(spool);
	spool = open_limited(400000);
	for (int i = 0; i < 100; i++)
		add_sized(spool, 6, 65000);
	deliver_all(spool);
	check_run(2, runs[2].samples, runs[2].taken - runs[2].samples);
	CHECK(runs[2].told_lost >= 4);
	CHECK_NUMBER(runs[3].samples + runs[3].told_lost, 600);
	/* One that is larger than all of it. */
	CHECK(add_sized(spool, 9, sizeof body));
	deliver_all(spool);
	spool_close(spool);
	spool = open_limited(100000);
	CHECK(add_sized(spool, 9, sizeof body));
	CHECK(spool_is_empty(spool));
	CHECK_NUMBER(spool_lost(spool), 9);
	CHECK(add(spool, 1));
	deliver_all(spool);
	check_run(4, 1, 9);
	spool_close(spool);
	remove_tree(directory);
	check_quiet("the limit");
}

/* --- anything in any order, against the tally --- */

static void check_random(unsigned seed)
{
	struct spool_counters counters;
	struct spool *spool;

	srand(seed);
	start_anew();
	spool = open_limited(150000);
	for (int step = 0; step < 4000; step++) {
		int what = rand() % 100;

		if (what < 55)
			add_sized(spool, (uint64_t)(rand() % 50), (size_t)(rand() % 9000));
		else if (what < 90)
			deliver(spool, rand() % 20 == 0);
		else if (what < 91 && run_number < RUNS - 2) {
			spool_close(spool);
			spool = open_limited(150000);
		}
	}
	deliver_all(spool);
	spool_counters(spool, &counters);
	CHECK_NUMBER(counters.untold, 0);
	CHECK_NUMBER(counters.damaged, 0);
	spool_close(spool);
	remove_tree(directory);
	check_quiet("at random");
}

/* --- damage --- */

static void fill(unsigned reports)
{
	struct spool *spool;

	start_anew();
	spool = open_limited(SMALL);
	for (unsigned i = 0; i < reports; i++)
		add(spool, 10);
	spool_close(spool);
}

/* Reads what is there as the next run; damaged: places that are told of. */
static void read_damaged(uint64_t samples, uint64_t lost, uint64_t damaged)
{
	struct spool_counters counters;
	struct spool *spool = open_limited(SMALL);

	deliver_all(spool);
	spool_counters(spool, &counters);
	CHECK_NUMBER(runs[1].samples, samples);
	CHECK_NUMBER(runs[1].told_lost, lost);
	CHECK_NUMBER(counters.damaged, damaged);
	spool_close(spool);
	remove_tree(directory);
}

static void check_damage(void)
{
	static const uint8_t noise[5000] = {0x55, 1, 2, 3};
	struct stat status;

	fill(10);
	stat(segment_path(0), &status);
	remove_tree(directory);
	for (long cut = 1; cut < status.st_size; cut += 1997) {
		uint64_t whole = (uint64_t)(status.st_size - cut - SPOOL_HEADER_BYTES) /
				 ((uint64_t)(status.st_size - SPOOL_HEADER_BYTES) / 10);

		if (status.st_size - cut < SPOOL_HEADER_BYTES)
			whole = 0;
		fill(10);
		CHECK(truncate(segment_path(0), status.st_size - cut) == 0);
		/* The torn ones were not told of as taken either. */
		read_damaged(10 * whole, 0,
			     (status.st_size - cut - 32) % ((status.st_size - 32) / 10) ? 1 : 0);
	}
	fill(10);
	overwrite(segment_path(0), SPOOL_HEADER_BYTES + 4, noise, 4); /* the first one's frame */
	read_damaged(90, 10, 1);
	fill(10);
	overwrite(segment_path(0), SPOOL_HEADER_BYTES + 2000, noise, 1); /* its body */
	read_damaged(90, 10, 1);
	fill(10);
	overwrite(segment_path(0), SPOOL_HEADER_BYTES + 4000, noise,
		  sizeof noise); /* two of them */
	read_damaged(80, 20, 2);
	fill(10);
	overwrite(segment_path(0), 0, noise, SPOOL_HEADER_BYTES); /* the segment's header */
	read_damaged(100, 0, 0);
	fill(60); /* several segments, one is removed by somebody */
	CHECK(segment_count() >= 3);
	unlink(segment_path(1));
	{
		struct spool *spool = open_limited(SMALL);

		deliver_all(spool);
		CHECK_NUMBER(runs[1].samples + runs[1].told_lost, 600);
		CHECK(runs[1].told_lost >= 100);
		spool_close(spool);
		remove_tree(directory);
	}
	check_quiet("damage");
}

static void check_state(void)
{
	static const uint8_t noise[1024] = {1};
	struct spool *spool;
	char path[200];

	start_anew();
	spool = open_limited(SMALL);
	for (int i = 0; i < 30; i++)
		add(spool, 10);
	for (int i = 0; i < 25; i++)
		deliver(spool, false);
	spool_close(spool);
	snprintf(path, sizeof path, "%s/state", directory);
	overwrite(path, 0, noise, sizeof noise);
	spool = open_limited(SMALL);
	/* Some come a second time, which the server knows by their ids; nothing counts as lost. */
	CHECK(spool_first(spool)->host.report_seq <= 26);
	CHECK_NUMBER(counter_of(spool_first(spool), "lost.spool"), 0);
	while (spool_first(spool)->host.report_seq < 26)
		spool_remove_first(spool, SPOOL_SENT);
	deliver_all(spool);
	check_run(1, 300, 0);
	spool_close(spool);
	remove_tree(directory);
	check_quiet("the state's file");
}

static void check_newer(void)
{
	uint8_t header[SPOOL_HEADER_BYTES];
	struct spool *spool;
	struct stat status;
	char path[200];
	int fd;

	start_anew();
	spool = open_limited(SMALL);
	spool_close(spool);
	snprintf(path, sizeof path, "%s/%016x.spool", directory, 1);
	spool_header_encode(1, header);
	header[8] = SPOOL_VERSION + 1;
	/* CRC-32C of the header with version 2 */
	{
		uint32_t crc = crc32c(0, header, SPOOL_HEADER_BYTES - 4);

		memcpy(header + SPOOL_HEADER_BYTES - 4, &crc, 4);
	}
	fd = open(path, O_CREAT | O_RDWR, 0600);
	CHECK(write(fd, header, sizeof header) == (ssize_t)sizeof header);
	close(fd);
	spool = open_limited(SMALL);
	CHECK(spool_is_empty(spool));
	CHECK(add(spool, 4));
	CHECK(add(spool, 4));
	deliver_all(spool);
	check_run(run_number, 8, 0);
	spool_close(spool);
	CHECK(stat(path, &status) == 0 && status.st_size == SPOOL_HEADER_BYTES);
	remove_tree(directory);
}

/* --- disks that do not take it --- */

static void check_full(void)
{
	struct rlimit limit, before;
	struct spool *spool;
	struct error err = {0};
	struct spool_report report = {.samples = 1, .body = {body, BODY}};
	unsigned added = 0;

	start_anew();
	spool = open_limited(SMALL);
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &before);
	limit = before;
	limit.rlim_cur = 22500; /* in the middle of a record */
	setrlimit(RLIMIT_FSIZE, &limit);
	while (added < 20 && add(spool, 10))
		added++;
	CHECK_NUMBER(added, 6);
	CHECK(!spool_add(spool, &report, 0, &err));
	CHECK(strstr(err.message, directory));
	setrlimit(RLIMIT_FSIZE, &before);
	CHECK(add(spool, 10)); /* room again: nothing of the half one is left */
	deliver_all(spool);
	check_run(1, 70, 0);
	spool_close(spool);
	remove_tree(directory);
	check_quiet("a full disk");
}

static void check_gone(void)
{
	struct spool *spool;

	start_anew();
	spool = open_limited(SMALL);
	for (int i = 0; i < 10; i++)
		add(spool, 10);
	deliver(spool, false);
	remove_tree(directory);
	CHECK(add(spool, 10)); /* made anew: what was in it is lost, and told */
	deliver_all(spool);
	check_run(1, 20, 90);
	add(spool, 10);
	remove_files();
	CHECK(add(spool, 10));
	deliver_all(spool);
	check_run(1, 30, 100);
	CHECK_NUMBER(spool_lost(spool), 100);
	spool_close(spool);
	remove_tree(directory);
	check_quiet("the directory was removed");
}

/* --- who may --- */

static void refused(enum error_kind kind, const char *sentence)
{
	struct spool_options options = {.directory = directory, .limit_bytes = SMALL};
	struct error err = {0};

	CHECK(!spool_open(&options, &err));
	CHECK_NUMBER(err.kind, kind);
	CHECK(strstr(err.message, sentence));
	printf("# %s\n", err.message);
}

static void check_permissions(void)
{
	struct spool *spool;
	struct stat status;
	char elsewhere[200];

	start_anew();
	spool = open_limited(SMALL);
	CHECK(stat(directory, &status) == 0 && (status.st_mode & 07777) == 0700);
	add(spool, 1);
	CHECK(stat(segment_path(0), &status) == 0 && (status.st_mode & 07777) == 0600);
	refused(ERROR_CONFLICT, "another agent");
	spool_close(spool);
	chmod(directory, 0755);
	refused(ERROR_OPTION, "chmod 700");
	remove_tree(directory);
	snprintf(elsewhere, sizeof elsewhere, "%s/elsewhere", top);
	mkdir(elsewhere, 0700);
	CHECK(symlink(elsewhere, directory) == 0);
	refused(ERROR_OPTION, "symbolic link");
	unlink(directory);
	CHECK(symlink("/nowhere", directory) == 0);
	refused(ERROR_OPTION, "symbolic link");
	unlink(directory);
	close(open(directory, O_CREAT | O_RDWR, 0600));
	refused(ERROR_OPTION, "Not a directory");
	unlink(directory);
	mkdir(directory, 0700);
	snprintf(elsewhere, sizeof elsewhere, "%s/lock", directory);
	CHECK(symlink("/etc/passwd", elsewhere) == 0);
	/* Not opened: it may be put right, so the agent goes on in memory meanwhile. */
	spool = open_limited(SMALL);
	CHECK(!add(spool, 1));
	unlink(elsewhere);
	CHECK(add(spool, 1));
	spool_close(spool);
	remove_tree(directory);
	if (geteuid() == 0) {
		mkdir(directory, 0700);
		CHECK(chown(directory, 65534, 65534) == 0);
		refused(ERROR_OPTION, "belongs to user 65534");
		remove_tree(directory);
	} else {
		SKIP("another user's directory needs root to be made");
	}
}

int main(void)
{
	log_set_level(LOG_ERROR);
	make_top();
	runs = mmap(NULL, RUNS * sizeof *runs, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		    -1, 0);
	CHECK(runs != MAP_FAILED);
	check_order();
	check_kill();
	check_kills();
	check_limit();
	for (unsigned seed = 1; seed <= 4; seed++)
		check_random(seed);
	check_damage();
	check_state();
	check_newer();
	check_full();
	check_gone();
	check_permissions();
	remove_tree(top);
	return checks_done();
}
