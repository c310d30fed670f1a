/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/http/http_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "common/clock.h"

/* libmicrohttpd would have no room for headers after it, nor for an answer: it would close the
 * connection without a word, or wait. */
static void refuse_long_uri(struct http_server *server, const struct http_connection *record)
{
	static const char answer[] =
		"HTTP/1.1 414 URI Too Long\r\nContent-Type: application/json\r\n"
		"Content-Length: 110\r\nConnection: close\r\n\r\n"
		"{\"error\":{\"code\":\"uri_too_long\",\"message\":\"the address of a request has "
		"at most 9216 bytes, with its query\"}}\n";

	send(record->fd, answer, sizeof(answer) - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
	http_linger_add(server->connections.linger, record->fd);
	shutdown(record->fd, SHUT_RDWR);
}

void *http_exchange_uri(void *context, const char *uri, struct MHD_Connection *connection)
{
	struct http_server *server = context;
	const union MHD_ConnectionInfo *info;
	struct http_request *request = calloc(1, sizeof(*request));

	if (!request)
		return NULL;
	request->server = server;
	request->connection = connection;
	request->owners = 1;
	arena_init(&request->arena, HTTP_ARENA_LIMIT);
	buffer_init(&request->response.body, SIZE_MAX);
	request->response.status = 200;
	request->response.file.fd = -1;
	request->response.content_type = "application/json";
	request->uri = arena_text(&request->arena, uri, strlen(uri));
	info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	request->record = info ? info->socket_context : NULL;
	server->requests++;
	http_connection_begin(server, request->record);
	if (request->record && strlen(uri) > HTTP_URI_MAX)
		refuse_long_uri(server, request->record);
	return request;
}

/* Path, parameters and route; a refusal when one of them is wrong. */
static void find_route(struct http_request *request)
{
	const char *question = strchr(request->uri, '?');
	size_t length = question ? (size_t)(question - request->uri) : strlen(request->uri);
	struct http_match match;
	struct error err = {0};
	char allowed[48], sentence[160];

	if (strlen(request->uri) > HTTP_URI_MAX) { /* is answered */
		http_request_refuse(request, 414, "the request's address is too long");
		return;
	}
	request->path = percent_decode(request->uri, length, false, &request->arena, &err);
	if (!request->path) {
		http_request_refuse(request, 400, err.message);
		return;
	}
	http_routes_match(request->server->routes, request->method, request->uri, length, &match);
	if (!match.methods) {
		snprintf(sentence, sizeof(sentence), "there is nothing at %.100s", request->path);
		http_request_refuse(request, 404, sentence);
		return;
	}
	if (!match.route) {
		http_routes_allow(match.methods, allowed);
		request->response.headers[0].name = "Allow";
		request->response.headers[0].value = arena_text(&request->arena, allowed,
								strlen(allowed));
		snprintf(sentence, sizeof(sentence), "%s is not possible here; possible: %s",
			 request->method, allowed);
		http_request_refuse(request, 405, sentence);
		return;
	}
	request->route = match.route;
	if (match.part)
		request->part = percent_decode(match.part, match.part_length, false,
					       &request->arena, &err);
	if (match.rest)
		request->rest = percent_decode(match.rest, match.rest_length, false,
					       &request->arena, &err);
	if ((match.part && !request->part) || (match.rest && !request->rest) ||
	    (question && !http_parameters_parse(question + 1, strlen(question + 1), &request->arena,
						&request->parameters, &err)))
		http_request_refuse(request, 400, err.message);
}

/* The program is not as far as to answer this. */
static void check_open(struct http_request *request)
{
	struct http_server *server = request->server;
	char sentence[200];

	if (request->refused_status || !server->options.is_closed || request->route->is_always_open)
		return;
	if (server->options.is_closed(server->context, sentence, sizeof sentence))
		http_request_refuse(request, 503, sentence);
}

static size_t body_limit(const struct http_request *request)
{
	if (!request->route || !request->route->body_limit)
		return HTTP_TOLERATED_BODY;
	return request->route->body_limit;
}

static void too_large(struct http_request *request)
{
	char sentence[120];

	snprintf(sentence, sizeof(sentence), "the body is larger than %zu bytes",
		 body_limit(request));
	http_request_refuse(request, 413, sentence);
}

static void check_encoding(struct http_request *request)
{
	const char *encoding = http_request_header(request, "Content-Encoding");

	if (!encoding || !strcasecmp(encoding, "identity"))
		return;
	request->is_gzip = !strcasecmp(encoding, "gzip") || !strcasecmp(encoding, "x-gzip");
	if (!request->is_gzip)
		http_request_refuse(request, 415, "Content-Encoding must be gzip or identity");
	else if (request->route && !request->route->inflated_limit)
		http_request_refuse(request, 415, "a compressed body is not accepted here");
}

/* What the headers alone say about the body. Returns whether one is announced, and how long. */
static bool check_body(struct http_request *request, uint64_t *announced)
{
	const char *length = http_request_header(request, "Content-Length");
	bool is_chunked = http_request_header(request, "Transfer-Encoding") != NULL;

	errno = 0;
	*announced = length ? strtoull(length, NULL, 10) : 0; /* libmicrohttpd checked its syntax */
	if (errno)
		*announced = UINT64_MAX;
	if (is_chunked || *announced) {
		check_encoding(request);
		http_strict_check_type(request);
	}
	/* where a chunk's lines end is libmicrohttpd's to say: nothing comes after them */
	request->is_last |= is_chunked;
	if (*announced > body_limit(request))
		too_large(request);
	if (is_chunked)
		*announced = UINT64_MAX;
	return is_chunked || *announced;
}

/* The headers are here. A refused request with a large body is answered at once and closed, its
 * client's remaining bytes are read elsewhere; a small body is read and thrown away, which keeps
 * the connection. libmicrohttpd can answer here or after the body, not between. */
static enum MHD_Result begin(struct http_request *request, const char *method, const char *version)
{
	struct http_server *server = request->server;
	bool has_body, is_misframed;
	uint64_t announced;

	request->has_begun = true;
	snprintf(request->method, sizeof(request->method), "%s", method);
	request->is_head = !strcmp(request->method, "HEAD");
	buffer_init(&request->body, 0);
	is_misframed = !http_strict_check(request, method, version);
	request->is_last = is_misframed;
	if (!request->refused_status)
		find_route(request);
	http_strict_check_origin(request);
	check_open(request);
	has_body = check_body(request, &announced);
	request->body.limit = body_limit(request);
	http_connection_allow(server, request->record,
			      server->options.slow_body_s < HTTP_FIRST_BYTE_S
				      ? server->options.slow_body_s
				      : HTTP_FIRST_BYTE_S,
			      HTTP_CLOSED_first_byte);
	if (!request->refused_status)
		return MHD_YES;
	request->is_discarding = true;
	if (!is_misframed && (!has_body || announced <= HTTP_TOLERATED_BODY))
		return MHD_YES;
	if (request->record)
		http_linger_add(server->connections.linger, request->record->fd);
	http_response_finish(request);
	request->is_done = true;
	return http_response_send(request);
}

static void discard_body(struct http_request *request)
{
	request->is_discarding = true;
	buffer_release(&request->body);
	http_memory_arrived(request);
	http_memory_give(request, request->held);
}

/* One piece of the body. */
static enum MHD_Result take(struct http_request *request, const char *bytes, size_t length)
{
	struct http_server *server = request->server;

	if (!request->received)
		http_connection_allow(server, request->record, server->options.slow_body_s,
				      HTTP_CLOSED_slow_body);
	request->received += length;
	server->bytes_in += length;
	http_connection_progress(server, request->record, length,
				 !request->is_discarding && request->route->on_body);
	if (request->received > body_limit(request))
		too_large(request);
	if (request->refused_status && !request->is_discarding)
		discard_body(request);
	if (request->is_discarding)
		return request->received < body_limit(request) + HTTP_DISCARD_MAX ? MHD_YES
										  : MHD_NO;
	if (request->route->on_body) {
		request->is_discarding = !request->route->on_body(request, bytes, length,
								  server->context);
		return MHD_YES;
	}
	if (!http_memory_arrive(request, length)) {
		http_request_refuse(request, 503,
				    "too many request bodies are being read; try again later");
		discard_body(request);
		return MHD_YES;
	}
	buffer_append(&request->body, bytes, length);
	if (request->body.failed)
		http_request_refuse(request, 503, "out of memory; try again later");
	return MHD_YES;
}

static enum MHD_Result complete(struct http_request *request)
{
	http_connection_allow(request->server, request->record, 0, HTTP_CLOSED_idle);
	http_memory_arrived(request);
	request->is_complete = true;
	request->complete_ms = monotonic_ms();
	request->server->answering++;
	if (!request->refused_status && http_workers_add(request))
		return MHD_YES;
	http_request_refuse(request, 503, "too many requests are waiting; try again later");
	http_response_finish(request);
	request->is_done = true;
	return http_response_send(request);
}

enum MHD_Result http_exchange_access(void *context, struct MHD_Connection *connection,
				     const char *url, const char *method, const char *version,
				     const char *upload, size_t *upload_size, void **slot)
{
	struct http_request *request = *slot;

	(void)context, (void)connection, (void)url, (void)version;
	if (!request || !request->uri)
		return MHD_NO; /* out of memory */
	if (!request->has_begun)
		return begin(request, method, version);
	if (*upload_size) {
		enum MHD_Result result = take(request, upload, *upload_size);

		*upload_size = 0;
		return result;
	}
	if (request->is_done)
		return http_response_send(request);
	return complete(request);
}

void http_exchange_completed(void *context, struct MHD_Connection *connection, void **slot,
			     enum MHD_RequestTerminationCode code)
{
	struct http_server *server = context;
	struct http_request *request = *slot;

	(void)connection, (void)code;
	if (!request)
		return;
	if (request->route && request->route->on_end)
		request->route->on_end(request, server->context);
	if (request->reply)
		MHD_destroy_response(request->reply);
	http_connection_allow(server, request->record, HTTP_IDLE_S, HTTP_CLOSED_idle);
	http_memory_arrived(request);
	if (request->is_complete)
		server->answering--;
	if (request->stream)
		http_stream_leave(request);
	http_request_drop(request);
	*slot = NULL;
}

void http_request_drop(struct http_request *request)
{
	if (atomic_fetch_sub(&request->owners, 1) != 1)
		return;
	http_memory_give(request, request->held);
	http_stream_free(request);
	buffer_release(&request->body);
	buffer_release(&request->response.body);
	http_file_close(&request->response.file);
	arena_release(&request->arena);
	free(request);
}
