/* SPDX-License-Identifier: Apache-2.0 */
/* PUT /api/v1/modules/{build_id}: one file, as it arrives. */
#include <stdlib.h>

#include "symbol-server/api/answer.h"
#include "symbol-server/api/api.h"
#include "symbol-server/api/parameters.h"

struct put {
	struct symbol_upload *upload;
	struct error err;
};

static struct put *put_take(struct http_request *request, struct api *api)
{
	struct put *put = http_request_data(request);
	const char *length = http_request_header(request, "Content-Length");
	struct build_id id;

	if (put)
		return put;
	put = arena_alloc(http_request_arena(request), sizeof(*put));
	if (!put)
		return NULL;
	http_request_set_data(request, put);
	if (parameter_path_build_id(request, &id, &put->err))
		put->upload = symbolizer_upload(api->symbolizer, &id,
						length ? strtoull(length, NULL, 10) : 0, &put->err);
	return put;
}

bool api_module_body(struct http_request *request, const void *bytes, size_t length, void *context)
{
	struct put *put = put_take(request, context);

	return put && put->upload && put->err.kind == ERROR_NONE &&
	       symbol_upload_write(put->upload, bytes, length, &put->err);
}

void api_module_put(struct http_request *request, struct http_response *response, void *context)
{
	struct put *put = put_take(request, context);
	struct symbol_upload *upload;
	bool is_new = false;

	if (!put) {
		answer_error(response, 503, "out of memory; try again later");
		return;
	}
	upload = put->upload;
	if (upload && put->err.kind == ERROR_NONE) {
		put->upload = NULL; /* finish ends it in either case */
		symbol_upload_finish(upload, &is_new, &put->err);
	}
	if (put->err.kind != ERROR_NONE) {
		answer_failure_of(response, ANSWER_TO_UPLOAD, &put->err);
		return;
	}
	response->status = is_new ? 201 : 200;
	answer_text(response, is_new ? "new or better: it will be used\n"
				     : "nothing new: what is here is as good\n");
}

void api_module_end(struct http_request *request, void *context)
{
	struct put *put = http_request_data(request);

	(void)context;
	if (put && put->upload)
		symbol_upload_abort(put->upload);
}
