/* SPDX-License-Identifier: Apache-2.0 */
/* What the library says, as user-space statically defined tracing probes (USDT) of the provider
 * otel_memory: anybody may read them, bpftrace and perf too.
 *
 *	alloc(user, size, weighted)  a block was sampled: its address, or 0 where its end will not
 *	                             be told; its bytes; the bytes that it stands for
 *	free(user)                   a block of alloc() is about to be given back
 *
 * Arguments stand in the registers of a function's first three. */
#ifndef NODE_AGENT_MALLOC_PROBES_H
#define NODE_AGENT_MALLOC_PROBES_H

#include <stdint.h>

/* The kernel counts here who listens. */
extern volatile uint16_t probe_alloc_listeners, probe_free_listeners;

void probe_alloc(uintptr_t user, uint64_t size, uint64_t weighted);
void probe_free(uintptr_t user);

#endif
