/* SPDX-License-Identifier: Apache-2.0 */
/* One code object of CPython's in a process' memory: what its function and file are called, and its
 * table of lines. The memory is a stranger's and goes on changing: each length is bounded, a frame
 * says which object it had seen there (its cookie), and the object has to be the same before and
 * after it is read. */
#ifndef NODE_AGENT_RUNTIMES_PYTHON_CODE_H
#define NODE_AGENT_RUNTIMES_PYTHON_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "node-agent/runtimes/python_layout.h"
#include "node-agent/runtimes/python_memory.h"

enum {
	PYTHON_NAME_BYTES = 1024,      /* of UTF-8; of a longer name the beginning */
	PYTHON_LINES_BYTES = 64 << 10, /* of a table; what lies behind has no lines */
};

struct python_code {
	const char *name; /* qualified (3.11); UTF-8, what is none in it became U+FFFD */
	const char *file;
	uint32_t first_line;
	enum python_line_format format;
	uint32_t lines_bytes;
	const uint8_t *lines;
	size_t bytes; /* that all of it takes */
	bool is_name_cut, is_lines_cut;
	bool is_interpreters; /* no function of anybody's: the interpreter puts it between two of
				 them (3.13: a class and its __init__), and shows it to nobody */
};

enum python_code_state {
	PYTHON_CODE_READ,
	PYTHON_CODE_GONE,   /* another object is at that address now */
	PYTHON_CODE_UNREAD, /* the memory is not there, or no code object's */
};

/* cookie: runtime_cookie() of the object that is meant. *out: one piece of memory for free();
 * NULL unless it was read. */
enum python_code_state python_code_read(const struct python_memory *memory,
					const struct python_layout *layout, uint64_t address,
					uint16_t cookie, struct python_code **out);

/* A str as UTF-8 with an end, cut between characters. False: it is none, or not there. */
bool python_text_read(const struct python_memory *memory, const struct python_layout *layout,
		      uint64_t address, char *out, size_t room);

/* position: as in a frame, RUNTIME_POSITION_NONE included. 0: not known. */
uint32_t python_code_line(const struct python_code *code, uint32_t position);

#endif
