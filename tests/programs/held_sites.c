/* SPDX-License-Identifier: Apache-2.0 */
/* held_sites SECONDS [MB_PER_SECOND]: ninety megabytes that are held by twenty sites, of 2 to
 * 8 MB each, beside so much churn (1000) of forty others, whose blocks live for a moment, with an
 * exact tally of each. What is held is taken within the first quarter of the time, and renewed
 * slowly from then on. Prints "ready", waits for a line, and at the end what allocs prints:
 * "SITE TAKEN IN_USE BLOCKS" in bytes, "kept", and after a line "freed"; then the CPU time in
 * nanoseconds. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SITE __attribute__((noinline, noclone))

enum {
	HELD = 20,
	CHURN = 40,
	SITES = HELD + CHURN,
	HELD_MAX = 60000, /* blocks of one site */
	LIVE = 512,       /* blocks of churn */
	DEPTH = 8,        /* of calls above a site */
	STEP = 1000,      /* blocks from one look at the clock to the next */
	MEGABYTE = 1000000,
};

struct tally {
	uint64_t taken, in_use, blocks;
};

struct shelf {
	void *blocks[HELD_MAX];
	uint32_t sizes[HELD_MAX], count;
};

static struct tally tallies[SITES];
static struct shelf shelves[HELD];
static struct {
	void *at;
	uint32_t size, site;
} live[LIVE];
static uint64_t state = 88172645463325252;

static uint64_t random_next(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

/* A number of its own keeps the compiler from making one function of all. */
#define SITE_FUNCTION(name_, number_)                               \
	SITE static void *site_##name_##number_(size_t size)        \
	{                                                           \
		void *at = malloc(size);                            \
                                                                    \
		__asm__ volatile("" : : "i"(__COUNTER__), "r"(at)); \
		return at;                                          \
	}
#define TWO(name_, tens_, a_, b_)       \
	SITE_FUNCTION(name_, tens_##a_) \
	SITE_FUNCTION(name_, tens_##b_)
#define TEN(name_, tens_)       \
	TWO(name_, tens_, 0, 1) \
	TWO(name_, tens_, 2, 3) \
	TWO(name_, tens_, 4, 5) \
	TWO(name_, tens_, 6, 7) \
	TWO(name_, tens_, 8, 9)
#define TEN_OF(name_, tens_)                                                            \
	site_##name_##tens_##0, site_##name_##tens_##1, site_##name_##tens_##2,         \
		site_##name_##tens_##3, site_##name_##tens_##4, site_##name_##tens_##5, \
		site_##name_##tens_##6, site_##name_##tens_##7, site_##name_##tens_##8, \
		site_##name_##tens_##9

TEN(held_, 0)
TEN(held_, 1)
TEN(churn_, 0)
TEN(churn_, 1)
TEN(churn_, 2)
TEN(churn_, 3)

static void *(*const sites[SITES])(size_t) = {
	TEN_OF(held_, 0),  TEN_OF(held_, 1),  TEN_OF(churn_, 0),
	TEN_OF(churn_, 1), TEN_OF(churn_, 2), TEN_OF(churn_, 3),
};

SITE static void *call(unsigned site, size_t size, int depth)
{
	void *at = depth ? call(site, size, depth - 1) : sites[site](size);

	__asm__ volatile("" : "+r"(at));
	return at;
}

static void *take(unsigned site, uint32_t size)
{
	char *at = call(site, size, DEPTH);

	if (!at)
		exit(1);
	at[0] = 1;
	tallies[site].taken += size;
	tallies[site].in_use += size;
	tallies[site].blocks++;
	return at;
}

static void give(unsigned site, void *at, uint32_t size)
{
	free(at);
	tallies[site].in_use -= size;
}

/* Of 40 sites the first has a twentieth of the bytes, the last nearly none. */
static void churn(void)
{
	const uint64_t random = random_next();
	const unsigned a = (unsigned)(random % CHURN), b = (unsigned)(random >> 8) % CHURN;
	const unsigned site = HELD + (a < b ? a : b), place = (unsigned)(random >> 20) % LIVE;

	if (live[place].at)
		give(live[place].site, live[place].at, live[place].size);
	live[place].size = 16 + (uint32_t)(random >> 40) % 2000;
	live[place].site = site;
	live[place].at = take(site, live[place].size);
}

/* percent: of what is to be held. */
static void hold(uint64_t percent)
{
	const uint64_t random = random_next();
	const unsigned site = (unsigned)(random % HELD);
	struct shelf *shelf = &shelves[site];
	const uint64_t most = (2 + site * 6 / (HELD - 1)) * MEGABYTE * percent / 100;
	const uint32_t size = 64 + (uint32_t)(random >> 8) % 960;
	uint32_t place;

	if (tallies[site].in_use >= most || shelf->count == HELD_MAX) {
		if (!shelf->count || random >> 56) /* one of 256 is renewed */
			return;
		place = (uint32_t)(random >> 24) % shelf->count;
		give(site, shelf->blocks[place], shelf->sizes[place]);
	} else {
		place = shelf->count++;
	}
	shelf->sizes[place] = size;
	shelf->blocks[place] = take(site, size);
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void tell(void)
{
	for (unsigned i = 0; i < SITES; i++)
		printf("site_%s_%02u %llu %llu %llu\n", i < HELD ? "held" : "churn",
		       i < HELD ? i : i - HELD, (unsigned long long)tallies[i].taken,
		       (unsigned long long)tallies[i].in_use,
		       (unsigned long long)tallies[i].blocks);
	puts("kept");
	fflush(stdout);
}

static void work(uint64_t seconds_ns, uint64_t megabytes)
{
	const uint64_t began = clock_ns(CLOCK_MONOTONIC);
	uint64_t churned = 0, ns;

	while ((ns = clock_ns(CLOCK_MONOTONIC) - began) < seconds_ns) {
		const uint64_t percent = 400 * ns / seconds_ns;

		for (uint64_t i = 0; i < STEP / 8; i++)
			hold(percent < 100 ? percent + 1 : 100);
		if (churned > ns / 1000 * megabytes) { /* ahead of its time */
			nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
			continue;
		}
		for (unsigned i = 0; i < STEP; i++)
			churn();
		churned += (uint64_t)STEP * 1015;
	}
}

int main(int argc, char **argv)
{
	const uint64_t seconds = argc > 1 ? strtoull(argv[1], NULL, 10) : 10;
	const uint64_t megabytes = argc > 2 ? strtoull(argv[2], NULL, 10) : 1000;
	uint64_t used;
	char line[8];

	puts("ready");
	fflush(stdout);
	if (!fgets(line, sizeof line, stdin))
		return 0;
	used = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	work(seconds * 1000000000, megabytes);
	used = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - used;
	tell();
	if (!fgets(line, sizeof line, stdin))
		return 0;
	printf("freed %llu\n", (unsigned long long)used);
	return 0;
}
