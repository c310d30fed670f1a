/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/ship/spool_tally.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

/* The nth report's path, by name. NULL: there are not so many. */
static const char *file_path(unsigned nth)
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

static void overwrite(const char *path, long at, const void *bytes, size_t length)
{
	int fd = open(path, O_RDWR);

	CHECK(fd >= 0 && pwrite(fd, bytes, length, at) == (ssize_t)length);
	close(fd);
}

/* Of a run whose last report arrived. */
static void check_run(unsigned number, uint64_t samples, uint64_t lost)
{
	CHECK_NUMBER(runs[number].told_taken, runs[number].taken);
	CHECK_NUMBER(runs[number].samples, samples);
	CHECK_NUMBER(runs[number].told_lost, lost);
}

static void end(struct spool *spool, const char *what)
{
	spool_close(spool);
	remove_directory();
	check_quiet(what);
}

/* --- order, over restarts --- */

static void check_order(void)
{
	struct spool_counters counters;
	struct spool *spool;

	start_anew();
	spool = open_limited(SMALL);
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
	CHECK(!file_path(0));
	spool_counters(spool, &counters);
	CHECK_NUMBER(counters.bytes, 0);
	add(spool, 7); /* and once more after having been empty */
	deliver_all(spool);
	check_run(3, 7, 0);
	end(spool, "order, over restarts");
}

/* --- the process ends without a word --- */

/* True: in the child, which says nothing of its checks. */
static bool fork_quiet(pid_t *child)
{
	fflush(stdout);
	*child = fork();
	return !*child && freopen("/dev/null", "w", stdout);
}

static void check_kill(void)
{
	struct spool *spool;
	pid_t child;

	start_anew();
	if (fork_quiet(&child)) {
		spool = open_limited(SMALL);
		for (int i = 0; i < 20; i++)
			add(spool, 3);
		for (int i = 0; i < 6; i++)
			deliver(spool, false);
		kill(getpid(), SIGKILL);
	}
	waitpid(child, NULL, 0);
	run_number = 1;
	spool = open_limited(SMALL);
	CHECK_NUMBER(spool_first(spool)->host.report_seq, 7);
	deliver_all(spool);
	check_run(1, 60, 0);
	end(spool, "SIGKILL");
}

/* A run that does anything until it is killed. What it sends a second time the server knows. */
static void run_until_killed(unsigned seed)
{
	struct spool *spool = open_limited(150000);

	srand(seed);
	deliver(spool, false);
	for (;;)
		do_anything(spool, false);
}

static void kill_agent(pid_t child)
{
	int status;

	while (kill(child, SIGSTOP), waitpid(child, &status, WUNTRACED), shared->is_telling)
		kill(child, SIGCONT);
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
}

static void check_kills(void)
{
	struct spool *spool;
	uint64_t lost = 0, samples = 0;
	pid_t child;

	start_anew();
	are_repeats_known = true;
	for (unsigned i = 0; i < RUNS - 2; i++) {
		if (fork_quiet(&child))
			run_until_killed(i);
		usleep(2000 + i * 997 % 17000);
		kill_agent(child);
		run_number++;
	}
	spool = open_limited(150000);
	deliver_all(spool);
	for (unsigned i = 1; i < RUNS; i++) {
		expect(runs[i].told_taken == runs[i].samples + runs[i].told_lost, "of a run",
		       runs[i].samples + runs[i].told_lost, runs[i].told_taken);
		samples += runs[i].samples;
		lost += runs[i].told_lost;
	}
	are_repeats_known = false;
	printf("# %d killed runs: %" PRIu64 " samples, %" PRIu64 " lost\n", RUNS - 2, samples,
	       lost);
	CHECK(samples > 1000);
	end(spool, "killed again and again");
}

/* --- the limits --- */

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
	CHECK(counters.bytes > SMALL * 62 / 64);
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
	/* A remainder goes round as often as it is met. */
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
	CHECK(!spool_first(spool));
	CHECK_NUMBER(spool_lost(spool), 9);
	CHECK(add(spool, 1));
	deliver_all(spool);
	check_run(4, 1, 9);
	end(spool, "the limit");
}

/* More runs than there is room for what each has to tell: reports go on. */
static void check_remainders(void)
{
	struct spool_counters counters;
	struct spool *spool = NULL;

	start_anew();
	for (int i = 0; i < 40; i++) {
		spool_close(spool);
		spool = open_limited(100000);
		for (int k = 0; k < 30; k++)
			expect(add(spool, 1), "added", (uint64_t)i, 0);
	}
	spool_counters(spool, &counters);
	CHECK(counters.bytes <= 100000);
	CHECK(counters.untold > 0);
	CHECK(runs[run_number].taken == 30);
	deliver_all(spool);
	CHECK_NUMBER(runs[run_number].told_taken, 30);
	end(spool, "too many remainders");
}

static void check_count(void)
{
	struct spool *spool;

	start_anew();
	CHECK(mkdir(directory, 0700) == 0);
	for (unsigned i = 1; i <= SPOOL_FILES_MAX + 100; i++) {
		char path[200];

		snprintf(path, sizeof path, "%s/%016x.spool", directory, i);
		close(open(path, O_CREAT | O_WRONLY | O_EXCL, 0600));
	}
	spool = open_limited(UINT64_C(1) << 40);
	CHECK(add(spool, 3));
	shell("test $(ls '%s' | wc -l) -le %d", directory,
	      SPOOL_FILES_MAX - SPOOL_FILES_MAX / 64 + 3);
	deliver_all(spool);
	check_run(1, 3, 0);
	end(spool, "too many files");
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
		do_anything(spool, true);
		if (rand() % 100 == 0 && run_number < RUNS - 2) {
			spool_close(spool);
			spool = open_limited(150000);
		}
	}
	deliver_all(spool);
	spool_counters(spool, &counters);
	CHECK_NUMBER(counters.untold, 0);
	CHECK_NUMBER(counters.damaged, 0);
	end(spool, "at random");
}

/* --- damage --- */

static void fill(void)
{
	struct spool *spool;

	start_anew();
	spool = open_limited(SMALL);
	for (unsigned i = 0; i < 10; i++)
		add(spool, 10);
	spool_close(spool);
}

/* Reads what is there as the next run; damaged: files that are told of. */
static void read_damaged(uint64_t samples, uint64_t lost, uint64_t damaged)
{
	struct spool_counters counters;
	struct spool *spool = open_limited(SMALL);

	deliver_all(spool);
	spool_counters(spool, &counters);
	CHECK_NUMBER(runs[1].samples, samples);
	CHECK_NUMBER(runs[1].told_lost, lost);
	CHECK_NUMBER(counters.damaged, damaged);
	CHECK(!file_path(0));
	end(spool, "damage");
}

static void check_damage(void)
{
	static const uint8_t noise[5000] = {0x55, 1, 2, 3};
	struct stat status;

	fill();
	stat(file_path(3), &status);
	remove_directory();
	for (long length = 0; length < status.st_size; length += 397) {
		fill();
		CHECK(truncate(file_path(3), length) == 0);
		read_damaged(90, 10, 1);
	}
	fill();
	CHECK(truncate(file_path(9), 1000) == 0);
	read_damaged(90, 0, 1); /* what came with it was not told of as taken either */
	for (long at = SPOOL_HEADER_BYTES; at < status.st_size - 4; at += 97) {
		fill();
		overwrite(file_path(3), at, noise, 4);
		read_damaged(90, 10, 1);
	}
	fill();
	overwrite(file_path(0), 0, noise, SPOOL_HEADER_BYTES); /* which says nothing */
	read_damaged(100, 0, 0);
	fill();
	overwrite(file_path(5), status.st_size, noise, sizeof noise);
	read_damaged(100, 0, 1);
	fill();
	unlink(file_path(4));
	unlink(file_path(6));
	read_damaged(80, 20, 0);
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
	end(spool, "the state's file");
}

/* What else may lie there. */
static void check_foreign(void)
{
	struct spool *spool;

	fill();
	shell("cd '%s' && cp 0000000000000003.spool new && cp new 3.spool && cp new "
	      "ffffffffffffffff.spool &&"
	      " mkdir 0000000000000000.spool && mkfifo 00000000000000a0.spool &&"
	      " ln -s /etc/passwd 00000000000000a1.spool && head -c 5000 /dev/zero "
	      ">00000000000000a2.spool",
	      directory);
	spool = open_limited(SMALL);
	CHECK(add(spool, 2));
	deliver_all(spool);
	check_run(1, 100, 0);
	check_run(2, 2, 0);
	shell("cd '%s' && test $(ls -d *.spool | wc -l) = 5 && test -s 3.spool && ! test -e new &&"
	      " test -d 0000000000000000.spool && ! test -e 00000000000000a2.spool",
	      directory);
	end(spool, "other files");
}

/* --- files of many reports, as earlier agents wrote them: tests/golden/spool --- */

static struct spool *open_older(uint64_t limit)
{
	start_anew();
	runs[1] = (struct run){.taken = 15, .seq = 5, .told_taken = 1, .samples = 1, .last_seq = 1};
	runs[2] = (struct run){.taken = 100, .seq = 4};
	run_number = 2;
	shell("mkdir -m 0700 '%s' && cp tests/golden/spool/*.spool tests/golden/spool/state '%s'",
	      directory, directory);
	return open_limited(limit);
}

static void check_older(void)
{
	struct spool *spool = open_older(SMALL);

	CHECK_NUMBER(spool_first(spool)->host.report_seq, 3);
	CHECK_NUMBER(spool_first(spool)->host.acknowledged_seq, 1);
	CHECK(add(spool, 7));
	deliver(spool, false);
	deliver(spool, true);
	CHECK_NUMBER(runs[1].told_refused, 2);
	spool_close(spool); /* in the middle of a file */
	spool = open_limited(SMALL);
	CHECK_NUMBER(spool_first(spool)->host.report_seq, 5);
	deliver_all(spool);
	check_run(1, 1 + 3 + 5, 0);
	CHECK_NUMBER(runs[1].told_refused, 2 + 4);
	check_run(2, 100, 0);
	check_run(3, 7, 0);
	CHECK(!file_path(0));
	end(spool, "an earlier agent's files");
	spool = open_older(8 * 4096); /* and dropped for younger ones */
	for (int i = 0; i < 12; i++)
		CHECK(add(spool, 7));
	deliver_all(spool);
	check_run(1, 1, 3 + 4 + 5);
	check_run(2, 0, 100);
	CHECK_NUMBER(runs[3].told_taken, 84);
	end(spool, "an earlier agent's files, dropped");
	spool = open_older(SMALL);
	overwrite(file_path(0), 0x1d0 + 70, "x", 1); /* the third report's facts */
	deliver_all(spool);
	check_run(2, 100, 0);
	end(spool, "an earlier agent's file, damaged");
}

/* --- disks that do not take it --- */

static void check_full(void)
{
	struct rlimit limit, before;
	struct spool *spool;
	struct error err = {0};
	struct spool_report report = {.samples = 1, .body = {body, 2 * BODY}};

	start_anew();
	spool = open_limited(SMALL);
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &before);
	limit = before;
	limit.rlim_cur = BODY + 1000;
	CHECK(add(spool, 10));
	setrlimit(RLIMIT_FSIZE, &limit);
	CHECK(add(spool, 10));
	CHECK(!spool_add(spool, &report, 0, &err));
	CHECK(strstr(err.message, directory));
	CHECK(!file_path(2));
	setrlimit(RLIMIT_FSIZE, &before);
	CHECK(add_sized(spool, 10, 2 * BODY)); /* room again: nothing of the half one is left */
	deliver_all(spool);
	check_run(1, 30, 0);
	end(spool, "a full disk");
}

static void check_gone(void)
{
	struct spool *spool;

	start_anew();
	spool = open_limited(SMALL);
	for (int i = 0; i < 10; i++)
		add(spool, 10);
	deliver(spool, false);
	remove_directory();
	CHECK(add(spool, 10)); /* made anew: what was in it is lost, and told */
	deliver_all(spool);
	check_run(1, 20, 90);
	add(spool, 10);
	shell("rm '%s'/*", directory);
	CHECK(add(spool, 10));
	deliver_all(spool);
	check_run(1, 30, 100);
	CHECK_NUMBER(spool_lost(spool), 100);
	end(spool, "the directory was removed");
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
	CHECK(stat(file_path(0), &status) == 0 && (status.st_mode & 07777) == 0600);
	refused(ERROR_CONFLICT, "another agent");
	spool_close(spool);
	chmod(directory, 0755);
	refused(ERROR_OPTION, "chmod 700");
	remove_directory();
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
	end(spool, "who may");
	if (geteuid() == 0) {
		mkdir(directory, 0700);
		CHECK(chown(directory, 65534, 65534) == 0);
		refused(ERROR_OPTION, "belongs to user 65534");
		remove_directory();
	} else {
		SKIP("another user's directory needs root to be made");
	}
}

int main(void)
{
	start_tally();
	check_order();
	check_kill();
	check_kills();
	check_limit();
	check_remainders();
	check_count();
	for (unsigned seed = 1; seed <= 4; seed++)
		check_random(seed);
	check_damage();
	check_state();
	check_foreign();
	check_older();
	check_full();
	check_gone();
	check_permissions();
	shell("rm -rf '%s'", top);
	return checks_done();
}
