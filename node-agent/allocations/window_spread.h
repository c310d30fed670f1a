/* SPDX-License-Identifier: Apache-2.0 */
/* How much windows of one process differ, beside how much samples of one window do: samples of a
 * window are alike, so sums made of windows are off by more than their samples alone would have
 * it. Variances of sums in bytes², of single samples by Horvitz and Thompson, of windows by
 * successive differences (von Neumann 1941), to which a slow change of the load adds little. Pure. */
#ifndef NODE_AGENT_ALLOCATIONS_WINDOW_SPREAD_H
#define NODE_AGENT_ALLOCATIONS_WINDOW_SPREAD_H

#include <stdint.h>

/* Bytes² of one unit in which both are told. */
#define WINDOW_SPREAD_UNIT (65536.0 * 65536.0)

struct window_spread { /* of all processes, cumulative; zeros to begin with */
	double within, between; /* of windows that have one before them */
};

struct window_rate { /* of one process; zeros: no window yet */
	double bytes_by_ns, stood_ns; /* of the last window; time that it stands for */
	double square; /* half of that of its difference to the one before */
	int count;     /* of windows; 2: two or more */
};

struct window_sum {
	double bytes, open_ns; /* while it was open */
	double stands_ns;      /* CPU time of the process that it stands for */
	double squares;        /* of what its samples stand for */
};

void window_spread_add(struct window_spread *spread, struct window_rate *rate,
		       const struct window_sum *sum);
/* The last window stands for so much more time, with samples of those squares. */
void window_spread_stretch(struct window_spread *spread, struct window_rate *rate,
			   double stands_ns, double squares);

/* As it is told: whole units, up to 2^63. */
uint64_t window_spread_units(double squares);

#endif
