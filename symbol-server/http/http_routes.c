/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/http/http_routes.h"

#include <stdio.h>
#include <string.h>

#include "common/hex.h"

static unsigned method_bit(const char *method)
{
	static const struct {
		const char *name;
		unsigned bit;
	} methods[] = {{"GET", HTTP_GET}, {"HEAD", HTTP_GET},      {"POST", HTTP_POST},
		       {"PUT", HTTP_PUT}, {"DELETE", HTTP_DELETE}, {"OPTIONS", HTTP_OPTIONS}};

	for (size_t i = 0; i < sizeof(methods) / sizeof(*methods); i++)
		if (!strcmp(method, methods[i].name))
			return methods[i].bit;
	return 0;
}

/* The character at at, percent-decoded: %74 is the letter it stands for (RFC 3986, 2.3). An encoded
 * '/' is none that parts segments. */
static char next_character(const char **at, const char *end)
{
	int high = end - *at > 2 && **at == '%' ? hex_digit((*at)[1]) : -1;
	int low = high >= 0 ? hex_digit((*at)[2]) : -1;

	if (low < 0)
		return *(*at)++;
	*at += 3;
	return high << 4 == 0x20 && low == 0xf ? '\0' : (char)(high << 4 | low);
}

/* Compares a route's pattern with a path; sets part and rest to what a {…} took. */
static bool path_matches(const char *pattern, const char *path, size_t length,
			 struct http_match *match)
{
	const char *at = path, *end = path + length;

	match->part = match->rest = NULL;
	while (*pattern) {
		if (*pattern == '{' && match->part) {
			match->rest = at;
			match->rest_length = (size_t)(end - at);
			return match->rest_length > 0;
		}
		if (*pattern == '{') {
			const char *stop = memchr(at, '/', (size_t)(end - at));

			match->part = at;
			match->part_length = (size_t)((stop ? stop : end) - at);
			if (!match->part_length)
				return false;
			at += match->part_length;
			pattern = strchr(pattern, '}') + 1;
			continue;
		}
		if (at == end || *pattern != next_character(&at, end))
			return false;
		pattern++;
	}
	return at == end;
}

void http_routes_match(const struct http_route *routes, const char *method, const char *path,
		       size_t path_length, struct http_match *out)
{
	unsigned bit = method_bit(method);
	struct http_match found = {0};

	for (const struct http_route *route = routes; route->path; route++) {
		struct http_match match = {0};

		if (!path_matches(route->path, path, path_length, &match))
			continue;
		found.methods |= (unsigned)route->method;
		if ((unsigned)route->method != bit || found.route)
			continue;
		found.route = route;
		found.part = match.part;
		found.part_length = match.part_length;
		found.rest = match.rest;
		found.rest_length = match.rest_length;
	}
	*out = found;
}

void http_routes_allow(unsigned methods, char out[48])
{
	static const struct {
		unsigned bit;
		const char *text;
	} names[] = {{HTTP_GET, "GET, HEAD"},
		     {HTTP_POST, "POST"},
		     {HTTP_PUT, "PUT"},
		     {HTTP_DELETE, "DELETE"},
		     {HTTP_OPTIONS, "OPTIONS"}};

	*out = 0;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (!(methods & names[i].bit))
			continue;
		snprintf(out + strlen(out), 48 - strlen(out), "%s%s", *out ? ", " : "",
			 names[i].text);
	}
}
