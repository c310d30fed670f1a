/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/api/trace_sums.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/keyed_hash.h"
#include "symbol-server/query/selector.h"
#include "symbol-server/store/sample_context.h"

enum { TRACE_BYTES = 16, PER_TRACE = sizeof(struct trace_sum) + 2 * 4 + 16, PER_SPAN = 4 + 1 };

static const char *const names[TRACE_NAMES] = {"service", "host", "process", "thread"};
static const char *const keys[TRACE_NAMES] = {"services", "hosts", "processes", "threads"};

/* --- spans → traces --- */

static uint32_t find(const struct trace_sums *sums, const uint8_t *id, uint64_t hash)
{
	HASH_TABLE_EACH(i, &sums->index, hash)
		if (!memcmp(sums->list[i].id, id, TRACE_BYTES))
			return i;
	return HASH_TABLE_NONE;
}

static bool number_spans(struct trace_sums *sums, struct error *err)
{
	const struct samples_result *result = sums->result;

	for (uint32_t i = 0; i < result->span_count; i++) {
		const uint8_t *id = result->spans[i];
		uint64_t hash = keyed_hash(id, TRACE_BYTES, 0);
		uint32_t trace = find(sums, id, hash);

		if (!query_life_goes_on(sums->life, err))
			return false;
		if (trace == HASH_TABLE_NONE) {
			trace = sums->count;
			if (!hash_table_add(&sums->index, hash, trace))
				return error_no_memory(err);
			memcpy(sums->list[sums->count++].id, id, TRACE_BYTES);
		}
		sums->of_span[i] = trace;
	}
	return true;
}

static bool make_room(struct trace_sums *sums, struct error *err)
{
	size_t spans = sums->result->span_count;

	sums->held = spans * (PER_TRACE + PER_SPAN);
	if (sums->held > query_life_bytes(sums->life)) {
		sums->held = 0;
		return query_life_no_memory(sums->life, err);
	}
	query_life_take(sums->life, sums->held);
	sums->list = calloc(spans + 1, sizeof *sums->list);
	sums->order = calloc(spans + 1, sizeof *sums->order);
	sums->of_span = calloc(spans + 1, sizeof *sums->of_span);
	return (sums->list && sums->order && sums->of_span) || error_no_memory(err);
}

/* --- adding up --- */

static void add(struct trace_sums *sums, const struct result_stack *stack, int64_t step_ms,
		uint8_t *is_seen)
{
	struct trace_sum *trace = &sums->list[sums->of_span[stack->span]];

	if (!trace->samples && !trace->until_ms) {
		sums->order[sums->wanted_count++] = (uint32_t)(trace - sums->list);
		trace->from_ms = stack->bucket_ms;
	}
	if (stack->bucket_ms < trace->from_ms)
		trace->from_ms = stack->bucket_ms;
	if (stack->bucket_ms + step_ms > trace->until_ms)
		trace->until_ms = stack->bucket_ms + step_ms;
	trace->value += stack->value;
	trace->samples += stack->samples;
	if (sums->sampling)
		trace->squares += sampling_squares(stack->value, stack->samples, sums->sampling);
	trace->spans += !is_seen[stack->span];
	is_seen[stack->span] = 1;
	sums->value += stack->value;
	sums->samples += stack->samples;
}

static bool add_all(struct trace_sums *sums, trace_stack_fn *is_wanted, void *context,
		    struct error *err)
{
	const struct samples_result *result = sums->result;
	uint8_t *is_seen = calloc((size_t)result->span_count + 1, 1);
	bool ok = is_seen || error_no_memory(err);

	for (size_t i = 0; ok && i < result->stack_count; i++) {
		const struct result_stack *stack = &result->stacks[i];

		ok = query_life_goes_on(sums->life, err);
		sums->list[sums->of_span[stack->span]].trace_value += stack->value;
		if (!is_wanted || is_wanted(context, stack))
			add(sums, stack, SAMPLES_BUCKET_MS, is_seen);
	}
	free(is_seen);
	return ok;
}

static int compare(const void *left, const void *right, void *context)
{
	const struct trace_sum *list = context;
	const struct trace_sum *a = &list[*(const uint32_t *)left];
	const struct trace_sum *b = &list[*(const uint32_t *)right];

	if (a->value != b->value)
		return a->value > b->value ? -1 : 1;
	return memcmp(a->id, b->id, TRACE_BYTES);
}

bool trace_sums_make(struct trace_sums *sums, const struct samples_result *result,
		     const struct sampling *sampling, trace_stack_fn *is_wanted, void *context,
		     struct query_life *life, struct error *err)
{
	*sums = (struct trace_sums){.result = result, .sampling = sampling, .life = life};
	hash_table_init(&sums->index, UINT32_MAX >> 1);
	if (!make_room(sums, err) || !number_spans(sums, err) ||
	    !add_all(sums, is_wanted, context, err))
		return false;
	if (sums->wanted_count)
		qsort_r(sums->order, sums->wanted_count, sizeof *sums->order, compare, sums->list);
	return true;
}

/* --- as JSON --- */

struct shown { /* what else is said of a trace */
	struct trace_texts texts[TRACE_NAMES];
};

static void add_text(struct trace_texts *texts, const char *text)
{
	if (!*text)
		return;
	for (unsigned i = 0; i < texts->count; i++)
		if (!strcmp(texts->list[i], text))
			return;
	if (texts->count < TRACE_TEXTS_MAX)
		texts->list[texts->count++] = text;
	else
		texts->is_part = true;
}

/* place: a trace's in shown, + 1. */
static void collect_texts(const struct trace_sums *sums, trace_stack_fn *is_wanted, void *context,
			  const uint32_t *place, struct shown *shown)
{
	const struct samples_result *result = sums->result;

	for (size_t i = 0; i < result->stack_count; i++) {
		const struct result_stack *stack = &result->stacks[i];
		uint32_t at = place[sums->of_span[stack->span]];

		if (!at || (is_wanted && !is_wanted(context, stack)))
			continue;
		for (unsigned k = 0; k < TRACE_NAMES; k++)
			add_text(&shown[at - 1].texts[k],
				 sample_context_has_name(names[k])
					 ? stack->thread
					 : series_label(&result->series[stack->series], names[k]));
	}
}

static void put_texts(struct json *json, const struct trace_texts *texts, const char *key)
{
	json_key(json, key);
	json_open(json, '[');
	for (unsigned i = 0; i < texts->count; i++)
		json_string(json, texts->list[i]);
	if (texts->is_part)
		json_string(json, "[more]");
	json_close(json, ']');
}

static void put_trace(struct json *json, const struct trace_sum *trace, bool is_sampled,
		      const struct shown *shown)
{
	char hex[2 * TRACE_BYTES + 1];

	for (unsigned i = 0; i < TRACE_BYTES; i++)
		snprintf(hex + 2 * i, 3, "%02x", trace->id[i]);
	json_open(json, '{');
	json_key_string(json, "trace_id", hex);
	json_key_uint(json, "value", trace->value);
	if (is_sampled)
		json_key_uint(json, "error", sampling_error(trace->value, trace->squares));
	json_key_uint(json, "samples", trace->samples);
	json_key_uint(json, "trace_value", trace->trace_value);
	json_key_uint(json, "spans", trace->spans);
	json_key_int(json, "from", trace->from_ms);
	json_key_int(json, "until", trace->until_ms);
	for (unsigned i = 0; i < TRACE_NAMES; i++)
		put_texts(json, &shown->texts[i], keys[i]);
	json_close(json, '}');
}

uint64_t trace_sums_left_out(const struct trace_sums *sums, uint32_t limit)
{
	return sums->wanted_count > limit ? sums->wanted_count - limit : 0;
}

bool trace_sums_json(const struct trace_sums *sums, struct json *json, uint32_t limit,
		     trace_stack_fn *is_wanted, void *context, uint64_t *shown_value)
{
	uint32_t count = limit < sums->wanted_count ? limit : sums->wanted_count;
	uint32_t *place = calloc((size_t)sums->count + 1, sizeof *place);
	struct shown *shown = calloc((size_t)count + 1, sizeof *shown);
	bool ok = place && shown;

	*shown_value = 0;
	for (uint32_t i = 0; ok && i < count; i++)
		place[sums->order[i]] = i + 1;
	if (ok && count)
		collect_texts(sums, is_wanted, context, place, shown);
	json_key(json, "traces");
	json_open(json, '[');
	for (uint32_t i = 0; ok && i < count; i++) {
		*shown_value += sums->list[sums->order[i]].value;
		put_trace(json, &sums->list[sums->order[i]], sums->sampling, &shown[i]);
	}
	json_close(json, ']');
	free(place);
	free(shown);
	return ok;
}

void trace_sums_release(struct trace_sums *sums)
{
	if (sums->life)
		query_life_give(sums->life, sums->held);
	free(sums->list);
	free(sums->order);
	free(sums->of_span);
	hash_table_release(&sums->index);
	*sums = (struct trace_sums){0};
}
