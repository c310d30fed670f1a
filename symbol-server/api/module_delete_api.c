/* SPDX-License-Identifier: Apache-2.0 */
/* DELETE /api/v1/modules/{build_id}: what was uploaded, and the names made of it. */
#include "common/log.h"
#include "symbol-server/api/answer.h"
#include "symbol-server/api/api.h"
#include "symbol-server/api/parameters.h"
#include "symbol-server/formats/json_writer.h"
#include "symbol-server/symbolize/module_files.h"

void api_module_delete(struct http_request *request, struct http_response *response, void *context)
{
	struct json json = json_start(&response->body);
	struct module_deleted deleted;
	struct api *api = context;
	struct parameters none;
	struct error err = {0};
	char hex[BUILD_ID_HEX];
	struct build_id id;

	if (parameter_path_build_id(request, &id, &err) &&
	    parameters_open(&none, request, ENDPOINT_none, &err))
		symbolizer_forget_files(api->symbolizer, &id, &deleted, &err);
	if (err.kind != ERROR_NONE) {
		answer_failure(response, &err);
		return;
	}
	json_open(&json, '{');
	json_key_uint(&json, "deleted_files", deleted.files);
	json_key_uint(&json, "deleted_bytes", deleted.bytes);
	json_key_uint(&json, "deleted_tables", deleted.has_table);
	json_close(&json, '}');
	buffer_append_char(&response->body, '\n');
	log_info("module deleted on request",
		 "peer=%s module=\"%s\" build_id=%s files=%u bytes=%llu tables=%d",
		 http_request_peer(request), deleted.name, build_id_format(&id, hex), deleted.files,
		 (unsigned long long)deleted.bytes, deleted.has_table);
}
