/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/network/network.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/log.h"
#include "node-agent/kernel/own_child.h"
#include "node-agent/network/back_off.h"
#include "node-agent/network/network_messages.h"
#include "node-agent/network/wait.h"

enum {
	START_MS = 30 * 1000,  /* to read certificates, where CPUs are short */
	STEADY_MS = 60 * 1000, /* a child that lives so long has not failed at once */
	SOCKET_BYTES = 256 << 10,
	END_WAITS = 500, /* of a ms, for a killed child's end */
};

struct network {
	struct network_settings settings;
	const char *token_file; /* NULL: none */
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

static bool check_token(const char *path, struct error *err)
{
	struct token token = {.path = path};

	if (token_refresh(&token, err))
		return true;
	err->kind = ERROR_OPTION;
	return error_prefix(err, "--token-file");
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
	network->token_file = options->token_file;
	if (url_parse(options->server_url, &settings->url, err) &&
	    check_token(options->token_file, err) && start_child(network, err) &&
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

/* --- for its clients --- */

bool network_say_ended(struct network *network, struct error *err)
{
	bool is_ending;

	pthread_mutex_lock(&network->lock);
	is_ending = network->is_ending;
	pthread_mutex_unlock(&network->lock);
	return is_ending ? error_set(err, ERROR_BUSY, "stopped")
			 : error_set(err, ERROR_REMOTE, "the process of the network has ended");
}

void network_suspect(struct network *network)
{
	pthread_mutex_lock(&network->lock);
	network->is_unsound = true;
	pthread_mutex_unlock(&network->lock);
}

int network_channel(struct network *network, struct error *err)
{
	int sockets[2];
	bool is_sent;

	if (!open_pair(sockets, err))
		return -1;
	pthread_mutex_lock(&network->lock);
	is_sent = network->socket >= 0 && own_child_send(network->socket, sockets[1]);
	pthread_mutex_unlock(&network->lock);
	close(sockets[1]);
	if (is_sent)
		return sockets[0];
	close(sockets[0]);
	network_say_ended(network, err);
	return -1;
}

const char *network_token_file(const struct network *network)
{
	return network->token_file;
}
