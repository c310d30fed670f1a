/* SPDX-License-Identifier: Apache-2.0 */
/* GET / and /openapi.yaml: what is embedded in the program. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/hash_table.h"
#include "symbol-server/api/answer.h"
#include "symbol-server/api/api.h"
#include "symbol-server/embedded.h"

/* Nothing from anywhere but here; the one script and style are in the page itself. */
static const char *page_policy(struct arena *arena)
{
	char text[600];

	snprintf(text, sizeof(text),
		 "default-src 'none'; script-src 'sha256-%s'; style-src 'sha256-%s'; "
		 "worker-src blob:; connect-src 'self'; img-src data:; base-uri 'none'; "
		 "form-action 'none'; frame-ancestors 'none'",
		 embedded_page_script_hash, embedded_page_style_hash);
	return arena_text(arena, text, strlen(text));
}

static void answer_embedded(struct http_request *request, struct http_response *response,
			    const char *start, const char *end)
{
	const char *known = http_request_header(request, "If-None-Match");
	size_t length = (size_t)(end - start);
	char tag[24];

	snprintf(tag, sizeof(tag), "\"%016" PRIx64 "\"", hash_bytes(start, length, 0));
	answer_header(response, "ETag", arena_text(http_request_arena(request), tag, strlen(tag)));
	answer_header(response, "Cache-Control", "no-cache"); /* ask each time; 304 costs nothing */
	if (known && strstr(known, tag)) {
		response->status = 304;
		return;
	}
	response->fixed = (struct bytes){(const uint8_t *)start, length};
}

void api_page_get(struct http_request *request, struct http_response *response, void *context)
{
	(void)context;
	response->content_type = "text/html; charset=utf-8";
	answer_header(response, "Content-Security-Policy",
		      page_policy(http_request_arena(request)));
	answer_header(response, "Referrer-Policy", "no-referrer");
	answer_embedded(request, response, embedded_page_html_gz, embedded_page_html_gz_end);
	response->content_encoding = "gzip";
}

void api_openapi_get(struct http_request *request, struct http_response *response, void *context)
{
	(void)context;
	response->content_type = "application/yaml";
	answer_embedded(request, response, embedded_openapi_yaml, embedded_openapi_yaml_end);
}
