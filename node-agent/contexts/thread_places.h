/* SPDX-License-Identifier: Apache-2.0 */
/* Where a process' threads have the pointer to what they publish: a thread-local symbol of its
 * program or of a library, whose offset the program fixes or the dynamic linker has filled in. */
#ifndef NODE_AGENT_CONTEXTS_THREAD_PLACES_H
#define NODE_AGENT_CONTEXTS_THREAD_PLACES_H

#include "node-agent/contexts/contexts.h"
#include "node-agent/processes/process_table.h"
#include "node-agent/stacks/code_pages.h"

struct thread_places;

/* Both are borrowed. */
struct thread_places *thread_places_new(struct process_table *table, struct code_pages *pages,
					struct error *err);
void thread_places_free(struct thread_places *places);

/* As struct contexts_sources has it. */
enum context_located thread_places_find(struct thread_places *places,
					const struct process_key *process, int directory,
					struct thread_context_place *place);
enum context_located thread_places_find_labels(struct thread_places *places,
					       const struct process_key *process,
					       struct thread_context_place *place);

#endif
