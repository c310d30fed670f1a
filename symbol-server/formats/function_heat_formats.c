/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/formats/function_heat_formats.h"

#include <inttypes.h>

#include "symbol-server/flamegraph/sampling_error.h"
#include "symbol-server/formats/accounting_json.h"
#include "symbol-server/formats/quoted.h"

enum cell_column { CELL_ROW, CELL_COLUMN, CELL_VALUE, CELL_SAMPLES, CELL_ERROR, CELL_COLUMNS };

static uint64_t cell_number(enum cell_column which, uint32_t row, uint32_t column,
			    const struct heat_value *cell)
{
	switch (which) {
	case CELL_ROW:
		return row;
	case CELL_COLUMN:
		return column;
	case CELL_VALUE:
		return cell->value;
	case CELL_SAMPLES:
		return cell->samples;
	default:
		return sampling_error(cell->value, cell->squares);
	}
}

static void put_cells(struct json *json, const struct function_heat_answer *answer)
{
	static const char *const names[CELL_COLUMNS] = {"row", "column", "value", "samples",
							"error"};
	const struct function_heat *heat = answer->heat;
	int columns = answer->flame.accounting->is_sampled ? CELL_COLUMNS : CELL_ERROR;

	json_key(json, "cells");
	json_open(json, '{');
	for (int which = 0; which < columns; which++) {
		json_key(json, names[which]);
		json_open(json, '[');
		for (uint32_t row = 0; row < heat->rows; row++) {
			const struct heat_value *cells = function_heat_row(heat, row);

			for (uint32_t i = 0; i < heat->columns; i++)
				if (cells[i].value || cells[i].samples)
					json_uint(json, cell_number((enum cell_column)which, row, i,
								    &cells[i]));
		}
		json_close(json, ']');
	}
	json_close(json, '}');
}

static void put_values(struct json *json, const char *key, const struct heat_value *cells,
		       uint32_t columns)
{
	json_key(json, key);
	json_open(json, '[');
	for (uint32_t i = 0; i < columns; i++)
		json_uint(json, cells[i].value);
	json_close(json, ']');
}

static void put_other(struct json *json, const struct function_heat_answer *answer)
{
	const struct function_heat *heat = answer->heat;

	json_key(json, "other");
	json_open(json, '{');
	json_key_uint(json, "functions", answer->other_functions);
	json_key_uint(json, "value", answer->other.value);
	if (answer->flame.accounting->is_sampled)
		json_key_uint(json, "error",
			      sampling_error(answer->other.value, answer->other.squares));
	json_key_uint(json, "samples", answer->other.samples);
	put_values(json, "values", function_heat_other(heat), heat->columns);
	json_close(json, '}');
}

bool function_heat_json(const struct flame_answer *flame, struct buffer *out)
{
	const struct function_heat_answer *answer = (const struct function_heat_answer *)flame;
	const struct function_heat *heat = answer->heat;
	struct json json = json_start(out);

	json_open(&json, '{');
	json_key_string(&json, "type", flame->type);
	json_key_string(&json, "unit", flame->unit);
	json_key_string(&json, "by", "function");
	json_key_string(&json, "sort", heat->by_total ? "total" : "self");
	json_key_int(&json, "from", flame->from_ms);
	json_key_int(&json, "until", flame->until_ms);
	json_key_int(&json, "first", heat->first_ms);
	json_key_int(&json, "column_ms", heat->column_ms);
	json_key_int(&json, "resolution_ms", answer->resolution_ms);
	json_key_uint(&json, "columns", heat->columns);
	json_key_uint(&json, "rows", heat->rows);
	if (answer->times)
		timeline_reported_json(&json, answer->times, heat->first_ms, heat->column_ms,
				       heat->columns);
	json_key(&json, "functions");
	json_open(&json, '[');
	for (uint32_t i = 0; i < heat->rows; i++)
		top_function_json(&json, flame, heat->functions[i]);
	json_close(&json, ']');
	put_cells(&json, answer);
	put_other(&json, answer);
	put_values(&json, "all", function_heat_all(heat), heat->columns);
	json_key(&json, "accounting");
	accounting_json(&json, flame->accounting, ACCOUNTING_WHOLE);
	json_close(&json, '}');
	buffer_append_char(out, '\n');
	return !out->failed;
}

static void put_rows(struct buffer *out, const struct function_heat_answer *answer,
		     const struct top_function *function, const struct heat_value *cells)
{
	const struct flame_answer *flame = &answer->flame;
	const struct flame_module *module = function && function->frame.module < flame->module_count
						    ? &flame->modules[function->frame.module]
						    : NULL;
	const char *const texts[] = {
		function ? function->frame.name : "[other]",
		function && function->frame.signature ? function->frame.signature : "",
		module ? module->name : "", module ? module->build_id : ""};

	for (uint32_t i = 0; i < answer->heat->columns && !out->failed; i++) {
		if (!cells[i].value && !cells[i].samples)
			continue;
		buffer_printf(out, "%" PRId64,
			      answer->heat->first_ms + i * answer->heat->column_ms);
		for (size_t k = 0; k < sizeof(texts) / sizeof(*texts); k++) {
			buffer_append_char(out, ',');
			csv_put_text(out, texts[k]);
		}
		buffer_printf(out, ",%" PRIu64 ",%" PRIu64, cells[i].value, cells[i].samples);
		csv_put_error(out, flame->accounting, cells[i].value, cells[i].squares);
		buffer_append_text(out, "\r\n");
	}
}

bool function_heat_csv(const struct flame_answer *flame, struct buffer *out)
{
	const struct function_heat_answer *answer = (const struct function_heat_answer *)flame;
	const struct function_heat *heat = answer->heat;

	buffer_append_text(out, "time_ms,name,signature,module,build_id,value,samples,error\r\n");
	for (uint32_t i = 0; i < heat->rows; i++)
		put_rows(out, answer, heat->functions[i], function_heat_row(heat, i));
	put_rows(out, answer, NULL, function_heat_other(heat));
	return !out->failed;
}
