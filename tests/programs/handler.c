/* SPDX-License-Identifier: Apache-2.0 */
/* handler SECONDS: main → interrupted, where a timer signal comes again and again → on_signal →
 * leaf. Its main thread can also end first: handler SECONDS alone: main's thread ends, another one
 * works. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

#define APART __attribute__((noinline, noclone))

static volatile unsigned done;
static time_t end;

static APART unsigned leaf(unsigned seed)
{
	volatile unsigned kept = seed;

	for (int i = 0; i < 200000; i++)
		kept = kept * 1664525u + 1013904223u;
	return kept;
}

static APART void on_signal(int number)
{
	done += leaf((unsigned)number) & 1;
}

static APART void interrupted(void)
{
	while (time(NULL) < end)
		for (int i = 0; i < 100000; i++)
			done += (unsigned)i;
}

static void *thread_main(void *argument)
{
	interrupted();
	return argument;
}

int main(int argc, char **argv)
{
	const struct itimerval every = {{0, 2000}, {0, 2000}};
	pthread_t thread;

	end = time(NULL) + (argc > 1 ? atol(argv[1]) : 1);
	if (argc > 2 && !strcmp(argv[2], "alone")) {
		if (pthread_create(&thread, NULL, thread_main, NULL))
			return 1;
		pthread_exit(NULL);
	}
	signal(SIGALRM, on_signal);
	setitimer(ITIMER_REAL, &every, NULL);
	interrupted();
	return 0;
}
