/* SPDX-License-Identifier: Apache-2.0 */
/* Requests in, responses out; knows no resource. Door to libmicrohttpd. */
#ifndef SYMBOL_SERVER_HTTP_HTTP_SERVER_H
#define SYMBOL_SERVER_HTTP_HTTP_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/arena.h"
#include "common/buffer.h"
#include "common/error.h"
#include "symbol-server/http/http_latency.h"

/* HTTP_CLOSING(reason in /metrics): why a connection was closed from here. */
#define HTTP_CLOSINGS(CLOSING)                                                                  \
	CLOSING(idle)       /* no request for two minutes */                                    \
	CLOSING(headers)    /* no complete headers in ten seconds */                            \
	CLOSING(first_byte) /* of a body, none in ten seconds */                                \
	CLOSING(slow_body)                                                                      \
	CLOSING(slow_reader) /* of an answer */                                                 \
	CLOSING(crowded) /* as many as may be were open, and it was the one idle for longest */ \
	CLOSING(memory)  /* that for bodies became scarce, and its body did not get on */

#define HTTP_CLOSING_ENUM(name_) HTTP_CLOSED_##name_,
enum http_closing { HTTP_CLOSINGS(HTTP_CLOSING_ENUM) HTTP_CLOSING_COUNT };
#undef HTTP_CLOSING_ENUM

/* HTTP_REFUSAL(reason in /metrics): what no handler sees because of its head alone. */
#define HTTP_REFUSALS(REFUSAL)                                   \
	REFUSAL(framing) /* a proxy might read it another way */ \
	REFUSAL(host)                                            \
	REFUSAL(origin)                                          \
	REFUSAL(media_type)

#define HTTP_REFUSAL_ENUM(name_) HTTP_REFUSED_##name_,
enum http_refusal { HTTP_REFUSALS(HTTP_REFUSAL_ENUM) HTTP_REFUSAL_COUNT };
#undef HTTP_REFUSAL_ENUM

struct http_request;

/* A part of a file, sent from its descriptor: never held in memory, however large. */
struct http_file {
	int fd; /* the server's from when the handler returns; -1: none */
	uint64_t offset, length;
};

/* What a handler answers. Everything has a default: 200, application/json. */
struct http_response {
	bool has_begun; /* of a stream: a part was sent, no error can be answered any more */
	bool is_broken; /* of a stream: it ends so that the client sees that something is missing */
	bool is_packed; /* the body is not worth compressing */
	int status;
	const char *content_type; /* static */
	struct buffer body;       /* owned by the server after the handler returns */
	struct bytes fixed;       /* used instead of body when at is set: static bytes (the page) */
	const char *content_encoding; /* of fixed: "gzip", or NULL */
	struct http_file file;  /* used instead of both; a Range is answered with 206 or 416, and an
				   If-None-Match that has the header ETag with 304 */
	unsigned retry_after_s; /* Retry-After when not 0 */
	struct {
		const char *name, *value;
	} headers[8]; /* values in the request's arena or static */
};

enum http_method { HTTP_GET = 1, HTTP_POST = 2, HTTP_PUT = 4, HTTP_DELETE = 8, HTTP_OPTIONS = 16 };

/* Handles a complete request on a worker thread (not on the accepting threads), so it may take its
 * time and may block on others. Fills response. For an answer that must wait for somebody else the
 * handler returns after calling http_request_suspend(); that somebody then fills the response and
 * calls http_request_resume() exactly once. */
typedef void http_handler_fn(struct http_request *request, struct http_response *response,
			     void *context);

/* For a body that must not be kept in memory (uploads): pieces as they arrive; false ends the
 * reading, the handler is still called and answers with what it knows. */
typedef bool http_body_fn(struct http_request *request, const void *bytes, size_t length,
			  void *context);

struct http_route {
	enum http_method method;
	const char *path; /* "/api/v1/labels/{name}", "/buildid/{id}/source/{path}": a {…} is one
			     segment, the second one all that is left */
	http_handler_fn *handler;
	http_body_fn *on_body; /* NULL: the body is collected up to body_limit */
	size_t body_limit;     /* bytes as sent; 0: no body expected (64 KiB tolerated) */
	size_t inflated_limit; /* 0: Content-Encoding gzip is refused with 415 */
	void (*on_end)(struct http_request *request,
		       void *context); /* always, once, last; may be NULL */
	bool may_take_long;            /* a query: such requests never take all the workers */
	enum http_kind kind;           /* for the times of answers; may_take_long means query */
	bool any_origin;       /* scripts of any page may ask, and read the answers, also those that
				  refuse; others may not change anything from other sites */
	const char *body_type; /* that a body says it is, if it says it: no form of a page can
				  PUT. NULL: the handler looks */
	bool is_always_open;   /* is_closed is not asked */
};

struct http_options {
	const char *address;      /* "127.0.0.1:7878", "[::1]:7878" */
	const char *const *hosts; /* names in Host besides this host's own; "*": any */
	size_t host_count;
	unsigned threads;            /* accepting (epoll) */
	unsigned workers;            /* handlers */
	unsigned long_running;       /* of them at most for routes that may take long; 0, or more
					than three quarters: those. 16 times as many may wait,
					over it 503 */
	unsigned connections;        /* at most; for further ones those idle for longest go, last
					those that have brought reports */
	size_t memory_limit_bytes;   /* request bodies held at a time over all connections; over it
					503 */
	const char *spill_directory; /* where streams that are read slowly wait, in files without a
					name; NULL: their handlers wait */
	unsigned
		slow_body_s; /* 30: a body slower than this: the connection is closed and counted */
	/* Turns an error status that arises here (404, 405, 413, 415, 503 …) into a body. */
	void (*on_error)(struct http_request *request, struct http_response *response, int status,
			 const char *sentence, void *context);
	/* Asked when a request begins, of all routes but those that are always open: true, and the
	 * sentence that goes out with 503. NULL: all are open. */
	bool (*is_closed)(void *context, char *sentence, size_t room);
};

struct http_server;

/* Routes end with one whose path is NULL. Same path, other method: 405 with Allow. */
struct http_server *http_server_start(const struct http_options *options,
				      const struct http_route *routes, void *context,
				      struct error *err);
unsigned http_server_port(const struct http_server *server);
/* Stops accepting, finishes running requests for at most drain_ms; then those still running are
 * told that their client is gone and get as long again. Closes and frees; NULL is fine. false: a
 * handler does not end, nothing was freed and what it uses has to stay. */
bool http_server_stop(struct http_server *server, int drain_ms);

/* From now on the body is sent while it grows, once it is more than a window's length: status and
 * headers have to be right by then. Until then (response->has_begun) an error can still take its
 * place; afterwards is_broken, or a body that failed, ends it without an end that would look like
 * one. A client that reads slowly is waited for by a file, and where that has no room by the
 * handler. goes_on, which may be NULL, is asked between windows and while waiting: false breaks the
 * stream. */
void http_request_stream(struct http_request *request, bool (*goes_on)(void *context),
			 void *context);

const char *http_request_path(const struct http_request *request);
const char *http_request_part(const struct http_request *request); /* what {…} matched, decoded */
const char *http_request_rest(const struct http_request *request); /* what the second one matched */
const char *http_request_query(struct http_request *request, const char *name); /* NULL: absent */
/* Calls back for each parameter, also for repeated ones. */
void http_request_each_query(struct http_request *request,
			     bool (*each)(void *context, const char *name, const char *value),
			     void *context);
const char *http_request_header(struct http_request *request, const char *name);
const char *http_request_peer(struct http_request *request);        /* address in text */
struct bytes http_request_body(const struct http_request *request); /* inflated */
/* A worker's, empty when the handler is called and emptied when it returns, so that requests do not
 * each take and give back memory. At most 32 MiB. */
struct arena *http_request_scratch(struct http_request *request);
struct arena *http_request_arena(struct http_request *request); /* lives as long as the request */
void http_request_set_data(struct http_request *request, void *data); /* a handler's own */
void *http_request_data(const struct http_request *request);
bool http_request_is_gone(const struct http_request *request); /* the client left, or we stop */
bool http_request_accepts_gzip(struct http_request *request);

/* Borrows both. One more than there is room for is left out. */
void http_response_add_header(struct http_response *response, const char *name, const char *value);

struct http_response *http_request_suspend(struct http_request *request);
struct http_response *
http_request_response(struct http_request *request); /* what the handler fills */
void http_request_resume(struct http_request *request);

struct http_counters {
	uint64_t requests, responses_by_class[6], connections_now, connections_total;
	uint64_t connections_known; /* of those now, those that have brought reports */
	uint64_t refused[HTTP_REFUSAL_COUNT], closed[HTTP_CLOSING_COUNT], too_large, refused_busy,
		bytes_in, bytes_out;
	uint64_t streams, broken_streams;             /* answers that were sent while they grew */
	uint64_t spilled_bytes;                       /* of streams, in files now */
	unsigned waiting, long_waiting, long_running; /* requests now: for a worker, and those that
							 may take long */
	struct {
		uint64_t counts[HTTP_LATENCY_BOUNDS + 1], sum_ms;
	} latency[HTTP_KIND_COUNT];
};
void http_server_counters(struct http_server *server, struct http_counters *out);

#endif
