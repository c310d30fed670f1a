/* SPDX-License-Identifier: Apache-2.0 */
/* Mappings of sampled processes, published for the BPF walk (bpf/unwind_rows.h: processes, heads,
 * blocks). Those that no sample asked for longest go first when heads or blocks run out. */
#ifndef NODE_AGENT_PROCESSES_KERNEL_PROCESSES_H
#define NODE_AGENT_PROCESSES_KERNEL_PROCESSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/unwind_rows.h"
#include "common/error.h"
#include "node-agent/processes/processes.h"

struct kernel_processes;

/* Maps and the registry, from which ends are heard of, are borrowed. */
struct kernel_processes *kernel_processes_new(struct processes *registry, int processes_map,
					      int heads_map, int blocks_map, struct error *err);
void kernel_processes_free(struct kernel_processes *processes);

void kernel_processes_set_time(struct kernel_processes *processes, int64_t now_ms);

/* Replaces what was published for the process, which the registry has. mappings: sorted, at most
 * 1024 are taken, 256 when little room is left (the rest counted as cut: what lies there goes up as
 * a copy). generation: as process_table_mappings() gave it. False: no room could be made, or the
 * kernel refused; what was published stays. */
bool kernel_processes_publish(struct kernel_processes *processes, const struct process_key *key,
			      uint32_t generation, const struct process_mapping *mappings,
			      size_t count);

/* The published generation of exactly that program, or 0. Counts as a use. */
uint32_t kernel_processes_generation(struct kernel_processes *processes,
				     const struct process_key *key);
struct kernel_processes_counters {
	uint64_t published, pushed_out, cut; /* heads; heads; mappings */
	uint32_t heads, blocks;              /* in use now */
};
void kernel_processes_counters(const struct kernel_processes *processes,
			       struct kernel_processes_counters *out);

#endif
