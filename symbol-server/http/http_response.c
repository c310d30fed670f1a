/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/http/http_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/gzip.h"

enum { FIXED_INFLATED_MAX = 64 << 20 };

void http_request_refuse(struct http_request *request, int status, const char *sentence)
{
	struct http_server *server = request->server;

	if (request->refused_status)
		return;
	request->refused_status = status;
	snprintf(request->refused, sizeof(request->refused), "%s", sentence);
	if (status == 413)
		server->too_large++;
	if (status == 503)
		server->refused_busy++;
}

/* Lets the program word the refusal in its own format. */
static void fill_refusal(struct http_request *request)
{
	struct http_server *server = request->server;
	struct http_response *response = &request->response;

	buffer_clear(&response->body);
	response->status = request->refused_status;
	if (request->refused_status == 503)
		response->retry_after_s = 1;
	if (server->options.on_error)
		server->options.on_error(request, response, request->refused_status,
					 request->refused, server->context);
	response->status = request->refused_status;
}

void http_response_add_header(struct http_response *response, const char *name, const char *value)
{
	for (size_t i = 0; i < sizeof(response->headers) / sizeof(*response->headers); i++) {
		if (response->headers[i].name)
			continue;
		response->headers[i].name = name;
		response->headers[i].value = value;
		return;
	}
}

const char *http_response_header(const struct http_response *response, const char *name)
{
	for (size_t i = 0; i < sizeof(response->headers) / sizeof(*response->headers); i++)
		if (response->headers[i].name && !strcmp(response->headers[i].name, name))
			return response->headers[i].value;
	return NULL;
}

void http_response_add_headers(struct http_request *request, const char *encoding)
{
	struct http_response *response = &request->response;
	struct MHD_Response *reply = request->reply;
	char text[24];

	for (size_t i = 0; i < sizeof(response->headers) / sizeof(*response->headers); i++)
		if (response->headers[i].name && response->headers[i].value)
			MHD_add_response_header(reply, response->headers[i].name,
						response->headers[i].value);
	if (response->status != 304 && response->status != 204)
		MHD_add_response_header(reply, "Content-Type", response->content_type);
	MHD_add_response_header(reply, "X-Content-Type-Options", "nosniff");
	MHD_add_response_header(reply, "Vary", "Accept-Encoding");
	if (request->route && request->route->any_origin)
		MHD_add_response_header(reply, "Access-Control-Allow-Origin", "*");
	if (!http_response_header(response, "Cache-Control"))
		MHD_add_response_header(reply, "Cache-Control", "no-store");
	if (request->is_last)
		MHD_add_response_header(reply, "Connection", "close");
	if (encoding)
		MHD_add_response_header(reply, "Content-Encoding", encoding);
	if (response->retry_after_s) {
		snprintf(text, sizeof(text), "%u", response->retry_after_s);
		MHD_add_response_header(reply, "Retry-After", text);
	}
}

/* The stored bytes are gzip already; a client without gzip gets them inflated. */
static void choose_fixed(struct http_request *request, const char **encoding)
{
	struct http_response *response = &request->response;

	*encoding = response->content_encoding;
	if (!*encoding || http_request_accepts_gzip(request))
		return;
	buffer_release(&response->body);
	buffer_init(&response->body, FIXED_INFLATED_MAX);
	if (gzip_inflate(response->fixed.at, response->fixed.length, &response->body, NULL)) {
		response->fixed = (struct bytes){0};
		*encoding = NULL;
	}
}

static void compress_body(struct http_request *request, const char **encoding)
{
	struct http_response *response = &request->response;
	struct buffer packed;

	if (response->body.length < HTTP_GZIP_FROM || response->is_packed ||
	    !http_request_accepts_gzip(request))
		return;
	buffer_init(&packed, response->body.length); /* larger than before is of no use */
	if (gzip_compress(response->body.bytes, response->body.length, HTTP_GZIP_LEVEL, &packed,
			  NULL) &&
	    !packed.failed) {
		buffer_release(&response->body);
		response->body = packed;
		*encoding = "gzip";
		return;
	}
	buffer_release(&packed);
}

void http_response_finish(struct http_request *request)
{
	struct http_response *response = &request->response;
	const char *encoding = NULL;
	size_t length;
	void *bytes;

	if (!request->refused_status && response->file.fd >= 0)
		http_file_prepare(request);
	if (request->refused_status) {
		http_file_close(&response->file);
		fill_refusal(request);
	}
	if (response->body.failed) {
		buffer_clear(&response->body);
		request->refused_status = 500;
		snprintf(request->refused, sizeof(request->refused),
			 "the answer does not fit its memory");
		fill_refusal(request);
	}
	if (response->fixed.at)
		choose_fixed(request, &encoding);
	if (response->file.fd >= 0) {
		request->reply = http_file_reply(request);
		length = response->file.length;
	} else if (response->fixed.at) {
		request->reply = MHD_create_response_from_buffer(
			response->fixed.length, (void *)(uintptr_t)response->fixed.at,
			MHD_RESPMEM_PERSISTENT);
		length = response->fixed.length;
	} else {
		compress_body(request, &encoding);
		bytes = buffer_take(&response->body, &length);
		request->reply = bytes ? MHD_create_response_from_buffer_with_free_callback(
						 length, bytes, free)
				       : MHD_create_response_from_buffer(0, (void *)(uintptr_t) "",
									 MHD_RESPMEM_PERSISTENT);
		if (bytes && !request->reply)
			free(bytes);
	}
	if (!request->reply)
		return; /* out of memory: the connection is closed without an answer */
	http_response_add_headers(request, encoding);
	request->server->bytes_out += request->is_head ? 0 : length;
}

static unsigned sending_time_s(const struct http_request *request)
{
	uint64_t times = 1 + request->response.file.length / HTTP_SENDING_BYTES;

	return HTTP_SENDING_S * (unsigned)(times < 1000 ? times : 1000);
}

/* The answer begins: it is counted by its status and by the time it took. */
static void count_response(struct http_request *request, unsigned status)
{
	struct http_server *server = request->server;
	const struct http_route *route = request->route;
	enum http_kind kind = HTTP_KIND_other;

	server->responses_by_class[status / 100 < 6 ? status / 100 : 5]++;
	if (!request->complete_ms)
		return;
	if (route && route->kind == HTTP_KIND_report && status == 200)
		http_connection_know(server, request->record);
	if (route)
		kind = route->may_take_long ? HTTP_KIND_query : route->kind;
	http_latency_add(&server->latency[kind], monotonic_ms() - request->complete_ms);
}

enum MHD_Result http_response_send(struct http_request *request)
{
	enum MHD_Result result = MHD_NO;
	unsigned status = (unsigned)request->response.status;

	if (!request->reply)
		return MHD_NO;
	http_connection_allow(request->server, request->record, sending_time_s(request),
			      HTTP_CLOSED_slow_reader);
	result = MHD_queue_response(request->connection, status, request->reply);
	MHD_destroy_response(request->reply);
	request->reply = NULL;
	count_response(request, status);
	return result;
}
