/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/check.h"

#include "node-agent/network/http_client.h"
#include "tests/unit/ship/scripted_server.h"

static struct scripted_server server;
static struct http_answer answer;
static struct error err;

/* A client of a server that behaves so. */
static struct http_client *begin(struct scripted_server script, int timeout_ms)
{
	static struct url url;
	struct http_client_options options = {
		.url = &url, .timeout_ms = timeout_ms, .interrupt_fd = -1};

	server = script;
	server_start(&server, 0);
	err = (struct error){0};
	if (!url_parse(server.url, &url, &err))
		printf("# %s\n", err.message);
	return http_client_new(&options, &err);
}

static void end(struct http_client *client)
{
	http_client_free(client);
	server_stop(&server);
}

static bool post(struct http_client *client, const char *text)
{
	struct http_request request = {
		.method = "POST", .path = "/x", .content_type = "text/plain", .bearer = "secret"};
	size_t half = strlen(text) / 2;

	request.pieces[0] = (struct bytes){(const uint8_t *)text, half};
	request.pieces[1] = (struct bytes){(const uint8_t *)text + half, strlen(text) - half};
	return http_client_send(client, &request, &answer, &err);
}

/* --- what the server does, by the number of the request --- */

static bool answer_kept(struct scripted_server *s, int fd, const struct seen_request *request,
			unsigned nth)
{
	(void)s;
	(void)request;
	if (nth == 2) {
		server_say(fd, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nchun");
		usleep(50000);
		server_say(fd, "\r\n1\r\nk\r\n0\r\n\r\n");
		return true;
	}
	server_answer(fd, 200, "", "plain");
	return nth != 3; /* closes after the third without saying so */
}

static void check_keep_alive(void)
{
	struct http_client *client = begin((struct scripted_server){.answer = answer_kept}, 2000);

	for (int i = 1; i <= 4; i++) {
		CHECK(post(client, "two pieces"));
		CHECK_NUMBER(answer.status, 200);
		CHECK(answer.body.length == 5 &&
		      !memcmp(answer.body.bytes, i == 2 ? "chunk" : "plain", 4));
		http_answer_release(&answer);
		usleep(20000);
	}
	CHECK_NUMBER(server.seen[0].connection, 1);
	CHECK_NUMBER(server.seen[2].connection, 1);
	CHECK_NUMBER(server.seen[3].connection, 2);
	CHECK_TEXT((char *)server.seen[0].body, "two pieces");
	CHECK(strstr(server.seen[0].head, "POST /x HTTP/1.1\r\nHost: 127.0.0.1:"));
	CHECK(strstr(server.seen[0].head, "\r\nAuthorization: Bearer secret\r\n"));
	end(client);
}

/* The server takes the request on a kept connection and closes it without a word: once more, on a
 * new one; but never again when something was heard. */
static bool answer_race(struct scripted_server *s, int fd, const struct seen_request *request,
			unsigned nth)
{
	(void)s;
	(void)request;
	if (nth == 2)
		return false;
	if (nth == 4) {
		server_say(fd, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf");
		return false;
	}
	server_answer(fd, 200, "", "fine");
	return true;
}

static void check_race(void)
{
	struct http_client *client = begin((struct scripted_server){.answer = answer_race}, 2000);

	CHECK(post(client, "a"));
	http_answer_release(&answer);
	CHECK(post(client, "b"));
	CHECK_NUMBER(server_count(&server), 3);
	http_answer_release(&answer);
	CHECK(!post(client, "c"));
	CHECK(strstr(err.message, "in the middle of the answer"));
	CHECK_NUMBER(server_count(&server), 4);
	http_answer_release(&answer);
	end(client);
}

static void say_garbage(struct scripted_server *s, int fd)
{
	(void)s;
	server_say(fd, "220 smtp.example ESMTP\r\n");
	usleep(100000);
}

static void say_nothing(struct scripted_server *s, int fd)
{
	char byte;

	(void)s;
	while (recv(fd, &byte, 1, 0) > 0)
		;
}

static void say_slowly(struct scripted_server *s, int fd)
{
	static const char text[] = "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n";

	(void)s;
	server_say(fd, text);
	for (int i = 0; i < 100; i++) {
		if (send(fd, "x", 1, MSG_NOSIGNAL) < 0)
			return;
		usleep(50000);
	}
}

static void check_raw(void (*raw)(struct scripted_server *, int), const char *want)
{
	struct http_client *client = begin((struct scripted_server){.raw = raw}, 300);
	struct http_request request = {.method = "POST", .path = "/", .content_type = "text/plain"};

	request.deadline_ms = monotonic_ms() + 800;
	CHECK(!http_client_send(client, &request, &answer, &err));
	if (!CHECK(strstr(err.message, want)))
		printf("# %s\n", err.message);
	CHECK(monotonic_ms() < request.deadline_ms + 500);
	http_answer_release(&answer);
	end(client);
}

/* Nobody listens there. */
static void check_refused(void)
{
	struct http_client *client = begin((struct scripted_server){.answer = answer_kept}, 1000);

	server_stop(&server);
	CHECK(!post(client, "x"));
	CHECK(strstr(err.message, "Connection refused"));
	http_answer_release(&answer);
	http_client_free(client);
}

/* --- a large body from a source, refused in its middle --- */

static void refuse_early(struct scripted_server *s, int fd)
{
	char bytes[1000];

	(void)s;
	if (recv(fd, bytes, sizeof bytes, 0) > 0)
		server_answer(fd, 413, "Connection: close\r\n", "too much");
	usleep(300000);
}

static int64_t endless(void *context, uint64_t offset, void *bytes, size_t room)
{
	(void)offset;
	++*(unsigned *)context;
	usleep(2000);
	memset(bytes, 'e', room);
	return (int64_t)room;
}

static void check_early_answer(void)
{
	unsigned reads = 0;
	struct http_request request = {.method = "PUT",
				       .path = "/big",
				       .content_type = "application/octet-stream",
				       .source = endless,
				       .context = &reads,
				       .source_length = 1 << 30};
	struct http_client *client = begin((struct scripted_server){.raw = refuse_early}, 3000);

	CHECK(http_client_send(client, &request, &answer, &err));
	CHECK_NUMBER(answer.status, 413);
	CHECK(reads < 1000);
	http_answer_release(&answer);
	end(client);
}

int main(void)
{
	check_keep_alive();
	check_race();
	check_raw(say_garbage, "not HTTP");
	check_raw(say_nothing, "no progress in time");
	check_raw(say_slowly, "no progress in time");
	check_refused();
	check_early_answer();
	return checks_done();
}
