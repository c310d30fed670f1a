/* SPDX-License-Identifier: Apache-2.0 */
/* The answer to one HTTP/1.1 request, read piece by piece (RFC 9112: status line, header fields,
 * body by Content-Length, chunks or until the end). Pure: bytes in, answer out; every length
 * bounded. */
#ifndef NODE_AGENT_NETWORK_HTTP_ANSWER_H
#define NODE_AGENT_NETWORK_HTTP_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buffer.h"
#include "common/error.h"

enum {
	HTTP_HEAD_MAX =
		16 << 10, /* bytes of status line and header fields, interim answers apart */
	HTTP_BODY_MAX =
		256 << 10, /* bytes of body that are kept; what follows is read and let go */
};

enum http_answer_state {
	HTTP_ANSWER_HEAD,
	HTTP_ANSWER_LENGTH,     /* remaining bytes of body */
	HTTP_ANSWER_CHUNK_SIZE, /* the line with a chunk's length */
	HTTP_ANSWER_CHUNK,      /* remaining bytes of the chunk */
	HTTP_ANSWER_CHUNK_END,  /* the line break behind it */
	HTTP_ANSWER_TRAILER,
	HTTP_ANSWER_UNTIL_END, /* the connection's end is the body's */
	HTTP_ANSWER_DONE,
};

struct http_answer {
	int status;            /* 100–599 once the head is read */
	int64_t retry_after_s; /* −1: none; an HTTP-date is taken as seconds from now */
	char content_type[64]; /* without parameters, lower case; "" = none */
	char location[200];
	bool keep_alive;   /* the connection can carry another request */
	bool is_truncated; /* the body was longer than HTTP_BODY_MAX */
	struct buffer body;
	/* the reader's own */
	enum http_answer_state state;
	struct buffer head; /* the line or head being collected */
	uint64_t remaining;
	unsigned interims, trailers;
	uint64_t body_read;
};

void http_answer_init(struct http_answer *answer);

/* Takes bytes as they came. False: they are not HTTP (ERROR_FORMAT) or pass a bound (ERROR_LIMIT).
 * used: how many were taken; fewer than length only when the answer is done. */
bool http_answer_take(struct http_answer *answer, const void *bytes, size_t length, size_t *used,
		      struct error *err);

/* The connection ended here. False: in the middle of an answer. */
bool http_answer_end(struct http_answer *answer, struct error *err);

static inline bool http_answer_is_done(const struct http_answer *answer)
{
	return answer->state == HTTP_ANSWER_DONE;
}

void http_answer_release(struct http_answer *answer);

#endif
