/* SPDX-License-Identifier: Apache-2.0 */
/* The code that one process' runtime has made: where, from when on, and what it is called. Code
 * takes the place of other code, and moves; what a sample met is what was there at its time. */
#ifndef NODE_AGENT_RUNTIMES_JIT_CODE_H
#define NODE_AGENT_RUNTIMES_JIT_CODE_H

#include <stddef.h>
#include <stdint.h>

#include "node-agent/file_parser/jit/jit_chunk.h"

struct jit_code;

/* limit_bytes: of all it keeps. NULL: no memory. */
struct jit_code *jit_code_new(size_t limit_bytes);
void jit_code_free(struct jit_code *code);

/* The entries of a sound chunk, in the order in which they were written. Those that do not say when
 * have come after from_ns (0: nobody knows when) and are there since seen_ns. Returns how many had
 * no room, even without those whose place others have taken. */
uint32_t jit_code_add(struct jit_code *code, const struct jit_chunk *chunk, uint64_t from_ns,
		      uint64_t seen_ns);

struct jit_name {                    /* borrowed until the next jit_code_add() */
	const char *function, *file; /* file "": not known */
	uint32_t line;               /* of that address where lines are known; 0: none */
	enum jit_language language;
};

enum jit_find {
	JIT_NOT_FOUND,
	JIT_FOUND,
	JIT_UNSURE, /* one of two: the second was written at about that time */
};

/* What lay at the address at that time (CLOCK_MONOTONIC). What is told of only later was there
 * already where nothing else is known to have been: runtimes write with a delay. */
enum jit_find jit_code_find(const struct jit_code *code, uint64_t address, uint64_t time_ns,
			    struct jit_name *name);

size_t jit_code_bytes(const struct jit_code *code);
uint32_t jit_code_count(const struct jit_code *code);

#endif
