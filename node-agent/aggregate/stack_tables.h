/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of aggregate/stack_counts: the tables of one interval. */
#ifndef NODE_AGENT_AGGREGATE_STACK_TABLES_H
#define NODE_AGENT_AGGREGATE_STACK_TABLES_H

#include "common/string_table.h"
#include "node-agent/aggregate/counted_table.h"
#include "node-agent/aggregate/stack_counts.h"

enum { LABEL_INDICES = 10 /* of one process: pairs of strings */ };

struct process_row {
	uint32_t name, executable, container_id, service, pod, namespace_, waker, wait,
		fault;       /* strings */
	uint32_t attributes; /* of attribute_sets */
};

struct mapping_row {
	uint32_t number; /* the caller's */
};

struct stack_row {
	uint32_t first_index, depth, incomplete;
};

struct stack_counts_strings {
	struct string_table table;
};

struct stack_counts {
	struct budget budget;
	size_t text_limit; /* bytes of text that samples may bring */
	bool is_taken;     /* sorted since, no longer found by hash */
	struct stack_counts_strings strings;
	struct counted_table processes, mappings, frames, stacks, samples;
	struct counted_table frame_indices; /* of all stacks, one behind the other */
	struct counted_table times;         /* row 0 is none */
	struct counted_table links, attributes,
		attribute_sets;                 /* row 0 of links and sets is none */
	struct counted_table attribute_indices; /* of all sets */
	uint32_t newest;                        /* row of the sample added last */
	uint64_t sample_total, lost_times, lost_attributes;
	/* made by take */
	struct profile_mapping *profile_mappings;
	struct profile_process *profile_processes;
	struct profile_stack *profile_stacks;
	uint32_t *labels;
};

/* What the last stack_counts_take() made. */
void stack_counts_drop_profile(struct stack_counts *counts);

#endif
