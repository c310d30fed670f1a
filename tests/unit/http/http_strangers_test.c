/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes that are no request, two readings of one, and who else may ask. */
#include "tests/unit/http/http_test_server.h"

static void test_garbage(void)
{
	static const char *const texts[] = {
		"\r\n\r\n\r\n",
		"GET\r\n\r\n",
		"\x16\x03\x01\x02garbage\r\n\r\n",
		"GET / HTTP/9.9\r\n\r\n",
		"POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: "
		"-5\r\n\r\n",
		"POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: "
		"chunked\r\n\r\nzz\r\n"};

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		int fd = client_connect(port);
		struct reply reply;

		client_send(fd, texts[i], strlen(texts[i]));
		shutdown(fd, SHUT_WR);
		reply = client_read(fd, false, 2000);
		CHECK(reply.status == 0 || reply.status >= 400);
		reply_release(&reply);
		close(fd);
	}
	check_status("GET", "/hello", "", NULL, 0, 200, NULL);
}

static int status_of(const char *text)
{
	int fd = client_connect(port), status;
	struct reply reply;

	client_send(fd, text, strlen(text));
	reply = client_read(fd, false, 5000);
	status = reply.status;
	if (status == 400)
		CHECK(recv(fd, &fd, 1, 0) <= 0); /* and closed */
	reply_release(&reply);
	close(fd);
	return status;
}

#define LINE(method_) method_ " /echo HTTP/1.1\r\n"
#define HOST          "Host: localhost\r\n"

/* What a proxy in front could read another way. */
static void test_framing(void)
{
	static const struct {
		const char *text;
		int status;
	} rows[] = {
		{LINE("POST") HOST "Content-Length: 3\r\n\r\nabc", 200},
		{LINE("POST") HOST "Content-Length:3\r\n\r\nabc", 200},
		{LINE("POST") HOST "Content-Length:\t 3\r\nX-Empty:\r\nX:\r\n\r\nabc", 200},
		{LINE("POST") "X: 1\r\n" HOST
			      "Transfer-Encoding: Chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
		 200},
		{"POST /echo?a=b&c=%41&d HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\nabc", 200},
		{"POST /ech%6f HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\nabc", 200},
		{"GET /hello HTTP/1.0\r\nX: 1\r\n\r\n", 200},
		{"GET /hello HTTP/1.0\r\n\r\n", 200},
		{LINE("POST") HOST "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n"
				   "1\r\na\r\n0\r\n\r\n",
		 400},
		{LINE("POST") HOST "Content-Length: 3\r\nContent-Length: 5\r\n\r\nabcde", 400},
		{LINE("POST") HOST "Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc", 400},
		{LINE("POST") HOST "Content-Length : 3\r\n\r\nabc", 400},
		{LINE("POST") HOST "Content-Length\t: 3\r\n\r\nabc", 400},
		{LINE("POST") HOST "Content-Length: 3\r\n X: 1\r\n\r\nabc", 400},
		{LINE("POST") HOST "X: 1\r\n\tContent-Length: 3\r\n\r\nabc", 400},
		{LINE("POST") HOST "X: 1\r\n 2\r\nContent-Length: 3\r\n\r\nabc", 400},
		{LINE("POST") HOST "Content-Length: 3\n\r\nabc", 400},
		{LINE("POST") HOST "Content-Length: 3\r\n\nabc", 400},
		{LINE("POST") HOST "Content-Length: 3\n\nabc", 400},
		{LINE("POST") HOST "X: 1\nContent-Length: 3\r\n\r\nabc", 400},
		{"POST /echo HTTP/1.1\n" HOST "Content-Length: 3\r\n\r\nabc", 400},
		{LINE("POST") HOST "X: a\rb\r\nContent-Length: 3\r\n\r\nabc", 400},
		{LINE("POST") HOST "X: a\x01\r\nContent-Length: 3\r\n\r\nabc", 400},
		{LINE("POST") HOST ": 1\r\nContent-Length: 3\r\n\r\nabc", 400},
		{LINE("POST") HOST "no colon\r\nContent-Length: 3\r\n\r\nabc", 400},
		{LINE("POST") HOST "Content-Length: +3\r\n\r\nabc", 400},
		{LINE("POST") HOST "Content-Length: 3, 3\r\n\r\nabc", 400},
		{LINE("POST") HOST "Transfer-Encoding: xchunked\r\n\r\nabc", 400},
		{LINE("POST") HOST "Transfer-Encoding: gzip, chunked\r\n\r\nabc", 400},
		{"POST /echo HTTP/1.0\r\n" HOST
		 "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
		 400},
		{"GET  /hello HTTP/1.1\r\n" HOST "\r\n", 400},
		{"GET /hello  HTTP/1.1\r\n" HOST "\r\n", 0},
		{"GET /hello HTTP/1.1\r\n\r\n", 400},
		{"GET /hello HTTP/1.1\r\n" HOST HOST "\r\n", 400},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		int status = status_of(rows[i].text);

		if (!CHECK(status == rows[i].status))
			printf("# %s\n", rows[i].text);
	}
}

static void test_hosts(void)
{
	static const struct {
		const char *host;
		int status;
	} rows[] = {{"localhost", 200},
		    {"LocalHost:80", 200},
		    {"127.0.0.1:7878", 200},
		    {"127.1.2.3", 200},
		    {"[::1]:80", 200},
		    {"localhost.", 200},
		    {"profiles.example", 200},
		    {"evil.example", 421},
		    {"localhost.evil.example", 421},
		    {"192.0.2.1", 421},
		    {"[2001:db8::1]", 421},
		    {"127.0.0.1.evil", 421},
		    {"a@localhost", 421},
		    {"localhost:evil", 421},
		    {"[::1", 421},
		    {"", 421}};
	char text[200];

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		snprintf(text, sizeof(text), "GET /hello HTTP/1.1\r\nHost: %s\r\n\r\n",
			 rows[i].host);
		if (!CHECK(status_of(text) == rows[i].status))
			printf("# %s\n", rows[i].host);
	}
}

static void test_origins(void)
{
	static const struct {
		const char *headers;
		int status;
	} rows[] = {
		{"", 200},
		{"Origin: http://localhost\r\n", 200},
		{"Origin: https://localhost:443\r\n", 200},
		{"Origin: https://profiles.example\r\n", 200},
		{"Sec-Fetch-Site: same-origin\r\nOrigin: http://localhost\r\n", 200},
		{"Sec-Fetch-Site: none\r\n", 200},
		{"Origin: http://evil.example\r\n", 403},
		{"Origin: http://localhost:3000\r\n", 403},
		{"Origin: null\r\n", 403},
		{"Origin: http://localhost@evil.example\r\n", 403},
		{"Sec-Fetch-Site: cross-site\r\n", 403},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		check_status("POST", "/echo", rows[i].headers, "abc", 3, rows[i].status, NULL);
	check_status("GET", "/hello", "Origin: http://evil.example\r\n", NULL, 0, 200, NULL);
	check_status("PUT", "/typed", "", "abc", 3, 200, "abc");
	check_status("PUT", "/typed", "Content-Type: text/plain\r\n", "abc", 3, 415, NULL);
	check_status("PUT", "/typed", "Content-Type: a/b; x=y\r\n", "abc", 3, 200, "abc");
}

int main(void)
{
	struct http_server *server = test_server_start_roomy();

	if (!server)
		return checks_done();
	test_garbage();
	test_framing();
	test_hosts();
	test_origins();
	CHECK(http_server_stop(server, 3000));
	return checks_done();
}
