/* SPDX-License-Identifier: Apache-2.0 */
/* Errors and plain answers, the same on every resource. */
#ifndef SYMBOL_SERVER_API_ANSWER_H
#define SYMBOL_SERVER_API_ANSWER_H

#include "common/error.h"
#include "symbol-server/http/http_server.h"

/* {"error":{"code","message"}}; code follows from the status. 503 and 429 get Retry-After. */
void answer_error(struct http_response *response, int status, const char *message);

/* What failed: a question; one whose body is read; a report of samples; an upload of a file. */
enum answer_of { ANSWER_TO_QUESTION, ANSWER_TO_BODY, ANSWER_TO_REPORT, ANSWER_TO_UPLOAD };

/* The one place that knows which status an error is. */
int answer_status(const struct error *err, enum answer_of of);

/* With the status that fits and the error's sentence; a full disk says when to come again. */
void answer_failure_of(struct http_response *response, enum answer_of of, const struct error *err);
void answer_failure(struct http_response *response, const struct error *err); /* of a question */

/* google.rpc.Status as protobuf, as the OTLP specification asks. */
void answer_otlp_error(struct http_response *response, int status, const char *message);

/* text/plain */
void answer_text(struct http_response *response, const char *text);

/* Adds a header where one is free. */
void answer_header(struct http_response *response, const char *name, const char *value);

#endif
