/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces → one sum per distinct (series, thread, step, stack). Series by series, so that the sums
 * of one are a plain array. */
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "symbol-server/store/sample_context.h"
#include "symbol-server/store/sqlite/answers/querying.h"

enum { NO_PLACE = UINT32_MAX - 1 };

/* --- stacks --- */

static bool grow_stacks(struct querying *querying)
{
	uint32_t room = querying->stack_capacity ? querying->stack_capacity * 2 : 4096;
	struct distinct_stack *stacks = realloc(querying->stacks, room * sizeof *stacks);
	struct sum *sums;
	uint32_t *touched;

	if (stacks)
		querying->stacks = stacks;
	sums = realloc(querying->sums, room * sizeof *sums);
	if (sums)
		querying->sums = sums;
	touched = realloc(querying->touched, room * sizeof *touched);
	if (touched)
		querying->touched = touched;
	if (!stacks || !sums || !touched)
		return false;
	memset(sums + querying->stack_capacity, 0,
	       (room - querying->stack_capacity) * sizeof *sums);
	querying->stack_capacity = room;
	return true;
}

static uint32_t find_stack(const struct querying *querying, const struct catalog_stack *stack)
{
	uint32_t probe = 0;

	for (uint32_t i = hash_table_first(&querying->stack_index, stack->hash[0], &probe);
	     i != HASH_TABLE_NONE;
	     i = hash_table_next(&querying->stack_index, stack->hash[0], &probe))
		if (querying->stacks[i].from->hash[0] == stack->hash[0] &&
		    querying->stacks[i].from->hash[1] == stack->hash[1])
			return i + 1;
	return 0;
}

static bool may_grow(const struct querying *querying, const struct catalog_stack *stack)
{
	const uint64_t *kept = querying->query->kept_stack_id;
	size_t room = querying->stack_capacity ? 2 * (size_t)querying->stack_capacity : 1;

	return (kept && stack->hash[0] == *kept) ||
	       querying_may_have(querying,
				 room * (sizeof *querying->stacks + sizeof *querying->sums +
					 sizeof *querying->touched));
}

/* The same stack on another day is the same. 0: no room; UINT32_MAX: not the one asked for;
 * NO_PLACE: it is cut. */
static uint32_t map_stack(struct querying *querying, struct view_day *day, uint32_t number)
{
	const struct catalog_stack *stack = catalog_stack(day->catalog, number);
	uint32_t *known = &querying_maps(querying, day)->stacks[number];

	if (querying->query->stack_id && stack->hash[0] != *querying->query->stack_id)
		return *known = UINT32_MAX;
	if (querying->is_indexed)
		*known = find_stack(querying, stack);
	if (*known)
		return *known;
	if (querying->stack_count == querying->stack_capacity && !may_grow(querying, stack))
		return NO_PLACE;
	if (querying->stack_count == querying->stack_capacity && !grow_stacks(querying))
		return 0;
	if (querying->is_indexed &&
	    !hash_table_add(&querying->stack_index, stack->hash[0], querying->stack_count))
		return 0;
	querying->stacks[querying->stack_count] = (struct distinct_stack){.from = stack,
									  .day = day};
	return *known = ++querying->stack_count;
}

static inline void add_sum(struct querying *querying, uint32_t stack, uint64_t samples,
			   uint64_t value)
{
	struct sum *sum = &querying->sums[stack];

	/* Sums of damaged rows may come back to zero. */
	if (!sum->samples && !sum->value && querying->touched_count < querying->stack_capacity)
		querying->touched[querying->touched_count++] = stack;
	sum->samples += samples;
	sum->value += value;
}

/* --- threads --- */

/* The result's number + 1 of a thread's name; UINT32_MAX: not wanted; 0: no room. */
static uint32_t map_thread(struct querying *querying, struct view_day *day, uint32_t thread)
{
	uint32_t *known = &querying_maps(querying, day)->threads[thread], probe = 0;
	const struct samples_query *query = querying->query;
	char joined[CONTEXT_BYTES_MAX], reduced[CONTEXT_BYTES_MAX];
	const char *name;
	uint64_t hash;

	if (*known)
		return *known;
	if (!querying_goes_on(querying)) /* a minute may have ten thousands of them to be matched */
		return 0;
	name = view_context(day, query, thread, joined);
	if (!name)
		return 0;
	querying_maps(querying, day)->is_untold[thread] = !lifetime_is_told(name);
	if (query->thread_wanted && !query->thread_wanted(query->context, name))
		return *known = UINT32_MAX;
	if (!query->by_thread)
		return *known = 1;
	if (query->thread_names) {
		sample_context_reduce(name, query->thread_names, query->thread_name_count, reduced);
		name = reduced;
	}
	hash = hash_bytes(name, strlen(name), 0);
	for (uint32_t i = hash_table_first(&querying->thread_index, hash, &probe);
	     i != HASH_TABLE_NONE; i = hash_table_next(&querying->thread_index, hash, &probe))
		if (!strcmp(querying->threads[i], name))
			return *known = i + 1;
	if (!ARRAY_GROW(querying->threads, querying->thread_count, querying->thread_room) ||
	    !hash_table_add(&querying->thread_index, hash, (uint32_t)querying->thread_count))
		return 0;
	querying->threads[querying->thread_count] = arena_text(&querying->result->arena, name,
							       strlen(name));
	if (!querying->threads[querying->thread_count])
		return 0;
	return *known = (uint32_t)++querying->thread_count;
}

static bool add_thread_sum(struct querying *querying, uint32_t thread, uint32_t stack,
			   uint64_t samples, uint64_t value)
{
	if (!ARRAY_GROW(querying->thread_sums, querying->thread_sum_count,
			querying->thread_sum_room))
		return false;
	querying->thread_sums[querying->thread_sum_count++] =
		(struct thread_sum){thread, stack, {samples, value}};
	return true;
}

/* --- into the result --- */

static bool put_stack(struct querying *querying, const struct piece *first, const char *thread,
		      uint32_t stack, const struct sum *sum)
{
	struct samples_result *result = querying->result;

	/* Twice: joining equal ones takes as much again. */
	if (result->stack_count == querying->stack_room && querying->stack_room &&
	    !querying_may_have(querying, 4 * querying->stack_room * sizeof *result->stacks) &&
	    !querying_cut_sums(querying))
		return false;
	if (!ARRAY_GROW(result->stacks, result->stack_count, querying->stack_room))
		return false;
	result->stacks[result->stack_count++] = (struct result_stack){
		.series = first->series,
		.span = first->span,
		.id = querying->stacks[stack].from->hash[0],
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

static bool put_threads(struct querying *querying, const struct piece *first)
{
	struct thread_sum *sums = querying->thread_sums;
	size_t count = querying->thread_sum_count;
	bool ok = true;

	if (count)
		qsort(sums, count, sizeof *sums, compare_threads);
	for (size_t i = 0; ok && i < count;) {
		struct thread_sum sum = sums[i];

		for (i++; i < count && !compare_threads(&sums[i], &sum); i++) {
			sum.sum.samples += sums[i].sum.samples;
			sum.sum.value += sums[i].sum.value;
		}
		ok = put_stack(querying, first, querying->threads[sum.thread], sum.stack, &sum.sum);
	}
	querying->thread_sum_count = 0;
	return ok;
}

static bool put_sums(struct querying *querying, const struct piece *first)
{
	bool ok = true;

	for (uint32_t i = 0; i < querying->touched_count; i++) {
		uint32_t stack = querying->touched[i];

		ok = ok && put_stack(querying, first, "", stack, &querying->sums[stack]);
		querying->sums[stack] = (struct sum){0};
	}
	querying->touched_count = 0;
	return ok;
}

/* What the group at hand has so far goes to the result, so that the lightest stacks can go. */
static bool make_place(struct querying *querying)
{
	return (querying->query->by_thread ? put_threads(querying, querying->group)
					   : put_sums(querying, querying->group)) &&
	       querying_forget_stacks(querying);
}

/* --- reading a piece --- */

/* What one piece has of one thread. */
struct adding {
	struct querying *querying;
	struct view_day *day;
	const uint32_t *known; /* day_maps.stacks */
	uint32_t stack_limit, string_limit;
	uint32_t thread, thread_number; /* the one asked last, and what map_thread() said */
	bool is_untold;                 /* of it */
};

static struct adding adding_of(struct querying *querying, uint32_t day)
{
	struct view_day *at = &querying->view.days[day];

	return (struct adding){querying,
			       at,
			       querying_maps(querying, at)->stacks,
			       at->mark.count[CATALOG_STACKS],
			       at->mark.count[CATALOG_STRINGS],
			       UINT32_MAX,
			       0,
			       false};
}

/* False: not wanted, or no room (is_full). */
static bool choose_thread(struct adding *adding, uint32_t thread)
{
	const struct samples_query *query = adding->querying->query;

	if (thread != adding->thread) {
		adding->thread = thread;
		if (thread >= adding->string_limit)
			adding->thread_number = UINT32_MAX; /* refers to nothing */
		else if (!query->by_thread && !query->thread_wanted)
			adding->thread_number = 1;
		else
			adding->thread_number = map_thread(adding->querying, adding->day, thread);
		adding->querying->is_full |= !adding->thread_number;
		adding->is_untold = thread < adding->string_limit &&
				    querying_maps(adding->querying, adding->day)->is_untold[thread];
	}
	return adding->thread_number && adding->thread_number != UINT32_MAX;
}

static inline void count_untold(struct adding *adding, uint64_t samples)
{
	struct samples_result *result = adding->querying->result;

	if (!adding->querying->query->counts_untold)
		return;
	result->untold.of += samples;
	if (adding->is_untold)
		result->untold.samples += samples;
}

static inline bool add_pair(struct adding *adding, uint32_t number, uint64_t samples,
			    uint64_t value)
{
	struct querying *querying = adding->querying;
	uint32_t stack;

	if (!number || number >= adding->stack_limit)
		return true; /* refers to nothing */
	stack = adding->known[number];
	if (!stack)
		stack = map_stack(querying, adding->day, number);
	if (stack == NO_PLACE && make_place(querying))
		stack = map_stack(querying, adding->day, number);
	if (!stack || stack == NO_PLACE)
		return false;
	if (stack == UINT32_MAX)
		return true;
	if (querying->query->by_thread)
		return add_thread_sum(querying, adding->thread_number - 1, stack - 1, samples,
				      value);
	add_sum(querying, stack - 1, samples, value);
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
static bool add_run(struct adding *adding, const uint8_t **at, const uint8_t *end, uint64_t one,
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
		count_untold(adding, counted >> 1);
		if (is_wanted && !add_pair(adding, stack, counted >> 1, value)) {
			adding->querying->is_full = true;
			return false;
		}
	}
	return true;
}

static bool add_packed(struct adding *adding, const uint8_t *at, size_t length)
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
		is_wanted = choose_thread(adding, thread);
		if (adding->querying->is_full || !add_run(adding, &at, end, one, count, is_wanted))
			return false;
	}
	return true;
}

static bool add_raw(void *context, const struct packed_pair *pair)
{
	struct adding *adding = context;
	const bool is_wanted = choose_thread(adding, pair->thread);

	count_untold(adding, pair->samples);
	if (is_wanted && !add_pair(adding, pair->stack, pair->samples, pair->value))
		adding->querying->is_full = true;
	return !adding->querying->is_full;
}

static bool add_piece(struct querying *querying, const struct piece *piece)
{
	struct adding adding = adding_of(querying, piece->day);
	struct view_row row = {.cell = piece->cell};
	bool ok = piece->cell ? view_each_pair(&row, add_raw, &adding)
			      : add_packed(&adding, querying->bytes + piece->at, piece->length);

	if (!ok && !querying->is_full) {
		querying->is_stopped = true;
		querying->damaged = &querying->view.days[piece->day];
		error_set(querying->err, ERROR_FORMAT, "samples of a minute are damaged");
	}
	return ok && querying_goes_on(querying);
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
static struct piece *sort_pieces(const struct querying *querying, uint32_t **starts)
{
	bool is_finer = querying->query->by_bucket || querying->query->by_span;
	uint32_t series = querying->result->series_count;
	struct piece *sorted = malloc(querying->piece_count * sizeof *sorted);
	uint32_t *at = *starts = calloc(series + 2, sizeof *at);

	if (!sorted || !at) {
		free(sorted);
		return NULL;
	}
	for (size_t i = 0; i < querying->piece_count; i++)
		at[querying->pieces[i].series + 2]++;
	for (uint32_t i = 2; i < series + 2; i++)
		at[i] += at[i - 1];
	for (size_t i = 0; i < querying->piece_count; i++)
		sorted[at[querying->pieces[i].series + 1]++] = querying->pieces[i];
	for (uint32_t i = 0; is_finer && i < series; i++)
		if (at[i + 1] - at[i] > 1)
			qsort(sorted + at[i], at[i + 1] - at[i], sizeof *sorted, compare_steps);
	return sorted;
}

bool querying_add_pieces(struct querying *querying)
{
	size_t count = querying->piece_count;
	struct piece *pieces;
	uint32_t *starts = NULL;
	bool ok = true;

	if (!count)
		return true;
	pieces = sort_pieces(querying, &starts);
	free(starts);
	querying->is_full |= !pieces;
	for (size_t i = 0; pieces && ok && i < count;) {
		const struct piece *first = querying->group = &pieces[i];

		for (; ok && i < count && pieces[i].series == first->series &&
		       pieces[i].step_ms == first->step_ms && pieces[i].span == first->span;
		     i++)
			ok = add_piece(querying, &pieces[i]);
		if (ok && !(querying->query->by_thread ? put_threads(querying, first)
						       : put_sums(querying, first)))
			querying->is_full = true;
		ok = ok && !querying->is_full;
	}
	free(pieces);
	querying->flushes++;
	querying->piece_count = querying->byte_count = 0;
	return ok && !querying->is_full;
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

bool querying_merge_sums(struct querying *querying)
{
	return (querying->flushes < 2 && !querying->is_cut) || querying_join_sums(querying);
}

bool querying_join_sums(struct querying *querying)
{
	struct samples_result *result = querying->result;
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
	return querying_goes_on(querying);
}

void querying_release_sums(struct querying *querying)
{
	free(querying->pieces);
	free(querying->bytes);
	free(querying->stacks);
	free(querying->sums);
	free(querying->touched);
	free(querying->threads);
	free(querying->thread_sums);
	hash_table_release(&querying->stack_index);
	hash_table_release(&querying->series_index);
	hash_table_release(&querying->thread_index);
	hash_table_release(&querying->span_index);
}
