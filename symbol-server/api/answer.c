/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/api/answer.h"

#include <stdio.h>
#include <string.h>

#include "common/otlp.h"
#include "symbol-server/api/api.h"
#include "symbol-server/api/query_life.h"
#include "symbol-server/formats/json_writer.h"

enum {
	RETRY_AFTER_S = 2,
	RETRY_FULL_DISK_S = 30, /* somebody has to make room */
	MESSAGE_BYTES = 8192,
};

static const char *code_of(int status)
{
	static const struct {
		int status;
		const char *code;
	} codes[] = {
		{400, "bad_request"},
		{404, "not_found"},
		{405, "method_not_allowed"},
		{406, "not_acceptable"},
		{409, "conflict"},
		{413, "too_large"},
		{415, "unsupported_media_type"},
		{416, "range_not_satisfiable"},
		{422, "bad_parameter"},
		{429, "too_many_requests"},
		{501, "not_implemented"},
		{503, "unavailable"},
	};

	for (size_t i = 0; i < sizeof(codes) / sizeof(*codes); i++)
		if (codes[i].status == status)
			return codes[i].code;
	return "internal";
}

/* What a stranger sent may be quoted in it: it stays one line. */
static void one_line(const char *message, char line[MESSAGE_BYTES])
{
	snprintf(line, MESSAGE_BYTES, "%s", message);
	for (char *at = line; *at; at++)
		if ((unsigned char)*at < 0x20 || *at == 0x7f)
			*at = '?';
}

void answer_error(struct http_response *response, int status, const char *message)
{
	char line[MESSAGE_BYTES];
	struct json json = json_start(&response->body);

	if (response->has_begun) {
		response->is_broken = true;
		return;
	}
	buffer_clear(&response->body);
	response->fixed = (struct bytes){0};
	response->status = status;
	response->content_type = "application/json";
	if (status == 503 || status == 429)
		response->retry_after_s = RETRY_AFTER_S;
	json_open(&json, '{');
	json_key(&json, "error");
	json_open(&json, '{');
	json_key_string(&json, "code", code_of(status));
	one_line(message, line);
	json_key_string(&json, "message", line);
	json_close(&json, '}');
	json_close(&json, '}');
	buffer_append_char(&response->body, '\n');
}

/* Rows: enum error_kind. Of the server's own failures reports and uploads come again. */
int answer_status(const struct error *err, enum answer_of of)
{
	static const struct {
		int question, body, report, upload;
	} statuses[] = {
		[ERROR_NONE] = {500, 500, 503, 503},
		[ERROR_MEMORY] = {503, 503, 503, 503},
		[ERROR_SYSTEM] = {500, 500, 503, 503},
		[ERROR_FORMAT] = {500, 400, 400, 422}, /* of a question: of what is stored */
		[ERROR_LIMIT] = {422, 413, 413, 413},
		[ERROR_NOT_FOUND] = {404, 404, 503, 503},
		[ERROR_CONFLICT] = {500, 500, 503, 409},
		[ERROR_REMOTE] = {503, 503, 503, 503},
		[ERROR_UNSUPPORTED] = {501, 501, 503, 422},
		[ERROR_OPTION] = {422, 422, 503, 422},
		[ERROR_BUSY] = {503, 503, 429, 503},
	};

	if (error_is_no_room(err))
		return 503;
	return of == ANSWER_TO_QUESTION ? statuses[err->kind].question
	       : of == ANSWER_TO_BODY   ? statuses[err->kind].body
	       : of == ANSWER_TO_REPORT ? statuses[err->kind].report
					: statuses[err->kind].upload;
}

void answer_failure_of(struct http_response *response, enum answer_of of, const struct error *err)
{
	int status = answer_status(err, of);

	if (err->kind == ERROR_LIMIT && status == 422)
		query_life_count_limited();
	answer_error(response, status, *err->message ? err->message : "the answer failed");
	if (error_is_no_room(err))
		response->retry_after_s = RETRY_FULL_DISK_S;
}

void answer_failure(struct http_response *response, const struct error *err)
{
	answer_failure_of(response, ANSWER_TO_QUESTION, err);
}

void answer_text(struct http_response *response, const char *text)
{
	response->content_type = "text/plain; charset=utf-8";
	buffer_append_text(&response->body, text);
}

void answer_header(struct http_response *response, const char *name, const char *value)
{
	http_response_add_header(response, name, value);
}

/* Every path a stranger may have hoped for is answered with the ones there are. */
static const char *list_routes(struct http_request *request, const char *sentence)
{
	struct buffer text;
	const char *copy;

	buffer_init(&text, 4096);
	buffer_printf(&text, "%s; this version has", sentence);
	for (const struct http_route *route = api_routes; route->path; route++) {
		if (route > api_routes && !strcmp(route->path, route[-1].path))
			continue;
		buffer_printf(&text, "%s %s", route == api_routes ? "" : ",", route->path);
	}
	copy = arena_text(http_request_arena(request), (const char *)text.bytes, text.length);
	buffer_release(&text);
	return copy ? copy : sentence;
}

void api_on_error(struct http_request *request, struct http_response *response, int status,
		  const char *sentence, void *context)
{
	if (!strcmp(http_request_path(request), "/v1development/profiles")) {
		api_report_refused(context, request, status, sentence);
		answer_otlp_error(response, status, sentence);
		return;
	}
	if (status == 404)
		sentence = list_routes(request, sentence);
	answer_error(response, status, sentence);
}

/* google.rpc.Code for the statuses of the OTLP specification, "OTLP/HTTP Response". */
static int rpc_code(int status)
{
	switch (status) {
	case 404:
		return 5; /* NOT_FOUND */
	case 405:
		return 12; /* UNIMPLEMENTED */
	case 413:
	case 429:
		return 8; /* RESOURCE_EXHAUSTED */
	case 503:
		return 14; /* UNAVAILABLE */
	default:
		return status < 500 ? 3 : 13; /* INVALID_ARGUMENT, INTERNAL */
	}
}

void answer_otlp_error(struct http_response *response, int status, const char *message)
{
	buffer_clear(&response->body);
	response->status = status;
	response->content_type = "application/x-protobuf";
	if (status == 503 || status == 429)
		response->retry_after_s = RETRY_AFTER_S;
	if (!otlp_encode_status(rpc_code(status), message, &response->body))
		buffer_clear(&response->body);
}
