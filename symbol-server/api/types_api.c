/* SPDX-License-Identifier: Apache-2.0 */
/* GET /api/v1/types */
#include "symbol-server/api/answer.h"
#include "symbol-server/api/api.h"
#include "symbol-server/api/query_life.h"
#include "symbol-server/formats/json_writer.h"

static void put_types(struct http_response *response, const struct type_count *rows, size_t count)
{
	struct json json = json_start(&response->body);

	json_open(&json, '{');
	json_key(&json, "types");
	json_open(&json, '[');
	for (size_t i = 0; i < count; i++) {
		json_open(&json, '{');
		json_key_string(&json, "name", rows[i].type);
		json_key_string(&json, "unit", rows[i].unit);
		json_key_uint(&json, "samples", rows[i].samples);
		json_key_uint(&json, "value", rows[i].value);
		json_close(&json, '}');
	}
	json_close(&json, ']');
	json_close(&json, '}');
	buffer_append_char(&response->body, '\n');
}

void api_types_get(struct http_request *request, struct http_response *response, void *context)
{
	struct api *api = context;
	struct query query = {0};
	struct samples_query wanted;
	struct type_count *rows = NULL;
	size_t count = 0;
	struct error err = {0};

	if (query_life_read(request, ENDPOINT_types, &api->query_limits, &query, &err)) {
		query_to_samples(&query, &wanted);
		if (samples_types(api->samples, &wanted, http_request_arena(request), &rows, &count,
				  &err))
			put_types(response, rows, count);
	}
	if (err.kind != ERROR_NONE)
		answer_failure(response, &err);
	selector_release(&query.selector);
}
