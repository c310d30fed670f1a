/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies that are sent while they are written, to clients that read quickly, slowly, and no more.
 */
#include <pthread.h>

#include "common/gzip.h"
#include "symbol-server/http/http_private.h"
#include "tests/check.h"
#include "tests/unit/http/http_client.h"

enum {
	LENGTH = 12 << 20, /* of /long: more than sockets take by themselves */
	ROOM = LENGTH + (4 << 20),
	PATIENCE_MS = 20000,
};

static _Atomic int finished;  /* handlers that came to their end */
static _Atomic bool is_tired; /* what goes_on says */
static _Atomic bool was_gone;

/* Lines of seven digits: different at each place, and compressible. */
static void number_at(uint32_t i, char line[8])
{
	line[7] = '\n';
	for (int at = 6; at >= 0; at--, i /= 10)
		line[at] = (char)('0' + i % 10);
}

static void put_numbers(struct buffer *out, size_t length)
{
	char line[8];

	for (uint32_t i = 0; i < length / 8 && !out->failed; i++) {
		number_at(i, line);
		buffer_append(out, line, 8);
	}
}

static bool are_numbers(const char *bytes, size_t length)
{
	char line[8];

	for (uint32_t i = 0; i < length / 8; i++) {
		number_at(i, line);
		if (memcmp(bytes + (size_t)i * 8, line, 8))
			return false;
	}
	return true;
}

static bool goes_on(void *context)
{
	struct http_request *request = context;

	if (http_request_is_gone(request))
		was_gone = true;
	return !is_tired && !was_gone;
}

static void numbers(struct http_request *request, struct http_response *response, void *context)
{
	const char *end = http_request_query(request, "end");
	const char *length = http_request_query(request, "length");

	(void)context;
	response->content_type = "text/plain";
	http_request_stream(request, goes_on, request);
	put_numbers(&response->body, length ? strtoull(length, NULL, 10) : LENGTH);
	if (end && !strcmp(end, "broken")) {
		if (response->has_begun) {
			response->is_broken = true;
		} else {
			buffer_clear(&response->body);
			response->status = 422;
		}
	}
	finished++;
}

static const struct http_route routes[] = {
	{HTTP_GET, "/numbers", numbers, .may_take_long = true},
	{0},
};

static struct http_server *start(const char *spill_directory)
{
	struct http_options options = {.address = "127.0.0.1:0",
				       .threads = 2,
				       .workers = 4,
				       .connections = 100,
				       .memory_limit_bytes = 1 << 20,
				       .slow_body_s = 30,
				       .spill_directory = spill_directory};
	struct error err = {0};
	struct http_server *server = http_server_start(&options, routes, NULL, &err);

	CHECK(server);
	if (!server)
		exit(checks_done());
	finished = 0;
	is_tired = was_gone = false;
	return server;
}

static int ask(const struct http_server *server, const char *request)
{
	int fd = client_connect(http_server_port(server)), small = 128 << 10;
	char text[500];

	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	snprintf(text, sizeof(text), "%s\r\n\r\n", request);
	if (fd >= 0 && !client_send(fd, text, strlen(text)))
		CHECK(!"sent");
	return fd;
}

/* All there is until the connection is closed; the head as well. */
static char *read_all(int fd, size_t *length)
{
	char *bytes = malloc(ROOM + 1);
	ssize_t got;

	*length = 0;
	while ((got = recv(fd, bytes + *length, ROOM - *length, 0)) > 0)
		*length += (size_t)got;
	bytes[*length] = 0;
	close(fd);
	return bytes;
}

/* The chunks of a body joined in place. False: it does not end as it should. */
static bool join_chunks(char *bytes, size_t *length)
{
	char *at = strstr(bytes, "\r\n\r\n"), *end = bytes + *length, *out = bytes;

	for (at = at ? at + 4 : end; at < end;) {
		size_t size = strtoul(at, &at, 16);

		at += 2;
		if (!size || size > (size_t)(end - at)) {
			*length = (size_t)(out - bytes);
			return !size && at + 2 == end;
		}
		memmove(out, at, size);
		out += size;
		at += size + 2;
	}
	*length = (size_t)(out - bytes);
	return false;
}

static bool wait_until(bool (*is_so)(void *), void *context)
{
	int64_t until = client_now_ms() + PATIENCE_MS;

	while (!is_so(context) && client_now_ms() < until)
		usleep(1000);
	return is_so(context);
}

static bool is_finished(void *count)
{
	return finished >= *(int *)count;
}

static bool has_no_files(void *server)
{
	struct http_counters counters;

	http_server_counters(server, &counters);
	return !counters.spilled_bytes;
}

static bool has_files(void *server)
{
	return !has_no_files(server);
}

static bool is_whole(int fd)
{
	size_t length;
	char *bytes = read_all(fd, &length);
	bool ok = !strncmp(bytes, "HTTP/1.1 200", 12) &&
		  strcasestr(bytes, "Transfer-Encoding: chunked") && join_chunks(bytes, &length) &&
		  length == LENGTH && are_numbers(bytes, length);

	free(bytes);
	return ok;
}

#define GET "GET /numbers HTTP/1.1\r\nHost: localhost\r\nConnection: close"

static void test_slow_reader(void)
{
	struct http_server *server = start("/tmp");
	struct http_counters counters;
	int one = 1, fd = ask(server, GET);

	/* Nothing was read yet, and the handler is done all the same. */
	CHECK(wait_until(is_finished, &one));
	CHECK(has_files(server));
	http_server_counters(server, &counters);
	CHECK(counters.spilled_bytes < LENGTH && counters.streams == 1);
	CHECK(is_whole(fd));
	CHECK(wait_until(has_no_files, server));
	CHECK(http_server_stop(server, 3000));
}

static void *read_later(void *context)
{
	usleep(200000);
	return is_whole(*(int *)context) ? context : NULL;
}

/* Without a file the handler waits for its client. */
static void test_waiting(void)
{
	struct http_server *server = start(NULL);
	int one = 1, fd = ask(server, GET);
	pthread_t reader;
	void *was_whole;

	usleep(100000);
	CHECK_NUMBER(finished, 0);
	pthread_create(&reader, NULL, read_later, &fd);
	CHECK(wait_until(is_finished, &one));
	pthread_join(reader, &was_whole);
	CHECK(was_whole);
	/* and no longer than it may */
	fd = ask(server, GET);
	usleep(50000);
	is_tired = true;
	one = 2;
	CHECK(wait_until(is_finished, &one));
	{
		size_t length;
		char *bytes = read_all(fd, &length);

		CHECK(!strncmp(bytes, "HTTP/1.1 200", strlen("HTTP/1.1 200")));
		CHECK(!join_chunks(bytes, &length) && length < LENGTH);
		CHECK(are_numbers(bytes, length));
		free(bytes);
	}
	CHECK(http_server_stop(server, 3000));
}

static void test_ends(void)
{
	struct http_server *server = start("/tmp");
	struct http_counters counters;
	size_t length;
	char *bytes;

	/* small ones are as they were */
	bytes = read_all(ask(server, "GET /numbers?length=1000 HTTP/1.1\r\nHost: localhost\r\n"
				     "Connection: close"),
			 &length);
	CHECK(strcasestr(bytes, "Content-Length: 1000\r\n"));
	free(bytes);
	bytes = read_all(ask(server,
			     "GET /numbers?length=1000&end=broken HTTP/1.1\r\nHost: localhost\r\n"
			     "Connection: close"),
			 &length);
	CHECK(!strncmp(bytes, "HTTP/1.1 422", strlen("HTTP/1.1 422")));
	free(bytes);
	/* large ones that fail late are seen to */
	bytes = read_all(ask(server, "GET /numbers?end=broken HTTP/1.1\r\nHost: localhost"),
			 &length);
	CHECK(!strncmp(bytes, "HTTP/1.1 200", strlen("HTTP/1.1 200")));
	CHECK(!join_chunks(bytes, &length));
	free(bytes);
	http_server_counters(server, &counters);
	CHECK_NUMBER(counters.broken_streams, 1);
	bytes = read_all(
		ask(server, "HEAD /numbers HTTP/1.1\r\nHost: localhost\r\nConnection: close"),
		&length);
	CHECK(!strncmp(bytes, "HTTP/1.1 200", strlen("HTTP/1.1 200")));
	CHECK(length < 1000);
	free(bytes);
	/* of old: no chunks, the end is the connection's */
	bytes = read_all(ask(server, "GET /numbers HTTP/1.0"), &length);
	CHECK(strstr(bytes, "\r\n\r\n") && are_numbers(strstr(bytes, "\r\n\r\n") + 4, LENGTH / 2) &&
	      length > LENGTH);
	free(bytes);
	CHECK(http_server_stop(server, 3000));
}

static void test_gzip(void)
{
	struct http_server *server = start("/tmp");
	struct buffer plain = {.limit = ROOM};
	size_t length;
	char *bytes = read_all(ask(server, GET "\r\nAccept-Encoding: gzip"), &length);

	CHECK(strcasestr(bytes, "Content-Encoding: gzip"));
	CHECK(join_chunks(bytes, &length) && length < LENGTH / 2);
	CHECK(gzip_inflate(bytes, length, &plain, NULL));
	CHECK(plain.length == LENGTH && are_numbers((char *)plain.bytes, plain.length));
	buffer_release(&plain);
	free(bytes);
	CHECK(http_server_stop(server, 3000));
}

/* A client that goes away, before and after its handler is done. */
static void test_leaving(void)
{
	struct http_server *server = start(NULL);
	int count = 1, fd = ask(server, GET);
	int64_t left;

	usleep(100000);
	CHECK_NUMBER(finished, 0);
	close(fd);
	left = client_now_ms();
	CHECK(wait_until(is_finished, &count));
	printf("# noticed after %d ms\n", (int)(client_now_ms() - left));
	CHECK(http_server_stop(server, 3000));
	server = start("/tmp");
	fd = ask(server, GET);
	CHECK(wait_until(is_finished, &count) && has_files(server));
	close(fd);
	CHECK(wait_until(has_no_files, server));
	CHECK(http_server_stop(server, 3000));
}

/* A server that stops while one handler waits and one client has not read. */
static void test_stopping(void)
{
	struct http_server *server = start(NULL);
	int fd = ask(server, GET);
	size_t length;
	char *bytes;

	usleep(100000);
	CHECK(http_server_stop(server, 100));
	bytes = read_all(fd, &length);
	CHECK(!join_chunks(bytes, &length));
	free(bytes);
}

static void *read_many(void *context)
{
	struct http_server *server = context;

	for (int i = 0; i < 3; i++)
		if (!is_whole(ask(server, GET)))
			return NULL;
	return context;
}

static void test_many(void)
{
	struct http_server *server = start("/tmp");
	pthread_t readers[4];

	for (int i = 0; i < 4; i++)
		pthread_create(&readers[i], NULL, read_many, server);
	for (int i = 0; i < 4; i++) {
		void *were_whole;

		pthread_join(readers[i], &were_whole);
		CHECK(were_whole);
	}
	CHECK(wait_until(has_no_files, server));
	CHECK(http_server_stop(server, 3000));
}

int main(void)
{
	test_slow_reader();
	test_waiting();
	test_ends();
	test_gzip();
	test_leaving();
	test_stopping();
	test_many();
	return checks_done();
}
