/* SPDX-License-Identifier: Apache-2.0 */
/* Which route a method and a path mean. Pure. */
#ifndef SYMBOL_SERVER_HTTP_HTTP_ROUTES_H
#define SYMBOL_SERVER_HTTP_HTTP_ROUTES_H

#include <stddef.h>

#include "symbol-server/http/http_server.h"

struct http_match {
	const struct http_route *route; /* NULL: none */
	const char *part; /* what {…} stood for, still percent-encoded; NULL: no {…} */
	size_t part_length;
	const char *rest; /* what the second {…} stood for */
	size_t rest_length;
	unsigned
		methods; /* of every route with that path, enum http_method bits; 0: unknown path */
};

/* HEAD is answered by GET routes. path has no query. {…} matches one non-empty segment, a second
 * one, which is the pattern's last part, all that is left. */
void http_routes_match(const struct http_route *routes, const char *method, const char *path,
		       size_t path_length, struct http_match *out);

/* "GET, HEAD, POST" for an Allow header; out holds at least 48 bytes. */
void http_routes_allow(unsigned methods, char out[48]);

#endif
