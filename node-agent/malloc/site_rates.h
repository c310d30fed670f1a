/* SPDX-License-Identifier: Apache-2.0 */
/* Which of the sampled blocks are told, since to be told is what costs. Samples are dense, so that
 * what is held of any place is seen; of the places (who called, how deep in the stack) that take
 * much only some are told, and each stands for as many more: of every place about as many, those of
 * one that takes little all, in sum no more than a share of the process' CPU time pays for. What
 * lives long is taken slowly or once, and so has its many samples beside any churn.
 *
 * One that is told stands for all of its place since the one before: sums are off by one of them
 * at most. How many go by depends on those before, never on the block in question. Places whose
 * hashes are one share their fate, no more. One for a process: no locks, nothing allocated; threads
 * that count at once may lose a count. */
#ifndef NODE_AGENT_MALLOC_SITE_RATES_H
#define NODE_AGENT_MALLOC_SITE_RATES_H

#include <stdbool.h>
#include <stdint.h>

enum {
	SITE_RATES = 4096,
	SITE_SEEN_ALL = 256,      /* so many of a place, a minute, are told while there is credit */
	SITE_TOLD_SHARE = 250,    /* one part in so many of the CPU time is for telling, */
	SITE_SAMPLED_SHARE = 167, /* and for samples */
	SITE_SAMPLE_NS = 25,      /* which cost so much each */
	SITE_TICK_NS = 100000000, /* from one decision to the next */
	SITE_TICK_TOLD = 128,     /* or after so many were told */
	SITE_CREDIT_NS = 20000000,  /* that may be spent at once */
	SITE_RATE_LEAST = 16 << 10, /* bytes from one sample to the next, on average */
	SITE_RATE_MOST = 1 << 30,
};

struct site_rate {
	uint32_t hits;  /* since the last decision */
	uint32_t mean;  /* of hits in SITE_TICK_NS, in 1/256 */
	uint32_t seen;  /* hits, of which those of long ago are forgotten */
	uint32_t run;   /* one of so many is told; 0: all */
	uint32_t since; /* hits since the last that was told */
};

struct site_rates {
	struct site_rate sites[SITE_RATES];
	uint64_t rate; /* bytes from one sample to the next */
	int64_t credit_ns;
	uint64_t allowed_ns; /* for telling, in SITE_TICK_NS, on average */
	uint64_t cost_ns;    /* of telling one block, with its end */
	uint32_t ticks;
	uint32_t told; /* since the last decision */
};

void site_rates_init(struct site_rates *rates);

/* A block of the place is sampled: so many it stands for, as it is told; 0: it is not. */
static inline uint32_t site_sample(struct site_rates *rates, uintptr_t place)
{
	struct site_rate *site =
		&rates->sites[((uint64_t)place * UINT64_C(0x9e3779b97f4a7c15)) >> 52];
	const uint32_t since = __atomic_load_n(&site->since, __ATOMIC_RELAXED) + 1;
	const bool is_told = since >= __atomic_load_n(&site->run, __ATOMIC_RELAXED);

	__atomic_store_n(&site->hits, __atomic_load_n(&site->hits, __ATOMIC_RELAXED) + 1,
			 __ATOMIC_RELAXED);
	__atomic_store_n(&site->since, is_told ? 0 : since, __ATOMIC_RELAXED);
	return is_told ? since : 0;
}

/* It was; cost_ns: what that took of CPU time, where it was timed, or 0. Whether it is time for a
 * decision. */
bool site_rates_told(struct site_rates *rates, uint64_t cost_ns);

/* The decision: used_ns of CPU time went by, of all threads, in elapsed_ns. */
void site_rates_settle(struct site_rates *rates, uint64_t used_ns, uint64_t elapsed_ns);

#endif
