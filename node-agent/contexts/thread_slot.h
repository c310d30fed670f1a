/* SPDX-License-Identifier: Apache-2.0 */
/* A thread-local symbol's place in a running process. Layouts of the thread's vector (dtv): "ELF
 * Handling For Thread-Local Storage" (Drepper) 3, glibc's sysdeps/generic/dl-dtv.h and
 * elf/dl-tls.c's tlsdesc_dynamic_arg, musl's src/internal/pthread_impl.h. */
#ifndef NODE_AGENT_CONTEXTS_THREAD_SLOT_H
#define NODE_AGENT_CONTEXTS_THREAD_SLOT_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/thread_context.h"
#include "common/tls_symbol.h"

/* directory: /proc/PID. base: run-time address − ELF address. Fills kind and what belongs to it.
 * False: nothing that is filled in (yet) tells. */
bool thread_slot_find(const struct tls_symbol *symbol, uint64_t base, int directory, bool is_musl,
		      struct thread_context_place *place);

#endif
