/* SPDX-License-Identifier: Apache-2.0 */
/* How seldom a thread's blocks are sampled, so that telling of them costs it no more than a share
 * of its CPU time: the mean distance between samples grows with what they cost. It depends on what
 * has been sampled only, never on the block in question, and each sample is weighted by the
 * distance in force when it was drawn: sums stay true. One thread's own; no locks, nothing
 * allocated. */
#ifndef NODE_AGENT_MALLOC_PACE_H
#define NODE_AGENT_MALLOC_PACE_H

#include <stdbool.h>
#include <stdint.h>

enum {
	PACE_SAMPLES = 16, /* from one decision to the next */
	PACE_TIMED = 4,    /* every fourth of them */
	PACE_SHARE = 200,  /* one part in so many of a thread's CPU time */
	PACE_TIMES_MAX = 1 << 12,
};

struct pace {
	uint64_t began_ns, cost_ns; /* since the last decision, of the thread's CPU time */
	uint32_t samples;
};

/* Before a sample is told; whether it is to be timed. */
static inline bool pace_is_timed(const struct pace *pace)
{
	return pace->samples % PACE_TIMED == 0;
}

/* After it: began and ended are the thread's CPU time before and after, of one that is timed. mean:
 * the distance in bytes so far, least: what it may not be less than. The distance from now on. */
uint64_t pace_told(struct pace *pace, uint64_t began, uint64_t ended, uint64_t mean,
		   uint64_t least);

#endif
