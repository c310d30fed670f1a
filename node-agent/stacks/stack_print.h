/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks as text, for comparing them with what a debugger sees. */
#ifndef NODE_AGENT_STACKS_STACK_PRINT_H
#define NODE_AGENT_STACKS_STACK_PRINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "bpf/events.h"
#include "bpf/results.h"
#include "node-agent/processes/process_table.h"

/* The user part: a line "sample <time in ns> pid <process> tid <thread> cpu <n> result <name>
 * guessed <0|1> from <bpf|copy> frames <count> late_us <microseconds since then>", then for every
 * frame, leaf first, a line "<run-time address> <file>+0x<the same as ELF address>" in hexadecimal;
 * callers are return addresses. For every frame of an interpreter's, as the sample has them, a line
 * "interpreter <address of its code object>+0x<bytes of bytecode>[ entry]", or, where the list was
 * not read to its end, "interpreter end <enum runtime_end>". Then an empty line, and it is flushed.
 */
void stack_print(FILE *to, const struct sample_event *sample, enum walk_result result,
		 bool from_copy, const struct located_frame *frames, size_t count);

#endif
