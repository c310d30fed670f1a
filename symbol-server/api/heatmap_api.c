/* SPDX-License-Identifier: Apache-2.0 */
/* GET /api/v1/heatmap: by time here, by function in heatmap_functions.c */
#include <string.h>

#include "symbol-server/api/answer.h"
#include "symbol-server/api/api.h"
#include "symbol-server/api/flame_request.h"
#include "symbol-server/api/heatmap_functions.h"
#include "symbol-server/api/parameters.h"
#include "symbol-server/api/query_life.h"
#include "symbol-server/flamegraph/heat_map.h"
#include "symbol-server/flamegraph/sampling_error.h"
#include "symbol-server/formats/accounting_json.h"
#include "symbol-server/formats/json_writer.h"

struct heat_request {
	struct query query;
	struct samples_query wanted;
	int64_t column_ms;
	uint32_t rows;
	struct heat_map map;
	struct samples_timeline *all; /* with and without times */
	struct heat_cell sum;         /* of all */
};

/* A second where that makes few enough columns, else the next longer one that people count in. */
static int64_t column_choose(int64_t range_ms)
{
	static const int seconds[] = {1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600};
	size_t i = 0;

	while (i + 1 < sizeof(seconds) / sizeof(seconds[0]) &&
	       range_ms / (seconds[i] * 1000) >= HEAT_COLUMNS_MAX)
		i++;
	return (int64_t)seconds[i] * 1000;
}

static bool read_request(struct http_request *request, struct api *api, struct heat_request *heat,
			 struct error *err)
{
	struct parameters asked;

	if (!parameters_open(&asked, request, ENDPOINT_heatmap, err) ||
	    !parameters_query(&asked, &heat->query, err) ||
	    !query_life_start(request, &api->query_limits, &heat->query, err) ||
	    !parameter_number(&asked, "rows", &heat->rows, err))
		return false;
	heat->column_ms = column_choose(heat->query.until_ms - heat->query.from_ms);
	if (!parameter_duration(&asked, "column", &heat->column_ms, err))
		return false;
	if (heat->column_ms < 1 || heat->column_ms % heat->rows)
		return error_set(err, ERROR_OPTION,
				 "parameter 'rows': %u rows do not divide a column of %lld ms into "
				 "whole milliseconds",
				 heat->rows, (long long)heat->column_ms);
	if (heat->query.until_ms <= heat->query.from_ms ||
	    (heat->query.until_ms - heat->query.from_ms) / heat->column_ms >= HEAT_COLUMNS_MAX)
		return error_set(err, ERROR_OPTION,
				 "a heat map has 1 to %d columns: narrow 'from' and 'until', or "
				 "choose a longer 'column'",
				 HEAT_COLUMNS_MAX);
	query_to_samples(&heat->query, &heat->wanted);
	return true;
}

static bool add_moment(void *context, int64_t time_ms, uint64_t value)
{
	heat_map_add(context, time_ms, value);
	return true;
}

/* The columns whole, as the answer says. A day found damaged is set aside: what it gave before is
 * void, and without it the question succeeds. */
static bool collect(struct heat_request *heat, struct api *api, struct error *err)
{
	struct heat_map *map = &heat->map;
	int attempts = 3;

	do {
		*err = (struct error){0};
		heat_map_release(map);
		if (!heat_map_init(map, heat->query.from_ms, heat->query.until_ms, heat->column_ms,
				   heat->rows))
			return error_no_memory(err);
		heat->wanted.from_ms = map->from_ms;
		heat->wanted.until_ms = map->from_ms + map->column_ms * map->columns;
		if (samples_moments(api->samples, &heat->wanted, add_moment, map, err))
			return true;
	} while (err->kind == ERROR_FORMAT && --attempts);
	return false;
}

static bool fill(struct heat_request *heat, struct api *api, struct error *err)
{

	if (!collect(heat, api, err))
		return false;
	/* Sums of rows know no threads: for the accounting only. */
	heat->wanted.thread_wanted = NULL;
	heat->wanted.by_second = false; /* reports begin before their samples */
	heat->all = samples_timeline(api->samples, &heat->wanted, err);
	if (!heat->all)
		return false;
	for (size_t i = 0; i < heat->all->point_count; i++) {
		heat->sum.samples += heat->all->points[i].samples;
		heat->sum.value += heat->all->points[i].value;
	}
	return true;
}

static void write_cells(struct json *json, const struct heat_map *map)
{
	static const char *const columns[] = {"column", "row", "samples", "value"};

	json_key(json, "cells");
	json_open(json, '{');
	for (unsigned kind = 0; kind < 4; kind++) {
		json_key(json, columns[kind]);
		json_open(json, '[');
		for (uint32_t i = 0; i < map->columns * map->rows; i++)
			if (map->cells[i].samples)
				json_uint(json, kind == 0   ? i / map->rows
						: kind == 1 ? i % map->rows
						: kind == 2 ? map->cells[i].samples
							    : map->cells[i].value);
		json_close(json, ']');
	}
	json_close(json, '}');
}

static void write_answer(struct http_response *response, const struct heat_request *heat)
{
	const struct heat_map *map = &heat->map;
	struct json json = json_start(&response->body);
	struct accounting accounting = {.samples = heat->sum.samples, .value = heat->sum.value};
	int type = profile_type_find(heat->query.type, strlen(heat->query.type));
	struct sampling sampling = {
		.spread = profile_type_sampling((unsigned)type) == SAMPLING_UNEVEN,
		.windows = hosts_windows(heat->all->hosts, heat->all->host_count)};

	accounting.is_sampled = profile_type_sampling((unsigned)type) != SAMPLING_WHOLE;
	accounting.sampled = sampling;
	accounting.error =
		sampling_error(accounting.value,
			       sampling_squares(accounting.value, accounting.samples, &sampling));
	hosts_accounting(heat->all->hosts, heat->all->host_count, &accounting);
	json_open(&json, '{');
	json_key_string(&json, "type", heat->query.type);
	json_key_string(&json, "unit",
			profile_type_unit((unsigned)profile_type_find(heat->query.type,
								      strlen(heat->query.type))));
	json_key_int(&json, "from", map->from_ms);
	json_key_int(&json, "until", map->from_ms + map->column_ms * map->columns);
	json_key_int(&json, "column_ms", map->column_ms);
	json_key_int(&json, "row_ms", map->column_ms / map->rows);
	json_key_uint(&json, "columns", map->columns);
	json_key_uint(&json, "rows", map->rows);
	json_key_uint(&json, "samples", map->sum.samples);
	json_key_uint(&json, "value", map->sum.value);
	json_key_uint(&json, "most_samples", map->most_samples);
	write_cells(&json, map);
	json_key(&json, "accounting");
	accounting_json(&json, &accounting, ACCOUNTING_WHOLE);
	json_close(&json, '}');
	buffer_append_char(&response->body, '\n');
}

void api_heatmap_get(struct http_request *request, struct http_response *response, void *context)
{
	const struct parameters asked = {request, ENDPOINT_heatmap};
	struct heat_request heat = {.rows = 0};
	struct error err = {0};
	unsigned by_function = 0;

	if (!parameter_choice(&asked, "by", &by_function, &err)) {
		answer_failure(response, &err);
		return;
	}
	if (by_function) {
		heatmap_functions_get(request, response, context);
		return;
	}
	if (read_request(request, context, &heat, &err) && fill(&heat, context, &err))
		write_answer(response, &heat);
	else
		answer_failure(response, &err);
	heat_map_release(&heat.map);
	samples_timeline_free(heat.all);
	selector_release(&heat.query.selector);
}
