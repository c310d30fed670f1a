/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces → one sum per distinct (series, thread, step, stack). Series by series, so that the sums
 * of one are a plain array. */
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "symbol-server/store/sample_context.h"
#include "symbol-server/store/sqlite/answers/query_run.h"

enum { NO_PLACE = UINT32_MAX - 1 };

/* --- stacks --- */

static bool grow_stacks(struct query_run *run)
{
	uint32_t room = run->stack_capacity ? run->stack_capacity * 2 : 4096;
	struct distinct_stack *stacks = realloc(run->stacks, room * sizeof *stacks);
	struct sum *sums;
	uint32_t *touched;

	if (stacks)
		run->stacks = stacks;
	sums = realloc(run->sums, room * sizeof *sums);
	if (sums)
		run->sums = sums;
	touched = realloc(run->touched, room * sizeof *touched);
	if (touched)
		run->touched = touched;
	if (!stacks || !sums || !touched)
		return false;
	memset(sums + run->stack_capacity, 0, (room - run->stack_capacity) * sizeof *sums);
	run->stack_capacity = room;
	return true;
}

static uint32_t find_stack(const struct query_run *run, const struct catalog_stack *stack)
{
	HASH_TABLE_EACH(i, &run->stack_index, stack->hash[0])
		if (run->stacks[i].from->hash[0] == stack->hash[0] &&
		    run->stacks[i].from->hash[1] == stack->hash[1])
			return i + 1;
	return 0;
}

static bool may_grow(const struct query_run *run, const struct catalog_stack *stack)
{
	const uint64_t *kept = run->query->kept_stack_id;
	size_t room = run->stack_capacity ? 2 * (size_t)run->stack_capacity : 1;

	return (kept && stack->hash[0] == *kept) ||
	       query_run_may_have(run, room * (sizeof *run->stacks + sizeof *run->sums +
					       sizeof *run->touched));
}

/* The same stack on another day is the same. 0: no room; UINT32_MAX: not the one asked for;
 * NO_PLACE: it is cut. */
static uint32_t map_stack(struct query_run *run, struct view_day *day, uint32_t number)
{
	const struct catalog_stack *stack = catalog_stack(day->catalog, number);
	uint32_t *known = &query_run_maps(run, day)->stacks[number];

	if (run->query->stack_id && stack->hash[0] != *run->query->stack_id)
		return *known = UINT32_MAX;
	if (run->is_indexed)
		*known = find_stack(run, stack);
	if (*known)
		return *known;
	if (run->stack_count == run->stack_capacity && !may_grow(run, stack))
		return NO_PLACE;
	if (run->stack_count == run->stack_capacity && !grow_stacks(run))
		return 0;
	if (run->is_indexed && !hash_table_add(&run->stack_index, stack->hash[0], run->stack_count))
		return 0;
	run->stacks[run->stack_count] = (struct distinct_stack){.from = stack, .day = day};
	return *known = ++run->stack_count;
}

static inline void add_sum(struct query_run *run, uint32_t stack, uint64_t samples, uint64_t value)
{
	struct sum *sum = &run->sums[stack];

	/* Sums of damaged rows may come back to zero. */
	if (!sum->samples && !sum->value && run->touched_count < run->stack_capacity)
		run->touched[run->touched_count++] = stack;
	sum->samples += samples;
	sum->value += value;
}

/* --- threads --- */

/* The result's number + 1 of a thread's name; UINT32_MAX: not wanted; 0: no room. */
static uint32_t map_thread(struct query_run *run, struct view_day *day, uint32_t thread)
{
	uint32_t *known = &query_run_maps(run, day)->threads[thread];
	const struct samples_query *query = run->query;
	char joined[CONTEXT_BYTES_MAX], reduced[CONTEXT_BYTES_MAX];
	const char *name;
	uint64_t hash;

	if (*known)
		return *known;
	if (!query_run_goes_on(run)) /* a minute may have ten thousands of them to be matched */
		return 0;
	name = view_context(day, query, thread, joined);
	if (!name)
		return 0;
	query_run_maps(run, day)->is_untold[thread] = !lifetime_is_told(name);
	if (query->thread_wanted && !query->thread_wanted(query->context, name))
		return *known = UINT32_MAX;
	if (!query->by_thread)
		return *known = 1;
	if (query->thread_names) {
		sample_context_reduce(name, query->thread_names, query->thread_name_count, reduced);
		name = reduced;
	}
	hash = hash_bytes(name, strlen(name), 0);
	HASH_TABLE_EACH(i, &run->thread_index, hash)
		if (!strcmp(run->threads[i], name))
			return *known = i + 1;
	if (!ARRAY_GROW(run->threads, run->thread_count, run->thread_room) ||
	    !hash_table_add(&run->thread_index, hash, (uint32_t)run->thread_count))
		return 0;
	run->threads[run->thread_count] = arena_text(&run->result->arena, name, strlen(name));
	if (!run->threads[run->thread_count])
		return 0;
	return *known = (uint32_t)++run->thread_count;
}

static bool add_thread_sum(struct query_run *run, uint32_t thread, uint32_t stack, uint64_t samples,
			   uint64_t value)
{
	if (!ARRAY_GROW(run->thread_sums, run->thread_sum_count, run->thread_sum_room))
		return false;
	run->thread_sums[run->thread_sum_count++] =
		(struct thread_sum){thread, stack, {samples, value}};
	return true;
}

/* --- into the result --- */

static bool put_stack(struct query_run *run, const struct piece *first, const char *thread,
		      uint32_t stack, const struct sum *sum)
{
	struct samples_result *result = run->result;

	/* Twice: joining equal ones takes as much again. */
	if (result->stack_count == run->stack_room && run->stack_room &&
	    !query_run_may_have(run, 4 * run->stack_room * sizeof *result->stacks) &&
	    !query_run_cut_sums(run))
		return false;
	if (!ARRAY_GROW(result->stacks, result->stack_count, run->stack_room))
		return false;
	result->stacks[result->stack_count++] = (struct result_stack){
		.series = first->series,
		.span = first->span,
		.id = run->stacks[stack].from->hash[0],
		.thread = thread,
		.bucket_ms = first->step_ms,
		.depth = stack, /* number of the distinct stack until locations are known */
		.samples = sum->samples,
		.value = sum->value,
	};
	return true;
}

static int compare_threads(const void *a, const void *b)
{
	const struct thread_sum *x = a, *y = b;

	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	return (x->stack > y->stack) - (x->stack < y->stack);
}

static bool put_threads(struct query_run *run, const struct piece *first)
{
	struct thread_sum *sums = run->thread_sums;
	size_t count = run->thread_sum_count;
	bool ok = true;

	if (count)
		qsort(sums, count, sizeof *sums, compare_threads);
	for (size_t i = 0; ok && i < count;) {
		struct thread_sum sum = sums[i];

		for (i++; i < count && !compare_threads(&sums[i], &sum); i++) {
			sum.sum.samples += sums[i].sum.samples;
			sum.sum.value += sums[i].sum.value;
		}
		ok = put_stack(run, first, run->threads[sum.thread], sum.stack, &sum.sum);
	}
	run->thread_sum_count = 0;
	return ok;
}

static bool put_sums(struct query_run *run, const struct piece *first)
{
	bool ok = true;

	for (uint32_t i = 0; i < run->touched_count; i++) {
		uint32_t stack = run->touched[i];

		ok = ok && put_stack(run, first, "", stack, &run->sums[stack]);
		run->sums[stack] = (struct sum){0};
	}
	run->touched_count = 0;
	return ok;
}

/* What the group at hand has so far goes to the result, so that the lightest stacks can go. */
static bool make_place(struct query_run *run)
{
	return (run->query->by_thread ? put_threads(run, run->group) : put_sums(run, run->group)) &&
	       query_run_forget_stacks(run);
}

/* --- reading a piece --- */

/* What one piece has of one thread. */
struct addend {
	struct query_run *run;
	struct view_day *day;
	const uint32_t *known; /* day_maps.stacks */
	uint32_t stack_limit, string_limit;
	uint32_t thread, thread_number; /* the one asked last, and what map_thread() said */
	bool is_untold;                 /* of it */
};

static struct addend adding_of(struct query_run *run, uint32_t day)
{
	struct view_day *at = &run->view.days[day];

	return (struct addend){run,
			       at,
			       query_run_maps(run, at)->stacks,
			       at->mark.count[CATALOG_STACKS],
			       at->mark.count[CATALOG_STRINGS],
			       UINT32_MAX,
			       0,
			       false};
}

/* False: not wanted, or no room (is_full). */
static bool choose_thread(struct addend *addend, uint32_t thread)
{
	const struct samples_query *query = addend->run->query;

	if (thread != addend->thread) {
		addend->thread = thread;
		if (thread >= addend->string_limit)
			addend->thread_number = UINT32_MAX; /* refers to nothing */
		else if (!query->by_thread && !query->thread_wanted)
			addend->thread_number = 1;
		else
			addend->thread_number = map_thread(addend->run, addend->day, thread);
		addend->run->is_full |= !addend->thread_number;
		addend->is_untold = thread < addend->string_limit &&
				    query_run_maps(addend->run, addend->day)->is_untold[thread];
	}
	return addend->thread_number && addend->thread_number != UINT32_MAX;
}

static inline void count_untold(struct addend *addend, uint64_t samples)
{
	struct samples_result *result = addend->run->result;

	if (!addend->run->query->counts_untold)
		return;
	result->untold.of += samples;
	if (addend->is_untold)
		result->untold.samples += samples;
}

static inline bool add_pair(struct addend *addend, uint32_t number, uint64_t samples,
			    uint64_t value)
{
	struct query_run *run = addend->run;
	uint32_t stack;

	if (!number || number >= addend->stack_limit)
		return true; /* refers to nothing */
	stack = addend->known[number];
	if (!stack)
		stack = map_stack(run, addend->day, number);
	if (stack == NO_PLACE && make_place(run))
		stack = map_stack(run, addend->day, number);
	if (!stack || stack == NO_PLACE)
		return false;
	if (stack == UINT32_MAX)
		return true;
	if (run->query->by_thread)
		return add_thread_sum(run, addend->thread_number - 1, stack - 1, samples, value);
	add_sum(run, stack - 1, samples, value);
	return true;
}

static inline bool get(const uint8_t **at, const uint8_t *end, uint64_t *value)
{
	if (*at < end && **at < 0x80) {
		*value = *(*at)++;
		return true;
	}
	return varint_read(at, end, value);
}

/* count pairs of one thread as packed.h says. False: damaged, or is_full. */
static bool add_run(struct addend *addend, const uint8_t **at, const uint8_t *end, uint64_t one,
		    uint64_t count, bool is_wanted)
{
	uint64_t delta, counted, rest;
	uint32_t stack = 0;

	while (count--) {
		uint64_t value;

		if (!get(at, end, &delta) || !get(at, end, &counted) || delta > UINT32_MAX - stack)
			return false;
		stack += (uint32_t)delta;
		value = (counted >> 1) * one;
		if (counted & 1) {
			if (!get(at, end, &rest))
				return false;
			value += (uint64_t)zigzag_decode(rest);
		}
		count_untold(addend, counted >> 1);
		if (is_wanted && !add_pair(addend, stack, counted >> 1, value)) {
			addend->run->is_full = true;
			return false;
		}
	}
	return true;
}

static bool add_packed(struct addend *addend, const uint8_t *at, size_t length)
{
	const uint8_t *end = at + length;
	uint64_t one, delta, count;
	uint32_t thread = 0;

	if (!get(&at, end, &one))
		return false;
	while (at < end) {
		bool is_wanted;

		if (!get(&at, end, &delta) || !get(&at, end, &count) || delta > UINT32_MAX - thread)
			return false;
		thread += (uint32_t)delta;
		is_wanted = choose_thread(addend, thread);
		if (addend->run->is_full || !add_run(addend, &at, end, one, count, is_wanted))
			return false;
	}
	return true;
}

static bool add_raw(void *context, const struct packed_pair *pair)
{
	struct addend *addend = context;
	const bool is_wanted = choose_thread(addend, pair->thread);

	count_untold(addend, pair->samples);
	if (is_wanted && !add_pair(addend, pair->stack, pair->samples, pair->value))
		addend->run->is_full = true;
	return !addend->run->is_full;
}

static bool add_piece(struct query_run *run, const struct piece *piece)
{
	struct addend addend = adding_of(run, piece->day);
	struct view_row row = {.cell = piece->cell};
	bool ok = piece->cell ? view_each_pair(&row, add_raw, &addend)
			      : add_packed(&addend, run->bytes + piece->at, piece->length);

	if (!ok && !run->is_full) {
		run->is_stopped = true;
		run->damaged = &run->view.days[piece->day];
		error_set(run->err, ERROR_FORMAT, "samples of a minute are damaged");
	}
	return ok && query_run_goes_on(run);
}

/* --- order --- */

static int compare_steps(const void *a, const void *b)
{
	const struct piece *x = a, *y = b;

	if (x->step_ms != y->step_ms)
		return x->step_ms < y->step_ms ? -1 : 1;
	return (x->span > y->span) - (x->span < y->span);
}

/* By series, by step and span within; starts[s] is where series s begins. NULL: no memory. */
static struct piece *sort_pieces(const struct query_run *run, uint32_t **starts)
{
	bool is_finer = run->query->by_bucket || run->query->by_span;
	uint32_t series = run->result->series_count;
	struct piece *sorted = malloc(run->piece_count * sizeof *sorted);
	uint32_t *at = *starts = calloc(series + 2, sizeof *at);

	if (!sorted || !at) {
		free(sorted);
		return NULL;
	}
	for (size_t i = 0; i < run->piece_count; i++)
		at[run->pieces[i].series + 2]++;
	for (uint32_t i = 2; i < series + 2; i++)
		at[i] += at[i - 1];
	for (size_t i = 0; i < run->piece_count; i++)
		sorted[at[run->pieces[i].series + 1]++] = run->pieces[i];
	for (uint32_t i = 0; is_finer && i < series; i++)
		if (at[i + 1] - at[i] > 1)
			qsort(sorted + at[i], at[i + 1] - at[i], sizeof *sorted, compare_steps);
	return sorted;
}

bool query_run_add_pieces(struct query_run *run)
{
	size_t count = run->piece_count;
	struct piece *pieces;
	uint32_t *starts = NULL;
	bool ok = true;

	if (!count)
		return true;
	pieces = sort_pieces(run, &starts);
	free(starts);
	run->is_full |= !pieces;
	for (size_t i = 0; pieces && ok && i < count;) {
		const struct piece *first = run->group = &pieces[i];

		for (; ok && i < count && pieces[i].series == first->series &&
		       pieces[i].step_ms == first->step_ms && pieces[i].span == first->span;
		     i++)
			ok = add_piece(run, &pieces[i]);
		if (ok && !(run->query->by_thread ? put_threads(run, first) : put_sums(run, first)))
			run->is_full = true;
		ok = ok && !run->is_full;
	}
	free(pieces);
	run->flushes++;
	run->piece_count = run->byte_count = 0;
	return ok && !run->is_full;
}

/* --- several rounds --- */

static int compare_stacks(const void *a, const void *b)
{
	const struct result_stack *x = a, *y = b;

	if (x->series != y->series)
		return x->series < y->series ? -1 : 1;
	if (x->bucket_ms != y->bucket_ms)
		return x->bucket_ms < y->bucket_ms ? -1 : 1;
	if (x->span != y->span)
		return x->span < y->span ? -1 : 1;
	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	return (x->depth > y->depth) - (x->depth < y->depth);
}

bool query_run_merge_sums(struct query_run *run)
{
	return (run->flushes < 2 && !run->is_cut) || query_run_join_sums(run);
}

bool query_run_join_sums(struct query_run *run)
{
	struct samples_result *result = run->result;
	size_t kept = 0;

	if (!result->stack_count)
		return true;
	qsort(result->stacks, result->stack_count, sizeof *result->stacks, compare_stacks);
	for (size_t i = 1; i < result->stack_count; i++) {
		struct result_stack *last = &result->stacks[kept];

		if (compare_stacks(last, &result->stacks[i])) {
			result->stacks[++kept] = result->stacks[i];
			continue;
		}
		last->samples += result->stacks[i].samples;
		last->value += result->stacks[i].value;
	}
	result->stack_count = kept + 1;
	return query_run_goes_on(run);
}

void query_run_release_sums(struct query_run *run)
{
	free(run->pieces);
	free(run->bytes);
	free(run->stacks);
	free(run->sums);
	free(run->touched);
	free(run->threads);
	free(run->thread_sums);
	hash_table_release(&run->stack_index);
	hash_table_release(&run->series_index);
	hash_table_release(&run->thread_index);
	hash_table_release(&run->span_index);
}
