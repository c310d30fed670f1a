/* SPDX-License-Identifier: Apache-2.0 */
/* Where interpreters' files had the frames of their threads in the last process of each: a new one
 * has them there too, mostly, and its first frames are read before it has been looked at. A place
 * that is wrong gives no list: the kernel side uses no state that does not name the thread. Pure.
 */
#ifndef NODE_AGENT_RUNTIMES_KNOWN_PLACES_H
#define NODE_AGENT_RUNTIMES_KNOWN_PLACES_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/runtime_frames.h"
#include "node-agent/runtimes/python_layout.h"

enum { KNOWN_PLACES_MAX = 32 };

struct known_place {
	uint32_t executable; /* 0: none */
	uint32_t version;
	uint64_t base; /* what is added to the file's addresses there */
	struct runtime_place place;
	struct python_layout layout;
};

struct known_places { /* all zero: none */
	struct known_place items[KNOWN_PLACES_MAX];
	uint32_t next;
};

/* Takes the place of the file's last one, else of the oldest. */
void known_places_put(struct known_places *places, const struct known_place *place);

/* The file's, as it is where that base is added. False: none is known. */
bool known_places_find(const struct known_places *places, uint32_t executable, uint64_t base,
		       struct known_place *out);

#endif
