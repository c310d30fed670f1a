/* SPDX-License-Identifier: Apache-2.0 */
/* GET /api/v1/modules/{build_id}/symbols: where functions lie, by their names. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "symbol-server/api/answer.h"
#include "symbol-server/api/api.h"
#include "symbol-server/api/parameters.h"
#include "symbol-server/api/query_life.h"
#include "symbol-server/symbolize/module_files.h"

/* A million reads. */
#define READ_BYTES_MAX (4ull << 30)

struct wanted {
	const char *names[FILE_FUNCTION_NAMES_MAX];
	size_t count;
};

static bool read_names(const struct parameters *asked, struct wanted *out, struct error *err)
{
	const char *text = parameter_given(asked, "name");

	out->count = 0;
	for (size_t length; *text; text += length + (text[length] == ',')) {
		length = strcspn(text, ",");
		if (!length || length >= FILE_FUNCTION_NAME_BYTES)
			return error_set(
				err, ERROR_OPTION,
				"parameter 'name': one of the names has no byte or more than %d",
				FILE_FUNCTION_NAME_BYTES - 1);
		if (out->count == FILE_FUNCTION_NAMES_MAX)
			return error_set(err, ERROR_OPTION, "parameter 'name': more than %d names",
					 FILE_FUNCTION_NAMES_MAX);
		out->names[out->count] = arena_text(http_request_arena(asked->request), text,
						    length);
		if (!out->names[out->count++])
			return error_no_memory(err);
	}
	return true;
}

static bool goes_on(void *context, struct error *err)
{
	if (query_life_is_wanted(context, err))
		return true;
	if (err->kind == ERROR_LIMIT)
		error_set(
			err, ERROR_LIMIT,
			"looking for the module's functions took longer than --query-time allows");
	return false;
}

void api_module_symbols_get(struct http_request *request, struct http_response *response,
			    void *context)
{
	struct api *api = context;
	struct file_search_limits limits = {.bytes = READ_BYTES_MAX, .goes_on = goes_on};
	struct file_function found[FILE_FUNCTIONS_MAX];
	struct error err = {0};
	struct build_id id;
	struct query query = {0};
	struct parameters asked;
	struct wanted wanted;
	size_t count;

	if (!parameter_path_build_id(request, &id, &err)) {
		answer_error(response, 400, err.message);
		return;
	}
	if (!parameters_open(&asked, request, ENDPOINT_module_symbols, &err) ||
	    !read_names(&asked, &wanted, &err) ||
	    !(limits.context = query_life_start(request, &api->query_limits, &query, &err)) ||
	    !symbolizer_find_functions(api->symbolizer, &id, wanted.names, wanted.count, &limits,
				       found, &count, &err)) {
		answer_failure(response, &err);
		return;
	}
	response->content_type = "text/plain; charset=utf-8";
	for (size_t i = 0; i < count; i++)
		buffer_printf(&response->body, "%s 0x%" PRIx64 " %" PRIu64 "\n",
			      wanted.names[found[i].name], found[i].address, found[i].bytes);
}
