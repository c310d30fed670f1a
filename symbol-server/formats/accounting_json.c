/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/formats/accounting_json.h"

static void put_places(struct json *json, const struct incomplete_reason *reason)
{
	json_key(json, "modules");
	json_open(json, '[');
	for (unsigned i = 0; i < reason->module_count; i++) {
		json_open(json, '{');
		json_key_string(json, "name", reason->modules[i].name);
		json_key_string(json, "build_id", reason->modules[i].build_id);
		json_key_uint(json, "samples", reason->modules[i].samples);
		json_close(json, '}');
	}
	json_close(json, ']');
}

static void put_incomplete(struct json *json, const struct accounting *accounting,
			   enum accounting_detail detail)
{
	json_key(json, "incomplete_by");
	json_open(json, '[');
	for (unsigned i = 0; i < accounting->incomplete_count; i++) {
		const struct incomplete_reason *reason = &accounting->incomplete_by[i];

		json_open(json, '{');
		json_key_string(json, "reason", reason->reason);
		json_key_uint(json, "samples", reason->samples);
		if (detail == ACCOUNTING_WHOLE)
			put_places(json, reason);
		json_close(json, '}');
	}
	json_close(json, ']');
}

/* As if its samples weighed what all do. */
static void put_part_error(struct json *json, const struct accounting *accounting, const char *key,
			   uint64_t part)
{
	double share = accounting->value ? (double)part / (double)accounting->value : 0;

	if (accounting->is_sampled)
		json_key_uint(json, key, sampling_error(part, accounting->squares * share));
}

void accounting_json(struct json *json, const struct accounting *accounting,
		     enum accounting_detail detail)
{
	json_open(json, '{');
	json_key_uint(json, "value", accounting->value);
	if (accounting->is_sampled)
		json_key_uint(json, "error", accounting->error);
	if (accounting_error_is_least(accounting))
		json_key_flag(json, "error_is_least", true);
	json_key_uint(json, "samples", accounting->samples);
	if (accounting->windows)
		json_key_uint(json, "windows", accounting->windows);
	json_key_uint(json, "taken", accounting->taken);
	json_key_uint(json, "lost", accounting->lost);
	json_key(json, "lost_by");
	json_open(json, '{');
	for (unsigned i = 0; i < accounting->lost_count; i++) {
		json_string(json, accounting->lost_by[i].reason);
		buffer_append_char(json->out, ':');
		json->needs_comma = false;
		json_uint(json, accounting->lost_by[i].count);
	}
	json_key_int(json, "unexplained", accounting->unexplained);
	json_close(json, '}');
	if (!accounting->is_of_sums) {
		json_key_uint(json, "unwind_incomplete", accounting->unwind_incomplete);
		if (detail != ACCOUNTING_WITHOUT_REASONS)
			put_incomplete(json, accounting, detail);
		json_key_uint(json, "nameless_value", accounting->nameless_value);
		put_part_error(json, accounting, "nameless_error", accounting->nameless_value);
		json_key_uint(json, "nameless_modules", accounting->nameless_modules);
		json_key_uint(json, "unsymbolized", accounting->unsymbolized);
	}
	if (accounting->folds_idle) {
		json_key_uint(json, "idle_value", accounting->idle_value);
		put_part_error(json, accounting, "idle_error", accounting->idle_value);
	}
	json_key_uint(json, "cut", accounting->cut);
	if (accounting->cut_by_memory)
		json_key_uint(json, "cut_by_memory", accounting->cut_by_memory);
	json_key_uint(json, "hosts", accounting->hosts);
	if (accounting->nothing)
		json_key_string(json, "nothing", accounting->nothing);
	if (accounting->data_until_ms) {
		json_key_int(json, "data_from", accounting->data_from_ms);
		json_key_int(json, "data_until", accounting->data_until_ms);
	}
	if (accounting->reported_ms)
		json_key_uint(json, "reported_ms", accounting->reported_ms);
	if (accounting->cpus)
		json_key_uint(json, "cpus", accounting->cpus);
	if (accounting->folded_series)
		json_key_uint(json, "folded_series", accounting->folded_series);
	if (accounting->folded_stacks)
		json_key_uint(json, "folded_stacks", accounting->folded_stacks);
	if (accounting->has_exact) {
		json_key_uint(json, "exact", accounting->exact);
		json_key_uint(json, "covered", accounting->covered);
	}
	if (accounting->resolution_ms)
		json_key_int(json, "resolution_ms", accounting->resolution_ms);
	if (accounting->threads_from_ms)
		json_key_int(json, "threads_from", accounting->threads_from_ms);
	if (accounting->processes_of) {
		json_key_uint(json, "processes_untold", accounting->processes_untold);
		json_key_uint(json, "processes_of", accounting->processes_of);
	}
	json_close(json, '}');
}
