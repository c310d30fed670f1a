/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/file_parser/jit/jit_chunk.h"

#include <string.h>

#include "bpf/frames.h"

static bool text_is_sound(const struct jit_chunk *chunk, uint32_t at)
{
	return at < chunk->head.text_bytes;
}

static bool range_is_sound(uint64_t start, uint64_t size)
{
	return size && size <= JIT_CODE_MAX &&
	       start <= (UINT64_C(1) << STACK_FRAME_KIND_SHIFT) - JIT_CODE_MAX;
}

static bool entry_is_sound(const struct jit_chunk *chunk, const struct jit_entry *entry)
{
	return range_is_sound(entry->start, entry->size) && text_is_sound(chunk, entry->name) &&
	       text_is_sound(chunk, entry->file) && entry->language < JIT_LANGUAGES &&
	       entry->first_line <= chunk->head.line_count &&
	       entry->line_count <= chunk->head.line_count - entry->first_line;
}

bool jit_chunk_is_sound(const struct jit_chunk *chunk)
{
	const struct jit_head *head = &chunk->head;

	if (head->count > JIT_ENTRIES_MAX || head->line_count > JIT_LINES_MAX ||
	    !head->text_bytes || head->text_bytes > JIT_TEXT_MAX || head->is_wrong > 1 ||
	    chunk->text[0] || chunk->text[head->text_bytes - 1])
		return false;
	for (uint32_t i = 0; i < head->text_bytes; i++)
		if ((unsigned char)chunk->text[i] < ' ' && chunk->text[i])
			return false;
	for (uint32_t i = 0; i < head->count; i++)
		if (!entry_is_sound(chunk, &chunk->entries[i]))
			return false;
	for (uint32_t i = 0; i < head->line_count; i++)
		if (!text_is_sound(chunk, chunk->lines[i].file))
			return false;
	return true;
}

void jit_chunk_init(struct jit_chunk *chunk)
{
	memset(&chunk->head, 0, sizeof chunk->head);
	chunk->head.text_bytes = 1;
	chunk->text[0] = '\0';
}

struct jit_entry *jit_chunk_add(struct jit_chunk *chunk, uint64_t start, uint64_t size)
{
	struct jit_entry *entry = &chunk->entries[chunk->head.count];

	if (chunk->head.count == JIT_ENTRIES_MAX || !range_is_sound(start, size))
		return NULL;
	*entry = (struct jit_entry){.start = start, .size = (uint32_t)size};
	chunk->head.count++;
	return entry;
}

/* Bytes of the character that begins there; 0: none does. Overlong ones and surrogates are none. */
static size_t character(const unsigned char *at, size_t room)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t length = *at < 0x80 ? 1 : *at < 0xc2 ? 0 : *at < 0xe0 ? 2 : *at < 0xf0 ? 3 : 4;
	uint32_t value;

	if (length < 2 || length > room || *at > 0xf4)
		return length == 1;
	value = *at & (0x7fu >> length);
	for (size_t i = 1; i < length; i++) {
		if ((at[i] & 0xc0) != 0x80)
			return 0;
		value = value << 6 | (at[i] & 0x3f);
	}
	return value < least[length] || value > 0x10ffff || (value >= 0xd800 && value < 0xe000)
		       ? 0
		       : length;
}

uint32_t jit_chunk_text(struct jit_chunk *chunk, const char *text, uint64_t length)
{
	const unsigned char *from = (const unsigned char *)text;
	struct jit_head *head = &chunk->head;
	const uint32_t begin = head->text_bytes;
	size_t room = length < JIT_NAME_MAX ? (size_t)length : JIT_NAME_MAX;

	if (!length || JIT_TEXT_MAX - begin <= room)
		return 0;
	head->cut += length > room;
	for (size_t at = 0, bytes; at < room; at += bytes) {
		bytes = character(from + at, (size_t)length - at);
		if (bytes > room - at)
			break; /* the cut goes through it */
		if (!bytes || from[at] < ' ' || from[at] == 0x7f) {
			chunk->text[head->text_bytes++] = '?';
			bytes = 1;
			continue;
		}
		memcpy(chunk->text + head->text_bytes, from + at, bytes);
		head->text_bytes += (uint32_t)bytes;
	}
	chunk->text[head->text_bytes++] = '\0';
	return begin;
}
