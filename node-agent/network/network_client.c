/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/network/network_client.h"

#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "common/log.h"
#include "node-agent/network/network_messages.h"
#include "node-agent/network/wait.h"

enum {
	GRACE_MS = 2000, /* for the child to say by itself that a request's time is over */
	BEGUN_MAX = 2,   /* times that a body is read from its start */
};

struct network_client {
	struct network *network;
	int channel; /* −1: none */
	struct token token;
	char *step; /* HTTP_SOURCE_STEP bytes, made when a source is first sent */
};

static bool say_unsound(struct network_client *client, struct error *err)
{
	network_suspect(client->network);
	return error_set(err, ERROR_REMOTE, "the process of the network says what it cannot");
}

static bool say(struct network_client *client, struct iovec *parts, size_t count, struct error *err)
{
	const struct msghdr message = {.msg_iov = parts, .msg_iovlen = count};

	return sendmsg(client->channel, &message, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0 ||
	       network_say_ended(client->network, err);
}

static const char *text_or_empty(const char *text)
{
	return text ? text : "";
}

/* False: one of its texts is too long. */
static bool describe(const struct http_request *request, const char *bearer,
		     struct network_request *asked)
{
	const struct {
		const char *text;
		char *to;
		size_t room;
	} texts[] = {
		{request->method, asked->method, sizeof asked->method},
		{request->path, asked->path, sizeof asked->path},
		{request->content_type, asked->content_type, sizeof asked->content_type},
		{request->content_encoding, asked->content_encoding,
		 sizeof asked->content_encoding},
		{bearer, asked->bearer, sizeof asked->bearer},
	};

	memset(asked, 0, sizeof *asked);
	asked->body_length = http_request_length(request);
	asked->deadline_ms = request->deadline_ms;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		if (snprintf(texts[i].to, texts[i].room, "%s", text_or_empty(texts[i].text)) >=
		    (int)texts[i].room)
			return false;
	return true;
}

static bool ask(struct network_client *client, const struct http_request *request,
		struct error *err)
{
	struct network_request asked;
	struct iovec part = {&asked, sizeof asked};
	struct error token_error = {0};

	if (!token_refresh(&client->token, &token_error))
		log_warn("token not read", "why=\"%s\"", token_error.message);
	if (!describe(request, token_text(&client->token), &asked))
		return error_set(err, ERROR_LIMIT, "the request's header is too long");
	return say(client, &part, 1, err);
}

/* Of the pieces that lie in memory. */
static void cut_pieces(const struct http_request *request, uint64_t offset, size_t length,
		       struct iovec *parts)
{
	for (int i = 0; i < 2; i++) {
		const struct bytes *piece = &request->pieces[i];
		const size_t from = offset < piece->length ? (size_t)offset : piece->length;
		const size_t left = piece->length - from;

		parts[i] = (struct iovec){(void *)(piece->at + from),
					  left < length ? left : length};
		length -= parts[i].iov_len;
		offset -= from;
	}
}

/* How far the body has been handed over. */
struct progress {
	uint64_t next;
	unsigned begun; /* times: once more after a kept connection turned out to be closed */
};

static bool give_body(struct network_client *client, const struct http_request *request,
		      const struct network_reply *wanted, struct progress *progress,
		      struct error *err)
{
	struct iovec parts[2] = {{0}};
	int64_t got;

	if (wanted->offset ? wanted->offset != progress->next : progress->begun++ == BEGUN_MAX)
		return say_unsound(client, err);
	progress->next = wanted->offset + wanted->length;
	if (!request->source) {
		cut_pieces(request, wanted->offset, wanted->length, parts);
		return say(client, parts, 2, err);
	}
	if (!client->step && !(client->step = malloc(HTTP_SOURCE_STEP)))
		return error_set(err, ERROR_MEMORY, "no memory to send from");
	got = request->source(request->context, wanted->offset, client->step, wanted->length);
	if (got <= 0)
		return error_set(err, ERROR_NOT_FOUND,
				 "what was to be sent could not be read to its end");
	progress->next = wanted->offset + (uint64_t)got;
	parts[0] = (struct iovec){client->step, (size_t)got};
	return say(client, parts, 1, err);
}

/* One message. False: there is none, or it is longer than room. */
static bool hear(struct network_client *client, int64_t deadline_ms, void *bytes, size_t room,
		 size_t *length, struct error *err)
{
	const struct wait_limits limits = {.step_ms = INT_MAX,
					   .deadline_ms = deadline_ms ? deadline_ms + GRACE_MS : 0,
					   .interrupt_fd = -1};
	ssize_t got;

	if (!wait_for_descriptor(client->channel, POLLIN, &limits,
				 "waiting for the process of the network", err)) {
		network_suspect(client->network);
		return false;
	}
	got = recv(client->channel, bytes, room, MSG_DONTWAIT | MSG_TRUNC);
	if (got <= 0)
		return network_say_ended(client->network, err);
	*length = (size_t)got;
	return true;
}

static bool take_answer(struct network_client *client, int64_t deadline_ms,
			const struct network_reply *reply, struct http_answer *answer,
			struct error *err)
{
	char piece[NETWORK_PIECE_MAX];
	size_t length;

	answer->status = reply->status;
	answer->retry_after_s = reply->retry_after_s;
	answer->is_truncated = reply->is_truncated;
	memcpy(answer->content_type, reply->content_type, sizeof answer->content_type);
	memcpy(answer->location, reply->location, sizeof answer->location);
	while (answer->body.length < reply->length) {
		if (!hear(client, deadline_ms, piece, sizeof piece, &length, err))
			return false;
		if (length > sizeof piece || length > reply->length - answer->body.length)
			return say_unsound(client, err);
		buffer_append(&answer->body, piece, length);
		if (answer->body.failed)
			return error_set(err, ERROR_MEMORY, "no memory for the answer");
	}
	return true;
}

static bool exchange(struct network_client *client, const struct http_request *request,
		     struct http_answer *answer, struct error *err)
{
	const uint64_t body_length = http_request_length(request);
	struct progress progress = {0};
	struct network_reply reply;
	size_t length;

	if (client->channel < 0)
		client->channel = network_channel(client->network, err);
	if (client->channel < 0 || !ask(client, request, err))
		return false;
	for (;;) {
		if (!hear(client, request->deadline_ms, &reply, sizeof reply, &length, err))
			return false;
		if (!network_reply_is_sound(&reply, length, body_length))
			return say_unsound(client, err);
		switch (reply.kind) {
		case NETWORK_WANT:
			if (!give_body(client, request, &reply, &progress, err))
				return false;
			break;
		case NETWORK_ANSWER:
			return take_answer(client, request->deadline_ms, &reply, answer, err);
		default:
			*err = reply.error;
			return false;
		}
	}
}

static void hang_up(struct network_client *client)
{
	if (client->channel >= 0)
		close(client->channel);
	client->channel = -1;
}

struct network_client *network_client_new(struct network *network, struct error *err)
{
	struct network_client *client = calloc(1, sizeof *client);

	if (!client) {
		error_set(err, ERROR_MEMORY, "no memory for requests");
		return NULL;
	}
	client->network = network;
	client->channel = -1;
	client->token.path = network_token_file(network);
	return client;
}

bool network_client_send(struct network_client *client, const struct http_request *request,
			 struct http_answer *answer, struct error *err)
{
	struct error own = {0};

	http_answer_init(answer);
	if (exchange(client, request, answer, err ? err : &own))
		return true;
	hang_up(client); /* which ends what the child does for it */
	return false;
}

void network_client_free(struct network_client *client)
{
	if (!client)
		return;
	hang_up(client);
	free(client->step);
	free(client);
}
