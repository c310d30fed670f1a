/* SPDX-License-Identifier: Apache-2.0 */
/* Processes with a Java virtual machine of HotSpot's: from the mapping of its file on they are
 * looked at, until its code cache is there and the kernel side knows how to walk their stacks. What
 * a process has in its memory is read by kernel/stranger_reader.h: at first 100 times or so, of
 * another one with the same file ten times. */
#ifndef NODE_AGENT_RUNTIMES_HOTSPOT_PROCESSES_H
#define NODE_AGENT_RUNTIMES_HOTSPOT_PROCESSES_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "node-agent/file_parser/runtime_symbols.h"
#include "node-agent/processes/processes.h"
#include "node-agent/runtimes/hotspot_layout.h"

struct hotspot_processes;

/* processes: borrowed. places_map: KERNEL_MAP_HOTSPOTS; −1: nobody walks their stacks, and none is
 * looked at. */
struct hotspot_processes *hotspot_processes_new(struct processes *processes, int places_map,
						struct error *err);
void hotspot_processes_free(struct hotspot_processes *hotspots);

/* The process has that file mapped, with base added; symbols: the file's. */
void hotspot_processes_mapped(struct hotspot_processes *hotspots, struct process *process,
			      uint32_t executable, uint64_t base,
			      const struct runtime_symbols *symbols);
/* The process has a machine of another kind, which is declared. */
void hotspot_processes_other(struct hotspot_processes *hotspots, struct process *process);
/* A sample has told who the process is. */
void hotspot_processes_sampled(struct hotspot_processes *hotspots, struct process *process);

/* Looks at those that are due. Returns when the next one is, INT64_MAX: none. */
int64_t hotspot_processes_run(struct hotspot_processes *hotspots, int64_t now_ms);

bool hotspot_processes_has(const struct hotspot_processes *hotspots, const struct process *process);
/* False: the process has no such machine, or it is not known yet. Of one that has ended it stays
 * for those that name what it did last. */
bool hotspot_processes_layout(const struct hotspot_processes *hotspots,
			      const struct process *process, struct hotspot_layout *layout);
/* Its place, as the kernel side has it. */
bool hotspot_processes_place(const struct hotspot_processes *hotspots,
			     const struct process *process, struct hotspot_place *place);

struct hotspot_processes_counters {
	uint64_t looks;
	uint64_t located; /* processes whose places were found, or had from their parent */
	uint64_t unknown; /* declared: of a version, or a build, that is not known */
	uint64_t refused; /* no room for them, or for their places */
	uint32_t places;  /* now */
};
void hotspot_processes_counters(const struct hotspot_processes *hotspots,
				struct hotspot_processes_counters *out);

#endif
