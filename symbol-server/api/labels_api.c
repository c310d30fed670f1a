/* SPDX-License-Identifier: Apache-2.0 */
/* GET /api/v1/labels and /api/v1/labels/{name} */
#include <string.h>

#include "symbol-server/api/answer.h"
#include "symbol-server/api/api.h"
#include "symbol-server/api/query_life.h"
#include "symbol-server/formats/json_writer.h"
#include "symbol-server/store/attribute_labels.h"

/* What did not fit --query-memory is left out. */
static void put_cut(struct json *json, const struct query_life *life)
{
	if (query_life_is_cut(life))
		json_key_flag(json, "cut", true);
}

static void put_labels(struct http_response *response, const struct query_life *life,
		       const struct label_count *rows, size_t count)
{
	struct json json = json_start(&response->body);

	json_open(&json, '{');
	json_key(&json, "labels");
	json_open(&json, '[');
	for (size_t i = 0; i < count; i++) {
		json_open(&json, '{');
		json_key_string(&json, "name", rows[i].name);
		json_key_uint(&json, "values", rows[i].values);
		if (rows[i].is_part)
			json_key_flag(&json, "at_least", true);
		json_close(&json, '}');
	}
	json_close(&json, ']');
	put_cut(&json, life);
	json_close(&json, '}');
	buffer_append_char(&response->body, '\n');
}

void api_labels_get(struct http_request *request, struct http_response *response, void *context)
{
	struct api *api = context;
	struct query query = {0};
	struct samples_query wanted;
	struct query_life *life;
	struct label_count *rows = NULL;
	size_t count = 0;
	struct error err = {0};

	life = query_life_read(request, ENDPOINT_labels, &api->query_limits, &query, &err);
	if (life) {
		query.all_labels = true;
		query_to_samples(&query, &wanted);
		if (samples_labels(api->samples, &wanted, http_request_arena(request), &rows,
				   &count, &err))
			put_labels(response, life, rows, count);
	}
	if (err.kind != ERROR_NONE)
		answer_failure(response, &err);
	selector_release(&query.selector);
}

static void put_values(struct http_response *response, const struct query_life *life,
		       const struct value_count *rows, size_t count)
{
	struct json json = json_start(&response->body);

	json_open(&json, '{');
	json_key(&json, "values");
	json_open(&json, '[');
	for (size_t i = 0; i < count; i++) {
		json_open(&json, '{');
		json_key_string(&json, "value", rows[i].value);
		json_key_uint(&json, "samples", rows[i].samples);
		json_close(&json, '}');
	}
	json_close(&json, ']');
	put_cut(&json, life);
	json_close(&json, '}');
	buffer_append_char(&response->body, '\n');
}

void api_label_values_get(struct http_request *request, struct http_response *response,
			  void *context)
{
	struct api *api = context;
	const char *written = http_request_part(request);
	char label[LABEL_NAME_BYTES];
	struct query query = {0};
	struct samples_query wanted;
	struct query_life *life;
	struct value_count *rows = NULL;
	size_t count = 0;
	struct error err = {0};

	label_name_resolve(written, label);
	if (!label_name_is_valid(written, strlen(written)))
		error_set(&err, ERROR_OPTION, "'%.60s' in the path is not a label name", written);
	else if ((life = query_life_read(request, ENDPOINT_label_values, &api->query_limits, &query,
					 &err))) {
		query.groups[query.group_count++] = label;
		query_to_samples(&query, &wanted);
		if (samples_label_values(api->samples, &wanted, label, http_request_arena(request),
					 &rows, &count, &err))
			put_values(response, life, rows, count);
	}
	if (err.kind != ERROR_NONE)
		answer_failure(response, &err);
	selector_release(&query.selector);
}
