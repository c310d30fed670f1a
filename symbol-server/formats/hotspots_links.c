/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/formats/hotspots_links.h"

#include <inttypes.h>
#include <string.h>

static void put_encoded(struct buffer *out, const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		unsigned char byte = (unsigned char)text[i];
		bool is_plain = (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') ||
				(byte >= 'a' && byte <= 'z') || (byte && strchr("-._~", byte));

		if (is_plain)
			buffer_append_char(out, (char)byte);
		else
			buffer_printf(out, "%%%02X", byte);
	}
}

static void put_parameter(struct buffer *out, const char *name, const char *value)
{
	if (!value || !*value)
		return;
	buffer_printf(out, "&%s=", name);
	put_encoded(out, value, strlen(value));
}

/* As query/selector.h reads it. */
static void put_quoted(struct buffer *selector, const char *value)
{
	buffer_append_char(selector, '"');
	for (; *value; value++) {
		if (*value == '"' || *value == '\\')
			buffer_append_char(selector, '\\');
		if (*value == '\n')
			buffer_append_text(selector, "\\n");
		else
			buffer_append_char(selector, *value);
	}
	buffer_append_char(selector, '"');
}

/* The matchers of what was asked, without braces. */
static void put_asked(struct buffer *selector, const char *match)
{
	const char *end;

	match += strspn(match ? match : "", " \t\n");
	end = match + strlen(match);
	while (end > match && strchr(" \t\n,}", end[-1]))
		end--;
	if (*match == '{')
		match++;
	if (end <= match)
		return;
	buffer_append(selector, match, (size_t)(end - match));
	buffer_append_char(selector, ',');
}

static void put_match(struct buffer *out, const struct hotspots_answer *answer, uint32_t process,
		      bool has_braces)
{
	const char *const *values = answer->values_of(answer->context, process);
	struct buffer selector;

	buffer_init(&selector, 64 << 10);
	if (has_braces)
		buffer_append_char(&selector, '{');
	if (answer->flame.match && *answer->flame.match)
		put_asked(&selector, answer->flame.match);
	for (unsigned i = 0; i < answer->label_count; i++) {
		buffer_printf(&selector, "%s%s=", i ? "," : "", answer->labels[i]);
		put_quoted(&selector, values[i]);
	}
	if (has_braces)
		buffer_append_char(&selector, '}');
	if (selector.length) {
		buffer_append_text(out, "&match=");
		put_encoded(out, (const char *)selector.bytes, selector.length);
	}
	buffer_release(&selector);
}

static void put_sample_parameters(struct buffer *out, const struct hotspots_answer *answer,
				  struct hot_range range)
{
	buffer_printf(out, "type=%s&from=%" PRId64 "&until=%" PRId64, answer->flame.type,
		      range.from_ms, range.until_ms);
	put_parameter(out, "focus", answer->focus);
	put_parameter(out, "ignore", answer->ignore);
	put_parameter(out, "hide", answer->hide);
	put_parameter(out, "value", answer->by_samples ? "samples" : NULL);
}

void hotspots_link_flamegraph(struct buffer *out, const struct hotspots_answer *answer,
			      uint32_t process, struct hot_range range)
{
	buffer_append_text(out, "/api/v1/flamegraph?");
	put_sample_parameters(out, answer, range);
	put_match(out, answer, process, true);
	put_parameter(out, "demangle", answer->demangle);
	put_parameter(out, "collapse", answer->collapse);
}

void hotspots_link_page(struct buffer *out, const struct hotspots_answer *answer, uint32_t process,
			struct hot_range range)
{
	buffer_append_text(out, "/#page=graph&");
	put_sample_parameters(out, answer, range);
	put_match(out, answer, process, false);
}

void hotspots_link_diff(struct buffer *out, const struct hotspots_answer *answer, uint32_t process,
			struct hot_range range, struct hot_range base)
{
	buffer_append_text(out, "/api/v1/diff?");
	put_sample_parameters(out, answer, range);
	put_match(out, answer, process, true);
	put_parameter(out, "demangle", answer->demangle);
	put_parameter(out, "collapse", answer->collapse);
	buffer_printf(out, "&base.from=%" PRId64 "&base.until=%" PRId64 "&norm=share&sort=%s",
		      base.from_ms, base.until_ms, answer->by_total ? "total" : "self");
}
