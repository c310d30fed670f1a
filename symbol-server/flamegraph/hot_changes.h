/* SPDX-License-Identifier: Apache-2.0 */
/* When the mix of a process's functions was another than in the rest of its time, and whether that
 * is more than sampling noise. Pure.
 *
 * A window of steps is compared with all others. Were the mix the same everywhere, a function's
 * samples in the window would be hypergeometric: its probability to be so far from what is expected
 * is at most exp(−n·KL) (Hoeffding 1963, theorems 1 and 4), for the function's samples as for the
 * window's. The smaller of both bounds is the p of one function in one window, and p times the
 * number of all functions × all windows × both directions (Bonferroni) is what is held against
 * false_alarms: no approximation, and no assumption on how windows overlap.
 *
 * What varies by itself from step to step more than samples do is given fewer effective samples:
 * the dispersion of a function is what half, or nine in ten, of the differences between
 * neighbouring steps show, whichever is larger, so that a rare jitter does not hide itself. Samples
 * of different weight count as their effective number (Kish 1965: (Σ v)² / Σ v²).
 *
 * Windows are the first steps, and those of lengths 1, 2, 4 …; the best one's ends are moved for as
 * long as that makes it better. It is cut out, and what is left and what was cut are looked at in
 * the same way (circular binary segmentation, after Olshen et al. 2004). */
#ifndef SYMBOL_SERVER_FLAMEGRAPH_HOT_CHANGES_H
#define SYMBOL_SERVER_FLAMEGRAPH_HOT_CHANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HOT_FALSE_ALARMS 0.05 /* p up to this, corrected, is a change */

enum { HOT_SAMPLES_MIN = 10, HOT_DISPERSION_STEPS = 8, HOT_CHANGES_MAX = 32 /* of a process */ };

struct hot_mix { /* one process */
	uint32_t steps, functions;
	const double *totals;  /* by step, in any unit */
	const double *values;  /* of function f in step s: [f × steps + s] */
	const double *weights; /* Σ v² / Σ v of each function's samples, in that unit */
	/* Where values of single samples differ, else NULL: the number of samples, and Σ v². */
	const double *count_totals, *counts;
	const double *square_totals, *squares;
};

struct hot_moved { /* a function whose share changed */
	uint32_t function;
	double before, after; /* its share outside, inside of the window */
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
double hot_changes_tests(uint32_t functions, uint32_t steps, bool has_counts);

/* Adds at most room changes, the most significant first; tests: of all processes; least: shares
 * that differ less are no change. goes_on is asked now and then; NULL: not. Returns how many, or
 * −1: no memory, or goes_on() said so. left_out counts those over room. */
int hot_changes_find(const struct hot_mix *mix, double tests, double least,
		     bool (*goes_on)(void *context), void *context, struct hot_change *changes,
		     unsigned room, uint64_t *left_out);

#endif
