/* SPDX-License-Identifier: Apache-2.0 */
/* Raw sockets for tests: what is sent is exactly what the test says. */
#ifndef TESTS_UNIT_HTTP_HTTP_CLIENT_H
#define TESTS_UNIT_HTTP_HTTP_CLIENT_H

#include <arpa/inet.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

struct reply {
	int status; /* 0: the connection was closed without an answer */
	char head[4096];
	char *body; /* NUL-terminated, free with reply_release() */
	size_t length;
};

__attribute__((unused)) static int64_t client_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

__attribute__((unused)) static int client_connect(unsigned port)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_port = htons((uint16_t)port),
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address))) {
		close(fd);
		return -1;
	}
	return fd;
}

/* False: the other side is gone. */
__attribute__((unused)) static bool client_send(int fd, const void *bytes, size_t length)
{
	const char *at = bytes;

	while (length) {
		ssize_t sent = send(fd, at, length, MSG_NOSIGNAL);

		if (sent <= 0)
			return false;
		at += sent;
		length -= (size_t)sent;
	}
	return true;
}

__attribute__((unused)) static void reply_release(struct reply *reply)
{
	free(reply->body);
	reply->body = NULL;
}

/* Value of a header, or "". */
__attribute__((unused)) static const char *reply_header(const struct reply *reply, const char *name)
{
	static char value[1024];
	const char *at = reply->head;
	size_t length = strlen(name);

	*value = 0;
	while ((at = strstr(at, "\r\n"))) {
		at += 2;
		if (strncasecmp(at, name, length) || at[length] != ':')
			continue;
		at += length + 1 + strspn(at + length + 1, " ");
		snprintf(value, sizeof(value), "%.*s", (int)strcspn(at, "\r"), at);
		break;
	}
	return value;
}

/* One response of a connection that may stay open; timeout_ms in all. HEAD: no body is read. */
__attribute__((unused)) static struct reply client_read(int fd, bool is_head, int timeout_ms)
{
	struct reply reply = {0};
	int64_t until = client_now_ms() + timeout_ms;
	size_t capacity = 1 << 16, length = 0, head = 0, wanted = SIZE_MAX;
	char *bytes = malloc(capacity + 1);

	while (length < wanted) {
		struct pollfd ready = {.fd = fd, .events = POLLIN};
		int64_t left = until - client_now_ms();
		ssize_t got;

		if (left <= 0 || poll(&ready, 1, (int)left) <= 0)
			break;
		if (length == capacity)
			bytes = realloc(bytes, (capacity *= 2) + 1);
		got = recv(fd, bytes + length, capacity - length, 0);
		if (got <= 0)
			break;
		length += (size_t)got;
		bytes[length] = 0;
		if (!head && strstr(bytes, "\r\n\r\n")) {
			head = (size_t)(strstr(bytes, "\r\n\r\n") - bytes) + 4;
			snprintf(reply.head, sizeof(reply.head), "%.*s", (int)head, bytes);
			if (sscanf(bytes, "HTTP/1.%*d %d", &reply.status) != 1)
				reply.status = -1;
			if (*reply_header(&reply, "Content-Length"))
				wanted = head +
					 (is_head ? 0
						  : strtoull(reply_header(&reply, "Content-Length"),
							     NULL, 10));
		}
	}
	reply.length = length > head ? length - head : 0;
	memmove(bytes, bytes + head, reply.length);
	bytes[reply.length] = 0;
	reply.body = bytes;
	return reply;
}

/* One request on a connection of its own. headers end in \r\n each; body may be NULL. */
__attribute__((unused)) static struct reply client_ask(unsigned port, const char *method,
						       const char *target, const char *headers,
						       const void *body, size_t length)
{
	int fd = client_connect(port);
	struct reply reply = {0};
	size_t room = strlen(target) + strlen(headers) + 256;
	char *head = malloc(room);
	char announced[64] = "";

	if (fd < 0) {
		free(head);
		reply.body = calloc(1, 1);
		return reply;
	}
	if (body)
		snprintf(announced, sizeof(announced), "Content-Length: %zu\r\n", length);
	snprintf(head, room, "%s %s HTTP/1.1\r\nHost: localhost\r\n%s%s\r\n", method, target,
		 headers, announced);
	client_send(fd, head, strlen(head));
	if (body)
		client_send(fd, body, length); /* may fail: refused before it was read */
	reply = client_read(fd, !strcmp(method, "HEAD"), 10000);
	free(head);
	close(fd);
	return reply;
}

#endif
