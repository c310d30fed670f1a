/* SPDX-License-Identifier: Apache-2.0 */
/* One Method of HotSpot's in a process' memory: what it, its class and its file are called, and its
 * table of lines. The memory is a stranger's and goes on changing: each length is bounded, a frame
 * says which method it had seen there (its cookie), and the method has to be the same before and
 * after it is read. */
#ifndef NODE_AGENT_RUNTIMES_HOTSPOT_METHOD_H
#define NODE_AGENT_RUNTIMES_HOTSPOT_METHOD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "node-agent/runtimes/hotspot_layout.h"
#include "node-agent/runtimes/hotspot_scopes.h"
#include "node-agent/runtimes/python_memory.h"

enum {
	HOTSPOT_NAME_BYTES = 1024, /* of UTF-8, class and method; of a longer one the beginning */
	HOTSPOT_LINES_BYTES = 16 << 10, /* of a table; what lies behind has no lines */
};

struct hotspot_method {
	const char *name; /* Class.method, UTF-8: runtimes/hotspot_names.h */
	const char *file; /* "": its class does not say */
	enum hotspot_coding coding;
	uint32_t lines_bytes;
	const uint8_t *lines;
	size_t bytes; /* that all of it takes */
	bool is_name_cut, is_lines_cut;
};

enum hotspot_state {
	HOTSPOT_READ,
	HOTSPOT_GONE,   /* another one is at that address now */
	HOTSPOT_UNREAD, /* the memory is not there, or none of HotSpot's */
};

enum hotspot_coding hotspot_coding_of(const struct hotspot_layout *layout);

/* hotspot_cookie() of the method at that address. False: its memory is not there. */
bool hotspot_method_cookie(const struct python_memory *memory, const struct hotspot_layout *layout,
			   uint64_t address, uint16_t *cookie);

/* cookie: of the method that is meant. *out: one piece of memory for free(); NULL unless it was
 * read. */
enum hotspot_state hotspot_method_read(const struct python_memory *memory,
				       const struct hotspot_layout *layout, uint64_t address,
				       uint16_t cookie, struct hotspot_method **out);

/* 0: not known. */
uint32_t hotspot_method_line(const struct hotspot_method *method, int32_t bci);

#endif
