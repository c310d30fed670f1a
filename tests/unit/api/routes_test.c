/* SPDX-License-Identifier: Apache-2.0 */
/* The contract lists what the server serves, and nothing else; the matching of paths. */
#include "symbol-server/api/api.h"

#include <stdlib.h>
#include <strings.h>

#include "symbol-server/embedded.h"
#include "symbol-server/http/http_routes.h"
#include "tests/check.h"

struct documented {
	char path[100], method[10];
};

/* Paths stand two spaces in, their methods four, as in every OpenAPI document written by hand. */
static size_t read_contract(struct documented *out, size_t room)
{
	char *text = strdup(embedded_openapi_yaml), *rest = text;
	char path[100] = "";
	size_t count = 0;
	bool is_inside = false;

	for (char *line = strsep(&rest, "\n"); line; line = strsep(&rest, "\n")) {
		if (*line && *line != ' ')
			is_inside = !strcmp(line, "paths:");
		if (!is_inside)
			continue;
		if (!strncmp(line, "  /", 3))
			snprintf(path, sizeof(path), "%.*s", (int)strcspn(line + 2, ":"), line + 2);
		else if (!strncmp(line, "    ", 4) && line[4] != ' ' && count < room &&
			 strspn(line + 4, "abcdefghijklmnopqrstuvwxyz") == strlen(line + 4) - 1) {
			snprintf(out[count].path, sizeof(out[count].path), "%s", path);
			snprintf(out[count].method, sizeof(out[count].method), "%.*s",
				 (int)strcspn(line + 4, ":"), line + 4);
			count++;
		}
	}
	free(text);
	return count;
}

static const char *method_text(enum http_method method)
{
	return method == HTTP_GET       ? "get"
	       : method == HTTP_POST    ? "post"
	       : method == HTTP_PUT     ? "put"
	       : method == HTTP_OPTIONS ? "options"
					: "delete";
}

static void test_contract(void)
{
	struct documented documented[100];
	size_t count = read_contract(documented, 100), routes = 0;

	for (const struct http_route *route = api_routes; route->path; route++, routes++) {
		bool found = false;

		for (size_t i = 0; i < count; i++)
			found |= !strcmp(documented[i].path, route->path) &&
				 !strcmp(documented[i].method, method_text(route->method));
		if (!CHECK(found))
			printf("# not in openapi.yaml: %s %s\n", method_text(route->method),
			       route->path);
	}
	CHECK_NUMBER(count, routes);
}

static void check_match(const char *method, const char *path, const char *want, const char *part)
{
	struct http_match match;

	http_routes_match(api_routes, method, path, strlen(path), &match);
	CHECK_TEXT(match.route ? match.route->path : "", want);
	if (part)
		CHECK(match.part_length == strlen(part) &&
		      !strncmp(match.part, part, match.part_length));
}

static void test_matching(void)
{
	struct http_match match;
	char allowed[48];

	check_match("GET", "/", "/", NULL);
	check_match("HEAD", "/healthz", "/healthz", NULL);
	check_match("GET", "/healthz/", "", NULL);
	check_match("GET", "", "", NULL);
	check_match("GET", "/api/v1/labels/process", "/api/v1/labels/{name}", "process");
	check_match("GET", "/api/v1/labels/", "", NULL);
	check_match("GET", "/api/v1/labels/a/b", "", NULL);
	check_match("PUT", "/api/v1/modules/abcd", "/api/v1/modules/{build_id}", "abcd");
	check_match("GET", "/api/v1/modules/abcd", "", NULL);
	check_match("PATCH", "/api/v1/modules", "", NULL);
	check_match("GET", "/%61pi/v1/%74ypes", "/api/v1/types", NULL);
	check_match("GET", "/api%2fv1/types", "", NULL);
	check_match("GET", "/api/v1/types%", "", NULL);
	check_match("GET", "/api/v1/types%0", "", NULL);
	check_match("GET", "/api/v1/types%00", "", NULL);
	check_match("GET", "/api/v1/labels/a%2Fb", "/api/v1/labels/{name}", "a%2Fb");
	check_match("GET", "/buildid/abcd/debuginfo", "/buildid/{build_id}/debuginfo", "abcd");
	check_match("HEAD", "/buildid/abcd/section/.debug_info",
		    "/buildid/{build_id}/section/{name}", "abcd");
	check_match("GET", "/buildid/abcd/source//usr/src/a%20b.c",
		    "/buildid/{build_id}/source/{path}", "abcd");
	check_match("GET", "/buildid/abcd/source/", "", NULL);
	check_match("GET", "/buildid//debuginfo", "", NULL);
	check_match("GET", "/buildid/abcd/debuginfo/more", "", NULL);
	http_routes_match(api_routes, "GET", "/buildid/abcd/source//usr/x", 27, &match);
	CHECK(match.rest_length == 6 && !strncmp(match.rest, "/usr/x", 6));
	http_routes_match(api_routes, "PATCH", "/api/v1/modules", 15, &match);
	http_routes_allow(match.methods, allowed);
	CHECK_TEXT(allowed, "GET, HEAD, POST");
}

int main(void)
{
	test_contract();
	test_matching();
	return checks_done();
}
