/* SPDX-License-Identifier: Apache-2.0 */
/* A mapping's row → its executable, and an address in the row → an address in the file. */
#ifndef NODE_AGENT_PROCESSES_PLACES_H
#define NODE_AGENT_PROCESSES_PLACES_H

#include <stdbool.h>
#include <stdint.h>

#include "node-agent/processes/executables.h"
#include "node-agent/processes/mapped_files.h"
#include "node-agent/processes/programs.h"

struct places {
	struct executables *executables;
	struct mapped_files *files;
	struct programs *programs;
	struct executable_ref vdso;
	bool has_no_vdso;
};

/* The address lies in the row, and the row is of the program's set. */
void places_locate(struct places *places, struct program *program, struct mapping *row,
		   uint64_t address, uint64_t time_ns, struct located_frame *frame);

/* Bytes of the row's file at an address in it. */
bool places_read(struct places *places, const struct mapping *row, uint64_t address, void *to,
		 size_t length);

/* The row as the kernel side walks by it. False: its file was not looked at yet and may not be
 * now. */
bool places_mapping(struct places *places, struct program *program, struct mapping *row,
		    uint64_t time_ns, bool may_look, struct process_mapping *out);

/* Whether places_mapping() would look at the row's file. */
bool places_is_unseen(struct places *places, const struct mapping *row, uint64_t time_ns);

#endif
