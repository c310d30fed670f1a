/* SPDX-License-Identifier: Apache-2.0 */
/* The child of network.h: a thread for each client, which has nothing but its socket. */
#include "node-agent/network/network.h"

#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/sandbox.h"
#include "node-agent/kernel/own_child.h"
#include "node-agent/network/network_messages.h"

enum {
	MEMORY_BYTES_MAX = 192 << 20, /* of addresses; the resolver's modules take many */
	DESCRIPTORS_MAX = 64,
	STACK_BYTES = 512 << 10, /* the resolver and TLS are the deepest */
};

/* In the agent itself nobody touches them. */
static struct network_settings settings;
static struct tls_context *tls;

static bool say(int channel, const void *bytes, size_t length)
{
	return send(channel, bytes, length, MSG_NOSIGNAL) == (ssize_t)length;
}

/* The body of http_request: of the agent, which may take its time. */
static int64_t want(void *context, uint64_t offset, void *bytes, size_t room)
{
	const int channel = *(const int *)context;
	const struct network_reply reply = {
		.kind = NETWORK_WANT, .offset = offset, .length = (uint32_t)room};

	return say(channel, &reply, sizeof reply) ? recv(channel, bytes, room, 0) : -1;
}

static bool tell_answer(int channel, const struct http_answer *answer)
{
	struct network_reply reply = {.kind = NETWORK_ANSWER,
				      .length = (uint32_t)answer->body.length,
				      .status = answer->status,
				      .is_truncated = answer->is_truncated,
				      .retry_after_s = answer->retry_after_s};
	bool ok;

	memcpy(reply.content_type, answer->content_type, sizeof reply.content_type);
	memcpy(reply.location, answer->location, sizeof reply.location);
	ok = say(channel, &reply, sizeof reply);
	for (size_t at = 0, piece; ok && at < reply.length; at += piece) {
		piece = reply.length - at < NETWORK_PIECE_MAX ? reply.length - at
							      : NETWORK_PIECE_MAX;
		ok = say(channel, answer->body.bytes + at, piece);
	}
	return ok;
}

static const char *text_or_none(const char *text)
{
	return *text ? text : NULL;
}

static bool ask_server(struct http_client *client, int channel, const struct network_request *asked)
{
	const struct http_request request = {
		.method = asked->method,
		.path = asked->path,
		.content_type = asked->content_type,
		.content_encoding = text_or_none(asked->content_encoding),
		.bearer = text_or_none(asked->bearer),
		.source = asked->body_length ? want : NULL,
		.context = &channel,
		.source_length = asked->body_length,
		.deadline_ms = asked->deadline_ms,
	};
	struct network_reply failed = {.kind = NETWORK_FAILED};
	struct http_answer answer;
	bool ok;

	if (http_client_send(client, &request, &answer, &failed.error))
		ok = tell_answer(channel, &answer);
	else
		ok = say(channel, &failed, sizeof failed);
	http_answer_release(&answer);
	return ok;
}

static void *serve(void *argument)
{
	const int channel = (int)(intptr_t)argument;
	const struct http_client_options options = {.url = &settings.url,
						    .tls = tls,
						    .timeout_ms = settings.timeout_ms,
						    .interrupt_fd = channel};
	struct http_client *client = http_client_new(&options, NULL);
	struct network_request asked;

	while (client && recv(channel, &asked, sizeof asked, 0) == sizeof asked &&
	       ask_server(client, channel, &asked))
		;
	http_client_free(client);
	close(channel);
	return NULL;
}

static void start_serving(int channel)
{
	pthread_attr_t attributes;
	pthread_t thread;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	if (pthread_create(&thread, &attributes, serve, (void *)(intptr_t)channel))
		close(channel);
	pthread_attr_destroy(&attributes);
}

static void enter(void)
{
	prctl(PR_SET_NAME, "farflame-net"); /* 15 characters at most */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	close_range(OWN_CHILD_SOCKET + 1, ~0U, 0);
	signal(SIGPIPE, SIG_IGN);
	mallopt(M_ARENA_MAX, 1);
	mallopt(M_MMAP_THRESHOLD, 64 << 10);
	mallopt(M_TRIM_THRESHOLD, 64 << 10);
	/* Sending can wait, whatever the agent's haste. */
	if (getpriority(PRIO_PROCESS, 0) < 0)
		setpriority(PRIO_PROCESS, 0, 0);
}

/* False: it cannot work. True, with a message: it works, with more rights than it should have. */
static bool drop_rights(struct error *err)
{
	const struct sandbox_limits limits = {.memory_bytes = MEMORY_BYTES_MAX,
					      .cpu_seconds = UINT32_MAX,
					      .open_files = DESCRIPTORS_MAX,
					      .has_network = true};
	const char *ca_file = text_or_none(settings.ca_file);

	if (settings.url.is_tls && !(tls = tls_context_new(ca_file, err)))
		return false;
	if (!sandbox_enter(&limits, err))
		err->kind = ERROR_NONE;
	malloc_trim(0); /* the filter was made of it */
	return true;
}

/* Ends by _exit(): what libraries do at exit the filter may forbid. */
int network_main(int argc, char **argv)
{
	struct error err = {0};
	int channel;
	bool ok;

	if (argc != 1 || strcmp(argv[0], NETWORK_NAME) != 0)
		return -1;
	enter();
	if (recv(OWN_CHILD_SOCKET, &settings, sizeof settings, 0) != sizeof settings)
		_exit(EXIT_FAILURE);
	ok = drop_rights(&err);
	if (!say(OWN_CHILD_SOCKET, &err, sizeof err) || !ok)
		_exit(EXIT_FAILURE);
	while (own_child_receive(OWN_CHILD_SOCKET, &channel) == 1)
		if (channel >= 0)
			start_serving(channel);
	_exit(EXIT_SUCCESS);
}
