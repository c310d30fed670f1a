/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/runtimes/hotspot_method.h"

#include <stdlib.h>
#include <string.h>

#include "bpf/hotspot_frames.h"
#include "node-agent/runtimes/hotspot_names.h"

enum {
	CONST_BYTES = 256, /* of a ConstMethod: its members are within them */
	POOL_BYTES = 256,  /* the same of a ConstantPool */
	AHEAD_BYTES = 128, /* that are read of a symbol at once */
	PAGE_BYTES = 4096,
	WORD = 8,
};

enum hotspot_coding hotspot_coding_of(const struct hotspot_layout *layout)
{
	return layout->flags & HOTSPOT_LAYOUT_WITHOUT_ZERO ? HOTSPOT_CODING_NO_ZERO
							   : HOTSPOT_CODING_ALL;
}

static bool read_at(const struct python_memory *memory, uint64_t address, uint32_t offset, void *to,
		    size_t bytes)
{
	return address && memory->read(memory->context, address + offset, to, bytes);
}

static bool word_read(const struct python_memory *memory, uint64_t address, uint32_t offset,
		      uint64_t *value)
{
	return read_at(memory, address, offset, value, sizeof *value);
}

static uint16_t short_at(const uint8_t *bytes, uint32_t at)
{
	uint16_t value;

	memcpy(&value, bytes + at, sizeof value);
	return value;
}

static uint32_t int_at(const uint8_t *bytes, uint32_t at)
{
	uint32_t value;

	memcpy(&value, bytes + at, sizeof value);
	return value;
}

static uint64_t word_at(const uint8_t *bytes, uint32_t at)
{
	uint64_t value;

	memcpy(&value, bytes + at, sizeof value);
	return value;
}

/* --- symbols --- */

struct symbol {
	size_t length;
	uint8_t bytes[HOTSPOT_NAME_BYTES]; /* of a longer one the beginning */
};

static bool symbol_read(const struct python_memory *memory, const struct hotspot_layout *layout,
			uint64_t address, struct symbol *symbol)
{
	const size_t left = PAGE_BYTES - address % PAGE_BYTES;
	const size_t head = left < AHEAD_BYTES ? left : AHEAD_BYTES;
	const uint16_t body = layout->symbol_body;
	uint8_t bytes[AHEAD_BYTES];
	const uint16_t at = layout->symbol_length +
			    (layout->flags & HOTSPOT_LAYOUT_LENGTH_HIGH ? sizeof(uint16_t) : 0);

	if (!read_at(memory, address, 0, bytes, head) || at + sizeof(uint16_t) > head)
		return false;
	symbol->length = short_at(bytes, at);
	if (symbol->length > sizeof symbol->bytes)
		symbol->length = sizeof symbol->bytes;
	if (body + symbol->length > head)
		return read_at(memory, address, body, symbol->bytes, symbol->length);
	memcpy(symbol->bytes, bytes + body, symbol->length);
	return true;
}

/* --- the method --- */

struct method {
	uint64_t address, constants; /* of its ConstMethod; its ConstantPool */
	uint8_t head[CONST_BYTES];
	uint16_t code_size, name, signature;
};

static bool method_find(const struct python_memory *memory, const struct hotspot_layout *layout,
			uint64_t address, struct method *method)
{
	if (layout->const_bytes > CONST_BYTES ||
	    !word_read(memory, address, layout->method_const, &method->address) ||
	    !read_at(memory, method->address, 0, method->head, layout->const_bytes))
		return false;
	method->constants = word_at(method->head, layout->const_constants);
	method->code_size = short_at(method->head, layout->const_code_size);
	method->name = short_at(method->head, layout->const_name);
	method->signature = short_at(method->head, layout->const_signature);
	return true;
}

static uint16_t cookie_of(const struct method *method)
{
	return hotspot_cookie(method->constants, method->code_size, method->name,
			      method->signature);
}

bool hotspot_method_cookie(const struct python_memory *memory, const struct hotspot_layout *layout,
			   uint64_t address, uint16_t *cookie)
{
	struct method method;

	if (!method_find(memory, layout, address, &method))
		return false;
	*cookie = cookie_of(&method);
	return true;
}

/* --- its names --- */

struct names {
	char name[HOTSPOT_NAME_BYTES + 1], file[HOTSPOT_NAME_BYTES + 1];
	struct hotspot_text name_text, file_text;
};

/* The symbol that an entry of the constants leads to; the lowest bit may say something else. */
static bool constant_read(const struct python_memory *memory, const struct hotspot_layout *layout,
			  uint64_t constants, uint32_t length, uint16_t i, struct symbol *symbol)
{
	uint64_t address;

	return i < length &&
	       word_read(memory, constants, layout->pool_bytes + (uint32_t)i * WORD, &address) &&
	       symbol_read(memory, layout, address & ~(uint64_t)1, symbol);
}

static bool is_scala(const struct hotspot_text *file)
{
	return file->length > 6 && !strcmp(file->to + file->length - 6, ".scala");
}

static bool source_of(const struct python_memory *memory, const struct hotspot_layout *layout,
		      const uint8_t *pool, uint64_t holder, uint16_t *source)
{
	if (layout->flags & HOTSPOT_LAYOUT_SOURCE_IN_POOL) {
		*source = short_at(pool, layout->pool_source);
		return true;
	}
	return read_at(memory, holder, layout->klass_source, source, sizeof *source);
}

static bool names_read(const struct python_memory *memory, const struct hotspot_layout *layout,
		       const struct method *method, struct names *names)
{
	uint8_t pool[POOL_BYTES];
	struct symbol symbol;
	uint64_t klass;
	uint16_t source;

	*names->name = *names->file = '\0';
	names->name_text = (struct hotspot_text){names->name, 0, sizeof names->name, false};
	names->file_text = (struct hotspot_text){names->file, 0, sizeof names->file, false};
	if (layout->pool_bytes > sizeof pool ||
	    !read_at(memory, method->constants, 0, pool, layout->pool_bytes))
		return false;
	const uint32_t length = int_at(pool, layout->pool_length);
	const uint64_t holder = word_at(pool, layout->pool_holder);
	if (!word_read(memory, holder, layout->klass_name, &klass) ||
	    !symbol_read(memory, layout, klass, &symbol) ||
	    !source_of(memory, layout, pool, holder, &source))
		return false;
	hotspot_text_add_class(&names->name_text, symbol.bytes, symbol.length);
	hotspot_text_add(&names->name_text, (const uint8_t *)".", 1);
	if (!constant_read(memory, layout, method->constants, length, method->name, &symbol))
		return false;
	hotspot_text_add(&names->name_text, symbol.bytes, symbol.length);
	/* What is made up has none; a method handle's intrinsics have the number of their class,
	 * without its constants. */
	if (!source || source >= length)
		return true;
	if (!constant_read(memory, layout, method->constants, length, source, &symbol))
		return false;
	hotspot_text_add(&names->file_text, symbol.bytes, symbol.length);
	if (is_scala(&names->file_text))
		hotspot_text_decode_scala(&names->name_text);
	return true;
}

/* --- its lines --- */

/* Behind its bytecode; at most so many bytes are a table of lines, and what may come behind that.
 */
static size_t lines_room(const struct hotspot_layout *layout, const struct method *method)
{
	const uint64_t all = (uint64_t)int_at(method->head, layout->const_size) * WORD;
	const uint64_t begin = (uint64_t)layout->const_bytes + method->code_size;

	if (!(method->head[layout->const_flags] & 1) || all <= begin)
		return 0;
	return all - begin < HOTSPOT_LINES_BYTES ? all - begin : HOTSPOT_LINES_BYTES;
}

static struct hotspot_method *method_new(const struct python_memory *memory,
					 const struct hotspot_layout *layout,
					 const struct method *method, const struct names *names)
{
	const size_t texts = names->name_text.length + names->file_text.length + 2;
	const size_t room = lines_room(layout, method);
	struct hotspot_method *out = calloc(1, sizeof *out + texts + room);

	if (!out)
		return NULL;
	char *name = (char *)(out + 1), *file = name + names->name_text.length + 1;
	uint8_t *lines = (uint8_t *)name + texts;
	memcpy(name, names->name, names->name_text.length);
	memcpy(file, names->file, names->file_text.length);
	if (room && !read_at(memory, method->address, layout->const_bytes + method->code_size,
			     lines, room)) {
		free(out);
		return NULL;
	}
	const enum hotspot_coding coding = hotspot_coding_of(layout);
	const size_t used = hotspot_lines_bytes(coding, lines, room);
	const size_t bytes = sizeof *out + texts + used;
	struct hotspot_method *smaller = realloc(out, bytes);
	if (!smaller)
		smaller = out;
	*smaller = (struct hotspot_method){.coding = coding,
					   .lines_bytes = (uint32_t)used,
					   .bytes = bytes,
					   .is_name_cut = names->name_text.is_cut,
					   .is_lines_cut = used == HOTSPOT_LINES_BYTES};
	smaller->name = (const char *)(smaller + 1);
	smaller->file = smaller->name + names->name_text.length + 1;
	smaller->lines = (const uint8_t *)smaller->name + texts;
	return smaller;
}

enum hotspot_state hotspot_method_read(const struct python_memory *memory,
				       const struct hotspot_layout *layout, uint64_t address,
				       uint16_t cookie, struct hotspot_method **out)
{
	struct hotspot_method *read = NULL;
	struct method method, again;
	struct names names;

	*out = NULL;
	if (!method_find(memory, layout, address, &method))
		return HOTSPOT_UNREAD;
	if (cookie_of(&method) != cookie)
		return HOTSPOT_GONE;
	if (names_read(memory, layout, &method, &names))
		read = method_new(memory, layout, &method, &names);
	if (!method_find(memory, layout, address, &again) || cookie_of(&again) != cookie) {
		free(read);
		return HOTSPOT_GONE;
	}
	*out = read;
	return read ? HOTSPOT_READ : HOTSPOT_UNREAD;
}

uint32_t hotspot_method_line(const struct hotspot_method *method, int32_t bci)
{
	return hotspot_line_find(method->coding, method->lines, method->lines_bytes, bci);
}
