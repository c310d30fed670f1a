/* SPDX-License-Identifier: Apache-2.0 */
/* POST /api/v1/modules/{build_id}/fetch: somebody wants its names now. */
#include "symbol-server/api/answer.h"
#include "symbol-server/api/api.h"
#include "symbol-server/api/parameters.h"
#include "symbol-server/api/sources_json.h"
#include "symbol-server/symbolize/sources/symbol_directories.h"

void api_module_fetch(struct http_request *request, struct http_response *response, void *context)
{
	struct json json = json_start(&response->body);
	struct symbol_directories_progress directories;
	struct api *api = context;
	struct parameters none;
	struct error err = {0};
	struct build_id id;

	if (!parameter_path_build_id(request, &id, &err) ||
	    !parameters_open(&none, request, ENDPOINT_none, &err) ||
	    !symbolizer_ask_again(api->symbolizer, &id, &err)) {
		answer_failure(response, &err);
		return;
	}
	symbol_directories_progress(symbolizer_directories(api->symbolizer), &directories);
	response->status = 202;
	json_open(&json, '{');
	json_key_uint(&json, "has_symbol_dirs", directories.passes > 0 || directories.is_reading);
	sources_json_servers(&json, symbolizer_sources(api->symbolizer));
	json_close(&json, '}');
	buffer_append_char(&response->body, '\n');
}
