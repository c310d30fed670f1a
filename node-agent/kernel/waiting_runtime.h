/* SPDX-License-Identifier: Apache-2.0 */
/* The frames that an interpreter has of a thread that waits, read from outside: what the kernel
 * side does for one that runs (bpf/python_walk.bpf.h). Waits for the thread's memory as long as
 * that is not served: for the reader of strangers (stranger_reader.h) alone. */
#ifndef NODE_AGENT_KERNEL_WAITING_RUNTIME_H
#define NODE_AGENT_KERNEL_WAITING_RUNTIME_H

#include <stdint.h>

#include "bpf/runtime_frames.h"

/* Fills words as samples have them; room for RUNTIME_WORDS_MAX. pointer: the thread's. Returns how
 * many there are; 0: it runs no code of the interpreter's. Whoever calls sees afterwards that the
 * thread has not run. */
uint32_t waiting_runtime_read(uint32_t tid, const struct runtime_place *place, uint64_t pointer,
			      uint64_t *words);

#endif
