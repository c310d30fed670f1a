/* SPDX-License-Identifier: Apache-2.0 */
/* Where in a file memory is taken and given back, as the parser of strangers' files has found it.
 * Said by a process without privileges: what comes of it is that a probe lies at some instruction
 * of that file, or that some word of a process that runs it is read as a number. */
#ifndef NODE_AGENT_FILE_PARSER_MEMORY_PLACES_H
#define NODE_AGENT_FILE_PARSER_MEMORY_PLACES_H

#include <stdint.h>

#include "common/build_id.h"

enum memory_place_kind {
	MEMORY_BASE, /* the ELF address of the file's first byte; always there */
	/* offsets in the file, of instructions; bpf/sample_alloc.bpf.c */
	MEMORY_GO_TAKEN,
	MEMORY_GO_GIVEN,
	MEMORY_GO_TAKEN_BY_STACK,
	MEMORY_GO_GIVEN_BY_STACK,
	MEMORY_GO_RATE, /* the ELF address of runtime.MemProfileRate, 8 bytes */
	/* as the ones of Go; those of libraries that sample */
	MEMORY_LIBRARY_TAKEN,
	MEMORY_LIBRARY_GIVEN,
	MEMORY_LIBRARY_BATCH,
	/* the same, of functions whose length is in bytes; node-agent/file_parser/malloc_names.c */
	MEMORY_MALLOC,         /* (size) */
	MEMORY_CALLOC,         /* (count, size) */
	MEMORY_REALLOC,        /* (…, size) */
	MEMORY_POSIX_MEMALIGN, /* (…, …, size) */
	MEMORY_REALLOCARRAY,   /* (…, count, size) */
	/* where CPython takes a pool, of so many bytes; node-agent/file_parser/python_malloc.h */
	MEMORY_PYTHON_POOL,
	MEMORY_PLACE_KINDS,
};

struct memory_place {
	uint32_t kind;
	uint32_t semaphore; /* offset in the file of a probe's count of listeners; 0: none */
	uint32_t bytes;     /* of the function; 0: not known; or of the pool */
	uint16_t skip;      /* behind `at`: where a probe is cheaper */
	uint16_t is_cheap;  /* the kernel does the instruction there itself */
	uint32_t reg;       /* that has the pool, by its number in instructions; x86-64 */
	uint64_t at;
};

enum { MEMORY_PLACES_MAX = 64, MEMORY_FUNCTIONS_MAX = 32 };

struct memory_places {
	uint32_t count;
	uint32_t refused; /* functions that somebody else told of, and that are not in the file */
	struct build_id nameless; /* of a file that has no names of functions any more, and none of
				     ours; length 0: it has, or has no id */
	struct memory_place items[MEMORY_PLACES_MAX];
};

/* What somebody else says of a file that has no names: a function by its ELF address. It is a place
 * once the file itself has a function that begins there. */
struct memory_function {
	uint64_t address;
	uint32_t kind;
};

struct memory_functions {
	uint32_t count;
	struct memory_function items[MEMORY_FUNCTIONS_MAX];
};

/* The first of that kind. NULL: there is none. */
static inline const struct memory_place *memory_place_find(const struct memory_places *places,
							   enum memory_place_kind kind)
{
	for (uint32_t i = 0; i < places->count; i++)
		if (places->items[i].kind == kind)
			return &places->items[i];
	return 0;
}

static inline void memory_place_add(struct memory_places *places, enum memory_place_kind kind,
				    uint64_t at)
{
	if (places->count < MEMORY_PLACES_MAX)
		places->items[places->count++] = (struct memory_place){.kind = kind, .at = at};
}

#endif
