/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/symbolize/convert/kallsyms.h"

#include <stdlib.h>
#include <string.h>

enum { NAME_MAX_BYTES = 512 }; /* the kernel's KSYM_NAME_LEN */

static const char first_line[] = "farflame-kallsyms 1\n";
/* Offsets beyond are per-CPU data and other images. */
static const uint64_t code_end = 0xf0000000;

struct line {
	const char *at, *end;
	unsigned number;
};

struct entry {
	uint64_t offset;
	uint32_t name; /* 0: ends the one before */
	bool is_weak, is_local;
};

bool kallsyms_is_one(const void *bytes, size_t length)
{
	return length >= sizeof(first_line) - 1 &&
	       !memcmp(bytes, first_line, sizeof(first_line) - 1);
}

/* The next line without its end; false at the end of the text. */
static bool next_line(struct line *line, const char *text_end)
{
	const char *start = line->number ? line->end + 1 : line->at;

	if (start >= text_end)
		return false;
	line->at = start;
	line->end = memchr(start, '\n', (size_t)(text_end - start));
	if (!line->end)
		line->end = text_end;
	line->number++;
	return true;
}

static bool take_offset(const char **at, const char *end, uint64_t *offset)
{
	const char *start = *at;
	uint64_t value = 0;

	for (; *at < end && *at - start <= 16; ++*at) {
		int digit = **at >= '0' && **at <= '9'   ? **at - '0'
			    : **at >= 'a' && **at <= 'f' ? **at - 'a' + 10
							 : -1;

		if (digit < 0)
			break;
		value = value << 4 | (unsigned)digit;
	}
	*offset = value;
	return *at > start && *at - start <= 16;
}

/* "1f40 t name"; what follows the name after a blank (a module in brackets) is left out. */
static bool read_entry(const struct line *line, struct table_builder *builder, struct entry *entry)
{
	char name[NAME_MAX_BYTES];
	const char *at = line->at;
	size_t length = 0;
	char type;

	if (!take_offset(&at, line->end, &entry->offset) || line->end - at < 4 || at[0] != ' ' ||
	    at[2] != ' ')
		return false;
	type = at[1];
	for (at += 3; at < line->end && (unsigned char)*at > ' '; at++) {
		if (length == sizeof(name) - 1)
			return false;
		name[length++] = *at;
	}
	name[length] = '\0';
	if (!length)
		return false;
	entry->is_weak = type == 'w' || type == 'W';
	entry->is_local = type == 't';
	entry->name = 0;
	if (entry->is_weak || entry->is_local || type == 'T')
		entry->name = table_builder_text(builder, name);
	return true;
}

static int compare_entries(const void *left, const void *right)
{
	const struct entry *a = left, *b = right;

	return a->offset < b->offset ? -1 : a->offset > b->offset;
}

static bool read_entries(struct line *line, const char *end, struct table_builder *builder,
			 struct entry *entries, size_t *count, struct error *err)
{
	do {
		struct entry entry;

		if (line->at == line->end)
			continue;
		if (!read_entry(line, builder, &entry))
			return error_set(err, ERROR_FORMAT,
					 "kallsyms line %u is not \"offset type name\"",
					 line->number);
		if (*count == KALLSYMS_SYMBOLS_MAX)
			return error_set(err, ERROR_LIMIT, "kallsyms of more than %d symbols",
					 KALLSYMS_SYMBOLS_MAX);
		if (entry.offset < code_end)
			entries[(*count)++] = entry;
	} while (next_line(line, end));
	return true;
}

static void add_symbols(const struct entry *entries, size_t count, struct table_builder *builder)
{
	for (size_t i = 0; i < count; i++) {
		uint64_t size = KALLSYMS_EXTENT_MAX;
		size_t next = i + 1;

		while (next < count && entries[next].offset == entries[i].offset)
			next++;
		if (next < count && entries[next].offset - entries[i].offset < size)
			size = entries[next].offset - entries[i].offset;
		if (!entries[i].name)
			continue;
		table_builder_symbol(builder,
				     &(struct code_symbol){
					     .address = entries[i].offset,
					     .size = size,
					     .name = entries[i].name,
					     .is_function = true,
					     .binding = entries[i].is_weak    ? BINDING_WEAK
							: entries[i].is_local ? BINDING_LOCAL
									      : BINDING_GLOBAL,
				     });
	}
	table_builder_sort_symbols(builder);
}

bool kallsyms_read(const void *bytes, size_t length, struct table_builder *builder, bool *is_module,
		   struct error *err)
{
	const uint64_t code[1][2] = {{0, code_end + KALLSYMS_EXTENT_MAX}};
	const char *end = (const char *)bytes + length;
	struct line line = {.at = bytes};
	struct entry *entries;
	size_t lines = 1, count = 0;
	bool ok;

	*is_module = false;
	if (!kallsyms_is_one(bytes, length))
		return error_set(err, ERROR_FORMAT, "not a kallsyms text");
	if (!next_line(&line, end) || !next_line(&line, end))
		return error_set(err, ERROR_NOT_FOUND, "the kallsyms text has no symbols");
	if (line.end - line.at > 7 && !memcmp(line.at, "module ", 7)) {
		*is_module = true;
		if (!next_line(&line, end))
			return error_set(err, ERROR_NOT_FOUND, "the kallsyms text has no symbols");
	}
	for (const char *at = line.at; (at = memchr(at, '\n', (size_t)(end - at))) != NULL; at++)
		lines++;
	entries = malloc((lines < KALLSYMS_SYMBOLS_MAX ? lines : KALLSYMS_SYMBOLS_MAX) *
			 sizeof(*entries));
	if (!entries)
		return error_set(err, ERROR_MEMORY, "no memory for a kallsyms text");
	ok = table_builder_sections(builder, code, 1, err) &&
	     read_entries(&line, end, builder, entries, &count, err);
	if (ok && count)
		qsort(entries, count, sizeof(*entries), compare_entries);
	if (ok)
		add_symbols(entries, count, builder);
	free(entries);
	return ok;
}
