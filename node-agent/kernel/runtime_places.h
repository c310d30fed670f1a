/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel side's table of where interpreters have their lists of frames
 * (bpf/runtime_frames.h), as whoever finds them writes it. Its parts are made as they are needed.
 */
#ifndef NODE_AGENT_KERNEL_RUNTIME_PLACES_H
#define NODE_AGENT_KERNEL_RUNTIME_PLACES_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/runtime_frames.h"
#include "common/error.h"

struct runtime_places {
	int array, pids_map; /* KERNEL_MAP_RUNTIMES, …_PIDS; borrowed, −1: there is none */
	int tables[RUNTIME_TABLES]; /* −1: not yet */
	struct runtime_pids *pids;  /* as in the kernel */
	uint8_t *is_used;           /* of each place */
	uint32_t last;              /* the place that was given back last */
};

void runtime_places_init(struct runtime_places *places, int array, int pids_map);
void runtime_places_release(struct runtime_places *places); /* samples find no list any more */

/* The process' one, in place of what is there of its number: a sample has the one or the other.
 * Fails where there is no table, and where it is full: RUNTIME_PROCESSES, or a group of pids. */
bool runtime_places_put(struct runtime_places *places, uint32_t tgid,
			const struct runtime_place *place, struct error *err);

/* False: it has none. By its number alone: start_time_ns and exec_id say whose it is. */
bool runtime_places_find(const struct runtime_places *places, uint32_t tgid,
			 struct runtime_place *place);

/* Of this process alone; another one that has its number keeps its own. */
void runtime_places_remove(struct runtime_places *places, uint32_t tgid, uint64_t start_time_ns,
			   uint32_t exec_id);

#endif
