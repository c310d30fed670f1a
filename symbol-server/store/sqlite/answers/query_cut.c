/* SPDX-License-Identifier: Apache-2.0 */
/* An answer that needs more memory than its question may take keeps its heaviest stacks; what the
 * others had is counted (samples_result.cut). While rows are read the lightest half of the sums
 * goes whenever there is no room for more, so that of a stack whose samples come in small parts
 * over a long time some may be among what is cut; nothing is lost without being counted. */
#include <stdlib.h>
#include <string.h>

#include "symbol-server/store/sqlite/answers/querying.h"

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

void querying_cut_start(struct querying *querying)
{
	const struct samples_limits *limits = &querying->query->limits;

	querying->is_indexed = querying->view.day_count > 1;
	if (limits->bytes && limits->is_cut && !querying->query->by_span)
		querying->most_bytes = limits->bytes < querying->result->arena.limit
					       ? limits->bytes
					       : querying->result->arena.limit;
}

size_t querying_bytes(const struct querying *querying)
{
	return querying->view.arena.used + querying->result->arena.used + querying->byte_room +
	       querying->piece_room * sizeof *querying->pieces +
	       querying->stack_capacity * (sizeof *querying->stacks + sizeof *querying->sums) +
	       querying->stack_room * sizeof *querying->result->stacks +
	       querying->thread_sum_room * sizeof *querying->thread_sums +
	       querying->span_room * (sizeof *querying->result->spans + 16); /* its index */
}

static size_t chunk(const struct querying *querying, size_t most)
{
	unsigned share = querying->query->by_thread ? THREADS_SHARE : CHUNK_SHARE;
	size_t bytes = querying->most_bytes / share;

	if (!querying->most_bytes || bytes > most)
		return most;
	return bytes > LEAST_CHUNK ? bytes : LEAST_CHUNK;
}

size_t querying_chunk_bytes(const struct querying *querying)
{
	return chunk(querying, CHUNK_BYTES);
}

size_t querying_chunk_pieces(const struct querying *querying)
{
	return chunk(querying, CHUNK_PIECES * sizeof(struct piece)) / sizeof(struct piece);
}

bool querying_may_have(const struct querying *querying, size_t bytes)
{
	return !querying->most_bytes || bytes <= querying->most_bytes / ARRAY_SHARE;
}

void querying_cut(struct querying *querying, uint64_t samples, uint64_t value)
{
	querying->result->cut.samples += samples;
	querying->result->cut.value += value;
	querying->is_cut = true;
	*querying->query->limits.is_cut = true;
}

/* --- sums --- */

static uint64_t weight_of(const struct querying *querying, const struct result_stack *stack)
{
	const uint64_t *kept = querying->query->kept_stack_id;

	return kept && stack->id == *kept ? UINT64_MAX : stack->value;
}

static void swap(struct result_stack *a, struct result_stack *b)
{
	struct result_stack copy = *a;

	*a = *b;
	*b = copy;
}

/* The wanted heaviest first, in no order (Hoare's selection). */
static void select_heaviest(const struct querying *querying, size_t wanted)
{
	struct result_stack *stacks = querying->result->stacks;
	size_t low = 0, high = querying->result->stack_count;

	while (high - low > 1) {
		uint64_t pivot = weight_of(querying, &stacks[low + (high - low) / 2]);
		size_t i = low, k = high - 1;

		for (;;) {
			while (weight_of(querying, &stacks[i]) > pivot)
				i++;
			while (weight_of(querying, &stacks[k]) < pivot)
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

bool querying_cut_sums(struct querying *querying)
{
	struct samples_result *result = querying->result;
	size_t kept = querying->stack_room / 2;

	if (!querying_join_sums(querying))
		return false;
	if (result->stack_count <= kept)
		return true;
	select_heaviest(querying, kept);
	for (size_t i = kept; i < result->stack_count; i++)
		querying_cut(querying, result->stacks[i].samples, result->stacks[i].value);
	result->stack_count = kept;
	return true;
}

/* --- distinct stacks --- */

static void forget_numbers(struct querying *querying)
{
	for (unsigned i = 0; i < querying->view.day_count; i++)
		memset(querying->maps[i].stacks, 0,
		       querying->view.days[i].mark.count[CATALOG_STACKS] *
			       sizeof *querying->maps[i].stacks);
	hash_table_clear(&querying->stack_index);
	querying->is_indexed = true;
}

/* numbers: of those that stay, + 1. */
static bool move_stacks(struct querying *querying, uint32_t *numbers)
{
	struct samples_result *result = querying->result;
	uint32_t kept = 0;

	for (size_t i = 0; i < result->stack_count; i++)
		numbers[result->stacks[i].depth] = 1;
	forget_numbers(querying);
	for (uint32_t i = 0; i < querying->stack_count; i++) {
		if (!numbers[i])
			continue;
		querying->stacks[kept] = querying->stacks[i];
		if (!hash_table_add(&querying->stack_index, querying->stacks[kept].from->hash[0],
				    kept))
			return false;
		numbers[i] = ++kept;
	}
	querying->stack_count = kept;
	for (size_t i = 0; i < result->stack_count; i++)
		result->stacks[i].depth = numbers[result->stacks[i].depth] - 1;
	return true;
}

bool querying_forget_stacks(struct querying *querying)
{
	struct samples_result *result = querying->result;
	size_t room = querying->stack_room;
	uint32_t *numbers;
	bool ok;

	/* Half as many sums as stacks: at least half of the places come free. */
	if (result->stack_count > querying->stack_capacity / 2) {
		querying->stack_room = querying->stack_capacity;
		ok = querying_cut_sums(querying);
		querying->stack_room = room;
		if (!ok)
			return false;
	}
	numbers = calloc((size_t)querying->stack_count + 1, sizeof *numbers);
	ok = numbers && move_stacks(querying, numbers);
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

uint32_t *querying_order_stacks(const struct querying *querying)
{
	const struct samples_result *result = querying->result;
	uint64_t *weights = calloc((size_t)querying->stack_count + 1, sizeof *weights);
	uint32_t *order = calloc((size_t)querying->stack_count + 1, sizeof *order);

	if (!weights || !order) {
		free(weights);
		free(order);
		return NULL;
	}
	for (size_t i = 0; i < result->stack_count; i++) {
		uint64_t *weight = &weights[result->stacks[i].depth];
		uint64_t more = weight_of(querying, &result->stacks[i]);

		*weight = more > UINT64_MAX - *weight ? UINT64_MAX : *weight + more;
	}
	for (uint32_t i = 0; i < querying->stack_count; i++)
		order[i] = i;
	qsort_r(order, querying->stack_count, sizeof *order, compare_weights, weights);
	free(weights);
	return order;
}

void querying_keep_stacks(struct querying *querying, const uint8_t *is_kept)
{
	struct samples_result *result = querying->result;
	size_t kept = 0;

	for (size_t i = 0; i < result->stack_count; i++) {
		if (is_kept[result->stacks[i].depth])
			result->stacks[kept++] = result->stacks[i];
		else
			querying_cut(querying, result->stacks[i].samples, result->stacks[i].value);
	}
	result->stack_count = kept;
}
