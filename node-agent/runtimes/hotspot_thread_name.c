/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/runtimes/hotspot_thread_name.h"

#include <string.h>

enum {
	THREADS_MAX = 65536,
	LINKED_MAX = 256,   /* the youngest; each is a read */
	OBJECT_BYTES = 256, /* of a Thread; 8 to 28 have 72 to 120 */
	STRING_BYTES = 32,
	HEAD_BYTES = 8, /* of an object, in front of its class */
	SHIFT_MAX = 8,
	CHARACTERS_MAX = 4096,
	CUT_HEAD = 7, /* 28: in front of ".." */
};

static bool read_word(const struct python_memory *memory, uint64_t address, uint64_t *word)
{
	return address && memory->read(memory->context, address, word, sizeof *word);
}

/* --- the kernel's name --- */

static size_t kernel_length(const char *kernel)
{
	return strnlen(kernel, HOTSPOT_KERNEL_NAME_BYTES - 1);
}

bool hotspot_thread_name_is_cut(const char *kernel)
{
	return kernel_length(kernel) == HOTSPOT_KERNEL_NAME_BYTES - 1;
}

bool hotspot_thread_name_fits(const char *name, const char *kernel)
{
	const size_t length = kernel_length(kernel), whole = strlen(name);
	const char *end = kernel + CUT_HEAD + 2;

	if (whole > length && !strncmp(name, kernel, length))
		return true;
	return whole > length && length == HOTSPOT_KERNEL_NAME_BYTES - 1 &&
	       !memcmp(kernel + CUT_HEAD, "..", 2) && !strncmp(name, kernel, CUT_HEAD) &&
	       !strncmp(name + whole - (length - CUT_HEAD - 2), end, length - CUT_HEAD - 2);
}

/* --- threads --- */

uint32_t hotspot_thread_id(const struct python_memory *memory, const struct hotspot_layout *layout,
			   uint64_t thread)
{
	uint64_t os;
	uint32_t id;

	if (!read_word(memory, thread + layout->thread_os, &os) || !os ||
	    !memory->read(memory->context, os + layout->os_thread_id, &id, sizeof id))
		return 0;
	return id;
}

static uint32_t linked_threads(const struct python_memory *memory,
			       const struct hotspot_layout *layout, uint32_t from,
			       uint64_t *threads, uint32_t most)
{
	uint64_t thread;
	uint32_t count = 0;

	if (!read_word(memory, layout->threads, &thread))
		return 0;
	for (uint32_t i = 0; thread && i < from + most && i < LINKED_MAX; i++) {
		if (i >= from)
			threads[count++] = thread;
		if (!read_word(memory, thread + layout->thread_next, &thread))
			break;
	}
	return count;
}

uint32_t hotspot_threads_list(const struct python_memory *memory,
			      const struct hotspot_layout *layout, uint32_t from, uint64_t *threads,
			      uint32_t most)
{
	uint64_t list, items;
	uint32_t length;

	if (layout->flags & HOTSPOT_LAYOUT_THREADS_LINKED)
		return linked_threads(memory, layout, from, threads, most);
	if (!read_word(memory, layout->threads, &list) || !list ||
	    !memory->read(memory->context, list + layout->list_length, &length, sizeof length) ||
	    length > THREADS_MAX || from >= length ||
	    !read_word(memory, list + layout->list_threads, &items))
		return 0;
	if (most > length - from)
		most = length - from;
	return memory->read(memory->context, items + from * sizeof items, threads,
			    most * sizeof *threads)
		       ? most
		       : 0;
}

/* --- objects --- */

struct heap {
	const struct python_memory *memory;
	uint64_t base;
	uint32_t shift;
	uint8_t bytes, unit; /* of a reference; of a character */
};

static bool heap_read(const struct python_memory *memory, const struct hotspot_layout *layout,
		      struct heap *heap)
{
	*heap = (struct heap){
		.memory = memory, .bytes = sizeof(uint32_t), .unit = layout->version >= 9 ? 1 : 2};
	return layout->narrow_oop_base && layout->narrow_oop_shift &&
	       memory->read(memory->context, layout->narrow_oop_base, &heap->base,
			    sizeof heap->base) &&
	       memory->read(memory->context, layout->narrow_oop_shift, &heap->shift,
			    sizeof heap->shift) &&
	       heap->shift <= SHIFT_MAX;
}

static uint64_t reference_at(const struct heap *heap, const uint8_t *object, size_t at)
{
	uint64_t word = 0;

	memcpy(&word, object + at, heap->bytes);
	if (heap->bytes == sizeof word || !word)
		return word;
	return heap->base + (word << heap->shift);
}

static size_t put_character(char *to, uint32_t character)
{
	if (character < 0x80) {
		to[0] = (char)character;
		return 1;
	}
	if (character < 0x800) {
		to[0] = (char)(0xc0 | character >> 6);
		to[1] = (char)(0x80 | (character & 0x3f));
		return 2;
	}
	to[0] = (char)(0xe0 | character >> 12);
	to[1] = (char)(0x80 | (character >> 6 & 0x3f));
	to[2] = (char)(0x80 | (character & 0x3f));
	return 3;
}

/* False: it is no text, or has halves of characters. */
static bool text_of(const uint8_t *elements, uint32_t count, uint8_t unit,
		    char name[HOTSPOT_THREAD_NAME_BYTES])
{
	size_t length = 0;

	for (uint32_t i = 0; i < count; i++) {
		uint16_t character = 0;

		memcpy(&character, elements + (size_t)i * unit, unit);
		if (character < 0x20 || (character >= 0xd800 && character < 0xe000))
			return false;
		if (length + 3 >= HOTSPOT_THREAD_NAME_BYTES)
			break;
		length += put_character(name + length, character);
	}
	name[length] = '\0';
	return length;
}

/* Of bytes, Latin-1, or, in 8, of chars. Its length stands in front of its elements. */
static bool read_array(const struct heap *heap, uint64_t array, uint16_t begin, const char *kernel,
		       char name[HOTSPOT_THREAD_NAME_BYTES])
{
	uint8_t elements[2 * HOTSPOT_THREAD_NAME_BYTES];
	uint32_t length;

	if (!heap->memory->read(heap->memory->context, array + begin - sizeof length, &length,
				sizeof length) ||
	    length < HOTSPOT_KERNEL_NAME_BYTES || length > CHARACTERS_MAX)
		return false;
	if (length > HOTSPOT_THREAD_NAME_BYTES)
		length = HOTSPOT_THREAD_NAME_BYTES;
	return heap->memory->read(heap->memory->context, array + begin, elements,
				  (size_t)length * heap->unit) &&
	       text_of(elements, length, heap->unit, name) &&
	       hotspot_thread_name_fits(name, kernel);
}

/* Where elements begin with a narrow class, without (24; 20 from 22 on), and with a class that is
 * in the object's first word (24 and newer). */
static bool try_array(const struct heap *heap, uint64_t array, struct hotspot_name_place *place,
		      const char *kernel, char name[HOTSPOT_THREAD_NAME_BYTES])
{
	static const uint16_t begins[] = {16, 24, 20, 12};

	for (size_t i = 0; i < sizeof begins / sizeof *begins; i++) {
		place->array = begins[i];
		if (read_array(heap, array, begins[i], kernel, name))
			return true;
	}
	return false;
}

/* string: what may be one; its text at place->text, else wherever it is. */
static bool try_string(const struct heap *heap, uint64_t string, struct hotspot_name_place *place,
		       bool is_learnt, const char *kernel, char name[HOTSPOT_THREAD_NAME_BYTES])
{
	uint8_t bytes[STRING_BYTES];

	if (!string || string & 7 ||
	    !heap->memory->read(heap->memory->context, string, bytes, sizeof bytes))
		return false;
	for (size_t at = HEAD_BYTES; at + heap->bytes <= sizeof bytes; at += heap->bytes) {
		const uint64_t array = reference_at(heap, bytes, at);

		if ((is_learnt && at != place->text) || !array || array & 7)
			continue;
		if (!is_learnt)
			place->text = (uint16_t)at;
		if (is_learnt ? read_array(heap, array, place->array, kernel, name)
			      : try_array(heap, array, place, kernel, name))
			return true;
	}
	return false;
}

static bool try_object(const struct heap *heap, const uint8_t *object,
		       struct hotspot_name_place *place, const char *kernel,
		       char name[HOTSPOT_THREAD_NAME_BYTES])
{
	struct hotspot_name_place found = {.reference = heap->bytes};

	for (size_t at = HEAD_BYTES; at + heap->bytes <= OBJECT_BYTES; at += heap->bytes) {
		found.name = (uint16_t)at;
		if (!try_string(heap, reference_at(heap, object, at), &found, false, kernel, name))
			continue;
		*place = found;
		return true;
	}
	return false;
}

bool hotspot_thread_name_read(const struct python_memory *memory,
			      const struct hotspot_layout *layout, struct hotspot_name_place *place,
			      uint64_t thread, const char *kernel,
			      char name[HOTSPOT_THREAD_NAME_BYTES])
{
	uint8_t object[OBJECT_BYTES];
	struct heap heap;
	uint64_t at;

	if (!read_word(memory, thread + layout->thread_object, &at) ||
	    ((layout->flags & HOTSPOT_LAYOUT_OBJECT_HANDLE) && !read_word(memory, at, &at)) ||
	    !at || at & 7 || !memory->read(memory->context, at, object, sizeof object) ||
	    !heap_read(memory, layout, &heap))
		return false;
	if (place->reference) {
		heap.bytes = place->reference;
		return try_string(&heap, reference_at(&heap, object, place->name), place, true,
				  kernel, name);
	}
	if (try_object(&heap, object, place, kernel, name))
		return true;
	heap.bytes = sizeof(uint64_t);
	return try_object(&heap, object, place, kernel, name);
}
