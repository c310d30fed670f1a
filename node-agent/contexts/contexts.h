/* SPDX-License-Identifier: Apache-2.0 */
/* Which sampled processes publish what they are and what their threads do, kept as fresh as looking
 * now and then allows: a process may begin to publish, or say something else, at any time. */
#ifndef NODE_AGENT_CONTEXTS_CONTEXTS_H
#define NODE_AGENT_CONTEXTS_CONTEXTS_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/thread_context.h"
#include "common/error.h"
#include "node-agent/contexts/process_context.h"
#include "node-agent/processes/processes.h"

enum context_located {
	CONTEXT_LOCATED,
	CONTEXT_LATER,     /* something has to be read first */
	CONTEXT_NOT_FOUND, /* not in what the process has loaded so far */
};

struct contexts_sources { /* borrowed */
	struct processes *processes; /* ends are heard of from there */
	/* Its directory in /proc, or −1. */
	int (*open_process)(void *context, const struct process_key *process);
	/* Where its threads' pointers are: fills kind and what belongs to it. */
	enum context_located (*locate)(void *context, const struct process_key *process,
				       int directory, struct thread_context_place *place);
	/* The same of a process that publishes no such pointers: where Go's runtime has its
	 * goroutines' labels. LATER: the file that may say is being read. */
	enum context_located (*locate_labels)(void *context, const struct process_key *process,
					      struct thread_context_place *place);
	void *context;
	size_t bytes_max; /* of all that is published; 0: 16 MiB. Others are refused */
	int places_map;   /* KERNEL_MAP_THREAD_CONTEXTS; −1: threads' contexts are not read */
};

struct contexts;

struct contexts *contexts_new(const struct contexts_sources *from, struct error *err);
void contexts_free(struct contexts *contexts);

/* A sample of the process, which the registry has. NULL: it publishes nothing that is known of yet.
 * Borrowed until contexts_run(). */
const struct process_context *contexts_sampled(struct contexts *contexts,
					       const struct process_key *process);
/* One of its threads named a key that the list does not have. */
void contexts_want_keys(struct contexts *contexts, const struct process_key *process);

/* Where its threads' pointers are, as the kernel side has it. False: nowhere that is known. */
bool contexts_place(struct contexts *contexts, const struct process_key *process,
		    struct thread_context_place *place);

/* About once a second: looks at those that are due, a few at a time. */
void contexts_run(struct contexts *contexts, int64_t now_ms);

struct contexts_counters {
	uint64_t looks,
		refused; /* processes' mappings read; processes, contexts or places without room */
	uint64_t read, cut; /* contexts read; attributes left out */
	uint32_t processes, publishing, located;
};
void contexts_counters(const struct contexts *contexts, struct contexts_counters *out);

#endif
