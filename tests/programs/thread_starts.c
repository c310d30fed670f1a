/* SPDX-License-Identifier: Apache-2.0 */
/* thread_starts SECONDS: two threads work and start others all the time, which work for 10 ms each. */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

static time_t end;

static double cpu_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static __attribute__((noinline)) void work(double seconds)
{
	double until = cpu_seconds() + seconds;

	while (cpu_seconds() < until)
		;
}

static void *short_main(void *argument)
{
	work(0.01);
	return argument;
}

static void *long_main(void *argument)
{
	pthread_t thread;

	while (time(NULL) < end) {
		work(0.005);
		if (pthread_create(&thread, NULL, short_main, NULL))
			abort();
		pthread_join(thread, NULL);
	}
	return argument;
}

int main(int argc, char **argv)
{
	pthread_t other;

	end = time(NULL) + (argc > 1 ? atol(argv[1]) : 1);
	if (pthread_create(&other, NULL, long_main, NULL))
		return 1;
	long_main(NULL);
	pthread_join(other, NULL);
	return 0;
}
