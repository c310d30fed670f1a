/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/contexts/thread_slot.h"

#include "node-agent/kernel/stranger_reader.h"

enum { OFFSET_MAX = 1 << 30 };

#if defined(__aarch64__)
enum {
	POINTER_TO_BLOCK = 16, /* the thread's own words come first */
	VECTOR_AT = 0,
	MUSL_VECTOR_AT = -8,
};

/* Of the program's block: it lies above the thread pointer. */
static int64_t program_offset(const struct tls_symbol *symbol)
{
	return (int64_t)(symbol->value + POINTER_TO_BLOCK +
			 ((symbol->block_address - POINTER_TO_BLOCK) &
			  (symbol->block_alignment - 1)));
}

static bool is_offset(int64_t offset)
{
	return offset >= POINTER_TO_BLOCK && offset < OFFSET_MAX;
}
#else
enum { VECTOR_AT = 8, MUSL_VECTOR_AT = 8 };

/* It ends at the thread pointer. */
static int64_t program_offset(const struct tls_symbol *symbol)
{
	const uint64_t fill = (0 - symbol->block_address - symbol->block_bytes) &
			      (symbol->block_alignment - 1);

	return (int64_t)(symbol->value - symbol->block_bytes - fill);
}

static bool is_offset(int64_t offset)
{
	return offset < 0 && offset > -OFFSET_MAX;
}
#endif

static bool read_words(int directory, uint64_t address, uint64_t *words, size_t count)
{
	return stranger_memory_read(directory, address, words, count * sizeof *words);
}

static bool at_offset(int64_t offset, struct thread_context_place *place)
{
	if (!is_offset(offset))
		return false;
	place->kind = THREAD_CONTEXT_STATIC;
	place->offset = offset;
	return true;
}

static bool in_module(uint64_t module, uint64_t offset, bool is_musl,
		      struct thread_context_place *place)
{
	if (!module || module > THREAD_CONTEXT_MODULES_MAX || offset >= OFFSET_MAX)
		return false;
	place->kind = THREAD_CONTEXT_DYNAMIC;
	place->module = (uint32_t)module;
	place->offset = (int64_t)offset;
	place->vector_at = is_musl ? MUSL_VECTOR_AT : VECTOR_AT;
	place->entry_bytes = is_musl ? 8 : 16;
	return true;
}

/* The argument is an offset, or points to a module's number and an offset in its block. */
static bool by_descriptor(uint64_t argument, int directory, bool is_musl,
			  struct thread_context_place *place)
{
	uint64_t pair[2];

	return at_offset((int64_t)argument, place) || (read_words(directory, argument, pair, 2) &&
						       in_module(pair[0], pair[1], is_musl, place));
}

bool thread_slot_find(const struct tls_symbol *symbol, uint64_t base, int directory, bool is_musl,
		      struct thread_context_place *place)
{
	if (symbol->is_program)
		return at_offset(program_offset(symbol), place);
	for (uint32_t i = 0; i < symbol->slot_count && i < TLS_SLOTS_MAX; i++) {
		const uint32_t kind = symbol->slots[i].kind;
		uint64_t words[2] = {0};

		if (!read_words(directory, base + symbol->slots[i].address, words,
				kind == TLS_SLOT_DESCRIPTOR ? 2 : 1))
			continue;
		if ((kind == TLS_SLOT_OFFSET && at_offset((int64_t)words[0], place)) ||
		    (kind == TLS_SLOT_MODULE &&
		     in_module(words[0], symbol->value, is_musl, place)) ||
		    (kind == TLS_SLOT_DESCRIPTOR && words[0] &&
		     by_descriptor(words[1], directory, is_musl, place)))
			return true;
	}
	return false;
}
