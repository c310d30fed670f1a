/* SPDX-License-Identifier: Apache-2.0 */
/* Counted stacks of two sides → functions with what changed, and whether the change is more than
 * sampling noise. Pure.
 *
 * A side is made of clusters: parts of its time (or its hosts) that repeat each other. What a
 * function has in each of them shows how much it varies by itself: the variance of its rate or
 * share is that of a ratio estimator over clusters (Cochran, Sampling Techniques, 6.4), but never
 * less than that of independent samples, times the dispersion that half of all functions exceed.
 * The difference is tested with Welch's t; where samples are few, and weigh the same, also with the
 * exact conditional binomial test of their counts, and the larger p counts. The p of all functions
 * with at least DIFF_SAMPLES_MIN samples are corrected by Benjamini and Hochberg. */
#ifndef SYMBOL_SERVER_FLAMEGRAPH_DIFF_TABLE_H
#define SYMBOL_SERVER_FLAMEGRAPH_DIFF_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbol-server/flamegraph/flame_tree.h"

enum diff_side { DIFF_BASE, DIFF_COMPARE, DIFF_SIDES };
/* DIFF_PER_SECOND: value by time; DIFF_SHARE: by the side's whole value; DIFF_RAW: as it is. */
enum diff_norm { DIFF_PER_SECOND, DIFF_SHARE, DIFF_RAW };

enum {
	DIFF_SAMPLES_MIN = 10,   /* of both sides together; fewer are not tested */
	DIFF_CLUSTERS_MIN = 4,   /* of a side; with fewer, samples are taken for independent */
	DIFF_EXACT_SAMPLES = 200 /* up to so many the exact test is asked, too */
};
#define DIFF_FALSE_SHARE 0.05 /* q up to this is significant */

struct diff_sum { /* one measure of one side */
	uint64_t value, samples;
	double squares, cross; /* private: over clusters, of value², of value × exposure */
	uint64_t now;          /* private: value of the cluster at hand */
};

struct diff_function { /* one name of one module */
	struct flame_frame frame;
	struct diff_sum self[DIFF_SIDES], total[DIFF_SIDES];
	/* of the measure tested; NAN: cannot be said */
	double before, after;           /* normalized: per second, share, or value */
	double change;                  /* after / before − 1 */
	double change_low, change_high; /* 95 % interval of one function by itself */
	double p, q;                    /* NAN: too few samples */
	bool is_significant;
	bool is_touched;     /* private */
	uint64_t last_stack; /* private */
};

struct diff_whole { /* one side */
	uint64_t value, samples;
	double seconds;
	uint32_t clusters;
	double exposure, squares; /* private: over clusters, of the exposure and its square */
	uint64_t now;             /* private: value of the cluster at hand */
};

struct diff_table {
	struct diff_function *functions;
	size_t count;
	enum diff_norm norm;
	struct diff_whole whole[DIFF_SIDES];
	size_t tested, significant;
	double dispersion; /* 1: independent samples; NAN: too few clusters to tell */
	double scale;      /* base values times this compare with the others */
	/* private below */
	size_t capacity, limit;
	uint64_t stacks;
	uint32_t *touched;
	size_t touched_count, touched_room;
	enum diff_side side;
	double seconds; /* of the cluster at hand */
	bool in_cluster;
	struct diff_index *index;
};

struct diff_table *diff_table_new(enum diff_norm norm,
				  size_t limit_functions); /* NULL: no memory */

/* Begins a cluster of a side and ends the last one; clusters without any stack count, too. */
void diff_table_cluster(struct diff_table *table, enum diff_side side, double seconds);

/* Root first, into the cluster at hand; group, root, incomplete and cut frames are no functions.
 * false: the limit or memory is reached (the table is then unusable). */
bool diff_table_add(struct diff_table *table, const struct flame_frame *frames, size_t depth,
		    uint64_t value, uint64_t samples);

/* Ends the last cluster, tests self or total, and sorts: what is significant first, then by the
 * size of the difference. false: no memory. */
bool diff_table_test(struct diff_table *table, bool by_total);

void diff_table_free(struct diff_table *table); /* NULL is fine */

#endif
