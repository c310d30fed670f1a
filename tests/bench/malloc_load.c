/* SPDX-License-Identifier: Apache-2.0 */
/* malloc_load MILLIONS: so many blocks taken and given back, about 10 million a second: sizes of 16
 * to 271 bytes, 1024 of them in use, and as much work beside as makes it that. Prints the
 * nanoseconds of CPU time for one and for how many a second that is. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { KEPT = 1024, WORK = 48 };

static uint64_t cpu_ns(void)
{
	struct timespec used;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	return (uint64_t)used.tv_sec * 1000000000 + (uint64_t)used.tv_nsec;
}

int main(int argc, char **argv)
{
	static unsigned char *kept[KEPT];
	uint64_t count = (argc > 1 ? strtoull(argv[1], NULL, 10) : 10) * 1000000, random = 1,
		 sum = 0;
	uint64_t began = cpu_ns(), used;

	for (uint64_t i = 0; i < count; i++) {
		unsigned char **place;

		for (int k = 0; k < WORK; k++)
			random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
		place = &kept[random >> 54];
		if (*place)
			sum += **place;
		free(*place);
		*place = malloc(16 + (random >> 32 & 255));
		**place = (unsigned char)random;
	}
	used = cpu_ns() - began;
	printf("%.3f %.2f %llu\n", (double)used / (double)count, (double)count * 1e3 / (double)used,
	       (unsigned long long)sum & 1);
	return 0;
}
