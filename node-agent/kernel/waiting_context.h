/* SPDX-License-Identifier: Apache-2.0 */
/* What a thread that waits says of the request that it serves, read from outside: what the kernel
 * side does for one that runs (bpf/context_read.bpf.h). Waits for the thread's memory as long as
 * that is not served: for the reader of strangers (stranger_reader.h) alone. */
#ifndef NODE_AGENT_KERNEL_WAITING_CONTEXT_H
#define NODE_AGENT_KERNEL_WAITING_CONTEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/thread_context.h"

/* Fills room, of THREAD_CONTEXT_MAX bytes. pointer: the thread's. Returns the bytes there are of
 * it; 0: none, or *is_missing. Whoever calls sees afterwards that the thread has not run. */
uint32_t waiting_context_read(uint32_t tid, const struct thread_context_place *place,
			      uint64_t pointer, struct thread_context *room, bool *is_missing);

#endif
