/* SPDX-License-Identifier: Apache-2.0 */
/* Where near a function's entry a probe is cheap. The kernel does pushes, jumps, calls and nops
 * itself and steps over all else by a second trap (arch/x86/kernel/uprobes.c), which costs a
 * virtual machine ten times the first. Instructions: Intel SDM volume 2. */
#ifndef NODE_AGENT_FILE_PARSER_PROBE_PLACE_H
#define NODE_AGENT_FILE_PARSER_PROBE_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PROBE_PLACE_BYTES = 32 }; /* that are worth looking at */

/* x86-64: how many bytes behind the entry, at the beginning of an instruction that the kernel does
 * itself; those before it leave the arguments, the stack and its pointer as they were. 0: the
 * entry is as good as any. */
size_t probe_place(const uint8_t *code, size_t length);

/* Whether the kernel does the instruction itself. */
bool probe_is_cheap(const uint8_t *code, size_t length);

#endif
