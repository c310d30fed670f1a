/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel side's table of where interpreters have their lists of frames
 * (bpf/runtime_frames.h), as whoever finds them writes it. It is made for the first of them: until
 * then no sample looks for any. */
#ifndef NODE_AGENT_KERNEL_RUNTIME_PLACES_H
#define NODE_AGENT_KERNEL_RUNTIME_PLACES_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/runtime_frames.h"
#include "common/error.h"

struct runtime_places {
	int array;  /* KERNEL_MAP_RUNTIMES; borrowed, −1: there is none */
	int places; /* the table; −1: not yet */
};

void runtime_places_init(struct runtime_places *places, int array);
void runtime_places_release(struct runtime_places *places); /* samples find no list any more */

/* The process' one, in place of what is there of its number. Fails where there is no table, and
 * where it is full: RUNTIME_PROCESSES. */
bool runtime_places_put(struct runtime_places *places, uint32_t tgid,
			const struct runtime_place *place, struct error *err);

/* False: it has none. By its number alone: start_time_ns and exec_id say whose it is. */
bool runtime_places_find(const struct runtime_places *places, uint32_t tgid,
			 struct runtime_place *place);

/* Of this process alone; another one that has its number keeps its own. */
void runtime_places_remove(struct runtime_places *places, uint32_t tgid, uint64_t start_time_ns,
			   uint32_t exec_id);

#endif
