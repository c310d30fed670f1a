/* SPDX-License-Identifier: Apache-2.0 */
/* What a runtime says of the code that it has made, in a file of its own: a piece of it, as the
 * parser of strangers' files has read it. Said by a process without privileges of what another one
 * wrote: what comes of it is the name of code of the process that has the file. */
#ifndef NODE_AGENT_FILE_PARSER_JIT_JIT_CHUNK_H
#define NODE_AGENT_FILE_PARSER_JIT_JIT_CHUNK_H

#include <stdbool.h>
#include <stdint.h>

enum {
	JIT_ENTRIES_MAX = 512,
	JIT_LINES_MAX = 2048,
	JIT_TEXT_MAX = 48 << 10,
	JIT_NAME_MAX = 512,      /* bytes of a name; what is longer is cut */
	JIT_CODE_MAX = 16 << 20, /* bytes of one function: what is more is refused */
};

enum jit_format { JIT_PERF_MAP, JIT_DUMP, JIT_FORMATS };

/* Whose code it is, where its name tells. */
enum jit_language {
	JIT_UNKNOWN,
	JIT_V8,
	JIT_PYTHON,
	JIT_DOTNET,
	JIT_BEAM,
	JIT_LUAJIT,
	JIT_JVM, /* never told by a name */
	JIT_LANGUAGES,
};

struct jit_entry {
	uint64_t start;
	uint64_t old_start; /* not 0: the code that was there has moved to start; it has its name */
	uint64_t time_ns;   /* when, CLOCK_MONOTONIC; 0: the file does not say */
	uint32_t size;      /* 1 and more */
	uint32_t name, file; /* where in the text; 0: none */
	uint32_t line;       /* with which the function begins; 0: not known */
	uint32_t first_line, line_count;
	uint32_t language; /* enum jit_language */
};

/* From that byte of the function on. */
struct jit_line {
	uint32_t offset, line, file;
};

struct jit_head {
	uint64_t next;     /* where in the file to go on */
	uint32_t refused;  /* lines and records that are none, or that had no room */
	uint32_t cut;      /* names that were too long */
	uint32_t is_wrong; /* 1: this is no such file */
	uint32_t count, line_count, text_bytes;
};

struct jit_chunk {
	struct jit_head head;
	struct jit_entry entries[JIT_ENTRIES_MAX]; /* in the file's order */
	struct jit_line lines[JIT_LINES_MAX];      /* of an entry: by offset */
	char text[JIT_TEXT_MAX]; /* UTF-8 without control characters, each with a 0 behind; the
				    first is "" */
};

/* Whether the counts fit the room and everything that it points to lies in it. */
bool jit_chunk_is_sound(const struct jit_chunk *chunk);

/* --- for who fills one --- */

void jit_chunk_init(struct jit_chunk *chunk);
/* NULL: it is full. What a name is made of is told by jit_name.h. */
struct jit_entry *jit_chunk_add(struct jit_chunk *chunk, uint64_t start, uint64_t size);
/* Cut and cleaned; 0: nothing is there, or there is no room. */
uint32_t jit_chunk_text(struct jit_chunk *chunk, const char *text, uint64_t length);

#endif
