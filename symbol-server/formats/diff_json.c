/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "symbol-server/formats/accounting_json.h"
#include "symbol-server/formats/diff_formats.h"

/* null for what cannot be said */
/* What functions and processes have in common. */
static void put_row(struct json *json, const struct diff_answer *answer, const struct diff_row *row)
{
	const struct diff_sum *measure = answer->by_total ? row->total : row->self;

	json_key_uint(json, "samples", measure[DIFF_COMPARE].samples);
	json_key_uint(json, "base_samples", measure[DIFF_BASE].samples);
	json_key_number(json, "before", row->before);
	json_key_number(json, "after", row->after);
	json_key_number(json, "before_error", diff_table_error(answer->functions, DIFF_BASE, row));
	json_key_number(json, "after_error",
			diff_table_error(answer->functions, DIFF_COMPARE, row));
	json_key_number(json, "change", row->change);
	json_key_number(json, "ci_low", row->change_low);
	json_key_number(json, "ci_high", row->change_high);
	json_key_string(json, "state", diff_state_names[row->state]);
	json_key_flag(json, "recorded", row->is_recorded);
	json_key_string(json, "sustained", diff_sustained_names[row->sustained]);
}

static void put_function(struct json *json, const struct diff_answer *answer,
			 const struct diff_row *function)
{
	json_open(json, '{');
	flame_function_json(json, &answer->flame, &function->frame);
	json_key_uint(json, "self", function->self[DIFF_COMPARE].value);
	json_key_uint(json, "total", function->total[DIFF_COMPARE].value);
	json_key_uint(json, "base_self", function->self[DIFF_BASE].value);
	json_key_uint(json, "base_total", function->total[DIFF_BASE].value);
	put_row(json, answer, function);
	json_close(json, '}');
}

static void put_functions(struct json *json, const struct diff_answer *answer)
{
	const struct diff_table *table = answer->functions;
	size_t count = table->function_count < answer->functions_limit ? table->function_count
								       : answer->functions_limit;

	json_key(json, "functions");
	json_open(json, '[');
	for (size_t i = 0; i < count; i++)
		put_function(json, answer, &table->functions[i]);
	json_close(json, ']');
	json_key_uint(json, "functions_left_out", table->function_count - count);
}

static void put_processes(struct json *json, const struct diff_answer *answer)
{
	const struct diff_table *table = answer->functions;
	size_t count = table->process_count < DIFF_PROCESSES_MAX ? table->process_count
								 : DIFF_PROCESSES_MAX;

	json_key(json, "processes");
	json_open(json, '[');
	for (size_t i = 0; i < count; i++) {
		json_open(json, '{');
		json_key_string(json, "name", table->processes[i].frame.name);
		put_row(json, answer, &table->processes[i]);
		json_close(json, '}');
	}
	json_close(json, ']');
	json_key_uint(json, "processes_left_out", table->process_count - count);
}

static void put_hosts(struct json *json, const struct diff_answer *answer, const char *key,
		      enum diff_side side)
{
	uint32_t count = answer->hosts_alone[side] < DIFF_HOSTS_MAX ? answer->hosts_alone[side]
								    : DIFF_HOSTS_MAX;

	json_key(json, key);
	json_open(json, '[');
	for (uint32_t i = 0; i < count; i++) {
		json_open(json, '{');
		json_key_string(json, "host", answer->hosts[side][i].name);
		json_key_number(json, "value",
				diff_table_normalized(answer->functions, side,
						      answer->hosts[side][i].value));
		json_close(json, '}');
	}
	json_close(json, ']');
}

static void put_statistics(struct json *json, const struct diff_answer *answer)
{
	const struct diff_table *table = answer->functions;

	json_key(json, "statistics");
	json_open(json, '{');
	json_key_number(json, "minutes", round(table->whole[DIFF_COMPARE].seconds / 60));
	json_key_number(json, "base_minutes", round(table->whole[DIFF_BASE].seconds / 60));
	json_key_uint(json, "hosts", answer->hosts_common);
	json_key_uint(json, "tested", table->tested);
	json_key_uint(json, "recorded", table->recorded);
	json_key_number(json, "sustained", table->is_too_short ? NAN : (double)table->sustained);
	json_key_flag(json, "too_short", table->is_too_short);
	json_key_number(json, "effective", table->effective);
	json_close(json, '}');
}

static void put_base(struct json *json, const struct diff_answer *answer)
{
	json_key(json, "base");
	json_open(json, '{');
	json_key_string(json, "type", answer->base.type);
	json_key_int(json, "from", answer->base.from_ms);
	json_key_int(json, "until", answer->base.until_ms);
	json_key_flag(json, "moved", answer->is_base_moved);
	json_key(json, "accounting");
	accounting_json(json, answer->base.accounting, ACCOUNTING_WHOLE);
	json_close(json, '}');
}

bool diff_json(const struct diff_answer *answer, struct buffer *out)
{
	struct json writer = json_start(out), *json = &writer;

	json_open(json, '{');
	flame_range_json(json, &answer->flame);
	json_key_string(json, "norm", answer->norm);
	json_key_number(json, "scale", answer->functions->scale);
	json_key_string(json, "sort", answer->by_total ? "total" : "self");
	put_base(json, answer);
	put_statistics(json, answer);
	put_hosts(json, answer, "hosts_joined", DIFF_COMPARE);
	put_hosts(json, answer, "hosts_left", DIFF_BASE);
	if (!flame_graph_json(json, &answer->flame))
		return false;
	put_processes(json, answer);
	put_functions(json, answer);
	json_key(json, "accounting");
	accounting_json(json, answer->flame.accounting, ACCOUNTING_WHOLE);
	json_close(json, '}');
	buffer_append_char(out, '\n');
	return !out->failed;
}
