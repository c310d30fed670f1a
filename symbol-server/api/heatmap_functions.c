/* SPDX-License-Identifier: Apache-2.0 */
/* The stacks are gone through twice: first for the sums of all functions, as /top has them, then,
 * once it is known which have a row, for the cells. So memory goes by rows, not by functions. */
#include "symbol-server/api/heatmap_functions.h"

#include <stdlib.h>
#include <string.h>

#include "symbol-server/api/answer.h"
#include "symbol-server/api/answer_format.h"
#include "symbol-server/api/flame_request.h"
#include "symbol-server/api/parameters.h"
#include "symbol-server/api/reported.h"
#include "symbol-server/api/step.h"
#include "symbol-server/flamegraph/sampling_error.h"
#include "symbol-server/formats/function_heat_formats.h"

enum {
	FUNCTIONS_MAX = 4000000,
	CELLS_MAX = 2000000,
};

struct heat_question {
	struct flame_request flame;
	struct pattern *search; /* names of functions that may have a row; NULL: all */
	uint32_t limit;
	unsigned by_total;
	int64_t column_ms;
	bool is_column_asked;
	const struct answer_format *format;
	/* what it led to */
	struct top_table *table;
	const struct top_function **functions; /* by row */
	size_t other_functions;
	struct function_heat heat;
	struct timeline_time *times; /* by column */
};

static const struct answer_format formats[] = {
	{"json", "application/json", NULL, function_heat_json},
	{"csv", "text/csv; charset=utf-8; header=present", "csv", function_heat_csv,
	 .is_download = true},
	{0},
};

static bool read_request(struct http_request *request, struct heat_question *question,
			 struct error *err)
{
	const struct parameters *asked = &question->flame.asked;
	const struct query *query = &question->flame.query;

	question->format = formats;
	return flame_request_read(request, ENDPOINT_heatmap_functions, &question->flame, err) &&
	       parameter_step(asked, "column", query->until_ms - query->from_ms,
			      &question->column_ms, &question->is_column_asked, err) &&
	       parameter_number(asked, "limit", &question->limit, err) &&
	       parameter_choice(asked, "sort", &question->by_total, err) &&
	       parameter_pattern(asked, "search", &question->search, err) &&
	       answer_format_read(asked, formats, &question->format, err);
}

/* --- adding up --- */

static bool add_to_table(void *context, const struct flame_frame *frames, size_t depth,
			 uint64_t value, uint64_t samples)
{
	struct heat_question *question = context;

	frames = flame_request_as_taken(&question->flame, frames, depth);
	return frames && top_table_add(question->table, frames, depth, value, samples);
}

static bool add_to_cells(void *context, const struct flame_frame *frames, size_t depth,
			 uint64_t value, uint64_t samples)
{
	struct heat_question *question = context;
	const struct result_stack *stack = named_stacks_current(question->flame.stacks);

	frames = flame_request_as_taken(&question->flame, frames, depth);
	if (frames)
		function_heat_add(&question->heat, frames, depth, stack->bucket_ms, value, samples);
	return frames;
}

static bool ask(struct heat_question *question, struct api *api, struct error *err)
{
	struct flame_request *flame = &question->flame;
	struct function_heat *heat = &question->heat;
	const struct samples_result *result;

	flame->query.by_bucket = true;
	flame->query.step_ms = question->column_ms;
	if (!flame_request_run(flame, api, err))
		return false;
	result = flame->result;
	heat->column_ms = step_known(question->column_ms, question->is_column_asked,
				     result->resolution_ms);
	heat->first_ms = result->from_ms / heat->column_ms * heat->column_ms;
	heat->columns = (uint32_t)((result->until_ms - heat->first_ms + heat->column_ms - 1) /
				   heat->column_ms);
	heat->by_total = question->by_total;
	heat->sampling = flame->sampled;
	return true;
}

static bool sum_functions(struct heat_question *question, struct error *err)
{
	struct query_life *life = question->flame.life;

	question->table = top_table_new(
		query_life_room(life, 2 * sizeof(struct top_function), FUNCTIONS_MAX));
	if (!question->table)
		return query_life_no_memory(life, err);
	question->table->folds = true;
	question->table->sampling = question->flame.sampled;
	flame_request_sort(&question->flame, question->table->limit);
	if (!flame_request_each(&question->flame, add_to_table, question, err))
		return err->kind == ERROR_NONE ? query_life_no_memory(life, err) : false;
	query_life_take(life, question->table->count * sizeof(struct top_function));
	top_table_sort(question->table, question->by_total);
	return true;
}

/* The heaviest of those that are searched; the table is in that order. */
static bool choose_rows(struct heat_question *question, struct error *err)
{
	struct function_heat *heat = &question->heat;
	const struct top_table *table = question->table;

	question->functions = calloc((size_t)question->limit + 1, sizeof(*question->functions));
	if (!question->functions)
		return error_no_memory(err);
	for (size_t i = 0; i < table->count; i++) {
		const struct top_function *function = &table->functions[i];

		if (!query_life_goes_on(question->flame.life, err))
			return false;
		if (!(question->by_total ? function->total : function->self))
			break;
		if (heat->rows < question->limit &&
		    (!question->search ||
		     pattern_matches_part(question->search, function->frame.name)))
			question->functions[heat->rows++] = function;
		else
			question->other_functions++;
	}
	heat->functions = question->functions;
	return true;
}

static bool fill_cells(struct heat_question *question, struct error *err)
{
	struct query_life *life = question->flame.life;
	struct function_heat *heat = &question->heat;
	uint64_t cells = function_heat_cells(heat->columns, heat->rows);

	if (cells > query_life_room(life, sizeof(struct heat_value), CELLS_MAX))
		return error_set(err, ERROR_LIMIT,
				 "the heat map has more functions and columns than fit: a smaller "
				 "'limit', a longer 'column' or a shorter time has fewer");
	if (!function_heat_init(heat))
		return error_no_memory(err);
	query_life_take(life, cells * sizeof(struct heat_value));
	return flame_request_each(&question->flame, add_to_cells, question, err) ||
	       (err->kind == ERROR_NONE && query_life_no_memory(life, err));
}

/* --- means of gauges --- */

/* From the first to the last column with something; of seconds, those in which reports began. */
static uint32_t columns_with_values(const struct function_heat *heat)
{
	const struct heat_value *all = function_heat_all(heat);
	uint32_t first = UINT32_MAX, last = 0, count = 0;

	for (uint32_t i = 0; i < heat->columns; i++) {
		if (!all[i].value && !all[i].samples)
			continue;
		first = i < first ? i : first;
		last = i;
		count++;
	}
	return !count || heat->column_ms < SAMPLES_BUCKET_MS ? count : last - first + 1;
}

/* Of a gauge, whose columns are means: the mean of columns instead of their sum. */
static void take_means(struct heat_question *question, struct heat_value *all,
		       struct heat_value *other)
{
	uint32_t columns = columns_with_values(&question->heat);

	if (!question->flame.is_gauge || !columns)
		return;
	for (size_t i = 0; i < question->table->count; i++) {
		struct top_function *function = &question->table->functions[i];

		function->self /= columns;
		function->total /= columns;
		function->self_squares /= columns;
		function->total_squares /= columns;
	}
	for (unsigned i = 0; i < 2; i++) {
		struct heat_value *sum = i ? all : other;

		sum->value /= columns;
		sum->samples /= columns;
		sum->squares /= columns;
	}
}

/* --- answering --- */

static void add_time(void *context, int64_t time_ms, uint64_t reported_ms, uint64_t lost)
{
	struct heat_question *question = context;
	const struct function_heat *heat = &question->heat;
	int64_t column = (time_ms - heat->first_ms) / heat->column_ms;

	if (column < 0 || column >= heat->columns)
		return;
	question->times[column].reported_ms += reported_ms;
	question->times[column].lost += lost;
}

static bool put_times(struct heat_question *question, struct error *err)
{
	const struct samples_result *result = question->flame.result;

	if (!reported_sum(result->host_steps, result->host_step_count))
		return true;
	question->times = calloc((size_t)question->heat.columns + 1, sizeof(*question->times));
	if (!question->times)
		return error_no_memory(err);
	reported_each(result->host_steps, result->host_step_count, add_time, question);
	return true;
}

static struct heat_value sum_of(const struct heat_value *cells, uint32_t columns)
{
	struct heat_value sum = {0};

	for (uint32_t i = 0; i < columns; i++) {
		sum.value += cells[i].value;
		sum.samples += cells[i].samples;
		sum.squares += cells[i].squares;
	}
	return sum;
}

static bool write_answer(struct http_response *response, struct heat_question *question,
			 struct error *err)
{
	const struct flame_request *flame = &question->flame;
	const struct function_heat *heat = &question->heat;
	struct heat_value all = sum_of(function_heat_all(heat), heat->columns);
	struct accounting accounting;
	struct function_heat_answer answer = {
		.flame = {.type = flame->query.type,
			  .unit = flame_request_unit(flame),
			  .from_ms = flame->result->from_ms,
			  .until_ms = flame->result->until_ms,
			  .accounting = &accounting,
			  .memory = query_life_bytes(flame->life)},
		.heat = heat,
		.other = sum_of(function_heat_other(heat), heat->columns),
		.other_functions = question->other_functions,
		.resolution_ms = flame->result->resolution_ms,
	};

	if (!put_times(question, err))
		return false;
	answer.times = question->times;
	answer.flame.modules = named_stacks_modules(flame->stacks, &answer.flame.module_count);
	take_means(question, &all, &answer.other);
	flame_request_accounting(flame, &accounting);
	accounting.cut_by_memory += question->table->cut;
	accounting.cut += answer.other.value;
	if (flame->is_gauge) {
		accounting.value = all.value + accounting.cut_by_memory;
		accounting.samples = all.samples + flame->result->cut.samples;
		accounting.error = sampling_error(accounting.value, all.squares);
	}
	return answer_format_write(flame->life, response, question->format, &answer.flame, err);
}

void heatmap_functions_get(struct http_request *request, struct http_response *response,
			   struct api *api)
{
	struct heat_question question = {.limit = 0};
	struct error err = {0};

	if (!read_request(request, &question, &err) || !ask(&question, api, &err) ||
	    !sum_functions(&question, &err) || !choose_rows(&question, &err) ||
	    !fill_cells(&question, &err) || !write_answer(response, &question, &err))
		answer_failure(response, &err);
	function_heat_release(&question.heat);
	top_table_free(question.table);
	free(question.functions);
	free(question.times);
	pattern_free(question.search);
	flame_request_release(&question.flame);
}
