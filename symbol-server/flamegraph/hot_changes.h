/* SPDX-License-Identifier: Apache-2.0 */
/* When the mix of a process's functions was another than in the rest of its time. Pure.
 *
 * A window of steps is one side, all others are the other one, and change_test.h is asked both of
 * its questions of each function's share: is what was recorded different, and does it stand out
 * from how steps vary by themselves. The larger p, times the number of all functions × all windows
 * (Bonferroni), is what is held against false_alarms, however windows overlap. In fewer than
 * CHANGE_PARTS_MIN steps nothing is found: they are too few to tell.
 *
 * Windows are the first steps, and those of lengths 1, 2, 4 …; the best one's ends are moved for as
 * long as that makes it better. It is cut out, and what is left and what was cut are looked at in
 * the same way (circular binary segmentation, after Olshen et al. 2004). */
#ifndef SYMBOL_SERVER_FLAMEGRAPH_HOT_CHANGES_H
#define SYMBOL_SERVER_FLAMEGRAPH_HOT_CHANGES_H

#include <stdbool.h>
#include <stdint.h>

#define HOT_FALSE_ALARMS 0.05 /* p up to this, corrected, is a change */

enum { HOT_CHANGES_MAX = 32 /* of a process */ };

struct hot_mix { /* one process */
	uint32_t steps, functions;
	const double *totals; /* by step, in any unit */
	const double *counts; /* effective samples of function f in step s: [f × steps + s] */
	const double *units;  /* what an effective sample of each function is of totals */
	/* Where values of single samples differ, else NULL: Σ v² of each count and total, taken for
	 * what a single sample may have. */
	const double *squares, *total_squares;
};

struct hot_moved { /* a function whose share changed */
	uint32_t function;
	double before, after; /* its share outside, inside of the window */
	double before_error, after_error; /* ± of these, 95 % */
	double p;             /* of that window, times the functions of the process */
};

struct hot_change {
	uint32_t process; /* the caller's */
	uint32_t from_step, until_step;
	bool is_lasting;         /* to the process's last step */
	double p;                /* corrected */
	double score;            /* −ln of the uncorrected one */
	struct hot_moved *moved; /* the largest difference first; the caller frees it */
	uint32_t moved_count;
};

/* How many tests hot_changes_find() makes: the correction needs the sum over all processes. */
double hot_changes_tests(uint32_t functions, uint32_t steps);

/* Adds at most room changes, the most significant first; tests: of all processes; least: shares
 * that differ less are no change. goes_on is asked now and then; NULL: not. Returns how many, or
 * −1: no memory, or goes_on() said so. left_out counts those over room. */
int hot_changes_find(const struct hot_mix *mix, double tests, double least,
		     bool (*goes_on)(void *context), void *context, struct hot_change *changes,
		     unsigned room, uint64_t *left_out);

#endif
