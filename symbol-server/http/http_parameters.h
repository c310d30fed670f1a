/* SPDX-License-Identifier: Apache-2.0 */
/* Percent-encoding and query strings: bytes of strangers → names and values. Pure. */
#ifndef SYMBOL_SERVER_HTTP_HTTP_PARAMETERS_H
#define SYMBOL_SERVER_HTTP_HTTP_PARAMETERS_H

#include <stdbool.h>
#include <stddef.h>

#include "common/arena.h"
#include "common/error.h"

enum { HTTP_PARAMETERS_MAX = 64 };

struct http_parameter {
	const char *name, *value; /* decoded; value "" when there is no '=' */
};

struct http_parameters { /* in the order they came, repeated ones too */
	struct http_parameter items[HTTP_PARAMETERS_MAX];
	unsigned count;
};

/* Decodes %XX (and + as a space when asked, as query strings have it). NULL: a '%' without two
 * hexadecimal digits, or an encoded NUL; ERROR_MEMORY when the arena is full. */
char *percent_decode(const char *text, size_t length, bool plus_is_space, struct arena *arena,
		     struct error *err);

/* "a=1&b=2" → parameters, texts in arena. Empty pieces ("&&") are skipped. ERROR_FORMAT: bad
 * encoding; ERROR_LIMIT: more than HTTP_PARAMETERS_MAX. */
bool http_parameters_parse(const char *query, size_t length, struct arena *arena,
			   struct http_parameters *out, struct error *err);

#endif
