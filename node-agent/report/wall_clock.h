/* SPDX-License-Identifier: Apache-2.0 */
/* Unix time as the agent stamps it: counted by CLOCK_BOOTTIME, which neither stops in suspend nor
 * jumps, and led towards CLOCK_REALTIME at the end of each interval. So the times of a run never go
 * back, whatever somebody does to the clock:
 *	ahead by more than a second: a step, as the host's clock is right from now on; a gap;
 *	ahead by less, or back by little: the interval is as much longer or shorter;
 *	back: intervals are an eighth as long as they were until the clock has caught up;
 *	back by more than a day: a step back, as what was before was no time at all. */
#ifndef NODE_AGENT_REPORT_WALL_CLOCK_H
#define NODE_AGENT_REPORT_WALL_CLOCK_H

#include <stdatomic.h>
#include <stdint.h>

struct wall_clock {
	_Atomic int64_t offset_ns; /* unix time − CLOCK_BOOTTIME, as it is stamped */
	int64_t host_offset_ns;    /* the same of the host's clock, when it was last looked at */
	int64_t begin_ns;          /* CLOCK_BOOTTIME: where the interval begins */
	uint64_t jumps;            /* times the host's clock was set by more than a second */
};

/* The first interval begins now. */
void wall_clock_start(struct wall_clock *clock);

/* Ends the interval, and begins the next: so long ago, but not before the interval began. Returns by
 * how much the host's clock was set meanwhile; 0: by less than a second. */
int64_t wall_clock_close(struct wall_clock *clock, uint64_t ago_ns, uint64_t *start_ns,
			 uint64_t *duration_ns);

/* Unix time as stamped; safe on any thread. */
uint64_t wall_clock_now_ns(struct wall_clock *clock);

/* The same on clocks that are handed in. */
void wall_clock_start_at(struct wall_clock *clock, int64_t boot_ns, int64_t host_ns);
int64_t wall_clock_close_at(struct wall_clock *clock, int64_t boot_ns, int64_t host_ns,
			    uint64_t *start_ns, uint64_t *duration_ns);

#endif
