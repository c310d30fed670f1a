/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/runtimes/hotspot_interpreter.h"

#include <stdlib.h>
#include <string.h>

enum {
	CODE_BYTES_MAX = 512 << 10, /* 100 to 150 KiB */
	READ_BYTES = 32 << 10,
	CODELETS_MAX = 1024, /* 280 at most */
	TEXT_BYTES = 64,
	BYTECODE_FIRST = 0, /* nop; what is no bytecode's has -1 */
};

struct code {
	const struct python_memory *memory;
	const struct hotspot_layout *layout;
	uint32_t size;
	uint8_t *bytes;
};

static bool read_code(struct code *code, uint64_t address)
{
	code->bytes = malloc(code->size);
	for (uint32_t at = 0; code->bytes && at < code->size; at += READ_BYTES) {
		const uint32_t left = code->size - at;

		if (!code->memory->read(code->memory->context, address + at, code->bytes + at,
					left < READ_BYTES ? left : READ_BYTES))
			return false;
	}
	return code->bytes;
}

/* "method entry point (kind = zerolocals)", "native method entry point (…)" */
static bool is_entry(const struct code *code, uint32_t at)
{
	char text[TEXT_BYTES + 1] = "";
	uint64_t address;

	memcpy(&address, code->bytes + at + code->layout->codelet_description, sizeof address);
	for (uint32_t i = 0; i < TEXT_BYTES; i += 8)
		if (!code->memory->read(code->memory->context, address + i, text + i, 8) ||
		    memchr(text + i, '\0', 8))
			break;
	return strstr(text, "method entry point");
}

/* push %rbp; mov %rsp,%rbp */
static uint32_t framed_at(const struct code *code, uint32_t begin, uint32_t size)
{
	static const uint8_t enter[] = {0x55, 0x48, 0x8b, 0xec};
	const uint8_t *found = memmem(code->bytes + begin, size, enter, sizeof enter);

	return found ? (uint32_t)(found - code->bytes) : begin + size;
}

static bool add_way(const struct code *code, uint32_t begin, uint32_t size,
		    struct hotspot_interpreter *out)
{
	if (out->entry_count == HOTSPOT_ENTRIES_MAX)
		return false;
	if (!out->entry_count)
		out->entries = begin;
	out->ways[out->entry_count].begin = begin;
	out->ways[out->entry_count++].framed = framed_at(code, begin, size);
	return true;
}

/* Up to the first bytecode's. False: there is none, or what stands there makes no sense. */
static bool find_ways(const struct code *code, struct hotspot_interpreter *out)
{
	const uint32_t head = code->layout->codelet_bytes;
	uint32_t at = 0;

	for (unsigned i = 0; i < CODELETS_MAX && code->size - at >= head; i++) {
		int32_t size, bytecode;

		memcpy(&size, code->bytes + at + code->layout->codelet_size, sizeof size);
		memcpy(&bytecode, code->bytes + at + code->layout->codelet_bytecode,
		       sizeof bytecode);
		if (size < (int32_t)head || (uint32_t)size > code->size - at)
			return false;
		if (bytecode == BYTECODE_FIRST) {
			out->templates = at;
			return out->entry_count;
		}
		if (is_entry(code, at) && !add_way(code, at, (uint32_t)size, out))
			return false;
		at += (uint32_t)size;
	}
	return false;
}

static bool is_within(const struct hotspot_layout *layout)
{
	const uint32_t head = layout->codelet_bytes;

	return head >= sizeof(uint64_t) && layout->codelet_size <= head - sizeof(uint32_t) &&
	       layout->codelet_bytecode <= head - sizeof(uint32_t) &&
	       layout->codelet_description <= head - sizeof(uint64_t);
}

void hotspot_interpreter_read(const struct python_memory *memory,
			      const struct hotspot_layout *layout, struct hotspot_place *place)
{
	struct hotspot_interpreter found = {0};
	struct code code = {.memory = memory, .layout = layout};
	uint64_t queue, low;

	place->interpreter = found;
	if (!is_within(layout) ||
	    !memory->read(memory->context, layout->interpreter, &queue, sizeof queue) || !queue ||
	    !memory->read(memory->context, queue + layout->queue_buffer, &low, sizeof low) ||
	    !memory->read(memory->context, queue + layout->queue_end, &code.size,
			  sizeof code.size) ||
	    !code.size || code.size > CODE_BYTES_MAX || low < place->low || low > place->high ||
	    code.size > place->high - low)
		return;
	found.low = low;
	found.high = low + code.size;
	if (read_code(&code, low) && find_ways(&code, &found))
		place->interpreter = found;
	free(code.bytes);
}
