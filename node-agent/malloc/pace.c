/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/malloc/pace.h"

enum { STEP = 4 }; /* times, at once */

/* What is told of a block once more, when it is given back, costs about half as much. */
static uint64_t with_end(uint64_t cost_ns)
{
	return cost_ns + cost_ns / 2;
}

static uint64_t bounded(uint64_t wanted, uint64_t least, uint64_t most)
{
	if (wanted > most)
		wanted = most;
	return wanted < least ? least : wanted;
}

uint64_t pace_told(struct pace *pace, uint64_t began, uint64_t ended, uint64_t mean, uint64_t least)
{
	const bool is_timed = pace_is_timed(pace);
	uint64_t used, wanted;

	if (is_timed && !pace->samples)
		pace->began_ns = began;
	if (is_timed && ended > began)
		pace->cost_ns += ended - began;
	if (++pace->samples <= PACE_SAMPLES || !is_timed)
		return mean;
	/* This one was the first of the next round, and its cost is none of this one's. */
	used = began > pace->began_ns ? began - pace->began_ns : 1;
	pace->cost_ns -= ended > began ? ended - began : 0;
	wanted = (uint64_t)((unsigned __int128)mean * PACE_SHARE * PACE_TIMED *
			    with_end(pace->cost_ns) / used);
	*pace = (struct pace){0};
	return bounded(bounded(wanted, mean / STEP, mean * STEP), least, least * PACE_TIMES_MAX);
}
