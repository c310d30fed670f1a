/* SPDX-License-Identifier: Apache-2.0 */
/* takes SECONDS [ROUNDS]: waits for a line, takes memory in five ways, each in a function of its own, and prints the
 * bytes that each took and the CPU seconds it has used: "name bytes" a line. ROUNDS of other work
 * between two pieces. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define SITE __attribute__((noinline, noclone))

enum { WAYS = 5 };
static const char *const names[WAYS] = {"by_malloc", "by_calloc", "by_realloc", "by_aligned",
					"by_array"};
static uint64_t taken[WAYS];
static void *volatile kept;

static void keep(int way, void *block, size_t bytes)
{
	kept = block;
	taken[way] += bytes;
}

SITE static void by_malloc(size_t bytes)
{
	keep(0, malloc(bytes), bytes);
	free(kept);
}

SITE static void by_calloc(size_t bytes)
{
	keep(1, calloc(3, bytes), 3 * bytes);
	free(kept);
}

/* The first is a malloc() in all but name, and counts as what it asks for. */
SITE static void by_realloc(size_t bytes)
{
	keep(2, realloc(NULL, bytes), bytes);
	keep(2, realloc(kept, 4 * bytes), 4 * bytes);
	free(kept);
}

SITE static void by_aligned(size_t bytes)
{
	void *block = NULL;

	if (posix_memalign(&block, 64, bytes))
		return;
	keep(3, block, bytes);
	free(kept);
	keep(3, aligned_alloc(64, 256), 256);
	free(kept);
}

SITE static void by_array(size_t bytes)
{
	keep(4, reallocarray(NULL, 2, bytes), 2 * bytes);
	free(kept);
}

int main(int argc, char **argv)
{
	const double seconds = argc > 1 ? atof(argv[1]) : 1;
	const long rounds = argc > 2 ? atol(argv[2]) : 10000;
	struct timespec now;
	uint64_t turns = 0;
	double end;

	puts("ready");
	fflush(stdout);
	if (getchar() == EOF)
		return 1;
	clock_gettime(CLOCK_MONOTONIC, &now);
	end = (double)now.tv_sec + (double)now.tv_nsec / 1e9 + seconds;
	do {
		size_t bytes = 64 + (size_t)(turns * 2654435761U % 1000);

		by_malloc(bytes);
		by_calloc(bytes);
		by_realloc(bytes);
		by_aligned(bytes);
		by_array(bytes);
		for (volatile long i = 0; i < rounds; i++)
			;
		turns++;
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((double)now.tv_sec + (double)now.tv_nsec / 1e9 < end);
	for (int way = 0; way < WAYS; way++)
		printf("%s %llu\n", names[way], (unsigned long long)taken[way]);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	printf("cpu_ns %llu\n", (unsigned long long)now.tv_sec * 1000000000ULL + now.tv_nsec);
	printf("turns %llu\n", (unsigned long long)turns);
	return 0;
}
