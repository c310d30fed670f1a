/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/check.h"

#include <stdlib.h>

#include "node-agent/network/http_answer.h"

/* Feeds the text in pieces of one size; *whole: the answer was done, or its end was. */
static bool feed(struct http_answer *answer, const char *text, size_t length, size_t piece,
		 bool *whole)
{
	struct error err = {0};
	size_t at = 0, used;

	http_answer_init(answer);
	while (at < length && !http_answer_is_done(answer)) {
		size_t step = length - at < piece ? length - at : piece;
		/* exactly as long as the piece, so that ASan sees every step outside */
		char *copy = malloc(step);
		bool ok;

		memcpy(copy, text + at, step);
		ok = http_answer_take(answer, copy, step, &used, &err);
		free(copy);
		if (!ok)
			return false;
		at += used;
	}
	*whole = http_answer_end(answer, &err);
	return true;
}

static const struct {
	const char *text;
	int status;
	const char *body;
	bool keep_alive;
	int64_t retry_after_s;
} good[] = {
	{"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 200, "hello", true, -1},
	{"HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", 200, "", true, -1},
	{"HTTP/1.1 204 No Content\r\n\r\n", 204, "", true, -1},
	{"HTTP/1.1 200 OK\nContent-Length: 2\n\nhi", 200, "hi", true, -1},
	{"HTTP/1.1 503 Busy\r\nretry-after: 7\r\nConnection: close\r\n\r\nlater", 503, "later",
	 false, 7},
	{"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx", 200, "x", false, -1},
	{"HTTP/1.1 200 OK\r\nTransfer-Encoding: "
	 "chunked\r\n\r\n3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\n"
	 "Trailer: t\r\n\r\n",
	 200, "abc0123456789", true, -1},
	{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: "
	 "3\r\n\r\n1\r\nz\r\n0\r\n\r\n",
	 200, "z", false, -1},
	{"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 1\r\n\r\ny", 201,
	 "y", true, -1},
	{"HTTP/1.1 429 Slow\r\nRetry-After: Wed, 21 Oct 2015 07:28:00 GMT\r\nContent-Length: "
	 "0\r\n\r\n",
	 429, "", true, 0},
};

static const char *const bad[] = {
	"SSH-2.0-OpenSSH_9.2\r\n",
	"HTTP/2 200\r\n\r\n",
	"HTTP/1.1 99 x\r\n\r\n",
	"HTTP/1.1 2000\r\n\r\n",
	"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
	"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
	"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
	"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n",
};

static const char *const cut[] = {
	"",
	"HTTP/1.1 200 OK\r\nContent-Le",
	"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhell",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
};

static void check_good(size_t piece)
{
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		struct http_answer answer;
		bool whole = false;

		CHECK(feed(&answer, good[i].text, strlen(good[i].text), piece, &whole) && whole);
		CHECK_NUMBER(answer.status, good[i].status);
		CHECK_NUMBER(answer.body.length, strlen(good[i].body));
		CHECK(!answer.body.length ||
		      !memcmp(answer.body.bytes, good[i].body, answer.body.length));
		CHECK_NUMBER(answer.keep_alive, good[i].keep_alive);
		CHECK_NUMBER(answer.retry_after_s, good[i].retry_after_s);
		http_answer_release(&answer);
	}
}

static void check_bad(void)
{
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		for (size_t piece = 1; piece < 100; piece += 98) {
			struct http_answer answer;
			bool whole = false;

			if (!CHECK(!feed(&answer, bad[i], strlen(bad[i]), piece, &whole)))
				printf("# taken: %s\n", bad[i]);
			http_answer_release(&answer);
		}
	for (size_t i = 0; i < sizeof cut / sizeof *cut; i++) {
		struct http_answer answer;
		bool whole = true;

		CHECK(feed(&answer, cut[i], strlen(cut[i]), 3, &whole) && !whole);
		http_answer_release(&answer);
	}
}

/* A header without end, a body without end: bounded. */
static void check_bounds(void)
{
	static char text[HTTP_BODY_MAX + 4096];
	struct http_answer answer;
	bool whole = false;
	int head;

	memset(text, 'a', sizeof text);
	memcpy(text, "HTTP/1.1 200 OK\r\nX: ", 20);
	CHECK(!feed(&answer, text, sizeof text, 1000, &whole));
	CHECK(answer.head.capacity <= HTTP_HEAD_MAX);
	http_answer_release(&answer);

	head = snprintf(text, sizeof text,
			"HTTP/1.1 200 OK\r\nContent-Type: Text/Plain; x\r\n\r\n");
	memset(text + head, 'b', sizeof text - (size_t)head);
	CHECK(feed(&answer, text, sizeof text, 7000, &whole) && whole);
	CHECK(answer.is_truncated);
	CHECK_NUMBER(answer.body.length, HTTP_BODY_MAX);
	CHECK_TEXT(answer.content_type, "text/plain");
	http_answer_release(&answer);
}

int main(void)
{
	check_good(1);
	check_good(7);
	check_good(1000);
	check_bad();
	check_bounds();
	return checks_done();
}
