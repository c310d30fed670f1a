/* SPDX-License-Identifier: Apache-2.0 */
/* One GET or POST after the other over http or https, streamed. Door to libcurl. It blocks: for
 * threads and processes that may. A GET's redirects are followed a few times, never from https to
 * http and never to anything else than these two; what answers is not trusted with more than the
 * caller's limits. Where a GET is sent to has a public address, or is the server that was named. */
#ifndef SYMBOL_SERVER_NET_HTTP_CLIENT_H
#define SYMBOL_SERVER_NET_HTTP_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

struct http_client; /* keeps its connection between questions; one thread at a time */

struct http_get {
	const char *url;
	const char *header; /* "Name: value" to send as well; NULL: none */
	uint32_t connect_s; /* name, connection and TLS together */
	uint32_t stall_s;   /* fewer than stall_bytes in that time is an error */
	uint32_t stall_bytes;
	uint32_t total_s;
	/* The body of an answer with status 200, decompressed. False: no more is wanted. */
	bool (*body)(void *context, struct http_client *client, const void *bytes, size_t length);
	void *context;
};

struct http_client *http_client_new(struct error *err);
void http_client_free(struct http_client *client); /* NULL is fine */

/* True: an answer came, complete or as far as it was wanted; *status is its number. False:
 * ERROR_REMOTE says what happened; *is_reached: a connection was made. */
bool http_client_get(struct http_client *client, const struct http_get *get, int *status,
		     bool *is_reached, struct error *err);

/* Whether an address in text, as inet_ntop() writes it, is of the public Internet. */
bool http_address_is_public(const char *text);

struct http_post { /* to a server that the operator named: no redirects, any address */
	const char *url;
	const char *const *headers; /* "Name: value", may be secrets: they are never in a message */
	unsigned header_count;
	const void *bytes;
	size_t length;
	uint32_t connect_s, total_s;
	/* The body of an answer with status 200. False: no more is wanted. */
	bool (*body)(void *context, const void *bytes, size_t length);
	bool (*is_cancelled)(
		void *context); /* asked about once a second and as bytes come; NULL: never */
	void *context;
	char *refusal; /* the beginning of the body of any other answer, NUL-terminated */
	size_t refusal_room;
};

/* As http_client_get(). A question given up by is_cancelled() is ERROR_BUSY. */
bool http_client_post(struct http_client *client, const struct http_post *post, int *status,
		      struct error *err);

/* A header of the last answer; borrowed until the next question. NULL: it had none. */
const char *http_client_header(struct http_client *client, const char *name);

#endif
