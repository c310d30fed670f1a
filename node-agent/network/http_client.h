/* SPDX-License-Identifier: Apache-2.0 */
/* A small HTTP/1.1 client for one server: one request at a time, the connection kept between them,
 * bounded in bytes and in time. Proxies and redirects are not followed. Runs in the process of the
 * network (network.h). */
#ifndef NODE_AGENT_NETWORK_HTTP_CLIENT_H
#define NODE_AGENT_NETWORK_HTTP_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buffer.h"
#include "common/error.h"
#include "node-agent/network/http_answer.h"
#include "node-agent/network/tls.h"
#include "node-agent/network/url.h"

struct http_client_options {
	const struct url *url;   /* borrowed for the client's life */
	struct tls_context *tls; /* the same; NULL for http */
	int timeout_ms;          /* connect, and each silence while sending or waiting */
	int interrupt_fd; /* readable: every wait ends at once with ERROR_BUSY; −1 = none */
};

/* The body: pieces that lie in memory, or a source that is read while it is sent. */
struct http_request {
	const char *method; /* "POST" */
	const char *path;   /* "/v1development/profiles"; the address' prefix goes before it */
	const char *content_type;
	const char *content_encoding; /* NULL: none */
	const char *bearer;           /* NULL: no Authorization */
	struct bytes pieces[2];
	/* Fills up to room bytes of the body from offset; returns how many, 0 or less when it
	 * cannot. May sleep: it sets the pace. The same offset may be asked for again after a
	 * retry. */
	int64_t (*source)(void *context, uint64_t offset, void *bytes, size_t room);
	void *context;
	uint64_t source_length;
	int64_t deadline_ms; /* of the whole exchange on monotonic_ms()'s clock; 0 = none */
};

enum { HTTP_SOURCE_STEP = 64 << 10 }; /* at most so much room */

uint64_t http_request_length(const struct http_request *request);

struct http_client;

struct http_client *http_client_new(const struct http_client_options *options, struct error *err);

/* One exchange; answer is initialised here and released by the caller in either case. A kept
 * connection that turns out to be closed is opened again once. False: there is no answer: the
 * server could not be reached, was too slow, or what it said is not HTTP. */
bool http_client_send(struct http_client *client, const struct http_request *request,
		      struct http_answer *answer, struct error *err);

void http_client_free(struct http_client *client);

#endif
