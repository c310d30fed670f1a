/* SPDX-License-Identifier: Apache-2.0 */
/* An instruction of a method that HotSpot has compiled: which calls of which methods it belongs to,
 * by the nmethod in a process' memory. As with runtimes/hotspot_method.h, the memory is a
 * stranger's, and the nmethod has to be the same before and after. */
#ifndef NODE_AGENT_RUNTIMES_HOTSPOT_COMPILED_H
#define NODE_AGENT_RUNTIMES_HOTSPOT_COMPILED_H

#include <stdbool.h>
#include <stdint.h>

#include "node-agent/runtimes/hotspot_layout.h"
#include "node-agent/runtimes/hotspot_method.h"
#include "node-agent/runtimes/python_memory.h"

enum { HOTSPOT_CALLS_MAX = 64 }; /* of one instruction; the innermost ones */

struct hotspot_call {
	uint64_t method; /* a Method's address */
	int32_t bci;     /* HOTSPOT_BCI_ENTRY: before its first bytecode, or not told */
	uint16_t cookie; /* hotspot_cookie() of the method */
};

struct hotspot_compiled {
	uint8_t level; /* 1 to 3: C1; 4: C2; 0: a wrapper of a native method */
	bool is_cut;   /* there were more calls */
	uint32_t count;
	struct hotspot_call calls[HOTSPOT_CALLS_MAX]; /* innermost first, one at least */
};

struct hotspot_place_in_code {
	uint64_t nmethod;
	uint16_t compile_id; /* the lower half */
	uint64_t pc;         /* an instruction, or where a call returns to */
};

enum hotspot_state hotspot_compiled_read(const struct python_memory *memory,
					 const struct hotspot_layout *layout,
					 const struct hotspot_place_in_code *place,
					 struct hotspot_compiled *out);

#endif
