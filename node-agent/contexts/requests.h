/* SPDX-License-Identifier: Apache-2.0 */
/* Whom samples belong to, as the programs publish it: processes' and threads' contexts. Joins
 * contexts, processes and unwind, as only main may. */
#ifndef NODE_AGENT_CONTEXTS_REQUESTS_H
#define NODE_AGENT_CONTEXTS_REQUESTS_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/events.h"
#include "common/error.h"
#include "node-agent/aggregate/stack_counts.h"
#include "node-agent/contexts/contexts.h"
#include "node-agent/processes/process_table.h"
#include "node-agent/stacks/code_pages.h"

struct requests;

struct requests_sources { /* borrowed */
	struct process_table *table;
	struct code_pages *pages;
	int places_map; /* KERNEL_MAP_THREAD_CONTEXTS; −1: by perf there is none */
};

struct requests *requests_new(const struct requests_sources *from, struct error *err);
void requests_free(struct requests *requests);

/* Fills link and attributes, which are borrowed until the next call. */
void requests_describe(struct requests *requests, const struct sample_event *sample,
		       struct counted_process *process, struct counted_thread *thread);

/* Where the sample's process has what its threads say. False: it is not known to. */
bool requests_find(struct requests *requests, const struct sample_event *sample,
		   struct thread_context_place *place);

/* About once a second. */
void requests_run(struct requests *requests, int64_t now_ms);

struct requests_counters {
	struct contexts_counters contexts;
	uint64_t samples, cut, unknown_keys; /* with a thread's context; of these … */
};
void requests_counters(const struct requests *requests, struct requests_counters *out);

#endif
