/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel addresses → the kernel image or a module, as files. */
#ifndef NODE_AGENT_PROCESSES_KERNEL_MAP_H
#define NODE_AGENT_PROCESSES_KERNEL_MAP_H

#include <stdint.h>

#include "node-agent/processes/executables.h"
#include "node-agent/processes/process_table.h"

struct kernel_map;

struct kernel_map *kernel_map_new(const char *proc_root, struct executables *executables,
				  struct error *err);
void kernel_map_free(struct kernel_map *map);

/* PLACE_FILE; PLACE_ANONYMOUS for kernel code that is no file's .text (BPF programs, trampolines,
 * init code); PLACE_UNKNOWN where the kernel hides its addresses, which is logged once. A miss
 * reads the list of modules again, with back-off. */
void kernel_map_locate(struct kernel_map *map, uint64_t address, struct located_frame *frame);

#endif
