/* SPDX-License-Identifier: Apache-2.0 */
/* /proc/PID/maps → a program's mappings. */
#ifndef NODE_AGENT_PROCESSES_PROGRAM_MAPS_H
#define NODE_AGENT_PROCESSES_PROGRAM_MAPS_H

#include <stdbool.h>
#include <stdint.h>

#include "node-agent/processes/mapped_files.h"
#include "node-agent/processes/mapping_set.h"
#include "node-agent/processes/memory_map.h"
#include "node-agent/processes/programs.h"

struct program_maps {
	struct process_directory *directory;
	struct mapped_files *files;
	struct mapping_pool *pool;
	uint64_t read, failed, backed_off; /* counters */
	uint64_t refused;                  /* rows over a limit */
};

/* Of a row that is no file's. */
enum mapping_kind mapping_kind_of(enum memory_kind kind);

/* Replaces the program's mappings by what the process has now, unless back-off says it is too early
 * (100 ms doubling up to 25 s; by what the last reading cost, if that was much) or the process
 * is gone. Of one with more than may be read (kernel/stranger_reader.h) the first are there, the
 * set is truncated. True: they were replaced. */
bool program_maps_read(struct program_maps *maps, struct program *program, uint64_t time_ns,
		       enum program_need need);

/* The last read brought what was missing: the next one need not wait. */
void program_maps_helped(struct program *program, enum program_need need);

#endif
