/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this folder share. A connection's life: accept → headers → body → (suspended:
 * queue → worker → handler) → response → headers of the next request. libmicrohttpd's threads do
 * everything but the part in brackets. */
#ifndef SYMBOL_SERVER_HTTP_HTTP_PRIVATE_H
#define SYMBOL_SERVER_HTTP_HTTP_PRIVATE_H

#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

#include "common/buffer.h"
#include "symbol-server/http/http_parameters.h"
#include "symbol-server/http/http_routes.h"
#include "symbol-server/http/http_server.h"

enum {
	HTTP_IDLE_S = 120,             /* between requests */
	HTTP_HEADERS_S = 10,           /* from the connection, or a later request's first line */
	HTTP_FIRST_BYTE_S = 10,        /* of a body after its headers */
	HTTP_SENDING_S = 600,          /* for one response, and as much again … */
	HTTP_SENDING_BYTES = 32 << 20, /* … for each so many bytes of a file */
	HTTP_URI_MAX =
		9 << 10, /* what is left of a connection's memory is for headers and an answer */
	HTTP_QUEUE_MAX = 1024, /* requests that wait for a worker; over it 503 */
	HTTP_LONG_QUEUE = 16,  /* times as many long ones as may run wait; over it 503 */
	HTTP_TOLERATED_BODY = 64 << 10,
	HTTP_PROGRESS_BYTES = 64 << 10, /* a streamed body brings at least this in slow_body_s */
	HTTP_ADDRESSES = 4096,          /* of clients, by their hash: some share a number */
	HTTP_DISCARD_MAX = 256 << 20,   /* of a refused body, then the connection is closed */
	HTTP_ARENA_LIMIT = 64 << 20,
	HTTP_SCRATCH_LIMIT = 32 << 20,
	HTTP_SCRATCH_KEPT = 1 << 20, /* more than this is given back after the request */
	HTTP_GZIP_FROM = 1024,       /* smaller answers are not worth it */
	HTTP_GZIP_LEVEL = 4,
	HTTP_WINDOW = 256 << 10, /* of a stream: bytes that are not sent yet, before they are in a
				    file */
};

/* A connection that has brought a report is known; one that is shut down is leaving, until
 * libmicrohttpd has seen it. */
enum http_standing { HTTP_STRANGER, HTTP_KNOWN, HTTP_LEAVING, HTTP_STANDINGS };

/* Closes what is too slow: libmicrohttpd's own timeout starts again with every byte. */
struct http_connection {
	int fd;
	TAILQ_ENTRY(http_connection) link;
	_Atomic enum http_standing standing;
	enum http_closing waits_for; /* what it would be closed for now */
	unsigned address;            /* below HTTP_ADDRESSES */
	int64_t deadline_ms;         /* monotonic; 0: none (a handler has it) */
	int64_t moved_ms;            /* when it last got on */
	size_t window_bytes;         /* of a body since then */
	_Atomic size_t arriving;     /* bytes of server->memory for a body that is not complete */
};

struct http_connections {
	pthread_mutex_t lock;
	TAILQ_HEAD(, http_connection) lists[HTTP_STANDINGS]; /* what got on last is last */
	unsigned counts[HTTP_STANDINGS], most;
	unsigned by_address[HTTP_ADDRESSES]; /* those that are not leaving */
	_Atomic size_t arriving[HTTP_ADDRESSES];
	uint64_t total, closed[HTTP_CLOSING_COUNT];
	struct http_linger *linger;
	int wake_fd; /* eventfd: the keeper has something new */
	pthread_t keeper;
	bool has_keeper, is_stopping;
};

struct http_queue {
	pthread_mutex_t lock;
	pthread_cond_t ready;
	struct http_request *first[2], **last[2]; /* quick, then those that may take long */
	unsigned waiting, long_waiting, long_running, long_max;
	pthread_t *threads;
	unsigned thread_count;
	bool is_stopping;
};

struct http_server {
	struct MHD_Daemon *daemon;
	struct http_options options;
	const struct http_route *routes;
	void *context;
	int listen_fd;
	unsigned port;
	struct http_connections connections;
	struct http_queue queue;
	_Atomic size_t memory;      /* of request bodies, held now */
	_Atomic unsigned suspended; /* requests outside libmicrohttpd's hands */
	_Atomic unsigned answering; /* complete requests whose answer is not sent */
	_Atomic bool is_closed;     /* to new connections */
	_Atomic bool is_cancelling;
	_Atomic uint64_t requests, responses_by_class[6], too_large, refused_busy, bytes_in,
		bytes_out, streams, broken_streams;
	_Atomic uint64_t refused[HTTP_REFUSAL_COUNT];
	_Atomic uint64_t spilled; /* bytes of streams in files */
	struct http_latency latency[HTTP_KIND_COUNT];
};

struct http_request {
	struct http_server *server;
	struct MHD_Connection *connection;
	struct http_connection *record; /* may be NULL: out of memory */
	const struct http_route *route; /* NULL when refused before one was found */
	struct arena arena;
	char *uri;                /* as sent */
	char *path, *part, *rest; /* decoded; NULL: none */
	char method[8];
	char peer[64];
	struct http_parameters parameters;
	bool is_gzip, is_head;
	bool is_last; /* of its connection */
	bool has_begun, is_complete, is_discarding, is_done;
	int64_t complete_ms; /* when its last byte was here, monotonic; 0: it is not */
	int refused_status;  /* not 0: no handler, this answer */
	char refused[200];
	size_t received;
	size_t held; /* of server->memory */
	struct buffer body;
	struct arena *scratch; /* while the handler runs */
	_Atomic int holds;     /* the handler, and whoever will resume it */
	_Atomic int owners;    /* the connection, and a stream's handler */
	struct http_stream *stream;
	bool (*goes_on)(void *context); /* of the stream, with its context */
	void *goes_on_context;
	struct http_response response;
	struct MHD_Response *reply;
	void *data;
	struct http_request *next;
};

/* http_connections.c */
/* Above most the one that is idle for longest is closed for each that comes. */
bool http_connections_start(struct http_server *server, unsigned most, struct error *err);
void http_connections_stop(struct http_connections *connections);
void http_connections_notify(void *server, struct MHD_Connection *connection, void **record,
			     enum MHD_ConnectionNotificationCode what);
/* It got on, and has so long for what comes next; 0 seconds: for ever. */
void http_connection_allow(struct http_server *server, struct http_connection *record, unsigned s,
			   enum http_closing waits_for);
/* A body moved on: once enough has come that counts, and a streamed one's time starts again. */
void http_connection_progress(struct http_server *server, struct http_connection *record,
			      size_t bytes, bool is_streamed);
/* A later request has begun. */
void http_connection_begin(struct http_server *server, struct http_connection *record);
/* It brought a report. */
void http_connection_know(struct http_server *server, struct http_connection *record);

/* http_linger.c: a connection closed while its client still sends would be reset, and the client
 * would never read our answer: its bytes are read and thrown away for a while after. */
struct http_linger *http_linger_new(void);
void http_linger_add(struct http_linger *linger, int fd); /* makes a descriptor of its own */
struct pollfd;
unsigned http_linger_poll_fds(struct http_linger *linger, struct pollfd *fds, unsigned room);
void http_linger_read(struct http_linger *linger);
void http_linger_free(struct http_linger *linger);

/* http_exchange.c: libmicrohttpd's callbacks */
void *http_exchange_uri(void *server, const char *uri, struct MHD_Connection *connection);
enum MHD_Result http_exchange_access(void *server, struct MHD_Connection *connection,
				     const char *url, const char *method, const char *version,
				     const char *upload, size_t *upload_size, void **request);
void http_exchange_completed(void *server, struct MHD_Connection *connection, void **request,
			     enum MHD_RequestTerminationCode code);

/* http_strict.c */
/* Refuses what can be read in two ways, then false, and a Host that is not ours. method and version
 * as libmicrohttpd gave them, at their places in the head. */
bool http_strict_check(struct http_request *request, const char *method, const char *version);
/* When the route is known: refuses what pages of other sites send to change something. */
void http_strict_check_origin(struct http_request *request);
void http_strict_check_type(struct http_request *request); /* of a body */

/* http_response.c */
/* The answer to a request that never reaches its handler. */
void http_request_refuse(struct http_request *request, int status, const char *sentence);
/* request->response → request->reply; compresses when the client likes it. */
void http_response_finish(struct http_request *request);
enum MHD_Result http_response_send(struct http_request *request);

/* request->reply's headers; encoding: NULL none. */
void http_response_add_headers(struct http_request *request, const char *encoding);

const char *http_response_header(const struct http_response *response, const char *name);

/* http_stream.c: what a handler writes and a connection reads at the same time */
/* The handler is done: the rest goes out. The request may be freed at any moment after. */
void http_stream_end(struct http_request *request);
/* The connection is done with the request. */
void http_stream_leave(struct http_request *request);
/* Asked by the handler: nobody reads any more. */
bool http_stream_is_gone(const struct http_request *request);
void http_stream_free(struct http_request *request); /* of one without a stream: nothing */

/* http_exchange.c: one of the owners is done with it; the last one frees it. */
void http_request_drop(struct http_request *request);

/* http_file.c */
/* What of response.file the request asks for: status and headers; 304 takes the file away, 416
 * refuses the request. */
void http_file_prepare(struct http_request *request);
/* The descriptor is the reply's from then on. NULL: out of memory. */
struct MHD_Response *http_file_reply(struct http_request *request);
void http_file_close(struct http_file *file);
/* Reads a Range for length bytes. 0: none that counts, the whole is sent; 206: offset and count are
 * set; 416: it lies outside. Pure. */
int http_range_read(const char *text, uint64_t length, uint64_t *offset, uint64_t *count);

/* http_workers.c */
bool http_workers_start(struct http_server *server, struct error *err);
/* False: the queue is full. Suspends the connection before a worker can see the request. */
bool http_workers_add(struct http_request *request);
/* Every request has been answered when this is called. */
void http_workers_stop(struct http_server *server);

/* http_memory.c */
/* False: over the server's limit; nothing is taken. */
bool http_memory_take(struct http_request *request, size_t bytes);
void http_memory_give(struct http_request *request, size_t bytes);
/* The same for bytes of a body that come in, where strangers have a share. */
bool http_memory_arrive(struct http_request *request, size_t bytes);
/* The body is complete, or no more is wanted of it. */
void http_memory_arrived(struct http_request *request);
/* A quarter is held: bodies that stall are closed. */
bool http_memory_is_pressed(const struct http_server *server);

#endif
