/* SPDX-License-Identifier: Apache-2.0 */
/* allocs THREADS ROUNDS [SITES [wait]]: takes memory in every way there is, each in a function of
 * its own that keeps an exact tally, gives most of it back, half of it on another thread; a fork()
 * in the midst, whose child uses what it has inherited. Prints "SITE TAKEN IN_USE BLOCKS" in bytes,
 * waits for a line of input, gives everything back, prints "freed" and waits for another. Ends with
 * 1 when memory is not what it should be. */
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SITE __attribute__((noinline, noclone))
#define STAY __asm__ volatile("")

enum { SITES = 10, KEPT = 4096, THREADS_MAX = 16 };

struct block {
	unsigned char *at;
	size_t size;
	unsigned site;
};

struct tally {
	uint64_t taken, in_use, blocks;
};

struct shelf { /* one's blocks; others free what lies there too */
	pthread_mutex_t lock;
	struct block blocks[KEPT];
};

static const char *const names[SITES] = {
	"site_malloc",       "site_calloc",   "site_realloc_grow",   "site_realloc_new",
	"site_reallocarray", "site_memalign", "site_posix_memalign", "site_aligned_alloc",
	"site_valloc",       "site_pvalloc",
};
static struct tally tallies[SITES];
static struct shelf shelves[THREADS_MAX];
static unsigned thread_count, rounds, site_count = SITES;

static void fail(const char *what)
{
	fprintf(stderr, "allocs: %s\n", what);
	_exit(1);
}

/* --- the sites --- */

SITE static void *site_malloc(size_t size)
{
	void *at = malloc(size);

	STAY;
	return at;
}

SITE static void *site_calloc(size_t size)
{
	unsigned char *at = calloc(size / 8 + 1, 8);

	for (size_t i = 0; i < size; i += 512)
		if (at[i])
			fail("calloc gave used memory");
	return at;
}

static void *small_first(void)
{
	return malloc(1);
}

SITE static void *site_realloc_grow(size_t size)
{
	unsigned char *at = small_first();

	*at = 77;
	at = realloc(at, size / 2 + 1);
	at = realloc(at, size);
	if (*at != 77)
		fail("realloc lost what was there");
	return at;
}

SITE static void *site_realloc_new(size_t size)
{
	void *at = realloc(NULL, size);

	STAY;
	return at;
}

SITE static void *site_reallocarray(size_t size)
{
	void *at = reallocarray(NULL, size / 4 + 1, 4);

	STAY;
	return at;
}

SITE static void *site_memalign(size_t size)
{
	void *at = memalign(256, size);

	if ((uintptr_t)at % 256)
		fail("memalign is not aligned");
	return at;
}

SITE static void *site_posix_memalign(size_t size)
{
	void *at = NULL;

	if (posix_memalign(&at, 64, size) || (uintptr_t)at % 64)
		fail("posix_memalign");
	return at;
}

SITE static void *site_aligned_alloc(size_t size)
{
	void *at = aligned_alloc(32, (size + 31) / 32 * 32);

	if ((uintptr_t)at % 32)
		fail("aligned_alloc is not aligned");
	return at;
}

SITE static void *site_valloc(size_t size)
{
	void *at = valloc(size);

	if ((uintptr_t)at % 4096)
		fail("valloc is not aligned");
	return at;
}

SITE static void *site_pvalloc(size_t size)
{
	void *at = pvalloc(size);

	if ((uintptr_t)at % 4096)
		fail("pvalloc is not aligned");
	return at;
}

/* What was asked for, and in all. */
static size_t asked(unsigned site, size_t size, size_t *all)
{
	size_t last = size;

	if (site == 1)
		last = (size / 8 + 1) * 8;
	else if (site == 4)
		last = (size / 4 + 1) * 4;
	else if (site == 7)
		last = (size + 31) / 32 * 32;
	*all = site == 2 ? last + size / 2 + 1 : last;
	return last;
}

/* --- threads --- */

static void *(*const sites[SITES])(size_t) = {
	site_malloc,   site_calloc,         site_realloc_grow,  site_realloc_new, site_reallocarray,
	site_memalign, site_posix_memalign, site_aligned_alloc, site_valloc,      site_pvalloc,
};

static void give(struct block *block)
{
	const unsigned char want = (unsigned char)block->size;

	if (!block->at)
		return;
	if (block->at[0] != want || block->at[block->size - 1] != want)
		fail("a block has been written to");
	if (malloc_usable_size(block->at) < block->size)
		fail("malloc_usable_size");
	__atomic_fetch_sub(&tallies[block->site].in_use, block->size, __ATOMIC_RELAXED);
	free(block->at);
	block->at = NULL;
}

static void take(struct shelf *shelf, uint64_t random)
{
	const unsigned site = (unsigned)(random % site_count);
	const size_t size = 16 + (random >> 8) % 2000;
	size_t all;
	struct block block = {.site = site, .size = asked(site, size, &all)}, *place;

	block.at = sites[site](size);
	if (!block.at)
		fail("no memory");
	block.at[0] = block.at[block.size - 1] = (unsigned char)block.size;
	__atomic_fetch_add(&tallies[site].taken, all, __ATOMIC_RELAXED);
	__atomic_fetch_add(&tallies[site].in_use, block.size, __ATOMIC_RELAXED);
	__atomic_fetch_add(&tallies[site].blocks, 1, __ATOMIC_RELAXED);
	pthread_mutex_lock(&shelf->lock);
	place = &shelf->blocks[(random >> 32) % KEPT];
	give(place);
	*place = block;
	pthread_mutex_unlock(&shelf->lock);
}

static void inherit(void)
{
	pid_t child = fork();
	int status = 0;

	if (!child) {
		for (unsigned i = 0; i < thread_count; i++)
			for (unsigned k = 0; k < KEPT; k += 64)
				free(shelves[i].blocks[k].at);
		for (unsigned i = 0; i < 1000; i++)
			free(site_malloc(1000));
		_exit(0);
	}
	if (waitpid(child, &status, 0) != child || status)
		fail("a child ended badly");
}

static void *work(void *argument)
{
	const unsigned self = (unsigned)(uintptr_t)argument;
	uint64_t random = 88172645463325252 + self;

	for (unsigned i = 0; i < rounds; i++) {
		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		/* every other block lands on, and throws out one of, the next thread's */
		take(&shelves[(self + i % 2) % thread_count], random);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS_MAX];
	char line[8];

	thread_count = argc > 1 ? (unsigned)atoi(argv[1]) % (THREADS_MAX + 1) : 2;
	rounds = argc > 2 ? (unsigned)atoi(argv[2]) : 100000;
	if (argc > 3)
		site_count = (unsigned)atoi(argv[3]) % (SITES + 1);
	if (argc > 4) { /* whatever it is: waits for a line first */
		puts("ready");
		fflush(stdout);
		if (!fgets(line, sizeof line, stdin))
			return 0;
	}
	for (unsigned i = 0; i < thread_count; i++)
		pthread_mutex_init(&shelves[i].lock, NULL);
	for (unsigned half = 0; half < 2; half++) {
		for (unsigned i = 0; i < thread_count; i++)
			pthread_create(&threads[i], NULL, work, (void *)(uintptr_t)i);
		for (unsigned i = 0; i < thread_count; i++)
			pthread_join(threads[i], NULL);
		if (!half)
			inherit();
	}
	for (unsigned i = 0; i < SITES; i++)
		printf("%s %llu %llu %llu\n", names[i], (unsigned long long)tallies[i].taken,
		       (unsigned long long)tallies[i].in_use,
		       (unsigned long long)tallies[i].blocks);
	puts("kept");
	fflush(stdout);
	if (!fgets(line, sizeof line, stdin))
		return 0;
	for (unsigned i = 0; i < thread_count; i++)
		for (unsigned k = 0; k < KEPT; k++)
			give(&shelves[i].blocks[k]);
	puts("freed");
	fflush(stdout);
	return fgets(line, sizeof line, stdin) ? 0 : 0; /* whatever comes */
}
