/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/formats/hotspots_json.h"

#include <stdlib.h>

#include "symbol-server/flamegraph/sampling_error.h"
#include "symbol-server/formats/accounting_json.h"
#include "symbol-server/formats/hotspots_links.h"

enum { MOVED_MAX = 20 /* functions of one change, each way */ };

struct writer {
	struct json *json;
	const struct hotspots_answer *answer;
	uint32_t *number_of; /* function → its number in the answer + 1 */
	uint32_t *listed;    /* and back */
	uint32_t listed_count;
};

static void put_share(struct json *json, const char *key, double share)
{
	json_key(json, key);
	buffer_printf(json->out, "%.6f", share);
	json->needs_comma = true;
}

static void put_function_number(struct writer *writer, uint32_t function)
{
	if (!writer->number_of[function]) {
		writer->listed[writer->listed_count++] = function;
		writer->number_of[function] = writer->listed_count;
	}
	json_key_uint(writer->json, "function", writer->number_of[function] - 1);
}

static void put_labels(struct writer *writer, uint32_t process)
{
	const struct hotspots_answer *answer = writer->answer;
	const char *const *values = answer->values_of(answer->context, process);

	json_key(writer->json, "labels");
	json_open(writer->json, '{');
	for (unsigned i = 0; i < answer->label_count; i++)
		json_key_string(writer->json, answer->labels[i], values[i]);
	json_close(writer->json, '}');
}

/* --- changes --- */

static int64_t step_time(const struct hotspots_answer *answer, uint32_t step)
{
	int64_t time_ms = answer->first_ms + step * answer->step_ms;

	if (time_ms < answer->flame.from_ms)
		return answer->flame.from_ms;
	return time_ms < answer->flame.until_ms ? time_ms : answer->flame.until_ms;
}

static void put_moved(struct writer *writer, const struct hot_change *change, bool rose)
{
	struct json *json = writer->json;
	unsigned shown = 0;

	json_key(json, rose ? "rose" : "fell");
	json_open(json, '[');
	for (uint32_t i = 0; i < change->moved_count && shown < MOVED_MAX; i++) {
		const struct hot_moved *moved = &change->moved[i];

		if ((moved->after > moved->before) != rose)
			continue;
		json_open(json, '{');
		put_function_number(writer, moved->function);
		json_key_string(json, "name",
				writer->answer->spots->functions[moved->function].name);
		put_share(json, "before", moved->before);
		put_share(json, "after", moved->after);
		put_share(json, "before_error", moved->before_error);
		put_share(json, "after_error", moved->after_error);
		json_key_number(json, "p", moved->p);
		json_close(json, '}');
		shown++;
	}
	json_close(json, ']');
}

typedef void link_fn(struct buffer *out, const struct hotspots_answer *answer, uint32_t process,
		     struct hot_range range);

static void put_link(struct writer *writer, const char *key, const struct buffer *link)
{
	json_key(writer->json, key);
	buffer_append_char(writer->json->out, '"');
	buffer_append(writer->json->out, link->bytes, link->length); /* percent-encoded */
	buffer_append_char(writer->json->out, '"');
	writer->json->needs_comma = true;
}

/* Compared with what was before, or where nothing was, with what came after. */
static struct hot_range base_of(const struct hotspots_answer *answer, struct hot_range range)
{
	const struct flame_answer *flame = &answer->flame;

	if (range.from_ms > flame->from_ms)
		return (struct hot_range){flame->from_ms, range.from_ms};
	return (struct hot_range){range.until_ms, flame->until_ms};
}

static void put_links(struct writer *writer, uint32_t process, struct hot_range range)
{
	const struct hotspots_answer *answer = writer->answer;
	struct hot_range base = base_of(answer, range);
	static link_fn *const links[] = {hotspots_link_flamegraph, hotspots_link_page};
	static const char *const keys[] = {"flamegraph", "page"};
	struct buffer link;

	json_key(writer->json, "links");
	json_open(writer->json, '{');
	for (unsigned i = 0; i < 2; i++) {
		buffer_init(&link, 1 << 20);
		links[i](&link, answer, process, range);
		put_link(writer, keys[i], &link);
		buffer_release(&link);
	}
	if (base.until_ms > base.from_ms) {
		buffer_init(&link, 1 << 20);
		hotspots_link_diff(&link, answer, process, range, base);
		put_link(writer, "diff", &link);
		buffer_release(&link);
	}
	json_close(writer->json, '}');
}

static void put_change(struct writer *writer, const struct hot_change *change)
{
	const struct hotspots_answer *answer = writer->answer;
	struct json *json = writer->json;
	struct hot_range range = {step_time(answer, change->from_step),
				  step_time(answer, change->until_step)};

	json_open(json, '{');
	put_labels(writer, change->process);
	json_key_int(json, "from", range.from_ms);
	json_key_int(json, "until", range.until_ms);
	json_key_flag(json, "lasting", change->is_lasting);
	json_key_number(json, "p", change->p);
	put_moved(writer, change, true);
	put_moved(writer, change, false);
	put_links(writer, change->process, range);
	json_close(json, '}');
}

/* --- steps --- */

/* What the function had of the step before; its cells are few. */
static double share_in(const struct hot_cell *step, size_t count, uint32_t function)
{
	for (size_t i = 1; i < count && step->value; i++)
		if (step[i].function == function)
			return (double)step[i].value / (double)step->value;
	return 0;
}

static size_t step_length(const struct hot_cell *cells, size_t count)
{
	size_t length = 1;

	while (length < count && cells[length].step == cells->step)
		length++;
	return length;
}

static void put_value(struct writer *writer, uint64_t value, uint64_t samples)
{
	const struct accounting *accounting = writer->answer->flame.accounting;

	json_key_uint(writer->json, "value", value);
	if (accounting->is_sampled)
		json_key_uint(writer->json, "error",
			      sampling_error(value, sampling_squares(value, samples,
								     &accounting->sampled)));
}

static void put_step(struct writer *writer, const struct hot_cell *step, size_t count,
		     const struct hot_cell *before, size_t before_count)
{
	const struct hotspots_answer *answer = writer->answer;
	struct json *json = writer->json;

	json_open(json, '{');
	json_key_int(json, "time", answer->first_ms + step->step * answer->step_ms);
	put_value(writer, step->value, step->samples);
	json_key_uint(json, "samples", step->samples);
	json_key(json, "top");
	json_open(json, '[');
	for (size_t i = 1; i < count && i <= answer->top_limit; i++) {
		double share = step->value ? (double)step[i].value / (double)step->value : 0;

		json_open(json, '{');
		put_function_number(writer, step[i].function);
		put_value(writer, step[i].value, step[i].samples);
		put_share(json, "share", share);
		if (before)
			put_share(json, "change",
				  share - share_in(before, before_count, step[i].function));
		json_close(json, '}');
	}
	json_close(json, ']');
	json_close(json, '}');
}

static void put_process(struct writer *writer, uint32_t number)
{
	const struct hot_spots *spots = writer->answer->spots;
	const struct hot_process *process = &spots->processes[number];
	const struct hot_cell *cells = &spots->cells[process->first_cell], *before = NULL;
	uint64_t parts = writer->answer->is_gauge && process->steps ? process->steps : 1;
	struct json *json = writer->json;
	size_t before_count = 0;

	json_open(json, '{');
	put_labels(writer, number);
	put_value(writer, process->value / parts, process->samples / parts);
	json_key_uint(json, "samples", process->samples / parts);
	json_key_uint(json, "changes", process->changes);
	json_key(json, "steps");
	json_open(json, '[');
	for (size_t i = 0; i < process->cell_count && !json->out->failed;) {
		size_t count = step_length(cells + i, process->cell_count - i);

		put_step(writer, cells + i, count, before, before_count);
		before = cells + i;
		before_count = count;
		i += count;
	}
	json_close(json, ']');
	json_close(json, '}');
}

/* --- all of it --- */

static void put_functions(struct writer *writer)
{
	struct json *json = writer->json;

	json_key(json, "functions");
	json_open(json, '[');
	for (uint32_t i = 0; i < writer->listed_count; i++) {
		const struct hotspots_answer *answer = writer->answer;

		json_open(json, '{');
		flame_function_json(json, &answer->flame,
				    &answer->spots->functions[writer->listed[i]]);
		json_close(json, '}');
	}
	json_close(json, ']');
}

static void put_head(struct json *json, const struct hotspots_answer *answer)
{
	flame_range_json(json, &answer->flame);
	json_key_int(json, "step_ms", answer->step_ms);
	json_key_int(json, "resolution_ms", answer->resolution_ms);
	json_key_string(json, "sort", answer->by_total ? "total" : "self");
	json_key_number(json, "false_alarms", HOT_FALSE_ALARMS);
	json_key_number(json, "min_change", answer->least);
	json_key_number(json, "tests", answer->spots->tests);
}

bool hotspots_json(const struct hotspots_answer *answer, struct buffer *out)
{
	const struct hot_spots *spots = answer->spots;
	struct json json = json_start(out);
	struct writer writer = {.json = &json, .answer = answer};
	uint32_t shown = spots->process_count < answer->process_limit ? spots->process_count
								      : answer->process_limit;

	writer.number_of = calloc((size_t)spots->function_count + 1, sizeof(uint32_t));
	writer.listed = calloc((size_t)spots->function_count + 1, sizeof(uint32_t));
	if (!writer.number_of || !writer.listed) {
		free(writer.number_of);
		free(writer.listed);
		return false;
	}
	json_open(&json, '{');
	put_head(&json, answer);
	json_key(&json, "changes");
	json_open(&json, '[');
	for (size_t i = 0; i < spots->change_count; i++)
		put_change(&writer, &spots->changes[i]);
	json_close(&json, ']');
	json_key_uint(&json, "changes_left_out", spots->changes_left_out);
	json_key(&json, "processes");
	json_open(&json, '[');
	for (uint32_t i = 0; i < shown; i++)
		put_process(&writer, answer->order[i]);
	json_close(&json, ']');
	json_key_uint(&json, "processes_left_out", spots->process_count - shown);
	put_functions(&writer);
	json_key(&json, "accounting");
	accounting_json(&json, answer->flame.accounting, ACCOUNTING_WHOLE);
	json_close(&json, '}');
	buffer_append_char(out, '\n');
	free(writer.number_of);
	free(writer.listed);
	return !out->failed;
}
