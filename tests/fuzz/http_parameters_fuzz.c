/* SPDX-License-Identifier: Apache-2.0 */
/* A request target: path against the routes, its part and the query string decoded. */
#include "tests/fuzz/fuzz.h"

#include <string.h>

#include "symbol-server/api/api.h"
#include "symbol-server/http/http_parameters.h"
#include "symbol-server/http/http_routes.h"

static void fuzz_one(const uint8_t *bytes, size_t length)
{
	const char *text = (const char *)bytes;
	const char *question = memchr(text, '?', length);
	size_t path = question ? (size_t)(question - text) : length;
	struct http_parameters parameters;
	struct http_match match;
	struct arena arena;
	size_t sum = 0;

	arena_init(&arena, 1 << 20);
	http_routes_match(api_routes, "GET", text, path, &match);
	if (match.part && percent_decode(match.part, match.part_length, false, &arena, NULL))
		sum++;
	if (question &&
	    http_parameters_parse(question + 1, length - path - 1, &arena, &parameters, NULL))
		for (unsigned i = 0; i < parameters.count; i++)
			sum += strlen(parameters.items[i].name) + strlen(parameters.items[i].value);
	if (sum > length) /* decoding never grows */
		abort();
	arena_release(&arena);
}
