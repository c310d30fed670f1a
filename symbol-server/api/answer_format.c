/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/api/answer_format.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "symbol-server/api/answer.h"
#include "symbol-server/formats/accounting_json.h"
#include "symbol-server/formats/report_files.h"

enum { ACCOUNTING_HEADER_MAX = 6 << 10 };

bool answer_format_read(const struct parameters *asked, const struct answer_format *formats,
			const struct answer_format **format, struct error *err)
{
	const char *name = parameter_text(asked, "format");
	unsigned choice;

	if (!parameter_choice(asked, "format", &choice, err))
		return false;
	for (*format = formats; (*format)->name; (*format)++)
		if (!strcmp((*format)->name, name))
			return true;
	return error_set(err, ERROR_UNSUPPORTED, "this endpoint has no format '%.60s'", name);
}

/* The same object that JSON holds, for formats without room for it. Proxies commonly take 8 KiB of
 * headers: what would be longer is told in less detail. */
static bool add_accounting(struct http_request *request, struct http_response *response,
			   const struct accounting *accounting)
{
	struct buffer text;
	struct json json;
	const char *copy = NULL;

	buffer_init(&text, 64 << 10);
	for (int detail = ACCOUNTING_WHOLE; detail <= ACCOUNTING_WITHOUT_REASONS; detail++) {
		buffer_clear(&text);
		json = json_start(&text);
		json.is_ascii = true;
		accounting_json(&json, accounting, (enum accounting_detail)detail);
		if (!text.failed && text.length <= ACCOUNTING_HEADER_MAX)
			break;
	}
	if (!text.failed)
		copy = arena_text(http_request_arena(request), (const char *)text.bytes,
				  text.length);
	buffer_release(&text);
	if (copy)
		answer_header(response, "Farflame-Accounting", copy);
	return copy != NULL;
}

static bool add_header(struct http_request *request, struct http_response *response,
		       const char *name, const char *value)
{
	const char *copy = arena_text(http_request_arena(request), value, strlen(value));

	if (copy)
		answer_header(response, name, copy);
	return copy != NULL;
}

/* Pictures and pages hold strangers' words: should one of them ever come out as more than text, no
 * script of it runs and nothing is fetched. The page itself says which script of it is ours. */
static bool add_policy(struct http_request *request, struct http_response *response,
		       const struct answer_format *format)
{
	char policy[400];
	bool is_svg = !strncmp(format->content_type, "image/svg", 9);

	snprintf(policy, sizeof(policy),
		 "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
		 "form-action 'none'; frame-ancestors 'none'; script-src 'sha256-%s'",
		 is_svg ? report_svg_script_hash : report_page_script_hash);
	return add_header(request, response, "Content-Security-Policy", policy);
}

/* 2026-11-24T2343Z, as file names of all systems may hold it. */
static void put_minute(int64_t ms, char out[24])
{
	time_t seconds = (time_t)(ms / 1000);
	struct tm utc;

	*out = '\0';
	if (gmtime_r(&seconds, &utc))
		strftime(out, 24, "_%Y-%m-%dT%H%MZ", &utc);
}

/* "_" and the process that the selector asks for, without what means something to a file system,
 * a shell or a header; "": it asks for none, or for another kind of match. */
static void put_process(const char *match, char *out, size_t room)
{
	static const char matcher[] = "process=\"";
	const char *at = match ? strstr(match, matcher) : NULL;
	size_t used = 0;

	if (at && (at == match || strchr("{, ", at[-1])))
		out[used++] = '_';
	for (at = used ? at + strlen(matcher) : ""; *at && *at != '"' && used < room - 1; at++) {
		bool is_plain = isalnum((unsigned char)*at) || *at == '-';

		out[used] = is_plain || (*at == '.' && used > 1) ? *at : '_';
		used++;
	}
	out[used] = '\0';
}

static bool add_file_name(struct http_request *request, struct http_response *response,
			  const struct answer_format *format, const struct flame_answer *answer)
{
	char text[240], process[60], from[24], until[24];

	put_process(answer->match, process, sizeof(process));
	put_minute(answer->from_ms, from);
	put_minute(answer->until_ms, until);
	snprintf(text, sizeof(text), "%s; filename=\"farflame_%.40s%s%s%s.%s\"",
		 format->is_download ? "attachment" : "inline", answer->type, process, from, until,
		 format->ending);
	return add_header(request, response, "Content-Disposition", text);
}

/* Its time and its client count as long as it is written; how it ends is said later. */
static bool is_wanted(void *context)
{
	struct error err = {0};

	return query_life_is_wanted(context, &err);
}

bool answer_format_headers(struct query_life *life, struct http_response *response,
			   const struct answer_format *format, const struct flame_answer *answer,
			   struct error *err)
{
	struct http_request *request = query_life_request(life);

	response->content_type = format->content_type;
	if (strcmp(format->name, "json") &&
	    (!add_accounting(request, response, answer->accounting) ||
	     (format->ending && !add_file_name(request, response, format, answer)) ||
	     (format->is_page && !add_policy(request, response, format))))
		return error_no_memory(err);
	http_request_stream(request, is_wanted, life);
	return true;
}

bool answer_format_failed(struct query_life *life, struct error *err)
{
	return query_life_is_wanted(life, err) && query_life_no_memory(life, err);
}

bool answer_format_write(struct query_life *life, struct http_response *response,
			 const struct answer_format *format, const struct flame_answer *answer,
			 struct error *err)
{
	return answer_format_headers(life, response, format, answer, err) &&
	       (format->write(answer, &response->body) || answer_format_failed(life, err));
}
