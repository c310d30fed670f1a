/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/network/connection.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CONNECT_MIN_MS = 500 }; /* per address, however many there are */

struct connection {
	int fd;
	struct tls *tls;
};

static bool finish_connect(int fd, const struct wait_limits *limits, struct error *err)
{
	int failure = 0;
	socklen_t size = sizeof failure;

	if (!wait_for_descriptor(fd, POLLOUT, limits, "connecting", err))
		return false;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &failure, &size) < 0)
		failure = errno;
	return !failure || error_set_system(err, failure, "connect");
}

static int connect_address(const struct addrinfo *address, const struct wait_limits *limits,
			   struct error *err)
{
	int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int on = 1;

	if (fd < 0) {
		error_set_system(err, errno, "socket");
		return -1;
	}
	/* A request is written in a few pieces and then waited for: never hold the last one back.
	 */
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	if (connect(fd, address->ai_addr, address->ai_addrlen) < 0 && errno != EINPROGRESS) {
		error_set_system(err, errno, "connect");
		goto fail;
	}
	if (finish_connect(fd, limits, err))
		return fd;
fail:
	close(fd);
	return -1;
}

/* The time for connecting is shared out, so that one dead address does not use it up. */
static int connect_any(const struct addrinfo *addresses, const struct wait_limits *limits,
		       struct error *err)
{
	int64_t until = monotonic_ms() + limits->step_ms;
	int left = 0, fd = -1;

	for (const struct addrinfo *a = addresses; a; a = a->ai_next)
		left++;
	for (const struct addrinfo *a = addresses; a && fd < 0; a = a->ai_next, left--) {
		struct wait_limits mine = *limits;

		mine.step_ms = (int)((until - monotonic_ms()) / left);
		if (mine.step_ms < CONNECT_MIN_MS)
			mine.step_ms = CONNECT_MIN_MS;
		fd = connect_address(a, &mine, err);
		if (fd < 0 && err && err->kind == ERROR_BUSY)
			break;
	}
	return fd;
}

static int connect_name(const struct url *url, const struct wait_limits *limits, struct error *err)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
	struct addrinfo *addresses = NULL;
	int failure = getaddrinfo(url->host, url->port, &hints, &addresses);
	int fd;

	if (failure) {
		error_set(err, ERROR_REMOTE, "no address for '%s': %s", url->host,
			  failure == EAI_SYSTEM ? strerror(errno) : gai_strerror(failure));
		return -1;
	}
	fd = connect_any(addresses, limits, err);
	freeaddrinfo(addresses);
	if (fd < 0)
		error_prefix(err, "%s", url->authority);
	return fd;
}

struct connection *connection_open(const struct url *url, struct tls_context *tls,
				   const struct wait_limits *limits, struct error *err)
{
	struct error own = {0};
	struct connection *connection = calloc(1, sizeof *connection);

	err = err ? err : &own;
	if (!connection) {
		error_set(err, ERROR_MEMORY, "no memory for a connection");
		return NULL;
	}
	connection->fd = connect_name(url, limits, err);
	if (connection->fd < 0)
		goto fail;
	if (!tls)
		return connection;
	connection->tls = tls_open(tls, connection->fd, url->host, limits, err);
	if (connection->tls)
		return connection;
	error_prefix(err, "%s", url->authority);
fail:
	connection_close(connection);
	return NULL;
}

static bool plain_write(int fd, const char *at, size_t length, const struct wait_limits *limits,
			struct error *err)
{
	while (length) {
		ssize_t sent = send(fd, at, length, MSG_NOSIGNAL);

		if (sent >= 0) {
			at += sent;
			length -= (size_t)sent;
		} else if (errno == EAGAIN) {
			if (!wait_for_descriptor(fd, POLLOUT, limits, "sending", err))
				return false;
		} else if (errno != EINTR) {
			return error_set_system(err, errno, "send");
		}
	}
	return true;
}

bool connection_write(struct connection *connection, const void *bytes, size_t length,
		      const struct wait_limits *limits, struct error *err)
{
	if (connection->tls)
		return tls_write(connection->tls, bytes, length, limits, err);
	return plain_write(connection->fd, bytes, length, limits, err);
}

bool connection_read(struct connection *connection, void *bytes, size_t room, size_t *got,
		     const struct wait_limits *limits, struct error *err)
{
	if (connection->tls)
		return tls_read(connection->tls, bytes, room, got, limits, err);
	for (;;) {
		ssize_t length = recv(connection->fd, bytes, room, 0);

		if (length >= 0) {
			*got = (size_t)length;
			return true;
		}
		if (errno != EAGAIN && errno != EINTR)
			return error_set_system(err, errno, "receive");
		if (errno == EAGAIN && !wait_for_descriptor(connection->fd, POLLIN, limits,
							    "waiting for the answer", err))
			return false;
	}
}

bool connection_has_input(const struct connection *connection)
{
	struct pollfd polls = {.fd = connection->fd, .events = POLLIN};

	return !connection->tls && poll(&polls, 1, 0) > 0;
}

void connection_close(struct connection *connection)
{
	if (!connection)
		return;
	tls_close(connection->tls);
	if (connection->fd >= 0)
		close(connection->fd);
	free(connection);
}
