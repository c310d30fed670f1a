/* SPDX-License-Identifier: Apache-2.0 */
/* A server on loopback that does what a test tells it: every request is read whole and kept, and
 * the test's function writes whatever it likes as the answer. One thread per connection. */
#ifndef TESTS_UNIT_SHIP_SCRIPTED_SERVER_H
#define TESTS_UNIT_SHIP_SCRIPTED_SERVER_H

#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SEEN_MAX = 256, CONNECTIONS_MAX = 256 };

struct seen_request {
	char head[2048];
	uint8_t *body;
	size_t length;
	unsigned connection; /* 1, 2 … */
};

struct scripted_server {
	int listener;
	uint16_t port;
	char url[64];
	/* Called without the lock. nth: 1, 2 … over all connections. False: the connection is
	 * closed. */
	bool (*answer)(struct scripted_server *server, int fd, const struct seen_request *request,
		       unsigned nth);
	/* Called instead of reading anything, when set. */
	void (*raw)(struct scripted_server *server, int fd);
	void *context;
	pthread_mutex_t lock;
	pthread_t acceptor, threads[CONNECTIONS_MAX];
	int fds[CONNECTIONS_MAX];
	unsigned connections;
	struct seen_request seen[SEEN_MAX];
	unsigned count;
};

__attribute__((unused)) static void server_say(int fd, const char *text)
{
	(void)!send(fd, text, strlen(text), MSG_NOSIGNAL);
}

__attribute__((unused)) static void server_answer(int fd, int status, const char *fields,
						  const char *body)
{
	char text[4096];

	snprintf(text, sizeof text, "HTTP/1.1 %d Text\r\nContent-Length: %zu\r\n%s\r\n%s", status,
		 strlen(body), fields, body);
	server_say(fd, text);
}

static bool scripted_read(int fd, struct seen_request *request)
{
	size_t used = 0;
	char *end = NULL, *field;

	memset(request, 0, sizeof *request);
	while (!end) {
		ssize_t got = recv(fd, request->head + used, 1, 0);

		if (got <= 0 || used + 2 > sizeof request->head)
			return false;
		used++;
		request->head[used] = '\0';
		end = strstr(request->head, "\r\n\r\n");
	}
	field = strcasestr(request->head, "\r\nContent-Length:");
	request->length = field ? strtoull(field + 17, NULL, 10) : 0;
	request->body = malloc(request->length + 1);
	for (used = 0; used < request->length;) {
		ssize_t got = recv(fd, request->body + used, request->length - used, 0);

		if (got <= 0) {
			free(request->body);
			return false;
		}
		used += (size_t)got;
	}
	request->body[request->length] = '\0';
	return true;
}

struct scripted_connection {
	struct scripted_server *server;
	int fd;
	unsigned number;
};

static void *scripted_serve(void *argument)
{
	struct scripted_connection connection = *(struct scripted_connection *)argument;
	struct scripted_server *server = connection.server;
	struct seen_request request;
	bool keep = true;

	free(argument);
	if (server->raw) {
		server->raw(server, connection.fd);
		keep = false;
	}
	while (keep && scripted_read(connection.fd, &request)) {
		unsigned nth;

		request.connection = connection.number;
		pthread_mutex_lock(&server->lock);
		if (server->count < SEEN_MAX)
			server->seen[server->count] = request;
		nth = ++server->count;
		pthread_mutex_unlock(&server->lock);
		keep = server->answer(server, connection.fd, &request, nth);
	}
	shutdown(connection.fd, SHUT_RDWR);
	return NULL;
}

static void *scripted_accept(void *argument)
{
	struct scripted_server *server = argument;

	for (;;) {
		struct scripted_connection *connection;
		int fd = accept(server->listener, NULL, NULL);

		if (fd < 0)
			return NULL;
		if (server->connections == CONNECTIONS_MAX) {
			close(fd);
			continue;
		}
		connection = malloc(sizeof *connection);
		*connection = (struct scripted_connection){server, fd, server->connections + 1};
		pthread_mutex_lock(&server->lock);
		server->fds[server->connections] = fd;
		pthread_create(&server->threads[server->connections++], NULL, scripted_serve,
			       connection);
		pthread_mutex_unlock(&server->lock);
	}
}

/* port 0: any. */
static void server_start(struct scripted_server *server, uint16_t port)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_port = htons(port),
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof address;
	int on = 1;

	pthread_mutex_init(&server->lock, NULL);
	server->listener = socket(AF_INET, SOCK_STREAM, 0);
	setsockopt(server->listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (bind(server->listener, (struct sockaddr *)&address, size) < 0 ||
	    listen(server->listener, 64) < 0)
		perror("# scripted server");
	getsockname(server->listener, (struct sockaddr *)&address, &size);
	server->port = ntohs(address.sin_port);
	snprintf(server->url, sizeof server->url, "http://127.0.0.1:%u", server->port);
	pthread_create(&server->acceptor, NULL, scripted_accept, server);
}

static void server_stop(struct scripted_server *server)
{
	shutdown(server->listener, SHUT_RDWR);
	pthread_join(server->acceptor, NULL);
	close(server->listener);
	for (unsigned i = 0; i < server->connections; i++) {
		shutdown(server->fds[i], SHUT_RDWR);
		pthread_join(server->threads[i], NULL);
		close(server->fds[i]);
	}
	for (unsigned i = 0; i < server->count && i < SEEN_MAX; i++)
		free(server->seen[i].body);
	server->count = server->connections = 0;
}

__attribute__((unused)) static unsigned server_count(struct scripted_server *server)
{
	unsigned count;

	pthread_mutex_lock(&server->lock);
	count = server->count;
	pthread_mutex_unlock(&server->lock);
	return count;
}

/* Requests seen so far whose head begins with text. */
__attribute__((unused)) static unsigned server_count_of(struct scripted_server *server,
							const char *text)
{
	unsigned found = 0;

	pthread_mutex_lock(&server->lock);
	for (unsigned i = 0; i < server->count && i < SEEN_MAX; i++)
		found += !strncmp(server->seen[i].head, text, strlen(text));
	pthread_mutex_unlock(&server->lock);
	return found;
}

/* Waits until there are so many of them; false after limit_ms. */
__attribute__((unused)) static bool server_wait(struct scripted_server *server, const char *text,
						unsigned count, int limit_ms)
{
	for (; limit_ms > 0; limit_ms -= 10) {
		if (server_count_of(server, text) >= count)
			return true;
		usleep(10000);
	}
	return false;
}

#endif
