/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/http/http_server.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "symbol-server/http/http_private.h"

enum {
	BACKLOG = 4096,
	/* holds the request line and headers: a selector of 8192 characters as they are has to
	 * fit. What is larger libmicrohttpd answers itself, with 414 or 431 in HTML. It clears all
	 * of it after each request, so ten thousand agents' idle connections have it resident. */
	CONNECTION_MEMORY = 12 << 10,
	SPARE_DESCRIPTORS = 256, /* for the rest of the program */
	BIND_PAUSE_MS = 50,
	BIND_TIMES = 20,
};

/* "127.0.0.1:7878", "[::1]:0", "localhost:80" → host and port. */
static bool split_address(const char *address, char host[256], char port[16], struct error *err)
{
	const char *colon = strrchr(address, ':');
	size_t length = colon ? (size_t)(colon - address) : 0;
	const char *at = address;

	if (length > 1 && *at == '[' && at[length - 1] == ']') {
		at++;
		length -= 2;
	}
	if (!colon || !length || length > 255 || !colon[1] || strlen(colon + 1) > 5 ||
	    colon[1 + strspn(colon + 1, "0123456789")] || atoi(colon + 1) > UINT16_MAX)
		return error_set(err, ERROR_OPTION,
				 "'%s' is not an address and port such as 127.0.0.1:7878", address);
	snprintf(host, 256, "%.*s", (int)length, at);
	snprintf(port, 16, "%s", colon + 1);
	return true;
}

/* A child that was being made when the server before was killed may have its socket for a moment.
 */
static bool bind_soon(int fd, const struct addrinfo *found)
{
	const struct timespec pause = {.tv_nsec = BIND_PAUSE_MS * 1000000};

	for (int i = 0; bind(fd, found->ai_addr, found->ai_addrlen); i++) {
		if (errno != EADDRINUSE || i == BIND_TIMES)
			return false;
		nanosleep(&pause, NULL);
	}
	return true;
}

static bool listen_at(struct http_server *server, const struct addrinfo *found, struct error *err)
{
	const char *address = server->options.address;
	struct sockaddr_storage bound;
	socklen_t length = sizeof(bound);
	int one = 1, fd;

	fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return error_set_system(err, errno, "listen on %s", address);
	server->listen_fd = fd;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (!bind_soon(fd, found) || listen(fd, BACKLOG) ||
	    getsockname(fd, (struct sockaddr *)&bound, &length))
		return error_set_system(err, errno, "listen on %s", address);
	server->port = ntohs(bound.ss_family == AF_INET6
				     ? ((struct sockaddr_in6 *)&bound)->sin6_port
				     : ((struct sockaddr_in *)&bound)->sin_port);
	return true;
}

static bool open_socket(struct http_server *server, struct error *err)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
				 .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
	struct addrinfo *found = NULL;
	char host[256], port[16];
	bool ok;
	int failed;

	if (!split_address(server->options.address, host, port, err))
		return false;
	failed = getaddrinfo(host, port, &hints, &found);
	if (failed)
		return error_set(err, ERROR_OPTION, "listen on %s: %s", server->options.address,
				 gai_strerror(failed));
	ok = listen_at(server, found, err);
	freeaddrinfo(found);
	return ok;
}

/* Those that are being closed have their places until libmicrohttpd has seen it. */
static unsigned spare_connections(unsigned most)
{
	return 64 + most / 16;
}

/* As many connections as asked for, or as the descriptor limit allows. */
static unsigned connection_limit(unsigned connections)
{
	unsigned wanted = connections + spare_connections(connections);
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return connections;
	if (limit.rlim_cur < limit.rlim_max && limit.rlim_cur < wanted + SPARE_DESCRIPTORS) {
		limit.rlim_cur = wanted + SPARE_DESCRIPTORS < limit.rlim_max
					 ? wanted + SPARE_DESCRIPTORS
					 : limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	if (limit.rlim_cur >= (rlim_t)wanted + SPARE_DESCRIPTORS)
		return connections;
	log_warn("fewer connections than asked for", "limit=%llu asked=%u",
		 (unsigned long long)limit.rlim_cur, connections);
	wanted = limit.rlim_cur > 2 * SPARE_DESCRIPTORS
			 ? (unsigned)limit.rlim_cur - SPARE_DESCRIPTORS
			 : SPARE_DESCRIPTORS;
	return wanted > 128 ? (wanted - 64) / 17 * 16 : wanted;
}

/* A client that goes away in the middle of something is an everyday event. */
static void library_log(void *context, const char *format, va_list arguments)
	__attribute__((format(printf, 2, 0)));
static void library_log(void *context, const char *format, va_list arguments)
{
	char text[300];

	(void)context;
	vsnprintf(text, sizeof(text), format, arguments);
	text[strcspn(text, "\n")] = 0;
	log_debug("libmicrohttpd", "message=\"%s\"", text);
}

/* MHD_quiesce_daemon() would do it, but takes the socket away from threads that may do so at the
 * same time, and aborts then (0.9.75). */
static enum MHD_Result accepts(void *context, const struct sockaddr *address, socklen_t length)
{
	const struct http_server *server = context;

	(void)address, (void)length;
	return server->is_closed ? MHD_NO : MHD_YES;
}

static bool start_daemon(struct http_server *server, unsigned most, struct error *err)
{
	unsigned threads = server->options.threads ? server->options.threads : 1;
	struct MHD_OptionItem options[] = {
		{MHD_OPTION_LISTEN_SOCKET, server->listen_fd, NULL},
		{MHD_OPTION_CONNECTION_LIMIT, most + spare_connections(most), NULL},
		{MHD_OPTION_CONNECTION_MEMORY_LIMIT, CONNECTION_MEMORY, NULL},
		{MHD_OPTION_CONNECTION_TIMEOUT, HTTP_IDLE_S, NULL},
		{MHD_OPTION_STRICT_FOR_CLIENT, 1, NULL},
		{threads > 1 ? MHD_OPTION_THREAD_POOL_SIZE : MHD_OPTION_END, threads, NULL},
		{MHD_OPTION_END, 0, NULL},
	};

	server->daemon = MHD_start_daemon(
		MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ITC |
			MHD_USE_ERROR_LOG,
		0, accepts, server, http_exchange_access, server, MHD_OPTION_EXTERNAL_LOGGER,
		library_log, NULL, MHD_OPTION_URI_LOG_CALLBACK, http_exchange_uri, server,
		MHD_OPTION_NOTIFY_COMPLETED, http_exchange_completed, server,
		MHD_OPTION_NOTIFY_CONNECTION, http_connections_notify, server, MHD_OPTION_ARRAY,
		options, MHD_OPTION_END);
	if (!server->daemon)
		return error_set(err, ERROR_SYSTEM, "start serving on %s: libmicrohttpd refused",
				 server->options.address);
	server->listen_fd = -1; /* libmicrohttpd's */
	return true;
}

struct http_server *http_server_start(const struct http_options *options,
				      const struct http_route *routes, void *context,
				      struct error *err)
{
	struct http_server *server = calloc(1, sizeof(*server));
	unsigned most;

	if (!server) {
		error_set(err, ERROR_MEMORY, "out of memory");
		return NULL;
	}
	server->options = *options;
	server->routes = routes;
	server->context = context;
	server->listen_fd = -1;
	most = connection_limit(options->connections);
	if (open_socket(server, err) && http_connections_start(server, most, err) &&
	    http_workers_start(server, err) && start_daemon(server, most, err))
		return server;
	http_server_stop(server, 0);
	return NULL;
}

unsigned http_server_port(const struct http_server *server)
{
	return server->port;
}

static void wait_for_requests(struct http_server *server, int ms)
{
	int64_t until = monotonic_ms() + ms;

	/* An answer may be out before the worker that gave it has let go of its connection. */
	while ((server->answering || server->suspended) && monotonic_ms() < until)
		usleep(2000);
}

/* libmicrohttpd aborts when it is stopped with suspended connections: if one still is, it is left
 * to the end of the process. */
bool http_server_stop(struct http_server *server, int drain_ms)
{
	if (!server)
		return true;
	if (server->daemon) {
		server->is_closed = true;
		wait_for_requests(server, drain_ms);
		server->is_cancelling = true;
		wait_for_requests(server, drain_ms > 1000 ? drain_ms : 1000);
		if (server->suspended) {
			log_error("requests did not end in time", "count=%u", server->suspended);
			return false;
		}
		MHD_stop_daemon(server->daemon);
	}
	if (server->queue.threads)
		http_workers_stop(server);
	if (server->connections.linger)
		http_connections_stop(&server->connections);
	if (server->listen_fd >= 0)
		close(server->listen_fd);
	free(server);
	return true;
}

void http_server_counters(struct http_server *server, struct http_counters *out)
{
	*out = (struct http_counters){
		.requests = server->requests,
		.too_large = server->too_large,
		.refused_busy = server->refused_busy,
		.bytes_in = server->bytes_in,
		.bytes_out = server->bytes_out,
		.streams = server->streams,
		.broken_streams = server->broken_streams,
		.spilled_bytes = server->spilled,
	};
	for (int i = 0; i < HTTP_REFUSAL_COUNT; i++)
		out->refused[i] = server->refused[i];
	for (int i = 0; i < 6; i++)
		out->responses_by_class[i] = server->responses_by_class[i];
	pthread_mutex_lock(&server->connections.lock);
	for (int i = 0; i < HTTP_STANDINGS; i++)
		out->connections_now += server->connections.counts[i];
	out->connections_known = server->connections.counts[HTTP_KNOWN];
	out->connections_total = server->connections.total;
	memcpy(out->closed, server->connections.closed, sizeof(out->closed));
	pthread_mutex_unlock(&server->connections.lock);
	pthread_mutex_lock(&server->queue.lock);
	out->waiting = server->queue.waiting;
	out->long_waiting = server->queue.long_waiting;
	out->long_running = server->queue.long_running;
	pthread_mutex_unlock(&server->queue.lock);
	for (int kind = 0; kind < HTTP_KIND_COUNT; kind++) {
		for (int i = 0; i <= HTTP_LATENCY_BOUNDS; i++)
			out->latency[kind].counts[i] = server->latency[kind].counts[i];
		out->latency[kind].sum_ms = server->latency[kind].sum_ms;
	}
}
