/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/query/selector.h"

#include <stdio.h>
#include <string.h>

#include "common/hex.h"
#include "symbol-server/query/pattern.h"
#include "symbol-server/store/attribute_labels.h"
#include "symbol-server/store/sample_context.h"

enum { LABEL_NAME_MAX = 64 };

struct reader {
	const char *start, *at;
	struct arena *arena;
	struct error *err;
};

static bool fail(struct reader *reader, const char *expected)
{
	size_t position = 1;

	for (const char *at = reader->start; at < reader->at; at++)
		position += ((unsigned char)*at & 0xc0) != 0x80; /* UTF-8: first bytes only */
	return error_set(reader->err, ERROR_OPTION, "%s at character %zu", expected, position);
}

static void skip_space(struct reader *reader)
{
	reader->at += strspn(reader->at, " \t\r\n");
}

static bool is_name_start(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static size_t name_length(const char *text)
{
	size_t length = is_name_start(*text);

	while (length && (is_name_start(text[length]) || text[length] == '.' ||
			  (text[length] >= '0' && text[length] <= '9')))
		length++;
	return length;
}

bool label_name_is_valid(const char *name, size_t length)
{
	return length && length <= LABEL_NAME_MAX && name_length(name) >= length;
}

static bool read_operator(struct reader *reader, enum match_operator *op)
{
	static const char *const texts[] = {
		[MATCH_PATTERN] = "=~",
		[MATCH_NOT_PATTERN] = "!~",
		[MATCH_NOT_EQUAL] = "!=",
		[MATCH_EQUAL] = "=",
	};
	static const enum match_operator order[] = {MATCH_PATTERN, MATCH_NOT_PATTERN,
						    MATCH_NOT_EQUAL, MATCH_EQUAL};

	for (size_t i = 0; i < sizeof(order) / sizeof(*order); i++) {
		const char *text = texts[order[i]];

		if (strncmp(reader->at, text, strlen(text)))
			continue;
		reader->at += strlen(text);
		*op = order[i];
		return true;
	}
	return fail(reader, "=, !=, =~ or !~ expected");
}

/* The character after a backslash; 0: not an escape we know. */
static char unescape(char c)
{
	switch (c) {
	case 'n':
		return '\n';
	case 't':
		return '\t';
	case 'r':
		return '\r';
	case '\\':
	case '"':
	case '\'':
		return c;
	default:
		return 0;
	}
}

static const char *read_value(struct reader *reader)
{
	char quote = *reader->at;
	size_t length = 0;
	char *out;

	if (quote != '"' && quote != '\'' && quote != '`') {
		fail(reader, "a quoted value expected");
		return NULL;
	}
	out = arena_alloc(reader->arena, strlen(reader->at));
	if (!out) {
		error_set(reader->err, ERROR_MEMORY, "out of memory");
		return NULL;
	}
	for (reader->at++; *reader->at && *reader->at != quote; reader->at++) {
		char c = *reader->at;

		if (c == '\\' && quote != '`') {
			c = unescape(reader->at[1]);
			if (!c) {
				fail(reader, "unknown escape");
				return NULL;
			}
			reader->at++;
		}
		out[length++] = c;
	}
	if (!*reader->at) {
		fail(reader, "the value's closing quote is missing");
		return NULL;
	}
	reader->at++;
	out[length] = 0;
	return out;
}

static bool is_id(const struct selector_matcher *matcher)
{
	return !strcmp(matcher->name, "trace_id") || !strcmp(matcher->name, "span_id");
}

static bool read_id(struct selector *selector, const struct selector_matcher *matcher)
{
	bool is_trace = matcher->name[0] == 't';
	bool *has = is_trace ? &selector->has_trace : &selector->has_span;
	uint8_t *id = is_trace ? selector->trace_id : selector->span_id;
	size_t length = is_trace ? sizeof selector->trace_id : sizeof selector->span_id;

	if (matcher->op != MATCH_EQUAL || *has || strlen(matcher->value) != 2 * length)
		return false;
	for (size_t i = 0; i < length; i++) {
		int high = hex_digit(matcher->value[2 * i]);
		int low = hex_digit(matcher->value[2 * i + 1]);

		if (high < 0 || low < 0)
			return false;
		id[i] = (uint8_t)(high << 4 | low);
	}
	*has = true;
	return true;
}

static bool read_matcher(struct reader *reader, struct selector *selector)
{
	struct selector_matcher *matcher = &selector->matchers[selector->count];
	bool is_quoted = *reader->at == '"';
	const char *value_at;
	char written[LABEL_NAME_BYTES], label[LABEL_NAME_BYTES];
	size_t length;

	reader->at += is_quoted;
	length = name_length(reader->at);
	if (!length)
		return fail(reader, "a label name expected");
	if (length > LABEL_NAME_MAX)
		return fail(reader, "the label name is too long");
	if (is_quoted && reader->at[length] != '"') {
		reader->at += length;
		return fail(reader, "the label name's closing quote expected");
	}
	if (selector->count == SELECTOR_MATCHERS_MAX)
		return fail(reader, "too many matchers");
	snprintf(written, sizeof written, "%.*s", (int)length, reader->at);
	label_name_resolve(written, label);
	*matcher =
		(struct selector_matcher){.name = arena_text(reader->arena, label, strlen(label))};
	if (!matcher->name)
		return error_set(reader->err, ERROR_MEMORY, "out of memory");
	reader->at += length + is_quoted;
	skip_space(reader);
	if (!read_operator(reader, &matcher->op))
		return false;
	skip_space(reader);
	value_at = reader->at;
	matcher->value = read_value(reader);
	if (!matcher->value)
		return false;
	if (matcher->op == MATCH_PATTERN || matcher->op == MATCH_NOT_PATTERN) {
		matcher->pattern = pattern_new(matcher->value, reader->err);
		if (!matcher->pattern)
			return error_prefix(reader->err, "the value at character %zu",
					    (size_t)(value_at - reader->start) + 1);
	}
	selector->count++; /* its pattern is the selector's from now on */
	if (is_id(matcher) && !read_id(selector, matcher)) {
		reader->at = value_at;
		return fail(reader, matcher->name[0] == 't'
					    ? "trace_id takes = and 32 hexadecimal digits:"
					    : "span_id takes = and 16 hexadecimal digits:");
	}
	return true;
}

bool selector_parse(struct selector *selector, const char *text, struct arena *arena,
		    struct error *err)
{
	struct reader reader = {.start = text, .at = text, .arena = arena, .err = err};

	selector->count = 0;
	selector->has_trace = selector->has_span = false;
	if (strlen(text) > SELECTOR_TEXT_MAX)
		return error_set(err, ERROR_OPTION, "a selector has at most %d characters",
				 SELECTOR_TEXT_MAX);
	skip_space(&reader);
	if (!*reader.at)
		return true;
	if (*reader.at != '{')
		return fail(&reader, "'{' expected");
	reader.at++;
	skip_space(&reader);
	while (*reader.at != '}') {
		if (!read_matcher(&reader, selector))
			return false;
		skip_space(&reader);
		if (*reader.at == ',') {
			reader.at++;
			skip_space(&reader);
		} else if (*reader.at != '}') {
			return fail(&reader, "',' or '}' expected");
		}
	}
	reader.at++;
	skip_space(&reader);
	return *reader.at ? fail(&reader, "nothing more expected after '}'") : true;
}

static bool is_thread(const struct selector_matcher *matcher)
{
	return sample_context_has_name(matcher->name);
}

bool selector_is_of_series(const struct selector_matcher *matcher)
{
	return !is_id(matcher) && !is_thread(matcher);
}

bool selector_matches_value(const struct selector_matcher *matcher, const char *value)
{
	switch (matcher->op) {
	case MATCH_EQUAL:
		return !strcmp(value, matcher->value);
	case MATCH_NOT_EQUAL:
		return strcmp(value, matcher->value) != 0;
	case MATCH_PATTERN:
		return pattern_matches_all(matcher->pattern, value);
	default:
		return !pattern_matches_all(matcher->pattern, value);
	}
}

const char *series_label(const struct series_labels *labels, const char *name)
{
	for (uint32_t i = 0; i < labels->count; i++)
		if (!strcmp(labels->names[i], name))
			return labels->values[i];
	return "";
}

bool selector_matches_series(const struct selector *selector, const struct series_labels *labels)
{
	for (unsigned i = 0; i < selector->count; i++) {
		const struct selector_matcher *matcher = &selector->matchers[i];

		if (selector_is_of_series(matcher) &&
		    !selector_matches_value(matcher, series_label(labels, matcher->name)))
			return false;
	}
	return true;
}

bool selector_matches_thread(const struct selector *selector, const char *thread)
{
	char value[CONTEXT_BYTES_MAX];

	for (unsigned i = 0; i < selector->count; i++) {
		const struct selector_matcher *matcher = &selector->matchers[i];

		if (!is_thread(matcher))
			continue;
		sample_context_get(thread, matcher->name, value, sizeof value);
		if (!selector_matches_value(matcher, value))
			return false;
	}
	return true;
}

bool selector_has_series(const struct selector *selector)
{
	for (unsigned i = 0; i < selector->count; i++)
		if (selector_is_of_series(&selector->matchers[i]))
			return true;
	return false;
}

bool selector_has_thread(const struct selector *selector)
{
	for (unsigned i = 0; i < selector->count; i++)
		if (is_thread(&selector->matchers[i]))
			return true;
	return false;
}

bool selector_has_context(const struct selector *selector)
{
	for (unsigned i = 0; i < selector->count; i++)
		if (is_thread(&selector->matchers[i]) &&
		    strcmp(selector->matchers[i].name, "thread") != 0)
			return true;
	return false;
}

void selector_release(struct selector *selector)
{
	for (unsigned i = 0; i < selector->count; i++)
		pattern_free(selector->matchers[i].pattern);
	selector->count = 0;
}
