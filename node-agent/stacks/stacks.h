/* SPDX-License-Identifier: Apache-2.0 */
/* Whole stacks: publishes to the kernel side what its walks need, finishes those that stopped for
 * want of it from their copies, and hands every sample on, once. What waits is bounded in number,
 * bytes and time. Joins capture, processes and unwind, as only main may. */
#ifndef NODE_AGENT_STACKS_STACKS_H
#define NODE_AGENT_STACKS_STACKS_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/events.h"
#include "common/error.h"
#include "node-agent/capture/capture.h"
#include "node-agent/processes/kernel_processes.h"
#include "node-agent/stacks/code_pages.h"
#include "node-agent/stacks/samples.h"

struct stacks_sources { /* borrowed */
	struct process_table *table;
	struct code_pages *pages;
	struct samples *samples;
	struct jit_files *jit;         /* NULL: no code that no file has has a name */
	struct runtimes *runtimes;     /* NULL: interpreters' frames are not read */
	const struct capture *capture; /* whose maps are written */
	uint32_t max_frames;
};

struct stacks;

struct stacks *stacks_new(const struct stacks_sources *from, struct error *err);
void stacks_free(struct stacks *stacks);

/* As capture gives them. */
void stacks_add(struct stacks *stacks, const struct sample_event *sample,
		const struct stack_copy_event *copy);

/* Takes what the parser has answered and finishes the stacks that waited for it; those that waited
 * for too long go on as they are. To be called after every capture_poll(). */
void stacks_run(struct stacks *stacks);

/* The descriptor to wait for besides; −1: none. True: it is another one than last time. */
bool stacks_descriptor(struct stacks *stacks, int *fd);

/* Waits for the last answers, so long at most; then nothing is left here. */
void stacks_drain(struct stacks *stacks, int timeout_ms);

struct stacks_counters {
	uint64_t finished; /* from copies */
	uint64_t refused;  /* copies for which there was no room to wait */
	uint64_t expired;  /* copies whose pages did not come in time */
	uint32_t waiting;  /* now: of timer ticks, samples that are taken and not handed on yet */
	uint32_t waiting_bytes;
	struct kernel_processes_counters processes;
};
void stacks_counters(const struct stacks *stacks, struct stacks_counters *out);

#endif
