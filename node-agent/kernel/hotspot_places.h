/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel side's table of JVMs (bpf/hotspot_frames.h), as whoever finds them writes it. It is
 * made for the first of them: until then no walk looks for any. */
#ifndef NODE_AGENT_KERNEL_HOTSPOT_PLACES_H
#define NODE_AGENT_KERNEL_HOTSPOT_PLACES_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/hotspot_frames.h"
#include "common/error.h"

struct hotspot_places {
	int array;  /* KERNEL_MAP_HOTSPOTS; borrowed, −1: there is none */
	int places; /* the table; −1: not yet */
};

void hotspot_places_init(struct hotspot_places *places, int array);
void hotspot_places_release(struct hotspot_places *places); /* walks find none any more */

/* The process' one, in place of what is there of its number. Fails where there is no table, and
 * where it is full: HOTSPOT_PROCESSES. */
bool hotspot_places_put(struct hotspot_places *places, uint32_t tgid,
			const struct hotspot_place *place, struct error *err);

/* False: it has none. By its number alone: start_time_ns and exec_id say whose it is. */
bool hotspot_places_find(const struct hotspot_places *places, uint32_t tgid,
			 struct hotspot_place *place);

/* Of this process alone; another one that has its number keeps its own. */
void hotspot_places_remove(struct hotspot_places *places, uint32_t tgid, uint64_t start_time_ns,
			   uint32_t exec_id);

#endif
