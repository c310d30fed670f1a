/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/formats/timeline_formats.h"

#include <inttypes.h>

#include "symbol-server/flamegraph/sampling_error.h"
#include "symbol-server/formats/accounting_json.h"
#include "symbol-server/formats/quoted.h"

static void put_errors(struct json *json, const struct timeline_answer *answer,
		       const struct timeline_line *line)
{
	json_key(json, "errors");
	json_open(json, '[');
	for (uint32_t i = 0; i < answer->step_count; i++)
		json_uint(json, sampling_error(line->steps[i].value, line->steps[i].squares));
	json_close(json, ']');
}

static void put_points(struct json *json, const struct timeline_answer *answer,
		       const struct timeline_line *line)
{
	json_key_uint(json, "value", line->sum.value);
	if (answer->flame.accounting->is_sampled)
		json_key_uint(json, "error", sampling_error(line->sum.value, line->sum.squares));
	json_key_uint(json, "samples", line->sum.samples);
	json_key(json, "points");
	json_open(json, '[');
	for (uint32_t i = 0; i < answer->step_count; i++) {
		json_open(json, '[');
		json_int(json, answer->first_ms + i * answer->step_ms);
		json_uint(json, line->steps[i].value);
		json_uint(json, line->steps[i].samples);
		json_close(json, ']');
	}
	json_close(json, ']');
	if (answer->with_errors && answer->flame.accounting->is_sampled)
		put_errors(json, answer, line);
}

void timeline_reported_json(struct json *json, const struct timeline_time *times, int64_t first_ms,
			    int64_t step_ms, uint32_t step_count)
{
	json_key(json, "reported");
	json_open(json, '[');
	for (uint32_t i = 0; i < step_count; i++) {
		json_open(json, '[');
		json_int(json, first_ms + i * step_ms);
		json_uint(json, times[i].reported_ms);
		json_uint(json, times[i].lost);
		json_close(json, ']');
	}
	json_close(json, ']');
}

/* Of one line, whose losses are not known. */
static void put_reported(struct json *json, const struct timeline_answer *answer,
			 const uint64_t *of_line)
{
	json_key(json, "reported");
	json_open(json, '[');
	for (uint32_t i = 0; i < answer->step_count; i++) {
		json_open(json, '[');
		json_int(json, answer->first_ms + i * answer->step_ms);
		json_uint(json, of_line[i]);
		json_close(json, ']');
	}
	json_close(json, ']');
}

static void put_line(struct json *json, const struct timeline_answer *answer,
		     const struct timeline_line *line)
{
	json_open(json, '{');
	json_key(json, "labels");
	json_open(json, '{');
	for (unsigned i = 0; i < answer->label_count; i++)
		json_key_string(json, answer->labels[i], line->values[i]);
	json_close(json, '}');
	if (line->reported_ms)
		put_reported(json, answer, line->reported_ms);
	put_points(json, answer, line);
	json_close(json, '}');
}

bool timeline_json(const struct timeline_answer *answer, struct buffer *out)
{
	struct json writer = json_start(out), *json = &writer;

	json_open(json, '{');
	flame_range_json(json, &answer->flame);
	json_key_int(json, "step_ms", answer->step_ms);
	json_key_int(json, "resolution_ms", answer->resolution_ms);
	if (answer->times)
		timeline_reported_json(json, answer->times, answer->first_ms, answer->step_ms,
				       answer->step_count);
	json_key(json, "series");
	json_open(json, '[');
	for (size_t i = 0; i < answer->line_count; i++)
		put_line(json, answer, &answer->lines[i]);
	json_close(json, ']');
	if (answer->other_count) {
		json_key(json, "other");
		json_open(json, '{');
		json_key_uint(json, "series", answer->other_count);
		put_points(json, answer, &answer->other);
		json_close(json, '}');
	}
	json_key(json, "accounting");
	accounting_json(json, answer->flame.accounting, ACCOUNTING_WHOLE);
	json_close(json, '}');
	buffer_append_char(out, '\n');
	return !out->failed;
}

static void put_rows(struct buffer *out, const struct timeline_answer *answer,
		     const struct timeline_line *line, bool is_other)
{
	for (uint32_t i = 0; i < answer->step_count && !out->failed; i++) {
		buffer_printf(out, "%" PRId64, answer->first_ms + i * answer->step_ms);
		for (unsigned k = 0; k < answer->label_count; k++) {
			buffer_append_char(out, ',');
			csv_put_text(out, !is_other ? line->values[k] : k ? "" : "[other]");
		}
		buffer_printf(out, ",%" PRIu64 ",%" PRIu64, line->steps[i].value,
			      line->steps[i].samples);
		csv_put_error(out, answer->flame.accounting, line->steps[i].value,
			      line->steps[i].squares);
		buffer_append_text(out, "\r\n");
	}
}

bool timeline_csv(const struct timeline_answer *answer, struct buffer *out)
{
	buffer_append_text(out, "time_ms");
	for (unsigned i = 0; i < answer->label_count; i++) {
		buffer_append_char(out, ',');
		csv_put_text(out, answer->labels[i]);
	}
	buffer_append_text(out, ",value,samples,error\r\n");
	for (size_t i = 0; i < answer->line_count; i++)
		put_rows(out, answer, &answer->lines[i], false);
	if (answer->other_count)
		put_rows(out, answer, &answer->other, true);
	return !out->failed;
}
