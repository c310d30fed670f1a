/* SPDX-License-Identifier: Apache-2.0 */
/* mix MOMENT SECONDS END: is busy all the time, three fifths in usual_work() and two in
 * other_work(); from MOMENT on (unix seconds) it does nothing but rare_work() for SECONDS. Ends at
 * END. */
#include <stdlib.h>
#include <time.h>

enum { TURNS = 20000 };

/* step_: what makes them three functions, whatever linker and compiler find alike. */
#define WORK(name_, step_)                                                        \
	static __attribute__((noinline)) unsigned name_(unsigned work, int turns) \
	{                                                                         \
		volatile unsigned at = work;                                      \
                                                                                  \
		for (int i = 0; i < turns; i++)                                   \
			at = at * 1664525u + (step_);                             \
		return at;                                                        \
	}
WORK(usual_work, 1013904223u)
WORK(other_work, 1013904221u)
WORK(rare_work, 1013904219u)

static double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	double moment = argc > 3 ? atof(argv[1]) : 0, seconds = argc > 3 ? atof(argv[2]) : 0;
	double end = argc > 3 ? atof(argv[3]) : 0, now;
	unsigned work = 1;

	while ((now = now_s()) < end) {
		if (now >= moment && now < moment + seconds) {
			work = rare_work(work, TURNS);
			continue;
		}
		work = usual_work(work, 3 * TURNS / 5);
		work = other_work(work, 2 * TURNS / 5);
	}
	return work == 7;
}
