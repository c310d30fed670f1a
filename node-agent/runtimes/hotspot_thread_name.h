/* SPDX-License-Identifier: Apache-2.0 */
/* What Java calls a thread whose name was too long for the kernel, which has its first 15 bytes or,
 * from 28 on, 7 of its beginning and 6 of its end with ".." between them. The name is a String that
 * java.lang.Thread has, and its fields are nowhere in HotSpot's tables: of the references in the
 * object, and in what they lead to, the one with a text that the kernel's name is of. Nothing else
 * is believed: the collector may move what is being read. Not read: what is not Latin-1, and with
 * ZGC's coloured references. The memory is a stranger's: so many words are read and no more. */
#ifndef NODE_AGENT_RUNTIMES_HOTSPOT_THREAD_NAME_H
#define NODE_AGENT_RUNTIMES_HOTSPOT_THREAD_NAME_H

#include <stdbool.h>
#include <stdint.h>

#include "node-agent/runtimes/hotspot_layout.h"

enum {
	HOTSPOT_THREAD_NAME_BYTES = 96, /* of UTF-8, with its end; a longer one is cut */
	HOTSPOT_KERNEL_NAME_BYTES = 16, /* with its end */
};

/* Where a process' threads have their names: learnt from the first of them. All zero: not yet. */
struct hotspot_name_place {
	uint16_t name, text, array; /* in a Thread, a String; where an array's elements begin */
	uint8_t reference;          /* bytes of one; 0: not learnt */
};

/* Whether the kernel's name may be short for another one. */
bool hotspot_thread_name_is_cut(const char *kernel);

/* The kernel's number of the thread whose JavaThread is at that address; 0: it is none. */
uint32_t hotspot_thread_id(const struct python_memory *memory, const struct hotspot_layout *layout,
			   uint64_t thread);

/* Addresses of JavaThreads, the first `most` from number `from` on. Returns how many. */
uint32_t hotspot_threads_list(const struct python_memory *memory,
			      const struct hotspot_layout *layout, uint32_t from, uint64_t *threads,
			      uint32_t most);

/* thread: the JavaThread's address. False: it has no such name, or that is not to be had now. */
bool hotspot_thread_name_read(const struct python_memory *memory,
			      const struct hotspot_layout *layout, struct hotspot_name_place *place,
			      uint64_t thread, const char *kernel,
			      char name[HOTSPOT_THREAD_NAME_BYTES]);

/* Whether the name is one that the kernel's is of. */
bool hotspot_thread_name_fits(const char *name, const char *kernel);

#endif
