/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/ship/network.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/log.h"
#include "node-agent/kernel/own_child.h"
#include "node-agent/ship/back_off.h"
#include "node-agent/ship/network_messages.h"
#include "node-agent/ship/wait.h"

enum {
	START_MS = 30 * 1000,  /* to read certificates, where CPUs are short */
	STEADY_MS = 60 * 1000, /* a child that lives so long has not failed at once */
	GRACE_MS = 2000,       /* for the child to say by itself that a request's time is over */
	SOCKET_BYTES = 256 << 10,
	BEGUN_MAX = 2,
	END_WAITS = 500, /* of a ms, for a killed child's end */
};

struct network {
	struct network_settings settings;
	pthread_mutex_t lock;

	/* --- under the lock --- */
	int socket; /* −1: no child */
	bool is_ending;
	bool is_unsound; /* what this child does */
	uint64_t restarts;

	/* --- its keeper's own --- */
	pid_t child; /* 0: none */
	struct back_off back_off;
	int64_t next_start_ms; /* if this one ends before */
};

struct network_client {
	struct network *network;
	int channel; /* −1: none */
	char *step;  /* HTTP_SOURCE_STEP bytes, made when a source is first sent */
};

/* --- the child --- */

static void set_socket(struct network *network, int socket)
{
	pthread_mutex_lock(&network->lock);
	if (network->socket >= 0)
		close(network->socket);
	network->socket = socket;
	network->is_unsound = false;
	pthread_mutex_unlock(&network->lock);
}

static bool open_pair(int *sockets, struct error *err)
{
	const int size = SOCKET_BYTES;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0)
		return error_set_system(err, errno, "a socket to the process of the network");
	for (int i = 0; i < 2; i++)
		setsockopt(sockets[i], SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
	return true;
}

static bool start_child(struct network *network, struct error *err)
{
	int sockets[2], failure;

	network->next_start_ms = monotonic_ms() + back_off_next_ms(&network->back_off, -1);
	if (!open_pair(sockets, err))
		return false;
	failure = own_child_start(NETWORK_NAME, sockets[1], environ, &network->child);
	close(sockets[1]);
	if (failure) {
		close(sockets[0]);
		network->child = 0;
		return error_set_system(err, failure, "start the process of the network");
	}
	send(sockets[0], &network->settings, sizeof network->settings, MSG_NOSIGNAL | MSG_DONTWAIT);
	set_socket(network, sockets[0]);
	return true;
}

/* What it said of its start, before it met anybody; limit_ms: how long to wait for that. */
static bool hear_start(struct network *network, int limit_ms, struct error *err)
{
	struct pollfd answer = {.fd = network->socket, .events = POLLIN};
	struct error said;

	if (poll(&answer, 1, limit_ms) <= 0 ||
	    recv(network->socket, &said, sizeof said, MSG_DONTWAIT) != sizeof said)
		return error_set(err, ERROR_SYSTEM, "the process of the network did not start");
	said.message[sizeof said.message - 1] = '\0';
	if (said.kind != ERROR_NONE) {
		*err = said;
		return false;
	}
	if (*said.message)
		log_warn("process keeps its rights", "process=network why=\"%s\"", said.message);
	return true;
}

struct network *network_start(const struct network_options *options, struct error *err)
{
	struct network *network = calloc(1, sizeof *network);
	struct network_settings *settings;

	if (!network) {
		error_set(err, ERROR_MEMORY, "no memory for the process of the network");
		return NULL;
	}
	network->socket = -1;
	pthread_mutex_init(&network->lock, NULL);
	settings = &network->settings;
	settings->timeout_ms = options->timeout_ms;
	snprintf(settings->ca_file, sizeof settings->ca_file, "%s",
		 options->ca_file ? options->ca_file : "");
	if (url_parse(options->server_url, &settings->url, err) && start_child(network, err) &&
	    hear_start(network, START_MS, err))
		return network;
	network_free(network);
	return NULL;
}

/* Takes it away, and says why. */
static void bury_child(struct network *network, int status)
{
	struct error said = {0};

	if (hear_start(network, 0, &said) || said.kind == ERROR_SYSTEM)
		snprintf(said.message, sizeof said.message, "%s %d",
			 WIFSIGNALED(status) ? "signal" : "status",
			 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	log_warn("process of the network ended", "why=\"%s\" so=\"another is started\"",
		 said.message);
	network->child = 0;
	set_socket(network, -1);
}

static void start_another(struct network *network)
{
	struct error err = {0};

	pthread_mutex_lock(&network->lock);
	network->restarts++;
	pthread_mutex_unlock(&network->lock);
	if (!start_child(network, &err))
		log_warn("process of the network not started", "why=\"%s\"", err.message);
}

void network_keep(struct network *network)
{
	const int64_t now_ms = monotonic_ms();
	bool is_unsound;
	int status = 0;

	pthread_mutex_lock(&network->lock);
	is_unsound = network->is_unsound;
	pthread_mutex_unlock(&network->lock);
	if (network->child && is_unsound)
		kill(network->child, SIGKILL);
	if (network->child && waitpid(network->child, &status, WNOHANG) != 0)
		bury_child(network, status);
	if (network->child && now_ms - network->next_start_ms >= STEADY_MS)
		network->back_off.failures = 0;
	if (!network->child && now_ms >= network->next_start_ms)
		start_another(network);
}

uint64_t network_restarts(struct network *network)
{
	uint64_t restarts;

	pthread_mutex_lock(&network->lock);
	restarts = network->restarts;
	pthread_mutex_unlock(&network->lock);
	return restarts;
}

void network_interrupt(struct network *network)
{
	if (!network)
		return;
	pthread_mutex_lock(&network->lock);
	network->is_ending = true;
	pthread_mutex_unlock(&network->lock);
	set_socket(network, -1);
	if (network->child)
		kill(network->child, SIGKILL);
}

void network_free(struct network *network)
{
	static const struct timespec one_ms = {.tv_nsec = 1000000};

	if (!network)
		return;
	network_interrupt(network);
	for (int i = 0; i < END_WAITS && network->child && !waitpid(network->child, NULL, WNOHANG);
	     i++)
		nanosleep(&one_ms, NULL);
	pthread_mutex_destroy(&network->lock);
	free(network);
}

/* --- one request --- */

/* The child is gone, or this end of it was let go. */
static bool say_ended(struct network *network, struct error *err)
{
	bool is_ending;

	pthread_mutex_lock(&network->lock);
	is_ending = network->is_ending;
	pthread_mutex_unlock(&network->lock);
	return is_ending ? error_set(err, ERROR_BUSY, "stopped")
			 : error_set(err, ERROR_REMOTE, "the process of the network has ended");
}

static void suspect(struct network *network)
{
	pthread_mutex_lock(&network->lock);
	network->is_unsound = true;
	pthread_mutex_unlock(&network->lock);
}

static bool say_unsound(struct network_client *client, struct error *err)
{
	suspect(client->network);
	return error_set(err, ERROR_REMOTE, "the process of the network says what it cannot");
}

static bool open_channel(struct network_client *client, struct error *err)
{
	struct network *network = client->network;
	int sockets[2];
	bool is_sent;

	if (client->channel >= 0)
		return true;
	if (!open_pair(sockets, err))
		return false;
	pthread_mutex_lock(&network->lock);
	is_sent = network->socket >= 0 && own_child_send(network->socket, sockets[1]);
	pthread_mutex_unlock(&network->lock);
	close(sockets[1]);
	client->channel = sockets[0];
	return is_sent || say_ended(network, err);
}

static bool say(struct network_client *client, struct iovec *parts, size_t count, struct error *err)
{
	const struct msghdr message = {.msg_iov = parts, .msg_iovlen = count};

	return sendmsg(client->channel, &message, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0 ||
	       say_ended(client->network, err);
}

static const char *text_or_empty(const char *text)
{
	return text ? text : "";
}

/* False: one of its texts is too long. */
static bool describe(const struct http_request *request, struct network_request *asked)
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
		{request->bearer, asked->bearer, sizeof asked->bearer},
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

	if (!describe(request, &asked))
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
		suspect(client->network);
		return false;
	}
	got = recv(client->channel, bytes, room, MSG_DONTWAIT | MSG_TRUNC);
	if (got <= 0)
		return say_ended(client->network, err);
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

	if (!open_channel(client, err) || !ask(client, request, err))
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
