/* SPDX-License-Identifier: Apache-2.0 */
/* Errors and plain answers, the same on every resource. */
#ifndef SYMBOL_SERVER_API_ANSWER_H
#define SYMBOL_SERVER_API_ANSWER_H

#include "common/error.h"
#include "symbol-server/http/http_server.h"

/* Of a full disk: somebody has to make room. */
enum { RETRY_FULL_DISK_S = 30 };

/* {"error":{"code","message"}}; code follows from the status. 503 and 429 get Retry-After. */
void answer_error(struct http_response *response, int status, const char *message);

/* The status that fits the kind: 422 for what the client asked, 503 for what passes, else 500. */
void answer_failure(struct http_response *response, const struct error *err);

/* google.rpc.Status as protobuf, as the OTLP specification asks. */
void answer_otlp_error(struct http_response *response, int status, const char *message);

/* text/plain */
void answer_text(struct http_response *response, const char *text);

/* Adds a header where one is free. */
void answer_header(struct http_response *response, const char *name, const char *value);

#endif
