/* SPDX-License-Identifier: Apache-2.0 */
/* format=: a table of what a resource answers in, and the headers that go with it. */
#ifndef SYMBOL_SERVER_API_ANSWER_FORMAT_H
#define SYMBOL_SERVER_API_ANSWER_FORMAT_H

#include <stdbool.h>

#include "common/error.h"
#include "symbol-server/api/parameters.h"
#include "symbol-server/api/query_life.h"
#include "symbol-server/formats/flame_formats.h"
#include "symbol-server/http/http_server.h"

struct answer_format { /* a table of them ends with one without a name; the first is the default */
	const char *name;
	const char *content_type;
	const char *ending; /* of the file name that a browser saves it under; NULL: none given */
	bool (*write)(const struct flame_answer *answer, struct buffer *out);
	bool needs_tree, needs_top; /* what write() looks at */
	bool is_page;               /* a browser shows it: it gets a content policy */
	bool is_download;           /* a browser saves it */
};

/* formats has those of the endpoint's parameter format, in any order. */
bool answer_format_read(const struct parameters *asked, const struct answer_format *formats,
			const struct answer_format **format, struct error *err);

/* Content-Type, file name, policy and, but for JSON that holds it, the accounting: from now on the
 * body is sent while it grows (http_request_stream()). false: no memory, err says so. */
bool answer_format_headers(struct query_life *life, struct http_response *response,
			   const struct answer_format *format, const struct flame_answer *answer,
			   struct error *err);

/* Headers and body. false: err says why; where a part was sent already the client sees only that
 * it is one. */
bool answer_format_write(struct query_life *life, struct http_response *response,
			 const struct answer_format *format, const struct flame_answer *answer,
			 struct error *err);

/* Why the body could not be written to its end. Always false. */
bool answer_format_failed(struct query_life *life, struct error *err);

#endif
