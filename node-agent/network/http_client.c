/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/network/http_client.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "node-agent/network/connection.h"

enum { HEAD_ROOM = 8 << 10 };

struct http_client {
	struct http_client_options options;
	struct connection *connection; /* NULL: none, or not to be used again */
	char *step;  /* HTTP_SOURCE_STEP bytes, made when a source is first sent */
	bool is_cut; /* the body was not sent to its end: the connection is out of step */
};

struct http_client *http_client_new(const struct http_client_options *options, struct error *err)
{
	struct http_client *client = calloc(1, sizeof *client);

	if (!client) {
		error_set(err, ERROR_MEMORY, "no memory for the HTTP client");
		return NULL;
	}
	client->options = *options;
	return client;
}

static void hang_up(struct http_client *client)
{
	connection_close(client->connection);
	client->connection = NULL;
}

void http_client_free(struct http_client *client)
{
	if (!client)
		return;
	hang_up(client);
	free(client->step);
	free(client);
}

uint64_t http_request_length(const struct http_request *request)
{
	return request->source ? request->source_length
			       : request->pieces[0].length + request->pieces[1].length;
}

static bool write_head(struct http_client *client, const struct http_request *request,
		       const struct wait_limits *limits, struct error *err)
{
	const struct url *url = client->options.url;
	struct buffer head;
	bool ok;

	buffer_init(&head, HEAD_ROOM);
	buffer_printf(&head, "%s %s%s HTTP/1.1\r\nHost: %s\r\nUser-Agent: farflame-agent/%s\r\n",
		      request->method, url->prefix, request->path, url->authority,
		      FARFLAME_VERSION);
	buffer_printf(&head, "Content-Type: %s\r\nContent-Length: %" PRIu64 "\r\n",
		      request->content_type, http_request_length(request));
	if (request->content_encoding)
		buffer_printf(&head, "Content-Encoding: %s\r\n", request->content_encoding);
	if (request->bearer)
		buffer_printf(&head, "Authorization: Bearer %s\r\n", request->bearer);
	buffer_append_text(&head, "\r\n");
	ok = head.failed
		     ? error_set(err, ERROR_LIMIT, "the request's header is too long")
		     : connection_write(client->connection, head.bytes, head.length, limits, err);
	buffer_release(&head);
	return ok;
}

/* True as well when the server answered before the end: it has decided, the rest is of no use. */
static bool write_source(struct http_client *client, const struct http_request *request,
			 const struct wait_limits *limits, struct error *err)
{
	if (!client->step && !(client->step = malloc(HTTP_SOURCE_STEP)))
		return error_set(err, ERROR_MEMORY, "no memory to send from");
	for (uint64_t offset = 0; offset < request->source_length;) {
		uint64_t left = request->source_length - offset;
		size_t room = left < HTTP_SOURCE_STEP ? (size_t)left : HTTP_SOURCE_STEP;
		int64_t got = request->source(request->context, offset, client->step, room);

		if (got <= 0)
			return error_set(err, ERROR_NOT_FOUND,
					 "what was to be sent could not be read to its end");
		if (connection_has_input(client->connection)) {
			client->is_cut = true;
			return true;
		}
		if (!connection_write(client->connection, client->step, (size_t)got, limits, err))
			return false;
		offset += (uint64_t)got;
	}
	return true;
}

static bool write_body(struct http_client *client, const struct http_request *request,
		       const struct wait_limits *limits, struct error *err)
{
	if (request->source)
		return write_source(client, request, limits, err);
	for (size_t i = 0; i < 2; i++)
		if (!connection_write(client->connection, request->pieces[i].at,
				      request->pieces[i].length, limits, err))
			return false;
	return true;
}

/* heard: anything at all came back. */
static bool read_answer(struct http_client *client, struct http_answer *answer,
			const struct wait_limits *limits, bool *heard, struct error *err)
{
	char bytes[4096];
	size_t got, used;

	while (!http_answer_is_done(answer)) {
		if (!connection_read(client->connection, bytes, sizeof bytes, &got, limits, err))
			return false;
		if (!got) {
			hang_up(client);
			return http_answer_end(answer, err);
		}
		*heard = true;
		if (!http_answer_take(answer, bytes, got, &used, err))
			return false;
		if (used < got)
			answer->keep_alive = false; /* more than the answer: out of step */
	}
	return true;
}

static bool exchange(struct http_client *client, const struct http_request *request,
		     struct http_answer *answer, bool *heard, struct error *err)
{
	struct wait_limits limits = {.step_ms = client->options.timeout_ms,
				     .deadline_ms = request->deadline_ms,
				     .interrupt_fd = client->options.interrupt_fd};
	struct error write_error = {0};
	bool is_written;

	*heard = false;
	client->is_cut = false;
	is_written = write_head(client, request, &limits, &write_error) &&
		     write_body(client, request, &limits, &write_error);
	/* A server that refuses may answer and close before it has read everything: hear it out.
	 * What stopped on our side is not worth hearing an answer for. */
	if (!is_written && write_error.kind != ERROR_REMOTE && write_error.kind != ERROR_SYSTEM) {
		*err = write_error;
		return false;
	}
	if (!is_written)
		limits.step_ms = limits.step_ms < 500 ? limits.step_ms : 500;
	if (read_answer(client, answer, &limits, heard, err)) {
		answer->keep_alive &= is_written && !client->is_cut;
		return true;
	}
	if (!is_written)
		*err = write_error;
	return false;
}

static bool is_kept_alive(const struct http_client *client)
{
	/* Input on an idle connection is its end, or nonsense: either way it is used up. */
	return client->connection && !connection_has_input(client->connection);
}

bool http_client_send(struct http_client *client, const struct http_request *request,
		      struct http_answer *answer, struct error *err)
{
	struct wait_limits limits = {.step_ms = client->options.timeout_ms,
				     .deadline_ms = request->deadline_ms,
				     .interrupt_fd = client->options.interrupt_fd};
	struct error own = {0};
	bool is_kept = is_kept_alive(client), heard;

	err = err ? err : &own;
	http_answer_init(answer);
	if (!is_kept)
		hang_up(client);
	for (;; is_kept = false) {
		if (!client->connection)
			client->connection = connection_open(client->options.url,
							     client->options.tls, &limits, err);
		if (!client->connection)
			return false;
		if (exchange(client, request, answer, &heard, err))
			break;
		hang_up(client);
		/* The server may close an idle connection while we begin to use it. */
		if (!is_kept || heard || err->kind == ERROR_BUSY || err->os_error == ETIMEDOUT)
			return error_prefix(err, "%s", client->options.url->authority);
		*err = (struct error){0};
	}
	if (!answer->keep_alive)
		hang_up(client);
	return true;
}
