/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/flamegraph/hot_changes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "symbol-server/flamegraph/change_test.h"
#include "symbol-server/flamegraph/sampling_error.h"

struct window { /* of a list of steps */
	uint32_t from, until;
	uint32_t function; /* in which it is found */
	double score;      /* −ln p */
	double deviance;   /* the most is the best */
};

struct scan {
	const struct hot_mix *mix;
	struct change_model model;
	double least, threshold;
	/* of the list's first steps */
	double *totals, *counts, *squares, *heavy, *total_heavy;
	bool (*goes_on)(void *context);
	void *context;
};

struct segment {
	uint32_t *steps; /* not always neighbours */
	uint32_t count;
};

double hot_changes_tests(uint32_t functions, uint32_t steps)
{
	return (double)functions * ((double)steps * (steps + 1) / 2);
}

/* --- one function in one window --- */

static const double *counts_of(const struct hot_mix *mix, uint32_t function)
{
	return mix->counts + (size_t)function * mix->steps;
}

static void add_up_totals(const struct scan *scan, const struct segment *list)
{
	const double *squares = scan->mix->total_squares;

	scan->totals[0] = scan->total_heavy[0] = 0;
	for (uint32_t i = 0; i < list->count; i++) {
		scan->totals[i + 1] = scan->totals[i] + scan->mix->totals[list->steps[i]];
		scan->total_heavy[i + 1] = scan->total_heavy[i] +
					   (squares ? squares[list->steps[i]] : 0);
	}
}

static void add_up(const struct scan *scan, const struct segment *list, uint32_t function)
{
	const double *counts = counts_of(scan->mix, function);

	const double *heavy = scan->mix->squares ? scan->mix->squares + (counts - scan->mix->counts)
						 : NULL;

	scan->counts[0] = scan->squares[0] = scan->heavy[0] = 0;
	for (uint32_t i = 0; i < list->count; i++) {
		double here = counts[list->steps[i]];

		scan->counts[i + 1] = scan->counts[i] + here;
		scan->squares[i + 1] = scan->squares[i] +
				       here * here / scan->mix->totals[list->steps[i]];
		scan->heavy[i + 1] = scan->heavy[i] + (heavy ? heavy[list->steps[i]] : 0);
	}
}

/* Σ v² / Σ v inside or outside of the window, whichever is more. */
static double heaviest(const double *squares, const double *values, uint32_t count,
		       const struct window *window, double unit)
{
	double inside = (values[window->until] - values[window->from]) * unit;
	double outside = values[count] * unit - inside;
	double heavy = squares[window->until] - squares[window->from], most = 0;

	if (inside > 0)
		most = heavy / inside;
	return outside > 0 ? fmax(most, (squares[count] - heavy) / outside) : most;
}

/* Of a single long wait inside or outside of the window there is one sample, whatever all of the
 * list's are worth: how many effective samples the heavier side makes one. */
static double heaviness(const struct scan *scan, uint32_t count, const struct window *window)
{
	double unit = scan->mix->units[window->function];

	if (!scan->mix->squares)
		return 1;
	return fmax(fmax(heaviest(scan->heavy, scan->counts, count, window, unit),
			 heaviest(scan->total_heavy, scan->totals, count, window, 1)) /
			    unit,
		    1);
}

/* Of count steps. false: the deviance is not over that of best, or the score not over enough. */
static bool test_window(const struct scan *scan, uint32_t count, struct window *window,
			double enough, double deviance)
{
	double inside = scan->counts[window->until] - scan->counts[window->from];
	double in = scan->totals[window->until] - scan->totals[window->from];
	double all = scan->counts[count], total = scan->totals[count], bound, by;
	double sides[CHANGE_SIDES] = {all - inside, inside};
	double squares = scan->squares[window->until] - scan->squares[window->from];
	uint32_t length = window->until - window->from;
	const struct change_range ranges[CHANGE_SIDES] = {{count - length, total - in},
							  {length, in}};
	struct change_row row;
	struct change_verdict verdict;

	if (in <= 0 || in >= total || all < CHANGE_SAMPLES_MIN ||
	    fabs(inside / in - sides[0] / (total - in)) * scan->mix->units[window->function] <
		    scan->least)
		return false;
	/* −ln p of independent samples is less than chi square: most windows need no more */
	if (pow(inside - all * in / total, 2) / (all * (in / total) * (1 - in / total)) <= enough)
		return false;
	by = heaviness(scan, count, window);
	row.side[0] = (struct change_sums){sides[0] / by,
					   (scan->squares[count] - squares) / (by * by)};
	row.side[1] = (struct change_sums){inside / by, squares / (by * by)};
	bound = change_deviance_most(&scan->model, ranges, &row);
	if (bound <= deviance || change_deviance_score(bound) <= enough)
		return false;
	verdict = change_test(&scan->model, ranges, &row);
	window->score = -fmax(verdict.recorded, verdict.sustained);
	window->deviance = verdict.deviance;
	return window->score > enough && window->deviance > deviance;
}

/* --- the best window of a list --- */

static void try_window(const struct scan *scan, uint32_t count, uint32_t function, uint32_t from,
		       uint32_t until, struct window *best)
{
	struct window window = {from, until, function, 0, 0};

	if (test_window(scan, count, &window, scan->threshold, best->deviance))
		*best = window;
}

static void try_windows(const struct scan *scan, uint32_t count, uint32_t function,
			struct window *best)
{
	for (uint32_t until = 1; until < count; until++)
		try_window(scan, count, function, 0, until, best);
	for (uint32_t length = 1; length < count; length *= 2) {
		uint32_t shift = length >= 4 ? length / 4 : 1;

		for (uint32_t from = 1; from + length < count; from += shift)
			try_window(scan, count, function, from, from + length, best);
	}
}

static void move_ends(const struct scan *scan, uint32_t count, struct window *best)
{
	double before;

	do {
		before = best->deviance;
		for (uint32_t by = 1; by < count; by *= 2) {
			struct window at = *best;

			if (at.from >= by)
				try_window(scan, count, at.function, at.from - by, at.until, best);
			if (at.from + by < at.until)
				try_window(scan, count, at.function, at.from + by, at.until, best);
			if (at.until + by <= count && (at.from || at.until + by < count))
				try_window(scan, count, at.function, at.from, at.until + by, best);
			if (at.until > at.from + by)
				try_window(scan, count, at.function, at.from, at.until - by, best);
		}
	} while (best->deviance > before);
}

/* False: goes_on() said so. */
static bool find_window(const struct scan *scan, const struct segment *list, struct window *best)
{
	*best = (struct window){0};
	add_up_totals(scan, list);
	for (uint32_t f = 0; f < scan->mix->functions; f++) {
		if (scan->goes_on && !scan->goes_on(scan->context))
			return false;
		add_up(scan, list, f);
		try_windows(scan, list->count, f, best);
	}
	if (best->until > best->from) {
		add_up(scan, list, best->function);
		move_ends(scan, list->count, best);
		if (!best->from) { /* what came later is what changed */
			best->from = best->until;
			best->until = list->count;
		}
	}
	return true;
}

/* --- a change --- */

/* unit: the share that one effective sample is. */
static double share_error(double count, double unit)
{
	return NORMAL_95 * sqrt(fmax(0, count * (1 - count * unit)) + 1) * unit;
}

static int compare_moved(const void *left, const void *right)
{
	const struct hot_moved *a = left, *b = right;
	double by_a = fabs(a->after - a->before), by_b = fabs(b->after - b->before);

	if (by_a != by_b)
		return by_a > by_b ? -1 : 1;
	return (a->function > b->function) - (a->function < b->function);
}

static bool put_moved(const struct scan *scan, const struct segment *list,
		      const struct window *window, struct hot_change *change)
{
	uint32_t functions = scan->mix->functions;
	double in = scan->totals[window->until] - scan->totals[window->from];
	double out = scan->totals[list->count] - in;

	change->moved = calloc((size_t)functions + 1, sizeof(*change->moved));
	if (!change->moved)
		return false;
	for (uint32_t f = 0; f < functions; f++) {
		struct window of = {window->from, window->until, f, 0, 0};
		double unit = scan->mix->units[f], inside, p;

		add_up(scan, list, f);
		inside = scan->counts[window->until] - scan->counts[window->from];
		p = test_window(scan, list->count, &of, 0, 0) ? functions * exp(-of.score) : 1;
		if (p > HOT_FALSE_ALARMS)
			continue;
		change->moved[change->moved_count++] = (struct hot_moved){
			.function = f,
			.before = (scan->counts[list->count] - inside) * unit / out,
			.after = inside * unit / in,
			.before_error = share_error(scan->counts[list->count] - inside, unit / out),
			.after_error = share_error(inside, unit / in),
			.p = p,
		};
	}
	qsort(change->moved, change->moved_count, sizeof(*change->moved), compare_moved);
	return true;
}

static bool cut_out(const struct segment *list, const struct window *window, struct segment *inner,
		    struct segment *rest)
{
	uint32_t length = window->until - window->from;

	*inner = (struct segment){calloc(length, sizeof(uint32_t)), length};
	*rest = (struct segment){calloc(list->count, sizeof(uint32_t)), list->count - length};
	if (!inner->steps || !rest->steps)
		return false;
	memcpy(inner->steps, list->steps + window->from, length * sizeof(uint32_t));
	memcpy(rest->steps, list->steps, window->from * sizeof(uint32_t));
	memcpy(rest->steps + window->from, list->steps + window->until,
	       (list->count - window->until) * sizeof(uint32_t));
	return true;
}

static int compare_changes(const void *left, const void *right)
{
	const struct hot_change *a = left, *b = right;

	return (a->score < b->score) - (a->score > b->score);
}

/* The list waits in segments[0 …]; each change makes two of one. */
static int find_all(struct scan *scan, struct segment *segments, double tests, uint32_t last_step,
		    struct hot_change *changes, unsigned room, uint64_t *left_out)
{
	unsigned waiting = 1, found = 0;

	while (waiting) {
		struct segment list = segments[--waiting], inner = {0}, rest = {0};
		struct window best = {.score = 0};
		bool ok = list.count < 2 || find_window(scan, &list, &best);

		if (ok && best.until > best.from && found == room) {
			++*left_out; /* this one at least */
		} else if (ok && best.until > best.from) {
			struct hot_change *change = &changes[found++];

			*change = (struct hot_change){
				.from_step = list.steps[best.from],
				.until_step = list.steps[best.until - 1] + 1,
				.is_lasting = list.steps[best.until - 1] == last_step,
				.p = tests * exp(-best.score),
				.score = best.score,
			};
			ok = put_moved(scan, &list, &best, change) &&
			     cut_out(&list, &best, &inner, &rest);
			if (ok) {
				segments[waiting++] = inner;
				segments[waiting++] = rest;
			} else {
				free(inner.steps);
				free(rest.steps);
			}
		}
		free(list.steps);
		if (ok)
			continue;
		while (waiting)
			free(segments[--waiting].steps);
		while (found)
			free(changes[--found].moved);
		return -1;
	}
	if (found)
		qsort(changes, found, sizeof(*changes), compare_changes);
	return (int)found;
}

struct segment_model {
	const struct scan *scan;
	const struct segment *list;
	double total;
};

static void put_series(void *context, size_t function, unsigned side, double *counts,
		       double *expected)
{
	const struct segment_model *model = context;
	const struct hot_mix *mix = model->scan->mix;
	const double *of = counts_of(mix, (uint32_t)function);
	double sum = 0;

	(void)side; /* the first one has it all */
	for (uint32_t i = 0; i < model->list->count; i++)
		sum += counts[i] = of[model->list->steps[i]];
	for (uint32_t i = 0; i < model->list->count; i++)
		expected[i] = sum * mix->totals[model->list->steps[i]] / model->total;
}

/* How functions vary from step to step in all of the list. */
static bool fit(struct scan *scan, const struct segment *list)
{
	struct change_row *rows = calloc((size_t)scan->mix->functions + 1, sizeof(*rows));
	struct segment_model model = {scan, list, 0};
	struct change_range ranges[CHANGE_SIDES] = {{list->count, 0}};
	bool ok;

	add_up_totals(scan, list);
	model.total = ranges[0].exposure = scan->totals[list->count];
	for (uint32_t f = 0; rows && f < scan->mix->functions; f++) {
		add_up(scan, list, f);
		rows[f].side[0] = (struct change_sums){scan->counts[list->count],
						       scan->squares[list->count]};
	}
	ok = rows &&
	     change_model_fit(&scan->model, ranges, rows, scan->mix->functions, put_series, &model);
	free(rows);
	return ok;
}

int hot_changes_find(const struct hot_mix *mix, double tests, double least,
		     bool (*goes_on)(void *context), void *context, struct hot_change *changes,
		     unsigned room, uint64_t *left_out)
{
	size_t steps = (size_t)mix->steps + 1;
	struct scan scan = {.mix = mix,
			    .least = least,
			    .threshold = log(tests / HOT_FALSE_ALARMS),
			    .goes_on = goes_on,
			    .context = context};
	struct segment *segments = calloc(2 * (size_t)room + 2, sizeof(*segments));
	struct segment *first = segments;
	int found = -1;

	scan.totals = calloc(5 * steps, sizeof(double));
	if (!segments || !scan.totals)
		goto out;
	scan.counts = scan.totals + steps;
	scan.squares = scan.counts + steps;
	scan.heavy = scan.squares + steps;
	scan.total_heavy = scan.heavy + steps;
	first->steps = calloc(steps, sizeof(uint32_t));
	if (!first->steps)
		goto out;
	for (uint32_t i = 0; i < mix->steps; i++)
		if (mix->totals[i] > 0)
			first->steps[first->count++] = i;
	if (first->count < CHANGE_PARTS_MIN) {
		free(first->steps);
		found = 0;
	} else if (!fit(&scan, first)) {
		free(first->steps);
	} else {
		found = find_all(&scan, segments, tests, first->steps[first->count - 1], changes,
				 room, left_out);
	}
out:
	free(segments);
	free(scan.totals);
	return found;
}
