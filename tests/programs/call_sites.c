/* SPDX-License-Identifier: Apache-2.0 */
/* Many threads that wait often, at call sites of known names and very different lengths; the time
 * that each waited, less the CPU time that it took, is said by its own clocks as
 * "NAME TIMES NANOSECONDS" lines at the end.
 *
 * call_sites SECONDS [long]: about 100 000 context switches a second. Begins with a byte, or the
 * end, of its standard input. long: instead, twenty call sites whose every wait is one of 110 to
 * 300 ms and follows a thousand short ones of the same thread. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { THREADS_MAX = 256, LONG_SITES = 20 };

static uint64_t end_ns;

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

struct tally {
	uint64_t times, ns;
};

static void sleep_ns(long ns)
{
	struct timespec time = {ns / 1000000000, ns % 1000000000};

	nanosleep(&time, NULL);
}

static void futex_ns(long ns)
{
	struct timespec time = {ns / 1000000000, ns % 1000000000};
	uint32_t word = 0;

	syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &time, NULL, 0);
}

static void poll_ns(long ns)
{
	struct timespec time = {ns / 1000000000, ns % 1000000000};

	ppoll(NULL, 0, &time, NULL);
}

/* The thread's own CPU time is read last and first: what is left is what it was off its CPU. */
#define SITE(name_, how_, ns_)                                                 \
	static __attribute__((noinline)) void name_(struct tally *tally)       \
	{                                                                      \
		uint64_t cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID);              \
		uint64_t from = clock_ns(CLOCK_MONOTONIC);                     \
                                                                               \
		how_(ns_);                                                     \
		from = clock_ns(CLOCK_MONOTONIC) - from;                       \
		tally->ns += from - (clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu); \
		tally->times++;                                                \
	}
SITE(nap_50us, sleep_ns, 50000)
SITE(futex_100us, futex_ns, 100000)
SITE(poll_500us, poll_ns, 500000)
SITE(nap_5ms, sleep_ns, 5000000)
SITE(futex_20ms, futex_ns, 20000000)
SITE(nap_1s, sleep_ns, 1000000000)
/* One thread's, in turn: */
SITE(mixed_200us, sleep_ns, 200000)
SITE(mixed_2ms, futex_ns, 2000000)
SITE(mixed_10ms, poll_ns, 10000000)
SITE(mixed_60ms, sleep_ns, 60000000)

static const struct site {
	const char *name;
	void (*run)(struct tally *tally);
	int threads; /* 0: of the mixed ones */
	int turns;
} sites[] = {
#define ROW(name_, threads_, turns_)            \
	{                                       \
#name_, name_, threads_, turns_ \
	}
	ROW(nap_50us, 3, 1),     ROW(futex_100us, 2, 1), ROW(poll_500us, 8, 1),
	ROW(nap_5ms, 16, 1),     ROW(futex_20ms, 16, 1), ROW(nap_1s, 32, 1),
	ROW(mixed_200us, 0, 50), ROW(mixed_2ms, 0, 8),   ROW(mixed_10ms, 0, 2),
	ROW(mixed_60ms, 0, 1),
};
enum { SITES = sizeof sites / sizeof *sites, MIXED_THREADS = 8 };

static struct tally tallies[THREADS_MAX][LONG_SITES];

struct thread {
	pthread_t id;
	const struct site *site; /* NULL: mixed */
	struct tally *tallies;   /* by site */
};

static void *run(void *context)
{
	struct thread *thread = context;

	prctl(PR_SET_TIMERSLACK, 1UL);
	while (clock_ns(CLOCK_MONOTONIC) < end_ns)
		for (size_t i = 0; i < SITES; i++)
			if (thread->site ? thread->site == &sites[i] : !sites[i].threads)
				for (int turn = 0; turn < sites[i].turns; turn++)
					sites[i].run(&thread->tallies[i]);
	return NULL;
}

static void start(struct thread *thread, unsigned number, const struct site *site)
{
	*thread = (struct thread){.site = site, .tallies = tallies[number]};
	pthread_create(&thread->id, NULL, run, thread);
}

static void run_sites(void)
{
	struct thread threads[THREADS_MAX];
	unsigned count = 0;

	for (size_t i = 0; i < SITES; i++)
		for (int n = 0; n < sites[i].threads; n++, count++)
			start(&threads[count], count, &sites[i]);
	for (int n = 0; n < MIXED_THREADS; n++, count++)
		start(&threads[count], count, NULL);
	for (unsigned n = 0; n < count; n++)
		pthread_join(threads[n].id, NULL);
	for (size_t i = 0; i < SITES; i++) {
		struct tally sum = {0};

		for (unsigned n = 0; n < count; n++) {
			sum.times += tallies[n][i].times;
			sum.ns += tallies[n][i].ns;
		}
		printf("%s %llu %llu\n", sites[i].name, (unsigned long long)sum.times,
		       (unsigned long long)sum.ns);
	}
}

/* --- long --- */

#define LONG_SITE(n_) SITE(long_##n_, sleep_ns, 110000000L + n_ * 10000000L)
LONG_SITE(0)
LONG_SITE(1)
LONG_SITE(2)
LONG_SITE(3)
LONG_SITE(4)
LONG_SITE(5)
LONG_SITE(6)
LONG_SITE(7)
LONG_SITE(8)
LONG_SITE(9)
LONG_SITE(10)
LONG_SITE(11)
LONG_SITE(12)
LONG_SITE(13)
LONG_SITE(14)
LONG_SITE(15)
LONG_SITE(16)
LONG_SITE(17)
LONG_SITE(18)
LONG_SITE(19)
SITE(short_wait, sleep_ns, 100000)

static void run_long(void)
{
	static void (*const long_sites[LONG_SITES])(struct tally *) = {
		long_0,  long_1,  long_2,  long_3,  long_4,  long_5,  long_6,
		long_7,  long_8,  long_9,  long_10, long_11, long_12, long_13,
		long_14, long_15, long_16, long_17, long_18, long_19};
	struct tally rest = {0};

	prctl(PR_SET_TIMERSLACK, 1UL);
	for (unsigned i = 0; clock_ns(CLOCK_MONOTONIC) < end_ns || i < LONG_SITES; i++) {
		for (int n = 0; n < 1000; n++)
			short_wait(&rest);
		long_sites[i % LONG_SITES](&tallies[0][i % LONG_SITES]);
	}
	for (int i = 0; i < LONG_SITES; i++)
		printf("long_%d %llu %llu\n", i, (unsigned long long)tallies[0][i].times,
		       (unsigned long long)tallies[0][i].ns);
}

int main(int argc, char **argv)
{
	uint64_t seconds = argc > 1 ? strtoull(argv[1], NULL, 10) : 5;
	char begin;

	if (read(STDIN_FILENO, &begin, 1) < 0)
		return 1;
	end_ns = clock_ns(CLOCK_MONOTONIC) + seconds * 1000000000;
	if (argc > 2 && !strcmp(argv[2], "long"))
		run_long();
	else
		run_sites();
	return 0;
}
