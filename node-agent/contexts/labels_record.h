/* SPDX-License-Identifier: Apache-2.0 */
/* A goroutine's labels as the kernel side read them (bpf/thread_context.h) → attributes, and the
 * request's ids where labels are known to have them. Pure. */
#ifndef NODE_AGENT_CONTEXTS_LABELS_RECORD_H
#define NODE_AGENT_CONTEXTS_LABELS_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/thread_context.h"
#include "node-agent/contexts/process_context.h"

enum { LABELS_RECORD_ATTRIBUTES_MAX = 32 };

struct labels_record {
	struct context_attribute attributes[LABELS_RECORD_ATTRIBUTES_MAX];
	size_t attribute_count;
	uint8_t trace_id[16], span_id[8]; /* all zero: none */
	bool is_cut;                      /* labels were left out or cut, or there are too many */
	char texts[THREAD_CONTEXT_MAX + 2 * LABELS_RECORD_ATTRIBUTES_MAX];
};

/* bytes: of context, with its header; its form is THREAD_CONTEXT_LABELS. */
void labels_record_decode(struct labels_record *record, const struct thread_context *context,
			  size_t bytes);

#endif
