/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel side has to know of a process with HotSpot to walk its stacks, out of its memory:
 * where its code heaps are, and its interpreter. A stranger's: all is bounded, and checked against
 * itself. */
#ifndef NODE_AGENT_RUNTIMES_HOTSPOT_PLACE_H
#define NODE_AGENT_RUNTIMES_HOTSPOT_PLACE_H

#include "bpf/hotspot_frames.h"
#include "node-agent/runtimes/hotspot_layout.h"

enum hotspot_found {
	HOTSPOT_FOUND,
	HOTSPOT_NOT_STARTED, /* its code cache, or its first stubs, are not made yet */
	HOTSPOT_WRONG,       /* what stands there is no code cache, or not one that is known */
};

/* *place: all but whose it is; its interpreter only once its code is whole, which is so when the
 * first of its threads is there, some 20 ms after the code cache. */
enum hotspot_found hotspot_place_read(const struct python_memory *memory,
				      const struct hotspot_layout *layout,
				      struct hotspot_place *place);

#endif
