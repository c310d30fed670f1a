/* SPDX-License-Identifier: Apache-2.0 */
/* A live server on a free port, whose routes answer what tests ask for. */
#ifndef TESTS_UNIT_HTTP_TEST_SERVER_H
#define TESTS_UNIT_HTTP_TEST_SERVER_H

#include <pthread.h>

#include "symbol-server/http/http_private.h"
#include "tests/check.h"
#include "tests/unit/http/http_client.h"

#define TEST __attribute__((unused)) static

enum { BODY_LIMIT = 200000, INFLATED_LIMIT = 400000 };

TEST unsigned port;
TEST _Atomic int ended; /* on_end calls of /stream */

TEST void hello(struct http_request *request, struct http_response *response, void *context)
{
	const char *name = http_request_query(request, "name");

	(void)context;
	buffer_printf(&response->body, "hello %s", name ? name : "nobody");
}

TEST void echo(struct http_request *request, struct http_response *response, void *context)
{
	struct bytes body = http_request_body(request);

	(void)context;
	response->content_type = "application/octet-stream";
	buffer_append(&response->body, body.at, body.length);
}

TEST void part(struct http_request *request, struct http_response *response, void *context)
{
	(void)context;
	buffer_append_text(&response->body, http_request_part(request));
}

TEST void large(struct http_request *request, struct http_response *response, void *context)
{
	(void)request, (void)context;
	for (int i = 0; i < 3000; i++)
		buffer_append_text(&response->body, "0123456789");
}

TEST void slow(struct http_request *request, struct http_response *response, void *context)
{
	(void)request, (void)context;
	usleep(400000);
	buffer_append_text(&response->body, "slow");
}

/* A temporary file of "0123456789abcdef…": the part from 10 on, of 1000 bytes. */
TEST void file(struct http_request *request, struct http_response *response, void *context)
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

TEST void *resume_later(void *context)
{
	struct http_request *request = context;

	usleep(20000);
	buffer_append_text(&http_request_response(request)->body, "resumed");
	http_request_resume(request);
	return NULL;
}

TEST void later(struct http_request *request, struct http_response *response, void *context)
{
	pthread_t thread;

	(void)response, (void)context;
	http_request_suspend(request);
	pthread_create(&thread, NULL, resume_later, request);
	pthread_detach(thread);
}

TEST bool stream_body(struct http_request *request, const void *bytes, size_t length, void *context)
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

TEST void stream(struct http_request *request, struct http_response *response, void *context)
{
	size_t *count = http_request_data(request);

	(void)context;
	buffer_printf(&response->body, "%s %zu", http_request_part(request), count ? *count : 0);
}

TEST void stream_end(struct http_request *request, void *context)
{
	(void)request, (void)context;
	ended++;
}

TEST void on_error(struct http_request *request, struct http_response *response, int status,
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

TEST void check_status(const char *method, const char *target, const char *headers,
		       const void *body, size_t length, int status, const char *text)
{
	struct reply reply = client_ask(port, method, target, headers, body, length);

	CHECK_NUMBER(reply.status, status);
	if (text)
		CHECK_TEXT(reply.body, text);
	reply_release(&reply);
}

/* Where the clients ask from then on. NULL: it is a failure of the test. */
TEST struct http_server *test_server_start(struct http_options *options)
{
	struct error err = {0};
	struct http_server *server;

	options->on_error = on_error;
	if (!options->address)
		options->address = "127.0.0.1:0";
	server = http_server_start(options, routes, NULL, &err);
	if (CHECK(server))
		port = http_server_port(server);
	return server;
}

/* With room for all that is asked. */
TEST struct http_server *test_server_start_roomy(void)
{
	static const char *const hosts[] = {"profiles.example"};
	struct http_options options = {.hosts = hosts,
				       .host_count = 1,
				       .threads = 2,
				       .workers = 2,
				       .connections = 1000,
				       .memory_limit_bytes = 64 << 20,
				       .slow_body_s = 1};

	return test_server_start(&options);
}

#endif
