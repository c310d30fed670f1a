/* SPDX-License-Identifier: Apache-2.0 */
/* A code object of CPython's as the kernel side has copied it at a sample (struct
 * runtime_code_event): what of it is in the copy needs no look into its process, where it may be
 * gone by now. */
#ifndef NODE_AGENT_RUNTIMES_PYTHON_TOLD_H
#define NODE_AGENT_RUNTIMES_PYTHON_TOLD_H

#include "bpf/runtime_frames.h"
#include "node-agent/runtimes/python_code.h"

/* memory: of that process, for what the copy is too short for; lines that are not there any more
 * either are cut. *out: as python_code_read() has it. */
enum python_code_state python_told_read(const struct runtime_code_event *told,
					const struct python_memory *memory,
					const struct python_layout *layout,
					struct python_code **out);

#endif
