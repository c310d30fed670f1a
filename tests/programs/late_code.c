/* SPDX-License-Identifier: Apache-2.0 */
/* late_code FIRST SLEEP SECOND: seconds in early_leaf(), asleep, and in late_leaf(), whose code
 * lies on pages that nothing ran on before. Walking it needs the unwind table: no frame pointers.
 */
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define FAR __attribute__((noinline, noclone, aligned(65536)))

static volatile unsigned long spun;

static double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

FAR static void early_leaf(void)
{
	for (int i = 0; i < 1000000; i++)
		spun += (unsigned long)i;
}

FAR static void late_leaf(void)
{
	for (int i = 0; i < 1000000; i++)
		spun += (unsigned long)i * 3;
}

FAR static int late_middle(double seconds)
{
	for (double end = now_s() + seconds; now_s() < end;)
		late_leaf();
	return (int)spun;
}

int main(int argc, char **argv)
{
	if (argc != 4)
		return 2;
	for (double end = now_s() + atof(argv[1]); now_s() < end;)
		early_leaf();
	sleep((unsigned)atoi(argv[2]));
	late_middle(atof(argv[3]));
	return 0;
}
