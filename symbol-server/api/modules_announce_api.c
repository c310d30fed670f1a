/* SPDX-License-Identifier: Apache-2.0 */
/* POST /api/v1/modules: an agent says what it has met, and hears what would help. */
#include <string.h>
#include <strings.h>

#include "symbol-server/api/answer.h"
#include "symbol-server/api/api.h"
#include "symbol-server/api/parameters.h"
#include "symbol-server/symbolize/module_files.h"

/* "<hex> <gnu|htlhash> <name>" → id. */
static bool read_line(const char *line, size_t length, struct build_id *id, bool *is_gnu,
		      const char **name, size_t *name_length)
{
	const char *kind = memchr(line, ' ', length);
	const char *rest;
	size_t kind_length;

	if (!kind || !build_id_parse(id, line, (size_t)(kind - line)))
		return false;
	kind++;
	rest = memchr(kind, ' ', length - (size_t)(kind - line));
	kind_length = rest ? (size_t)(rest - kind) : length - (size_t)(kind - line);
	*is_gnu = kind_length == 3 && !memcmp(kind, "gnu", 3);
	if (!*is_gnu && (kind_length != 7 || memcmp(kind, "htlhash", 7)))
		return false;
	*name = rest ? rest + 1 : line + length;
	*name_length = length - (size_t)(*name - line);
	return true;
}

/* What the sender has of its modules, when it asks once and does not come back: a build. Such a
 * module has not been met in samples, and nothing is done about it here. */
enum { OFFER_NONE = 2 }; /* else enum module_file_kind */

static bool announce(struct api *api, const char *line, size_t length, unsigned offer,
		     struct arena *arena, struct buffer *wanted)
{
	char hex[BUILD_ID_HEX];
	struct build_id id;
	size_t name_length;
	const char *name;
	bool is_gnu;

	if (!read_line(line, length, &id, &is_gnu, &name, &name_length))
		return false;
	if (offer == OFFER_NONE) {
		name = arena_text(arena, name, name_length);
		symbolizer_want(api->symbolizer, &id, name, is_gnu, 0);
	}
	if (offer == OFFER_NONE ? symbolizer_wants_upload(api->symbolizer, &id)
				: symbolizer_lacks_file(api->symbolizer, &id, offer))
		buffer_printf(wanted, "%s\n", build_id_format(&id, hex));
	return true;
}

/* An agent announces some hundred at a time; all programs of a large build are some thousand. */
enum { ANNOUNCED_LINES = 10000 };

void api_modules_post(struct http_request *request, struct http_response *response, void *context)
{
	const char *type = http_request_header(request, "Content-Type");
	struct bytes body = http_request_body(request);
	const char *at = (const char *)body.at, *end = at + body.length;
	unsigned number = 1, offer = OFFER_NONE;
	struct parameters asked;
	struct error err = {0};

	if (!type || strncasecmp(type, "text/plain", 10)) {
		answer_error(response, 415, "Content-Type must be text/plain: one module per line");
		return;
	}
	if (!parameters_open(&asked, request, ENDPOINT_modules_announce, &err) ||
	    !parameter_choice(&asked, "offer", &offer, &err)) {
		answer_failure(response, &err);
		return;
	}
	response->content_type = "text/plain; charset=utf-8";
	for (; at < end; number++) {
		if (number > ANNOUNCED_LINES) {
			buffer_clear(&response->body);
			answer_error(response, 413,
				     "more than 10000 modules in one request: send them in parts");
			return;
		}
		const char *stop = memchr(at, '\n', (size_t)(end - at));
		size_t length = stop ? (size_t)(stop - at) : (size_t)(end - at);
		size_t used = length && at[length - 1] == '\r' ? length - 1 : length;

		if (used && !announce(context, at, used, offer, http_request_arena(request),
				      &response->body)) {
			error_set(&err, ERROR_OPTION,
				  "line %u is not '<build-id in hexadecimal> <gnu|htlhash> <name>'",
				  number);
			answer_failure(response, &err);
			return;
		}
		at += length + 1;
	}
}
