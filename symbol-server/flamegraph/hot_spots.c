/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/flamegraph/hot_spots.h"

#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/hash_table.h"
#include "symbol-server/flamegraph/change_test.h"

enum {
	FUNCTIONS_TESTED = 1000, /* of a process, the largest */
	PER_STEP = 8,            /* numbers that hot_changes_find() has of each */
};

struct hot_index {
	struct hash_table functions, cells;
	size_t function_room, process_room;
	uint64_t *last_stacks; /* by function: the stack that counted it last */
	uint64_t stacks;
};

struct hot_spots *hot_spots_new(uint32_t steps, bool by_total, size_t limit_cells)
{
	struct hot_spots *spots = calloc(1, sizeof(*spots));

	if (!spots)
		return NULL;
	spots->index = calloc(1, sizeof(*spots->index));
	if (!spots->index) {
		free(spots);
		return NULL;
	}
	spots->steps = steps;
	spots->by_total = by_total;
	spots->cell_limit = limit_cells < UINT32_MAX >> 1 ? limit_cells : UINT32_MAX >> 1;
	hash_table_init(&spots->index->functions, UINT32_MAX >> 1);
	hash_table_init(&spots->index->cells, UINT32_MAX >> 1);
	return spots;
}

/* --- counting --- */

static bool take_function(struct hot_spots *spots, const struct flame_frame *frame,
			  uint32_t *number)
{
	struct hot_index *index = spots->index;
	uint64_t hash = frame_function_hash(frame);
	size_t room = index->function_room;

	HASH_TABLE_EACH(at, &index->functions, hash)
		if (frame_same_function(&spots->functions[at], frame)) {
			*number = at;
			return true;
		}
	if (spots->function_count >= spots->cell_limit ||
	    !ARRAY_GROW(spots->functions, spots->function_count, index->function_room) ||
	    !ARRAY_GROW(index->last_stacks, spots->function_count, room) ||
	    !hash_table_add(&index->functions, hash, spots->function_count))
		return false;
	*number = spots->function_count++;
	spots->functions[*number] = *frame;
	index->last_stacks[*number] = 0;
	return true;
}

static bool add_cell(struct hot_spots *spots, uint32_t process, uint32_t step, uint32_t function,
		     uint64_t value, uint64_t samples)
{
	struct hash_table *index = &spots->index->cells;
	uint64_t hash = hash_word(hash_word(function, process), step);
	struct change_weight weight = {0};
	struct hot_cell *cell;

	change_weight_add(&weight, (double)value, (double)samples);
	HASH_TABLE_EACH(at, index, hash) {
		cell = &spots->cells[at];
		if (cell->process != process || cell->step != step || cell->function != function)
			continue;
		cell->value += value;
		cell->samples += samples;
		cell->squares += weight.squares;
		cell->single += weight.single;
		cell->squares_most += (double)value * (double)value;
		return true;
	}
	if (spots->cell_count >= spots->cell_limit ||
	    !ARRAY_GROW(spots->cells, spots->cell_count, spots->cell_room) ||
	    !hash_table_add(index, hash, (uint32_t)spots->cell_count))
		return false;
	spots->cells[spots->cell_count++] = (struct hot_cell){
		.process = process,
		.step = step,
		.function = function,
		.value = value,
		.samples = samples,
		.squares = weight.squares,
		.single = weight.single,
		.squares_most = (double)value * (double)value,
	};
	return true;
}

static bool take_process(struct hot_spots *spots, uint32_t number)
{
	while (spots->process_count <= number) {
		if (!ARRAY_GROW(spots->processes, spots->process_count, spots->index->process_room))
			return false;
		spots->processes[spots->process_count++] = (struct hot_process){0};
	}
	return true;
}

bool hot_spots_add(struct hot_spots *spots, uint32_t process, uint32_t step,
		   const struct flame_frame *frames, size_t depth, uint64_t value, uint64_t samples)
{
	uint32_t function;

	if (step >= spots->steps)
		return true;
	if (!take_process(spots, process) ||
	    !add_cell(spots, process, step, HOT_ALL_FUNCTIONS, value, samples))
		return false;
	spots->processes[process].value += value;
	spots->processes[process].samples += samples;
	spots->index->stacks++;
	for (size_t i = depth; i--;) {
		if (!frame_is_function(&frames[i])) {
			if (!spots->by_total)
				break;
			continue;
		}
		if (!take_function(spots, &frames[i], &function))
			return false;
		if (spots->index->last_stacks[function] != spots->index->stacks &&
		    !add_cell(spots, process, step, function, value, samples))
			return false;
		spots->index->last_stacks[function] = spots->index->stacks;
		if (!spots->by_total)
			break;
	}
	return true;
}

/* --- a process as hot_changes.h takes it --- */

static int compare_by_function(const void *left, const void *right, void *context)
{
	const struct hot_cell *a = left, *b = right;

	(void)context;
	if (a->process != b->process)
		return a->process < b->process ? -1 : 1;
	if (a->function != b->function)
		return a->function < b->function ? -1 : 1;
	return (a->step > b->step) - (a->step < b->step);
}

static int compare_by_step(const void *left, const void *right, void *context)
{
	const struct hot_cell *a = left, *b = right;
	const struct hot_spots *spots = context;
	int order;

	if (a->process != b->process)
		return a->process < b->process ? -1 : 1;
	if (a->step != b->step)
		return a->step < b->step ? -1 : 1;
	if ((a->function == HOT_ALL_FUNCTIONS) != (b->function == HOT_ALL_FUNCTIONS))
		return a->function == HOT_ALL_FUNCTIONS ? -1 : 1;
	if (a->value != b->value)
		return a->value > b->value ? -1 : 1;
	if (a->function == b->function)
		return 0;
	order = frame_compare_names(&spots->functions[a->function], &spots->functions[b->function]);
	return order ? order : (a->function > b->function) - (a->function < b->function);
}

static void sort_cells(struct hot_spots *spots, int (*compare)(const void *, const void *, void *))
{
	size_t at = 0;

	if (spots->cell_count)
		qsort_r(spots->cells, spots->cell_count, sizeof(*spots->cells), compare, spots);
	for (uint32_t i = 0; i < spots->process_count; i++) {
		struct hot_process *process = &spots->processes[i];

		process->first_cell = at;
		while (at < spots->cell_count && spots->cells[at].process == i)
			at++;
		process->cell_count = at - process->first_cell;
	}
}

/* A run of cells of one function of one process. */
struct run {
	size_t first, count;
	struct change_weight weight;
	double unit; /* value of an effective sample */
};

static struct run run_at(const struct hot_spots *spots, size_t at, size_t end)
{
	struct run run = {.first = at};
	double squares = 0;

	for (; at < end && spots->cells[at].function == spots->cells[run.first].function; at++) {
		const struct hot_cell *cell = &spots->cells[at];
		double value = (double)cell->value, samples = (double)cell->samples;

		run.count++;
		run.weight.value += value;
		run.weight.samples += samples;
		run.weight.squares += cell->squares;
		run.weight.single += cell->single;
		squares += samples > 0 ? value * value / samples : 0;
	}
	change_weight_side(&run.weight, run.weight.value, run.weight.samples, squares,
			   (double)run.count);
	return run;
}

/* That of all functions: its number is the largest, so it is the last one. */
static struct run whole_run(const struct hot_spots *spots, const struct hot_process *process)
{
	size_t at = process->first_cell, end = at + process->cell_count;
	struct run run = {0};

	for (; at < end; at += run.count)
		run = run_at(spots, at, end);
	return run;
}

static int compare_runs(const void *left, const void *right)
{
	const struct run *a = left, *b = right;

	if (a->weight.value != b->weight.value)
		return a->weight.value > b->weight.value ? -1 : 1;
	return (a->first > b->first) - (a->first < b->first);
}

static bool set_units(struct run *runs, uint32_t count)
{
	struct change_weight *weights = calloc((size_t)count + 1, sizeof(*weights));
	double fitted;

	if (!weights)
		return false;
	for (uint32_t i = 0; i < count; i++)
		weights[i] = runs[i].weight;
	fitted = change_weights_fit(weights, count);
	for (uint32_t i = 0; i < count; i++)
		runs[i].unit = change_weight_of(&runs[i].weight, fitted);
	free(weights);
	return true;
}

/* The runs that have enough samples to be tested, the largest first. NULL: no memory. */
static struct run *tested_runs(const struct hot_spots *spots, const struct hot_process *process,
			       uint32_t *count)
{
	size_t at = process->first_cell, end = at + process->cell_count;
	struct run *runs = calloc(process->cell_count + 1, sizeof(*runs));

	*count = 0;
	while (runs && at < end) {
		struct run run = run_at(spots, at, end);

		at += run.count;
		if (spots->cells[run.first].function == HOT_ALL_FUNCTIONS ||
		    run.weight.samples < CHANGE_SAMPLES_MIN || run.weight.value <= 0)
			continue;
		runs[(*count)++] = run;
	}
	if (runs && *count)
		qsort(runs, *count, sizeof(*runs), compare_runs);
	if (*count > FUNCTIONS_TESTED)
		*count = FUNCTIONS_TESTED;
	if (runs && !set_units(runs, *count)) {
		free(runs);
		return NULL;
	}
	return runs;
}

static bool count_tests(struct hot_spots *spots)
{
	spots->tests = 0;
	for (uint32_t i = 0; i < spots->process_count; i++) {
		struct hot_process *process = &spots->processes[i];
		struct run *runs = tested_runs(spots, process, &process->tested);

		if (!runs)
			return false;
		free(runs);
		process->steps = (uint32_t)whole_run(spots, process).count;
		spots->tests += hot_changes_tests(process->tested, process->steps);
	}
	return true;
}

static int compare_doubles(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return (a > b) - (a < b);
}

/* What one sample of the run's is worth in half of its cells. means: room for one of each. */
static double median_of(const struct hot_spots *spots, const struct run *run, double *means)
{
	size_t count = 0;

	for (size_t i = run->first; i < run->first + run->count; i++)
		if (spots->cells[i].samples)
			means[count++] = (double)spots->cells[i].value /
					 (double)spots->cells[i].samples;
	if (count)
		qsort(means, count, sizeof(*means), compare_doubles);
	return count ? means[count / 2] : 0;
}

/* Σ v² of a cell's single samples, of which only sums are known: up to the median taken for
 * exponential, whose mean square is twice the square of the mean; what is over it may be a single
 * sample's. */
static double cell_squares(const struct hot_cell *cell, double median)
{
	double samples = (double)cell->samples, value = (double)cell->value;
	double usual = samples * median < value ? samples * median : value;
	double over = (value - usual) * (value - usual);

	return (samples > 0 ? 2 * usual * usual / samples : 0) +
	       (over < cell->squares_most ? over : cell->squares_most);
}

struct numbers { /* in one array: of hot_mix */
	double *counts, *squares, *totals, *total_squares, *units, *scratch;
};

static bool make_numbers(const struct hot_spots *spots, uint32_t functions, struct numbers *to)
{
	size_t cells = (size_t)functions * spots->steps;

	to->counts = calloc(2 * cells + 3 * (size_t)spots->steps + functions + 1, sizeof(double));
	if (!to->counts)
		return false;
	to->squares = to->counts + cells;
	to->totals = to->squares + cells;
	to->total_squares = to->totals + spots->steps;
	to->scratch = to->total_squares + spots->steps;
	to->units = to->scratch + spots->steps;
	return true;
}

static void fill_numbers(const struct hot_spots *spots, const struct run *all,
			 const struct run *runs, uint32_t functions, const struct numbers *to)
{
	double median = median_of(spots, all, to->scratch);

	for (size_t i = all->first; i < all->first + all->count; i++) {
		const struct hot_cell *cell = &spots->cells[i];

		to->totals[cell->step] = (double)cell->value;
		to->total_squares[cell->step] = cell_squares(cell, median);
	}
	for (uint32_t f = 0; f < functions; f++) {
		median = median_of(spots, &runs[f], to->scratch);

		to->units[f] = runs[f].unit;
		for (size_t i = runs[f].first; i < runs[f].first + runs[f].count; i++) {
			const struct hot_cell *cell = &spots->cells[i];
			size_t at = (size_t)f * spots->steps + cell->step;

			to->counts[at] = (double)cell->value / to->units[f];
			to->squares[at] = cell_squares(cell, median);
		}
	}
}

/* --- all processes' changes --- */

struct search {
	struct hot_spots *spots;
	double least;
	size_t limit, room;
	bool (*goes_on)(void *context);
	void *context;
};

static bool keep_changes(struct search *search, uint32_t number, const struct run *runs,
			 struct hot_change *changes, int count)
{
	struct hot_spots *spots = search->spots;

	for (int i = 0; i < count; i++) {
		if (!ARRAY_GROW(spots->changes, spots->change_count, search->room)) {
			while (i < count)
				free(changes[i++].moved);
			return false;
		}
		changes[i].process = number;
		for (uint32_t k = 0; k < changes[i].moved_count; k++) {
			struct hot_moved *moved = &changes[i].moved[k];

			moved->function = spots->cells[runs[moved->function].first].function;
		}
		spots->changes[spots->change_count++] = changes[i];
	}
	return true;
}

static int find_in_runs(struct search *search, const struct hot_process *process,
			const struct run *runs, uint32_t functions, struct hot_change *changes)
{
	struct hot_spots *spots = search->spots;
	struct run all = whole_run(spots, process);
	bool differs = change_weight_differs(&all.weight);
	struct numbers numbers;
	struct hot_mix mix;
	int found;

	if (!make_numbers(spots, functions, &numbers))
		return -1;
	fill_numbers(spots, &all, runs, functions, &numbers);
	mix = (struct hot_mix){
		.steps = spots->steps,
		.functions = functions,
		.totals = numbers.totals,
		.counts = numbers.counts,
		.units = numbers.units,
		.squares = differs ? numbers.squares : NULL,
		.total_squares = differs ? numbers.total_squares : NULL,
	};
	found = hot_changes_find(&mix, spots->tests, search->least, search->goes_on,
				 search->context, changes, HOT_CHANGES_MAX,
				 &spots->changes_left_out);
	free(numbers.counts);
	return found;
}

static bool find_in_process(struct search *search, uint32_t number)
{
	struct hot_spots *spots = search->spots;
	struct hot_process *process = &spots->processes[number];
	struct hot_change changes[HOT_CHANGES_MAX];
	uint32_t functions = 0;
	struct run *runs = tested_runs(spots, process, &functions);
	int found = runs ? find_in_runs(search, process, runs, functions, changes) : -1;

	process->changes = found > 0 ? (unsigned)found : 0;
	if (found > 0 && !keep_changes(search, number, runs, changes, found))
		found = -1;
	free(runs);
	return found >= 0;
}

static int compare_changes(const void *left, const void *right)
{
	const struct hot_change *a = left, *b = right;

	if (a->score != b->score)
		return a->score > b->score ? -1 : 1;
	if (a->process != b->process)
		return a->process < b->process ? -1 : 1;
	return (a->from_step > b->from_step) - (a->from_step < b->from_step);
}

static void keep_best(struct hot_spots *spots, size_t limit)
{
	if (spots->change_count)
		qsort(spots->changes, spots->change_count, sizeof(*spots->changes),
		      compare_changes);
	while (spots->change_count > limit) {
		free(spots->changes[--spots->change_count].moved);
		spots->changes_left_out++;
	}
}

/* What is made of one process to test it: its runs, and numbers of each step of each function. */
static size_t process_bytes(const struct hot_spots *spots, const struct hot_process *process)
{
	size_t functions = process->cell_count < FUNCTIONS_TESTED ? process->cell_count
								  : FUNCTIONS_TESTED;

	return process->cell_count * sizeof(struct run) +
	       (2 * functions + PER_STEP) * spots->steps * sizeof(double);
}

static bool has_room(const struct hot_spots *spots, size_t room)
{
	for (uint32_t i = 0; i < spots->process_count; i++)
		if (process_bytes(spots, &spots->processes[i]) > room)
			return false;
	return true;
}

bool hot_spots_find(struct hot_spots *spots, double least, size_t limit, size_t room,
		    bool (*goes_on)(void *context), void *context)
{
	struct search search = {spots, least, limit, 0, goes_on, context};

	hash_table_release(&spots->index->cells); /* nothing is added any more */
	sort_cells(spots, compare_by_function);
	if (!has_room(spots, room) || !count_tests(spots))
		return false;
	for (uint32_t i = 0; i < spots->process_count; i++)
		if (spots->processes[i].tested && !find_in_process(&search, i))
			return false;
	keep_best(spots, limit);
	sort_cells(spots, compare_by_step);
	return true;
}

void hot_spots_free(struct hot_spots *spots)
{
	if (!spots)
		return;
	for (size_t i = 0; i < spots->change_count; i++)
		free(spots->changes[i].moved);
	hash_table_release(&spots->index->functions);
	hash_table_release(&spots->index->cells);
	free(spots->index->last_stacks);
	free(spots->index);
	free(spots->functions);
	free(spots->processes);
	free(spots->cells);
	free(spots->changes);
	free(spots);
}
