/* SPDX-License-Identifier: Apache-2.0 */
/* A thread's context as the kernel side read it (bpf/thread_context.h) → attributes. Pure. */
#ifndef NODE_AGENT_CONTEXTS_THREAD_RECORD_H
#define NODE_AGENT_CONTEXTS_THREAD_RECORD_H

#include <stdbool.h>
#include <stddef.h>

#include "bpf/thread_context.h"
#include "node-agent/contexts/process_context.h"

enum { THREAD_RECORD_ATTRIBUTES_MAX = 32 };

struct thread_record {
	struct context_attribute attributes[THREAD_RECORD_ATTRIBUTES_MAX];
	size_t attribute_count;
	bool has_unknown; /* an index that the key map does not have (yet) */
	bool is_cut;      /* it is longer than what was read, or has too many attributes */
	char texts[THREAD_RECORD_MAX]; /* values */
};

/* bytes: of context, with its header. keys: of the process. */
void thread_record_decode(struct thread_record *record, const struct thread_context *context,
			  size_t bytes, const char *const *keys, size_t key_count);

/* Names that say what the agent knows itself. */
bool thread_record_is_ours(const char *key);

#endif
