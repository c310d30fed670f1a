/* SPDX-License-Identifier: Apache-2.0 */
/* What the library says, as user-space statically defined tracing probes (USDT) of the provider
 * otel_memory: anybody may read them, bpftrace and perf too.
 *
 *	alloc(user, size, weighted)  a block was sampled: its address, or 0 where its end will not
 *	                             be told; its bytes; the bytes that it stands for
 *	free(user)                   a block of alloc() is about to be given back
 *	batch(records, bytes, number)
 *	                             many of alloc(), bpf/alloc_batch.h: so many bytes of records,
 *	                             number of them (with ALLOC_BATCH_FOREIGN)
 *
 * Arguments stand in the registers of a function's first three. While somebody listens to batch,
 * alloc() and free() tell only what does not wait for it: what ends while it waits is not told by
 * free(). */
#ifndef NODE_AGENT_MALLOC_PROBES_H
#define NODE_AGENT_MALLOC_PROBES_H

#include <stdint.h>

/* The kernel counts here who listens. */
extern volatile uint16_t probe_alloc_listeners, probe_free_listeners, probe_batch_listeners;

void probe_alloc(uintptr_t user, uint64_t size, uint64_t weighted);
void probe_free(uintptr_t user);
void probe_batch(const void *records, uint64_t bytes, uint64_t number);

#endif
