/* SPDX-License-Identifier: Apache-2.0 */
/* sample_load GROUPS HELD: groups of 64 blocks of 1 KiB, taken ten calls deep, 2000 of them a
 * second; each is given back when HELD more have been taken. Prints the median of the groups'
 * nanoseconds of CPU time for one block and its end. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { GROUP = 64, BYTES = 1024, DEPTH = 10, HELD_MAX = 4096, GROUPS_MAX = 10000 };

static uint64_t cpu_ns(void)
{
	struct timespec used;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
	return (uint64_t)used.tv_sec * 1000000000 + (uint64_t)used.tv_nsec;
}

__attribute__((noinline)) static void *take(int depth)
{
	void *block = depth ? take(depth - 1) : malloc(BYTES);

	__asm__ volatile("" : "+r"(block));
	return block;
}

static int compare(const void *left, const void *right)
{
	const uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return (a > b) - (a < b);
}

int main(int argc, char **argv)
{
	static void *held[HELD_MAX];
	static uint64_t groups[GROUPS_MAX];
	const size_t count = argc > 1 ? strtoull(argv[1], NULL, 10) % GROUPS_MAX : 100,
		     places = (argc > 2 ? strtoull(argv[2], NULL, 10) : 0) % HELD_MAX + 1;
	const struct timespec pause = {.tv_nsec = 32000000};
	size_t at = 0;

	for (size_t group = 0; group < count; group++) {
		const uint64_t began = cpu_ns();

		for (int i = 0; i < GROUP; i++, at = (at + 1) % places) {
			free(held[at]);
			held[at] = take(DEPTH);
		}
		groups[group] = cpu_ns() - began;
		nanosleep(&pause, NULL);
	}
	qsort(groups, count, sizeof *groups, compare);
	printf("%.1f\n", (double)groups[count / 2] / GROUP);
	return 0;
}
