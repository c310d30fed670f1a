/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/runtimes/python_code.h"

#include <stdlib.h>
#include <string.h>

#include "bpf/runtime_frames.h"
#include "node-agent/runtimes/python_lines.h"

enum {
	HEAD_BYTES = 512,  /* of a code object: its members are within them */
	AHEAD_BYTES = 128, /* that are read of a str or bytes at once */
	PAGE_BYTES = 4096,
	CHARACTER_UNKNOWN = 0xfffd,
	CO_NO_MONITORING_EVENTS = 0x2000000, /* 3.13, Include/cpython/code.h */
};

static uint32_t int_at(const uint8_t *bytes, uint16_t at)
{
	uint32_t value;

	memcpy(&value, bytes + at, sizeof value);
	return value;
}

static uint64_t word_at(const uint8_t *bytes, uint16_t at)
{
	uint64_t value;

	memcpy(&value, bytes + at, sizeof value);
	return value;
}

/* --- str → UTF-8 --- */

struct text {
	char bytes[PYTHON_NAME_BYTES + 1];
	size_t length;
	bool is_cut;
};

static uint32_t character_at(const uint8_t *data, size_t i, unsigned kind)
{
	uint32_t c = 0;

	memcpy(&c, data + i * kind, kind); /* little-endian, as x86-64 and arm64 are */
	return c == 0 || c > 0x10ffff || (c >= 0xd800 && c < 0xe000) ? CHARACTER_UNKNOWN : c;
}

/* False: no room for it. */
static bool text_add(struct text *text, uint32_t c)
{
	const size_t bytes = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
	static const uint8_t first[] = {0, 0, 0xc0, 0xe0, 0xf0};
	char *to = text->bytes + text->length;

	if (bytes > PYTHON_NAME_BYTES - text->length)
		return false;
	for (size_t i = bytes; i-- > 1; c >>= 6)
		to[i] = (char)(0x80 | (c & 0x3f));
	to[0] = (char)(first[bytes] | c);
	text->length += bytes;
	return true;
}

/* What of an object is there to be read without leaving its page, at least `least`. */
static size_t ahead_of(const struct python_memory *memory, uint64_t address, size_t least)
{
	const size_t left = PAGE_BYTES - address % PAGE_BYTES;
	const size_t ahead = left < AHEAD_BYTES ? left : AHEAD_BYTES;

	return ahead < least || memory->is_copy ? least : ahead;
}

static bool text_read(const struct python_memory *memory, const struct python_layout *layout,
		      uint64_t address, struct text *text)
{
	uint8_t head[AHEAD_BYTES], rest[4 * PYTHON_NAME_BYTES];
	const uint8_t *data;
	const size_t have = ahead_of(memory, address, layout->unicode_compact_data);

	*text = (struct text){.length = 0};
	if (have > sizeof head || !memory->read(memory->context, address, head, have))
		return false;
	const uint32_t state = int_at(head, layout->unicode_state) >> layout->unicode_kind_bit;
	const unsigned kind = state & 7;
	const bool is_compact = state >> 3 & 1, is_ascii = state >> 4 & 1;
	const uint64_t length = word_at(head, layout->unicode_length);
	if (!is_compact || (kind != 1 && kind != 2 && kind != 4) || (is_ascii && kind != 1) ||
	    length > INT64_MAX)
		return false;
	const size_t count = length < PYTHON_NAME_BYTES ? length : PYTHON_NAME_BYTES;
	const uint16_t at = is_ascii ? layout->unicode_ascii_data : layout->unicode_compact_data;
	data = head + at;
	if (at + count * kind > have) {
		if (!memory->read(memory->context, address + at, rest, count * kind))
			return false;
		data = rest;
	}
	size_t i = 0;
	while (i < count && text_add(text, character_at(data, i, kind)))
		i++;
	text->is_cut = i < length;
	text->bytes[text->length] = '\0';
	return true;
}

bool python_text_read(const struct python_memory *memory, const struct python_layout *layout,
		      uint64_t address, char *out, size_t room)
{
	struct text text;
	size_t length;

	if (!text_read(memory, layout, address, &text))
		return false;
	length = text.length < room ? text.length : room - 1;
	while (length && length < text.length && (text.bytes[length] & 0xc0) == 0x80)
		length--; /* not in the middle of a character */
	memcpy(out, text.bytes, length);
	out[length] = '\0';
	return true;
}

/* --- the object --- */

/* Bytes of the object that have all members; 0: more than there is room for. */
static size_t head_bytes(const struct python_layout *layout)
{
	const uint16_t ends[] = {
		layout->code_argcount,  layout->code_kwonly,   layout->code_flags,
		layout->code_firstline, layout->code_filename, layout->code_name,
		layout->code_qualname,  layout->code_lines,
	};
	size_t end = 0;

	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
		if (ends[i] != PYTHON_LAYOUT_NONE && ends[i] > end)
			end = ends[i];
	return end + 8 <= HEAD_BYTES ? end + 8 : 0;
}

static uint16_t cookie_of(const struct python_layout *layout, const uint8_t *head)
{
	return runtime_cookie(int_at(head, layout->code_argcount),
			      int_at(head, layout->code_kwonly), int_at(head, layout->code_flags),
			      int_at(head, layout->code_firstline),
			      runtime_texts(word_at(head, python_layout_name(layout)),
					    word_at(head, layout->code_filename),
					    word_at(head, layout->code_lines)));
}

/* A freed object keeps most of what it had, but not what its pointers lead to. Its count of
 * references is 0 then, or the address of other free memory in its place, whose bits 32 to 47 no
 * count has: 2^32 is an immortal's, and 3.14 has flags above. Free-threaded builds, whose heads are
 * longer, count elsewhere. */
static bool is_freed(const struct python_layout *layout, const uint8_t *head)
{
	const uint64_t references = word_at(head, 0);

	return layout->bytes_size == 2 * sizeof(uint64_t) &&
	       (!(uint32_t)references || (uint16_t)(references >> 32));
}

/* What has changed meanwhile was freed, and is not what was meant. */
static bool is_same(const struct python_layout *layout, uint16_t name_at, const uint8_t *head,
		    const uint8_t *again)
{
	return !is_freed(layout, again) && cookie_of(layout, head) == cookie_of(layout, again) &&
	       word_at(head, name_at) == word_at(again, name_at) &&
	       word_at(head, layout->code_filename) == word_at(again, layout->code_filename) &&
	       word_at(head, layout->code_lines) == word_at(again, layout->code_lines);
}

static struct python_code *code_new(const struct text *name, const struct text *file, size_t lines)
{
	const size_t bytes = sizeof(struct python_code) + name->length + file->length + 2 + lines;
	struct python_code *code = calloc(1, bytes);

	if (!code)
		return NULL;
	char *texts = (char *)(code + 1);
	memcpy(texts, name->bytes, name->length);
	memcpy(texts + name->length + 1, file->bytes, file->length);
	code->name = texts;
	code->file = texts + name->length + 1;
	code->lines = (const uint8_t *)code->file + file->length + 1;
	code->lines_bytes = (uint32_t)lines;
	code->bytes = bytes;
	code->is_name_cut = name->is_cut || file->is_cut;
	return code;
}

/* The name and the file are there; adds the table at that address. */
static struct python_code *code_with_lines(const struct python_memory *memory,
					   const struct python_layout *layout, uint64_t address,
					   const struct text *name, const struct text *file)
{
	uint8_t head[AHEAD_BYTES];
	const size_t have = ahead_of(memory, address, layout->bytes_data);

	if (have > sizeof head || !memory->read(memory->context, address, head, have))
		return NULL;
	const uint64_t size = word_at(head, layout->bytes_size);
	const size_t lines = size < PYTHON_LINES_BYTES ? size : PYTHON_LINES_BYTES;
	struct python_code *code = code_new(name, file, lines);
	if (!code)
		return NULL;
	code->is_lines_cut = lines < size;
	if (layout->bytes_data + lines <= have) {
		memcpy((uint8_t *)code->lines, head + layout->bytes_data, lines);
	} else if (!memory->read(memory->context, address + layout->bytes_data,
				 (uint8_t *)code->lines, lines)) {
		free(code);
		return NULL;
	}
	return code;
}

enum python_code_state python_code_read(const struct python_memory *memory,
					const struct python_layout *layout, uint64_t address,
					uint16_t cookie, struct python_code **out)
{
	uint8_t head[HEAD_BYTES], again[HEAD_BYTES];
	const size_t bytes = head_bytes(layout);
	const uint16_t name_at = python_layout_name(layout);
	struct text name, file;

	*out = NULL;
	if (bytes == 0 || !memory->read(memory->context, address, head, bytes))
		return PYTHON_CODE_UNREAD;
	if (cookie_of(layout, head) != cookie || is_freed(layout, head))
		return PYTHON_CODE_GONE;
	struct python_code *code = NULL;
	if (text_read(memory, layout, word_at(head, name_at), &name) &&
	    text_read(memory, layout, word_at(head, layout->code_filename), &file))
		code = code_with_lines(memory, layout, word_at(head, layout->code_lines), &name,
				       &file);
	if (!memory->read(memory->context, address, again, bytes) ||
	    !is_same(layout, name_at, head, again)) {
		free(code);
		return PYTHON_CODE_GONE;
	}
	if (!code)
		return PYTHON_CODE_UNREAD;
	code->format = layout->lines;
	code->first_line = int_at(head, layout->code_firstline);
	code->is_interpreters = int_at(head, layout->code_flags) & CO_NO_MONITORING_EVENTS;
	*out = code;
	return PYTHON_CODE_READ;
}

uint32_t python_code_line(const struct python_code *code, uint32_t position)
{
	return python_line_find(code->format, code->lines, code->lines_bytes, code->first_line,
				position == RUNTIME_POSITION_NONE ? (int64_t)PYTHON_POSITION_NONE
								  : position);
}
