/* SPDX-License-Identifier: Apache-2.0 */
/* Waits of known kind and length, each from a function of its own; its own clock says how long each
 * took, as "NAME TIMES NANOSECONDS TID" lines at the end.
 *
 * waits SECONDS [NAME…]: nanosleep 1, 5, 20 and 150 ms, a futex, a child of vfork, an answer from
 * another process; a spinning thread and one that gives way never wait. Begins with a byte, or the
 * end, of its standard input. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static uint64_t end_ns;

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

struct tally {
	const char *name;
	uint64_t times, ns;
	int tid;
};

static void sleep_ns(long ns)
{
	struct timespec time = {ns / 1000000000, ns % 1000000000};

	nanosleep(&time, NULL);
}

#define SLEEPER(name_, ns_)                                              \
	static __attribute__((noinline)) void name_(struct tally *tally) \
	{                                                                \
		uint64_t from = now_ns();                                \
                                                                         \
		sleep_ns(ns_);                                           \
		tally->ns += now_ns() - from;                            \
		tally->times++;                                          \
	}
SLEEPER(sleep_1ms, 1000000)
SLEEPER(sleep_5ms, 5000000)
SLEEPER(sleep_20ms, 20000000)
SLEEPER(sleep_150ms, 150000000)

/* Nobody ever wakes it: the time-out does. */
static __attribute__((noinline)) void wait_futex(struct tally *tally)
{
	struct timespec time = {0, 3000000};
	uint32_t word = 0;
	uint64_t from = now_ns();

	syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &time, NULL, 0);
	tally->ns += now_ns() - from;
	tally->times++;
}

static __attribute__((noinline)) void wait_vfork(struct tally *tally)
{
	uint64_t from = now_ns();
	pid_t child = vfork();

	if (!child) {
		usleep(7000);
		_exit(0);
	}
	tally->ns += now_ns() - from;
	tally->times++;
	waitpid(child, NULL, 0);
}

static int to_helper[2], from_helper[2];

static __attribute__((noinline)) void read_answer(struct tally *tally)
{
	uint64_t from = now_ns();
	char byte;

	if (read(from_helper[0], &byte, 1) == 1)
		tally->times++;
	tally->ns += now_ns() - from;
}

static __attribute__((noinline)) void ask_helper(struct tally *tally)
{
	if (write(to_helper[1], "x", 1) == 1)
		read_answer(tally);
}

/* The waker: another process, whose answer ends the wait. */
static __attribute__((noinline)) void answer(void)
{
	if (write(from_helper[1], "y", 1) != 1)
		_exit(1);
}

static void help(void)
{
	char byte;

	while (read(to_helper[0], &byte, 1) == 1) {
		sleep_ns(2000000);
		answer();
	}
	_exit(0);
}

static __attribute__((noinline)) void spin_only(struct tally *tally)
{
	uint64_t from = now_ns();

	while (now_ns() - from < 10000000)
		;
	tally->times++;
}

static __attribute__((noinline)) void yield_only(struct tally *tally)
{
	uint64_t from = now_ns();

	while (now_ns() - from < 10000000)
		;
	sched_yield();
	tally->times++;
}

static struct kind {
	void (*run)(struct tally *tally);
	struct tally tally;
	pthread_t thread;
	int is_wanted;
} kinds[] = {
#define KIND(run_, name_)                              \
	{                                              \
		.run = run_, .tally = {.name = name_ } \
	}
	KIND(sleep_1ms, "sleep_1ms"),    KIND(sleep_5ms, "sleep_5ms"),
	KIND(sleep_20ms, "sleep_20ms"),  KIND(sleep_150ms, "sleep_150ms"),
	KIND(wait_futex, "wait_futex"),  KIND(wait_vfork, "wait_vfork"),
	KIND(ask_helper, "read_answer"), KIND(spin_only, "spin_only"),
	KIND(yield_only, "yield_only"),
};

static void *run(void *context)
{
	struct kind *kind = context;

	kind->tally.tid = (int)syscall(SYS_gettid);
	pthread_setname_np(pthread_self(), kind->tally.name);
	while (now_ns() < end_ns)
		kind->run(&kind->tally);
	return NULL;
}

int main(int argc, char **argv)
{
	const size_t count = sizeof kinds / sizeof *kinds;
	uint64_t seconds = argc > 1 ? strtoull(argv[1], NULL, 10) : 5;
	pid_t helper;
	char begin;

	if (pipe(to_helper) || pipe(from_helper))
		return 1;
	helper = fork();
	if (!helper) {
		close(to_helper[1]);
		help();
	}
	close(to_helper[0]);
	if (read(STDIN_FILENO, &begin, 1) < 0)
		return 1;
	end_ns = now_ns() + seconds * 1000000000;
	for (size_t i = 0; i < count; i++) {
		kinds[i].is_wanted = argc <= 2;
		for (int k = 2; k < argc; k++)
			kinds[i].is_wanted |= !strcmp(argv[k], kinds[i].tally.name);
		if (kinds[i].is_wanted)
			pthread_create(&kinds[i].thread, NULL, run, &kinds[i]);
	}
	for (size_t i = 0; i < count; i++)
		if (kinds[i].is_wanted)
			pthread_join(kinds[i].thread, NULL);
	for (size_t i = 0; i < count; i++)
		if (kinds[i].is_wanted)
			printf("%s %llu %llu %d\n", kinds[i].tally.name,
			       (unsigned long long)kinds[i].tally.times,
			       (unsigned long long)kinds[i].tally.ns, kinds[i].tally.tid);
	fflush(stdout);
	close(to_helper[1]);
	waitpid(helper, NULL, 0);
	return 0;
}
