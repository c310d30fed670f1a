/* SPDX-License-Identifier: Apache-2.0 */
/* Clients that are slow, many or large; starting and ending. */
#include "tests/unit/http/http_test_server.h"

enum { SLOW_CLIENTS = 100 };

/* Half of them stop in the headers, half in the body; meanwhile others are served as ever. */
static void test_slow_clients(struct http_server *server)
{
	struct http_counters before, after;
	int fds[SLOW_CLIENTS];
	int64_t worst = 0, start;
	struct reply reply;
	int closed = 0;

	http_server_counters(server, &before);
	for (int i = 0; i < SLOW_CLIENTS; i++) {
		const char *text =
			i % 2 ? "POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: "
				"1000\r\n\r\nabc"
			      : "GET /hello HT";

		fds[i] = client_connect(port);
		client_send(fds[i], text, strlen(text));
	}
	for (int i = 0; i < 50; i++) {
		start = client_now_ms();
		reply = client_ask(port, "GET", "/hello", "", NULL, 0);
		if (reply.status != 200)
			worst = 10000;
		reply_release(&reply);
		if (client_now_ms() - start > worst)
			worst = client_now_ms() - start;
	}
	printf("# slowest of 50 answers beside %d slow clients: %d ms\n", SLOW_CLIENTS, (int)worst);
	CHECK(worst <= 100);
	/* slow_body_s is 1 here */
	start = client_now_ms();
	for (int i = 1; i < SLOW_CLIENTS; i += 2) {
		reply = client_read(fds[i], false, (int)(4000 - (client_now_ms() - start)));
		closed += reply.status == 0;
		reply_release(&reply);
	}
	CHECK_NUMBER(closed, SLOW_CLIENTS / 2);
	http_server_counters(server, &after);
	CHECK_NUMBER(after.closed[HTTP_CLOSED_slow_body] - before.closed[HTTP_CLOSED_slow_body],
		     SLOW_CLIENTS / 2);
	for (int i = 0; i < SLOW_CLIENTS; i++)
		close(fds[i]);
}

/* Ten long requests and two workers: one of them stays for the quick ones. */
static void test_long_requests(void)
{
	static const char text[] = "GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n";
	int fds[10], answered = 0;
	int64_t start;

	for (int i = 0; i < 10; i++) {
		fds[i] = client_connect(port);
		client_send(fds[i], text, sizeof(text) - 1);
	}
	usleep(50000);
	start = client_now_ms();
	check_status("GET", "/hello", "", NULL, 0, 200, NULL);
	CHECK(client_now_ms() - start < 200);
	for (int i = 0; i < 10; i++) {
		struct reply reply = client_read(fds[i], false, 10000);

		answered += reply.status == 200;
		reply_release(&reply);
		close(fds[i]);
	}
	CHECK_NUMBER(answered, 10);
}

static void test_memory_limit(void)
{
	struct http_options options = {.threads = 1,
				       .workers = 2,
				       .connections = 100,
				       .memory_limit_bytes = 2000,
				       .slow_body_s = 5};
	unsigned other = port;
	struct http_server *server = test_server_start(&options);
	struct reply reply;
	char body[3000] = "";

	if (!server)
		return;
	check_status("POST", "/echo", "", body, 900, 200, NULL);
	reply = client_ask(port, "POST", "/echo", "", body, sizeof(body));
	CHECK_NUMBER(reply.status, 503);
	CHECK(atoi(reply_header(&reply, "Retry-After")) > 0);
	reply_release(&reply);
	check_status("POST", "/echo", "", body, 900, 200, NULL);
	CHECK(http_server_stop(server, 1000));
	port = other;
}

/* What is announced takes nothing; what has come is a share of the memory, and gives way. */
static void test_memory_of_silent_ones(void)
{
	static const char text[] =
		"POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n";
	struct http_options options = {.threads = 1,
				       .workers = 2,
				       .connections = 100,
				       .memory_limit_bytes = 200000,
				       .slow_body_s = 30};
	unsigned other = port;
	struct http_server *server = test_server_start(&options);
	struct http_counters counters;
	static char body[60000];
	int silent[30];

	if (!server)
		return;
	for (int i = 0; i < 30; i++) {
		silent[i] = client_connect(port);
		client_send(silent[i], text, sizeof(text) - 1);
	}
	check_status("POST", "/echo", "", body, 40000, 200, NULL);
	for (int i = 0; i < 3; i++)
		client_send(silent[i], body, 60000);
	usleep(100000);
	check_status("POST", "/echo", "", body, 60000, 503, NULL);
	for (int i = 0; i < 100; i++) {
		http_server_counters(server, &counters);
		if (counters.closed[HTTP_CLOSED_memory])
			break;
		usleep(100000);
	}
	CHECK(counters.closed[HTTP_CLOSED_memory] > 0);
	check_status("POST", "/echo", "", body, 60000, 200, NULL);
	for (int i = 0; i < 30; i++)
		close(silent[i]);
	CHECK(http_server_stop(server, 1000));
	port = other;
}

static int ask_kept(int fd, const char *text)
{
	struct reply reply;
	int status;

	client_send(fd, text, strlen(text));
	reply = client_read(fd, false, 5000);
	status = reply.status;
	reply_release(&reply);
	return status;
}

/* Those that are idle for longest go, those that have brought reports last. */
static void test_crowd(void)
{
	static const char get[] = "GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n";
	static const char report[] = "POST /report HTTP/1.1\r\nHost: localhost\r\n"
				     "Content-Length: 3\r\n\r\nabc";
	struct http_options options = {.threads = 2,
				       .workers = 2,
				       .connections = 40,
				       .memory_limit_bytes = 1 << 20,
				       .slow_body_s = 30};
	unsigned other = port;
	struct http_server *server = test_server_start(&options);
	struct http_counters counters;
	int known, asked, fds[300];

	if (!server)
		return;
	known = client_connect(port);
	CHECK_NUMBER(ask_kept(known, report), 200);
	for (int i = 0; i < 300; i++) {
		fds[i] = client_connect(port);
		client_send(fds[i], "GET /hel", 8);
	}
	asked = client_connect(port);
	CHECK_NUMBER(ask_kept(asked, get), 200);
	CHECK_NUMBER(ask_kept(known, report), 200);
	CHECK_NUMBER(ask_kept(known, report), 200);
	http_server_counters(server, &counters);
	CHECK_NUMBER(counters.connections_known, 1);
	CHECK(counters.closed[HTTP_CLOSED_crowded] >= 250);
	CHECK(counters.closed[HTTP_CLOSED_crowded] <= 262);
	close(known);
	close(asked);
	for (int i = 0; i < 300; i++)
		close(fds[i]);
	CHECK(http_server_stop(server, 1000));
	port = other;
}

static void test_start_failures(void)
{
	struct http_options options = {.threads = 1,
				       .workers = 2,
				       .connections = 10,
				       .memory_limit_bytes = 1 << 20,
				       .slow_body_s = 5};
	struct error err = {0};
	char taken[64];

	snprintf(taken, sizeof(taken), "127.0.0.1:%u", port);
	options.address = taken;
	CHECK(!http_server_start(&options, routes, NULL, &err));
	CHECK(strstr(err.message, "Address already in use"));
	options.address = "nonsense";
	CHECK(!http_server_start(&options, routes, NULL, &err));
	CHECK(strstr(err.message, "'nonsense'"));
	options.address = "127.0.0.1:99999";
	CHECK(!http_server_start(&options, routes, NULL, &err));
}

/* A request that is being answered is answered before the server ends. */
static void test_stop(struct http_server *server)
{
	static const char text[] = "GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n";
	int fd = client_connect(port), idle = client_connect(port);
	struct reply reply;

	client_send(fd, text, sizeof(text) - 1);
	usleep(100000);
	CHECK(http_server_stop(server, 3000));
	reply = client_read(fd, false, 1000);
	CHECK_NUMBER(reply.status, 200);
	reply_release(&reply);
	close(fd);
	close(idle);
}

int main(void)
{
	struct http_server *server = test_server_start_roomy();

	if (!server)
		return checks_done();
	test_slow_clients(server);
	test_long_requests();
	test_memory_limit();
	test_memory_of_silent_ones();
	test_crowd();
	test_start_failures();
	test_stop(server);
	return checks_done();
}
