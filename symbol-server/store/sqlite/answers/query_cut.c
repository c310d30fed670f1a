/* SPDX-License-Identifier: Apache-2.0 */
/* An answer that needs more memory than its question may take keeps its heaviest stacks; what the
 * others had is counted (samples_result.cut). While rows are read the lightest half of the sums
 * goes whenever there is no room for more, so that of a stack whose samples come in small parts
 * over a long time some may be among what is cut; nothing is lost without being counted. */
#include <stdlib.h>
#include <string.h>

#include "symbol-server/store/sqlite/answers/query_run.h"

enum {
	CHUNK_BYTES = 48 << 20,
	CHUNK_PIECES = 1 << 20,
	LEAST_CHUNK = 4096,
	/* Of most_bytes: what each of the arrays that grow may have, what is collected may take
	 * before it is added up, and the same where sums per thread take some ten times as much. */
	ARRAY_SHARE = 4,
	CHUNK_SHARE = 16,
	THREADS_SHARE = 128,
};

void query_run_cut_start(struct query_run *run)
{
	const struct samples_limits *limits = &run->query->limits;

	run->is_indexed = run->view.day_count > 1;
	if (limits->bytes && limits->is_cut && !run->query->by_span)
		run->most_bytes = limits->bytes < run->result->arena.limit
					  ? limits->bytes
					  : run->result->arena.limit;
}

size_t query_run_bytes(const struct query_run *run)
{
	return run->view.arena.used + run->result->arena.used + run->byte_room +
	       run->piece_room * sizeof *run->pieces +
	       run->stack_capacity * (sizeof *run->stacks + sizeof *run->sums) +
	       run->stack_room * sizeof *run->result->stacks +
	       run->thread_sum_room * sizeof *run->thread_sums +
	       run->span_room * (sizeof *run->result->spans + 16); /* its index */
}

static size_t chunk(const struct query_run *run, size_t most)
{
	unsigned share = run->query->by_thread ? THREADS_SHARE : CHUNK_SHARE;
	size_t bytes = run->most_bytes / share;

	if (!run->most_bytes || bytes > most)
		return most;
	return bytes > LEAST_CHUNK ? bytes : LEAST_CHUNK;
}

size_t query_run_chunk_bytes(const struct query_run *run)
{
	return chunk(run, CHUNK_BYTES);
}

size_t query_run_chunk_pieces(const struct query_run *run)
{
	return chunk(run, CHUNK_PIECES * sizeof(struct piece)) / sizeof(struct piece);
}

bool query_run_may_have(const struct query_run *run, size_t bytes)
{
	return !run->most_bytes || bytes <= run->most_bytes / ARRAY_SHARE;
}

void query_run_cut(struct query_run *run, uint64_t samples, uint64_t value)
{
	run->result->cut.samples += samples;
	run->result->cut.value += value;
	run->is_cut = true;
	*run->query->limits.is_cut = true;
}

/* --- sums --- */

static uint64_t weight_of(const struct query_run *run, const struct result_stack *stack)
{
	const uint64_t *kept = run->query->kept_stack_id;

	return kept && stack->id == *kept ? UINT64_MAX : stack->value;
}

static void swap(struct result_stack *a, struct result_stack *b)
{
	struct result_stack copy = *a;

	*a = *b;
	*b = copy;
}

/* The wanted heaviest first, in no order (Hoare's selection). */
static void select_heaviest(const struct query_run *run, size_t wanted)
{
	struct result_stack *stacks = run->result->stacks;
	size_t low = 0, high = run->result->stack_count;

	while (high - low > 1) {
		uint64_t pivot = weight_of(run, &stacks[low + (high - low) / 2]);
		size_t i = low, k = high - 1;

		for (;;) {
			while (weight_of(run, &stacks[i]) > pivot)
				i++;
			while (weight_of(run, &stacks[k]) < pivot)
				k--;
			if (i >= k)
				break;
			swap(&stacks[i++], &stacks[k--]);
		}
		if (i == k && wanted > i)
			low = i + 1; /* it stands where it belongs */
		else if (i == k)
			high = i;
		else if (wanted <= k + 1)
			high = k + 1;
		else
			low = i;
	}
}

bool query_run_cut_sums(struct query_run *run)
{
	struct samples_result *result = run->result;
	size_t kept = run->stack_room / 2;

	if (!query_run_join_sums(run))
		return false;
	if (result->stack_count <= kept)
		return true;
	select_heaviest(run, kept);
	for (size_t i = kept; i < result->stack_count; i++)
		query_run_cut(run, result->stacks[i].samples, result->stacks[i].value);
	result->stack_count = kept;
	return true;
}

/* --- distinct stacks --- */

static void forget_numbers(struct query_run *run)
{
	for (unsigned i = 0; i < run->view.day_count; i++)
		memset(run->maps[i].stacks, 0,
		       run->view.days[i].mark.count[CATALOG_STACKS] * sizeof *run->maps[i].stacks);
	hash_table_clear(&run->stack_index);
	run->is_indexed = true;
}

/* numbers: of those that stay, + 1. */
static bool move_stacks(struct query_run *run, uint32_t *numbers)
{
	struct samples_result *result = run->result;
	uint32_t kept = 0;

	for (size_t i = 0; i < result->stack_count; i++)
		numbers[result->stacks[i].depth] = 1;
	forget_numbers(run);
	for (uint32_t i = 0; i < run->stack_count; i++) {
		if (!numbers[i])
			continue;
		run->stacks[kept] = run->stacks[i];
		if (!hash_table_add(&run->stack_index, run->stacks[kept].from->hash[0], kept))
			return false;
		numbers[i] = ++kept;
	}
	run->stack_count = kept;
	for (size_t i = 0; i < result->stack_count; i++)
		result->stacks[i].depth = numbers[result->stacks[i].depth] - 1;
	return true;
}

bool query_run_forget_stacks(struct query_run *run)
{
	struct samples_result *result = run->result;
	size_t room = run->stack_room;
	uint32_t *numbers;
	bool ok;

	/* Half as many sums as stacks: at least half of the places come free. */
	if (result->stack_count > run->stack_capacity / 2) {
		run->stack_room = run->stack_capacity;
		ok = query_run_cut_sums(run);
		run->stack_room = room;
		if (!ok)
			return false;
	}
	numbers = calloc((size_t)run->stack_count + 1, sizeof *numbers);
	ok = numbers && move_stacks(run, numbers);
	free(numbers);
	return ok;
}

/* --- stacks whose frames do not fit --- */

static int compare_weights(const void *left, const void *right, void *context)
{
	const uint64_t *weights = context;
	uint64_t a = weights[*(const uint32_t *)left], b = weights[*(const uint32_t *)right];

	return (a < b) - (a > b);
}

uint32_t *query_run_order_stacks(const struct query_run *run)
{
	const struct samples_result *result = run->result;
	uint64_t *weights = calloc((size_t)run->stack_count + 1, sizeof *weights);
	uint32_t *order = calloc((size_t)run->stack_count + 1, sizeof *order);

	if (!weights || !order) {
		free(weights);
		free(order);
		return NULL;
	}
	for (size_t i = 0; i < result->stack_count; i++) {
		uint64_t *weight = &weights[result->stacks[i].depth];
		uint64_t more = weight_of(run, &result->stacks[i]);

		*weight = more > UINT64_MAX - *weight ? UINT64_MAX : *weight + more;
	}
	for (uint32_t i = 0; i < run->stack_count; i++)
		order[i] = i;
	qsort_r(order, run->stack_count, sizeof *order, compare_weights, weights);
	free(weights);
	return order;
}

void query_run_keep_stacks(struct query_run *run, const uint8_t *is_kept)
{
	struct samples_result *result = run->result;
	size_t kept = 0;

	for (size_t i = 0; i < result->stack_count; i++) {
		if (is_kept[result->stacks[i].depth])
			result->stacks[kept++] = result->stacks[i];
		else
			query_run_cut(run, result->stacks[i].samples, result->stacks[i].value);
	}
	result->stack_count = kept;
}
