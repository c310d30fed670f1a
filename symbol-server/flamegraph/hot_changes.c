/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/flamegraph/hot_changes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct window { /* of a list of steps */
	uint32_t from, until;
	uint32_t function; /* in which it is found */
	double score;
};

struct scan {
	const struct hot_mix *mix;
	double least, threshold;
	double *dispersion, *count_dispersion; /* by function */
	/* of the list's first steps */
	double *total_sums, *value_sums, *count_total_sums, *count_sums;
	double *square_total_sums, *square_sums;
	double *scratch;
	bool (*goes_on)(void *context);
	void *context;
};

struct segment {
	uint32_t *steps; /* not always neighbours */
	uint32_t count;
};

double hot_changes_tests(uint32_t functions, uint32_t steps, bool has_counts)
{
	return 2.0 * functions * (has_counts ? 2 : 1) * ((double)steps * (steps + 1) / 2);
}

/* --- one function in one window --- */

static double divergence(double a, double b)
{
	double sum = 0;

	if (a > 0)
		sum += a * log(a / b);
	if (a < 1)
		sum += (1 - a) * log((1 - a) / (1 - b));
	return sum;
}

/* inside of `in` samples in the window, all of n: −ln of the bound; 0 where it is not over enough.
 */
static double score_of(const struct scan *scan, double inside, double in, double all, double n,
		       double enough)
{
	double outside = all - inside, out = n - in, far, score, other;

	if (in <= 0 || out <= 0 || all <= 0 || all >= n)
		return 0;
	if (fabs(inside / in - outside / out) < scan->least)
		return 0;
	if (in > out) { /* the smaller side says more */
		double swap = in;

		in = out;
		out = swap;
		inside = outside;
	}
	if (inside < 0)
		inside = 0;
	if (inside > all)
		inside = all;
	if (inside > in)
		inside = in;
	/* KL ≤ χ²: most windows need no logarithm */
	far = inside - all * in / n;
	if (far * far / (all * (in / n) * (out / n)) <= enough &&
	    far * far / (in * (all / n) * ((n - all) / n)) <= enough)
		return 0;
	score = all * divergence(inside / all, in / n);
	other = in * divergence(inside / in, all / n);
	return score > other ? score : other;
}

struct part { /* of a function, or of all, in a window and in its list */
	double inside, all;
};

static struct part part_of(const double *sums, uint32_t count, uint32_t from, uint32_t until)
{
	return (struct part){sums[until] - sums[from], sums[count]};
}

/* ln (share inside / share outside); of nothing as of half a sample */
static double log_ratio(struct part function, struct part of, double unit)
{
	double inside = function.inside > 0 ? function.inside : unit / 2;
	double outside = function.all - function.inside;

	outside = outside > 0 ? outside : unit / 2;
	return log(inside / of.inside * (of.all - of.inside) / outside);
}

/* By the number of samples; only where the values go the same way. */
static double count_score(const struct scan *scan, uint32_t count, uint32_t function, uint32_t from,
			  uint32_t until, double enough)
{
	struct part value = part_of(scan->value_sums, count, from, until);
	struct part total = part_of(scan->total_sums, count, from, until);
	struct part samples = part_of(scan->count_sums, count, from, until);
	struct part all = part_of(scan->count_total_sums, count, from, until);
	double unit = scan->count_dispersion[function], score, by_count, by_value;

	if (total.inside <= 0 || total.inside >= total.all ||
	    fabs(value.inside / total.inside -
		 (value.all - value.inside) / (total.all - total.inside)) < scan->least)
		return 0;
	score = score_of(scan, samples.inside / unit, all.inside / unit, samples.all / unit,
			 all.all / unit, enough);
	if (score <= enough)
		return 0;
	by_count = log_ratio(samples, all, 1);
	by_value = log_ratio(value, total, scan->mix->weights[function]);
	return by_value / by_count >= 0.5 ? score : 0;
}

static double larger(double a, double b)
{
	return a > b ? a : b;
}

/* Σ v² / Σ v inside or outside of the window, whichever is more. */
static double heaviest(struct part squares, struct part values)
{
	double inside = values.inside > 0 ? squares.inside / values.inside : 0;
	double outside = values.all - values.inside;

	return larger(inside, outside > 0 ? (squares.all - squares.inside) / outside : 0);
}

static double window_score(const struct scan *scan, uint32_t count, uint32_t function,
			   uint32_t from, uint32_t until, double enough)
{
	struct part value = part_of(scan->value_sums, count, from, until);
	struct part total = part_of(scan->total_sums, count, from, until);
	double unit = scan->mix->weights[function], score, other;

	if (scan->mix->counts) {
		unit = larger(unit,
			      heaviest(part_of(scan->square_sums, count, from, until), value));
		unit = larger(unit, heaviest(part_of(scan->square_total_sums, count, from, until),
					     total));
	}
	unit *= scan->dispersion[function];
	score = score_of(scan, value.inside / unit, total.inside / unit, value.all / unit,
			 total.all / unit, enough);
	if (!scan->mix->counts)
		return score;
	other = count_score(scan, count, function, from, until, enough);
	return larger(score, other);
}

static void put_sums(const struct segment *list, const double *values, double *sums)
{
	sums[0] = 0;
	for (uint32_t i = 0; i < list->count; i++)
		sums[i + 1] = sums[i] + values[list->steps[i]];
}

static void add_up(const struct scan *scan, const struct segment *list, uint32_t function)
{
	size_t at = (size_t)function * scan->mix->steps;

	put_sums(list, scan->mix->values + at, scan->value_sums);
	if (!scan->mix->counts)
		return;
	put_sums(list, scan->mix->counts + at, scan->count_sums);
	put_sums(list, scan->mix->squares + at, scan->square_sums);
}

static void add_up_totals(const struct scan *scan, const struct segment *list)
{
	put_sums(list, scan->mix->totals, scan->total_sums);
	if (!scan->mix->counts)
		return;
	put_sums(list, scan->mix->count_totals, scan->count_total_sums);
	put_sums(list, scan->mix->square_totals, scan->square_total_sums);
}

/* --- how much a function varies by itself --- */

static int compare_doubles(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return (a > b) - (a < b);
}

static double dispersion_of(const struct scan *scan, const struct segment *list,
			    const double *values, const double *totals, double unit)
{
	const double median = 0.4549, ninth = 2.7055; /* of χ² with one degree of freedom */
	uint32_t count = 0;
	double half, most;

	for (uint32_t i = 1; i < list->count; i++) {
		uint32_t a = list->steps[i - 1], b = list->steps[i];
		double share = (values[a] + values[b]) / (totals[a] + totals[b]);
		double change = values[a] / totals[a] - values[b] / totals[b];
		double expected = share * (1 - share) * (unit / totals[a] + unit / totals[b]);

		scan->scratch[count++] = expected > 0 ? change * change / expected : 0;
	}
	if (count < HOT_DISPERSION_STEPS)
		return 1;
	qsort(scan->scratch, count, sizeof(*scan->scratch), compare_doubles);
	half = scan->scratch[count / 2] / median;
	most = scan->scratch[count * 9 / 10] / ninth;
	half = half > most ? half : most;
	return half > 1 ? half : 1;
}

static void measure_dispersion(const struct scan *scan, const struct segment *list)
{
	const struct hot_mix *mix = scan->mix;

	for (uint32_t f = 0; f < mix->functions; f++) {
		size_t at = (size_t)f * mix->steps;

		scan->dispersion[f] = dispersion_of(scan, list, mix->values + at, mix->totals,
						    mix->weights[f]);
		if (mix->counts)
			scan->count_dispersion[f] = dispersion_of(scan, list, mix->counts + at,
								  mix->count_totals, 1);
	}
}

/* --- the best window of a list --- */

static void try_window(const struct scan *scan, uint32_t count, uint32_t function, uint32_t from,
		       uint32_t until, struct window *best)
{
	double score = window_score(scan, count, function, from, until, best->score);

	if (score > best->score)
		*best = (struct window){from, until, function, score};
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
		before = best->score;
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
	} while (best->score > before);
}

/* False: goes_on() said so. */
static bool find_window(const struct scan *scan, const struct segment *list, struct window *best)
{
	*best = (struct window){.score = scan->threshold};
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
	double in = scan->total_sums[window->until] - scan->total_sums[window->from];
	double out = scan->total_sums[list->count] - in;

	change->moved = calloc((size_t)functions + 1, sizeof(*change->moved));
	if (!change->moved)
		return false;
	for (uint32_t f = 0; f < functions; f++) {
		double inside, score, p;

		add_up(scan, list, f);
		inside = scan->value_sums[window->until] - scan->value_sums[window->from];
		score = window_score(scan, list->count, f, window->from, window->until, 0);
		p = (scan->mix->counts ? 4.0 : 2.0) * functions * exp(-score);
		if (p > HOT_FALSE_ALARMS)
			continue;
		change->moved[change->moved_count++] = (struct hot_moved){
			.function = f,
			.before = (scan->value_sums[list->count] - inside) / out,
			.after = inside / in,
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
	int found = -1;

	scan.dispersion = calloc(2 * ((size_t)mix->functions + 1), sizeof(double));
	scan.total_sums = calloc(7 * steps, sizeof(double));
	if (!segments || !scan.dispersion || !scan.total_sums)
		goto out;
	scan.value_sums = scan.total_sums + steps;
	scan.count_total_sums = scan.value_sums + steps;
	scan.count_sums = scan.count_total_sums + steps;
	scan.square_total_sums = scan.count_sums + steps;
	scan.square_sums = scan.square_total_sums + steps;
	scan.scratch = scan.square_sums + steps;
	scan.count_dispersion = scan.dispersion + mix->functions + 1;
	segments[0].steps = calloc(steps, sizeof(uint32_t));
	if (!segments[0].steps)
		goto out;
	for (uint32_t i = 0; i < mix->steps; i++)
		if (mix->totals[i] > 0)
			segments[0].steps[segments[0].count++] = i;
	measure_dispersion(&scan, &segments[0]);
	found = find_all(&scan, segments, tests,
			 segments[0].count ? segments[0].steps[segments[0].count - 1] : 0, changes,
			 room, left_out);
out:
	free(segments);
	free(scan.dispersion);
	free(scan.total_sums);
	return found;
}
