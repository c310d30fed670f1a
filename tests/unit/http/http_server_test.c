/* SPDX-License-Identifier: Apache-2.0 */
/* What a live server answers. */
#include "common/gzip.h"
#include "tests/unit/http/http_test_server.h"

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

int main(void)
{
	struct http_server *server = test_server_start_roomy();

	if (!server)
		return checks_done();
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
	CHECK(http_server_stop(server, 3000));
	return checks_done();
}
