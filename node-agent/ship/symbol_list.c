/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/ship/symbol_list.h"

#include <string.h>

/* Takes digits of a base up to the byte behind them, which has to be end, and takes that too. */
static bool take_number(struct bytes *line, unsigned base, char end, uint64_t *value)
{
	static const char digits[] = "0123456789abcdef";
	size_t at = 0;

	*value = 0;
	for (; at < line->length && line->at[at] != (uint8_t)end; at++) {
		const char *digit = line->at[at] ? strchr(digits, line->at[at]) : NULL;

		if (!digit || digit >= digits + base ||
		    __builtin_mul_overflow(*value, (uint64_t)base, value) ||
		    __builtin_add_overflow(*value, (uint64_t)(digit - digits), value))
			return false;
	}
	if (!at || at == line->length)
		return false;
	line->at += at + 1;
	line->length -= at + 1;
	return true;
}

static bool take_text(struct bytes *line, const char *text)
{
	const size_t length = strlen(text);

	if (line->length < length || memcmp(line->at, text, length) != 0)
		return false;
	line->at += length;
	line->length -= length;
	return true;
}

static bool take_name(struct bytes *line, const char *const *names, size_t count, uint32_t *name)
{
	const uint8_t *end = memchr(line->at, ' ', line->length);

	for (size_t i = 0; end && i < count; i++) {
		const size_t length = strlen(names[i]);

		if (length != (size_t)(end - line->at) || memcmp(line->at, names[i], length) != 0)
			continue;
		*name = (uint32_t)i;
		line->at += length + 1;
		line->length -= length + 1;
		return true;
	}
	return false;
}

bool symbol_list_parse(struct bytes text, const char *const *names, size_t name_count,
		       struct symbol_list *list, struct error *err)
{
	list->count = 0;
	while (text.length) {
		struct listed_symbol symbol;

		if (!take_name(&text, names, name_count, &symbol.name) || !take_text(&text, "0x") ||
		    !take_number(&text, 16, ' ', &symbol.address) ||
		    !take_number(&text, 10, '\n', &symbol.bytes))
			return error_set(err, ERROR_FORMAT,
					 "what the server says of functions is not understood");
		if (list->count == SYMBOL_LIST_MAX)
			return error_set(err, ERROR_LIMIT,
					 "the server says of more than %d functions",
					 SYMBOL_LIST_MAX);
		list->items[list->count++] = symbol;
	}
	return true;
}
