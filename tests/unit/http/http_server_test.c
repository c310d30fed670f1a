/* SPDX-License-Identifier: Apache-2.0 */
/* A live server on a free port, and clients that behave badly in every way we could think of. */
#include <pthread.h>

#include "common/gzip.h"
#include "symbol-server/http/http_private.h"
#include "tests/check.h"
#include "tests/unit/http/http_client.h"

enum { BODY_LIMIT = 200000, INFLATED_LIMIT = 400000, SLOW_CLIENTS = 100 };

static unsigned port;
static _Atomic int ended; /* on_end calls of /stream */

static void hello(struct http_request *request, struct http_response *response, void *context)
{
	const char *name = http_request_query(request, "name");

	(void)context;
	buffer_printf(&response->body, "hello %s", name ? name : "nobody");
}

static void echo(struct http_request *request, struct http_response *response, void *context)
{
	struct bytes body = http_request_body(request);

	(void)context;
	response->content_type = "application/octet-stream";
	buffer_append(&response->body, body.at, body.length);
}

static void part(struct http_request *request, struct http_response *response, void *context)
{
	(void)context;
	buffer_append_text(&response->body, http_request_part(request));
}

static void large(struct http_request *request, struct http_response *response, void *context)
{
	(void)request, (void)context;
	for (int i = 0; i < 3000; i++)
		buffer_append_text(&response->body, "0123456789");
}

static void slow(struct http_request *request, struct http_response *response, void *context)
{
	(void)request, (void)context;
	usleep(400000);
	buffer_append_text(&response->body, "slow");
}

/* A temporary file of "0123456789abcdef…": the part from 10 on, of 1000 bytes. */
static void file(struct http_request *request, struct http_response *response, void *context)
{
	FILE *made = tmpfile();

	(void)context;
	for (int i = 0; i < 2000; i++)
		fputc("0123456789abcdefghij"[i % 20], made);
	fflush(made);
	response->file = (struct http_file){dup(fileno(made)), 10, 1000};
	fclose(made);
	response->content_type = "application/octet-stream";
	response->headers[0].name = "ETag";
	response->headers[0].value = "\"one\"";
	response->headers[1].name = "X-Part";
	response->headers[1].value = http_request_rest(request);
}

static void *resume_later(void *context)
{
	struct http_request *request = context;

	usleep(20000);
	buffer_append_text(&http_request_response(request)->body, "resumed");
	http_request_resume(request);
	return NULL;
}

static void later(struct http_request *request, struct http_response *response, void *context)
{
	pthread_t thread;

	(void)response, (void)context;
	http_request_suspend(request);
	pthread_create(&thread, NULL, resume_later, request);
	pthread_detach(thread);
}

static bool stream_body(struct http_request *request, const void *bytes, size_t length,
			void *context)
{
	size_t *count = http_request_data(request);

	(void)context;
	if (!count) {
		count = arena_alloc(http_request_arena(request), sizeof(*count));
		http_request_set_data(request, count);
	}
	*count += length;
	return *(const char *)bytes != '!';
}

static void stream(struct http_request *request, struct http_response *response, void *context)
{
	size_t *count = http_request_data(request);

	(void)context;
	buffer_printf(&response->body, "%s %zu", http_request_part(request), count ? *count : 0);
}

static void stream_end(struct http_request *request, void *context)
{
	(void)request, (void)context;
	ended++;
}

static void on_error(struct http_request *request, struct http_response *response, int status,
		     const char *sentence, void *context)
{
	(void)request, (void)context;
	buffer_printf(&response->body, "%d %s", status, sentence);
}

static const struct http_route routes[] = {
	{HTTP_GET, "/hello", hello},
	{HTTP_POST, "/echo", echo, .body_limit = BODY_LIMIT, .inflated_limit = INFLATED_LIMIT},
	{HTTP_POST, "/report", echo, .body_limit = BODY_LIMIT, .kind = HTTP_KIND_report},
	{HTTP_PUT, "/typed", echo, .body_limit = BODY_LIMIT, .body_type = "a/b"},
	{HTTP_GET, "/part/{name}/end", part},
	{HTTP_GET, "/large", large},
	{HTTP_GET, "/file/{id}/part/{path}", file, .any_origin = true},
	{HTTP_GET, "/slow", slow, .may_take_long = true},
	{HTTP_GET, "/later", later},
	{HTTP_PUT, "/stream/{id}", stream, stream_body, .body_limit = 10 << 20,
	 .on_end = stream_end},
	{0},
};

static void check_status(const char *method, const char *target, const char *headers,
			 const void *body, size_t length, int status, const char *text)
{
	struct reply reply = client_ask(port, method, target, headers, body, length);

	CHECK_NUMBER(reply.status, status);
	if (text)
		CHECK_TEXT(reply.body, text);
	reply_release(&reply);
}

static void test_plain_requests(void)
{
	struct reply reply;

	check_status("GET", "/hello", "", NULL, 0, 200, "hello nobody");
	check_status("GET", "/hello?name=a%20b+c%26", "", NULL, 0, 200, "hello a b c&");
	check_status("GET", "/hello?name=%zz", "", NULL, 0, 400, NULL);
	check_status("GET", "/hello?name=%00", "", NULL, 0, 400, NULL);
	check_status("GET", "/%", "", NULL, 0, 400, NULL);
	check_status("GET", "/part/x%2Fy/end", "", NULL, 0, 200, "x/y");
	check_status("GET", "/part//end", "", NULL, 0, 404, NULL);
	check_status("GET", "/nothing", "", NULL, 0, 404, "404 there is nothing at /nothing");
	check_status("GET", "/later", "", NULL, 0, 200, "resumed");
	check_status("POST", "/echo", "", "abc", 3, 200, "abc");
	check_status("POST", "/echo", "", "", 0, 200, "");

	reply = client_ask(port, "DELETE", "/hello", "", NULL, 0);
	CHECK_NUMBER(reply.status, 405);
	CHECK_TEXT(reply_header(&reply, "Allow"), "GET, HEAD");
	reply_release(&reply);
	reply = client_ask(port, "HEAD", "/hello", "", NULL, 0);
	CHECK_NUMBER(reply.status, 200);
	CHECK_TEXT(reply_header(&reply, "Content-Length"), "12");
	CHECK_NUMBER(reply.length, 0);
	CHECK_TEXT(reply_header(&reply, "X-Content-Type-Options"), "nosniff");
	reply_release(&reply);
}

static void test_too_many_parameters(void)
{
	char target[600] = "/hello?";

	for (int i = 0; i < 65; i++)
		snprintf(target + strlen(target), sizeof(target) - strlen(target), "a%d=1&", i);
	check_status("GET", target, "", NULL, 0, 400, NULL);
}

static void test_keep_alive(void)
{
	int fd = client_connect(port);
	struct reply reply;

	for (int i = 0; i < 3; i++) {
		/* the refused ones have small bodies: the connection survives them */
		const char *text =
			i == 1 ? "POST /nothing HTTP/1.1\r\nHost: localhost\r\nContent-Length: "
				 "3\r\n\r\nabc"
			       : "GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n";

		client_send(fd, text, strlen(text));
		reply = client_read(fd, false, 5000);
		CHECK_NUMBER(reply.status, i == 1 ? 404 : 200);
		reply_release(&reply);
	}
	close(fd);
}

static void test_limits(void)
{
	static const char endless[] =
		"POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 999999999999\r\n\r\n";
	size_t length = 20 << 20;
	char *body = calloc(1, length);
	int fd;
	struct reply reply;

	check_status("POST", "/echo", "", body, BODY_LIMIT, 200, NULL);
	check_status("POST", "/echo", "", body, BODY_LIMIT + 1, 413, NULL);
	/* a client that sends all before it reads still gets the answer */
	check_status("POST", "/echo", "", body, length, 413, NULL);
	check_status("POST", "/hello", "", body, length, 405, NULL);
	/* the length alone is enough */
	fd = client_connect(port);
	client_send(fd, endless, strlen(endless));
	reply = client_read(fd, false, 2000);
	CHECK_NUMBER(reply.status, 413);
	reply_release(&reply);
	close(fd);
	free(body);
}

static void send_chunks(int fd, size_t total, char filling)
{
	char chunk[8 + 4096 + 2];

	memcpy(chunk, "001000\r\n", 8);
	memset(chunk + 8, filling, 4096);
	memcpy(chunk + 8 + 4096, "\r\n", 2);
	for (size_t sent = 0; sent < total; sent += 4096)
		if (!client_send(fd, chunk, sizeof(chunk)))
			return;
	client_send(fd, "0\r\n\r\n", 5);
}

static void check_chunked(const char *head, size_t total, int status, size_t length)
{
	int fd = client_connect(port);
	struct reply reply;

	client_send(fd, head, strlen(head));
	send_chunks(fd, total, 'x');
	reply = client_read(fd, false, 5000);
	CHECK_NUMBER(reply.status, status);
	if (length)
		CHECK_NUMBER(reply.length, length);
	reply_release(&reply);
	close(fd);
}

static void test_chunked(void)
{
	static const char echo_head[] =
		"POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";

	check_chunked(echo_head, 8192, 200, 8192);
	check_chunked(echo_head, 1 << 20, 413, 0);
}

static void test_gzip_bodies(void)
{
	static const char gzip[] = "Content-Encoding: gzip\r\n";
	static char zeros[4 << 20];
	struct buffer packed;
	size_t one;

	buffer_init(&packed, SIZE_MAX);
	gzip_compress("hello ", 6, 6, &packed, NULL);
	check_status("POST", "/echo", gzip, packed.bytes, packed.length, 200, "hello ");
	one = packed.length;
	gzip_compress("world", 5, 6, &packed, NULL);
	check_status("POST", "/echo", gzip, packed.bytes, packed.length, 200, "hello world");
	check_status("POST", "/echo", gzip, packed.bytes, packed.length - 1, 400, NULL);
	check_status("POST", "/echo", gzip, packed.bytes, one - 4, 400, NULL);
	check_status("POST", "/echo", gzip, "no gzip", 7, 400, NULL);
	check_status("POST", "/echo", gzip, "", 0, 200,
		     ""); /* no body at all, nothing to inflate */
	check_status("POST", "/echo", "Content-Encoding: br\r\n", "x", 1, 415, NULL);
	check_status("PUT", "/stream/a", gzip, packed.bytes, packed.length, 415, NULL);
	buffer_clear(&packed);
	gzip_compress(zeros, sizeof(zeros), 9, &packed, NULL); /* a few KB that become 4 MiB */
	CHECK(packed.length < BODY_LIMIT);
	check_status("POST", "/echo", gzip, packed.bytes, packed.length, 413, NULL);
	buffer_release(&packed);
}

static void test_compressed_answers(void)
{
	struct reply reply = client_ask(port, "GET", "/large", "", NULL, 0);
	struct buffer plain;

	CHECK_NUMBER(reply.length, 30000);
	CHECK_TEXT(reply_header(&reply, "Content-Encoding"), "");
	reply_release(&reply);
	reply = client_ask(port, "GET", "/large", "Accept-Encoding: br, gzip\r\n", NULL, 0);
	CHECK_TEXT(reply_header(&reply, "Content-Encoding"), "gzip");
	CHECK(reply.length < 1000);
	buffer_init(&plain, SIZE_MAX);
	CHECK(gzip_inflate(reply.body, reply.length, &plain, NULL) && plain.length == 30000);
	buffer_release(&plain);
	reply_release(&reply);
	reply = client_ask(port, "GET", "/large", "Accept-Encoding: gzip;q=0\r\n", NULL, 0);
	CHECK_TEXT(reply_header(&reply, "Content-Encoding"), "");
	reply_release(&reply);
	reply = client_ask(port, "GET", "/hello", "Accept-Encoding: gzip\r\n", NULL, 0);
	CHECK_TEXT(reply_header(&reply, "Content-Encoding"), "");
	reply_release(&reply);
}

static void check_file(const char *method, const char *headers, int status, const char *start,
		       size_t length, const char *header)
{
	struct reply reply = client_ask(port, method, "/file/x/part/a%2Fb//c", headers, NULL, 0);

	CHECK_NUMBER(reply.status, status);
	CHECK_NUMBER(reply.length, length);
	CHECK(!strncmp(reply.body ? reply.body : "", start, strlen(start)));
	if (!CHECK(strstr(reply.head, header)))
		printf("# %s: %s\n", headers, reply.head);
	CHECK(strstr(reply.head, "Access-Control-Allow-Origin: *"));
	reply_release(&reply);
}

static void test_files(void)
{
	check_file("GET", "", 200, "abcdefghij012", 1000, "Content-Length: 1000\r\n");
	check_file("GET", "", 200, "a", 1000, "X-Part: a/b//c\r\n");
	check_file("GET", "Accept-Encoding: gzip\r\n", 200, "abcdefghij012", 1000,
		   "Accept-Ranges: bytes\r\n");
	check_file("HEAD", "Range: bytes=0-1\r\n", 200, "", 0, "Content-Length: 1000\r\n");
	check_file("GET", "Range: bytes=1-3\r\n", 206, "bcd", 3,
		   "Content-Range: bytes 1-3/1000\r\n");
	check_file("GET", "Range: bytes=990-\r\n", 206, "0123456789", 10,
		   "Content-Range: bytes 990-999/1000\r\n");
	check_file("GET", "Range: bytes=-1\r\n", 206, "9", 1,
		   "Content-Range: bytes 999-999/1000\r\n");
	check_file("GET", "Range: bytes=1000-\r\n", 416, "416 the range", 38,
		   "Content-Range: bytes */1000\r\n");
	check_file("GET", "Range: bytes=1-3\r\nIf-Range: \"two\"\r\n", 200, "abc", 1000, "");
	check_file("GET", "Range: bytes=1-3\r\nIf-Range: \"one\"\r\n", 206, "bcd", 3, "");
	check_file("GET", "If-None-Match: \"two\", \"one\"\r\n", 304, "", 0, "ETag: \"one\"");
	check_file("GET", "If-None-Match: \"two\"\r\n", 200, "abc", 1000, "ETag: \"one\"");
	check_status("GET", "/file/x/part/", "", NULL, 0, 404, NULL);
}

static void check_range(const char *text, int status, uint64_t want_offset, uint64_t want_count)
{
	uint64_t offset = 0, count = 0;

	CHECK_NUMBER(http_range_read(text, 100, &offset, &count), status);
	CHECK_NUMBER(offset, want_offset);
	CHECK_NUMBER(count, want_count);
}

static void test_ranges(void)
{
	check_range(NULL, 0, 0, 0);
	check_range("bytes=0-0", 206, 0, 1);
	check_range("Bytes=5-", 206, 5, 95);
	check_range("bytes=5-999999999999999999", 206, 5, 95);
	check_range("bytes=99-99", 206, 99, 1);
	check_range("bytes=-30", 206, 70, 30);
	check_range("bytes=-3000", 206, 0, 100);
	check_range("bytes=100-", 416, 0, 0);
	check_range("bytes=-0", 416, 0, 0);
	for (const char *const *text =
		     (const char *const[]){"", "bytes", "bytes=", "bytes=-", "bytes=5", "bytes=5-4",
					   "bytes=1-2,4-5", "bytes= 1-2", "bytes=+1-2", "rows=1-2",
					   "bytes=9999999999999999999-", "bytes=1-2x", "bytes=--1",
					   NULL};
	     *text; text++)
		check_range(*text, 0, 0, 0);
}

static void test_streams(void)
{
	size_t length = 3 << 20;
	char *body = calloc(1, length);
	int before = ended;

	check_status("PUT", "/stream/a", "", body, length, 200, "a 3145728");
	*body = '!'; /* the handler has seen enough after the first piece */
	struct reply reply = client_ask(port, "PUT", "/stream/a", "", body, length);
	CHECK_NUMBER(reply.status, 200);
	CHECK(strtoul(reply.body + 2, NULL, 10) < length);
	reply_release(&reply);
	for (int i = 0; i < 100 && ended < before + 2; i++)
		usleep(10000);
	CHECK_NUMBER(ended, before + 2);
	free(body);
}

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

static void test_memory_limit(void)
{
	struct http_options options = {.address = "127.0.0.1:0",
				       .threads = 1,
				       .workers = 2,
				       .connections = 100,
				       .memory_limit_bytes = 2000,
				       .slow_body_s = 5,
				       .on_error = on_error};
	struct error err = {0};
	struct http_server *server = http_server_start(&options, routes, NULL, &err);
	unsigned other = port;
	struct reply reply;
	char body[3000] = "";

	if (!CHECK(server))
		return;
	port = http_server_port(server);
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
	struct http_options options = {.address = "127.0.0.1:0",
				       .threads = 1,
				       .workers = 2,
				       .connections = 100,
				       .memory_limit_bytes = 200000,
				       .slow_body_s = 30,
				       .on_error = on_error};
	struct error err = {0};
	struct http_server *server = http_server_start(&options, routes, NULL, &err);
	struct http_counters counters;
	unsigned other = port;
	static char body[60000];
	int silent[30];

	if (!CHECK(server))
		return;
	port = http_server_port(server);
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
	struct http_options options = {.address = "127.0.0.1:0",
				       .threads = 2,
				       .workers = 2,
				       .connections = 40,
				       .memory_limit_bytes = 1 << 20,
				       .slow_body_s = 30,
				       .on_error = on_error};
	struct error err = {0};
	struct http_server *server = http_server_start(&options, routes, NULL, &err);
	unsigned other = port;
	struct http_counters counters;
	int known, asked, fds[300];

	if (!CHECK(server))
		return;
	port = http_server_port(server);
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
	struct http_options options = {.address = "127.0.0.1:0",
				       .hosts = (const char *const[]){"profiles.example"},
				       .host_count = 1,
				       .threads = 2,
				       .workers = 2,
				       .connections = 1000,
				       .memory_limit_bytes = 64 << 20,
				       .slow_body_s = 1,
				       .on_error = on_error};
	struct error err = {0};
	struct http_server *server = http_server_start(&options, routes, NULL, &err);

	if (!CHECK(server))
		return checks_done();
	port = http_server_port(server);
	test_plain_requests();
	test_too_many_parameters();
	test_keep_alive();
	test_limits();
	test_chunked();
	test_gzip_bodies();
	test_compressed_answers();
	test_files();
	test_ranges();
	test_streams();
	test_slow_clients(server);
	test_long_requests();
	test_garbage();
	test_framing();
	test_hosts();
	test_origins();
	test_memory_limit();
	test_memory_of_silent_ones();
	test_crowd();
	test_start_failures();
	test_stop(server);
	return checks_done();
}
