/* SPDX-License-Identifier: Apache-2.0 */
/* One sample on its way from the kernel to a count: its frames located in files, judged whether the
 * stack reaches its start, added to the interval's stacks. Joins capture, processes, unwind and
 * aggregate, as only main may. */
#ifndef NODE_AGENT_STACKS_SAMPLES_H
#define NODE_AGENT_STACKS_SAMPLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "bpf/events.h"
#include "bpf/results.h"
#include "common/error.h"
#include "node-agent/aggregate/stack_counts.h"
#include "node-agent/contexts/requests.h"
#include "node-agent/processes/kernel_symbols.h"
#include "node-agent/processes/kernel_waits.h"
#include "node-agent/processes/process_table.h"
#include "node-agent/runtimes/frame_merge.h"
#include "node-agent/runtimes/jit_files.h"
#include "node-agent/stacks/code_pages.h"
#include "node-agent/stacks/sample_types.h"

struct module_announcer;
struct runtimes;
struct java_frames_counters;
struct runtime_stacks_counters;

struct sample_counters { /* cumulative */
	uint64_t added;
	uint64_t lost;      /* "aggregate_full": the interval's stacks have no more room */
	uint64_t malformed; /* on-cpu records that are none of ours */
	uint64_t held_added, held_lost;        /* the same of all other types than on-cpu */
	uint64_t by_type[SAMPLE_TYPE_COUNT];   /* of added ones */
	uint64_t by_result[WALK_RESULT_COUNT]; /* as judged here, not as the kernel side said */
	/* of those whose native part is complete: what the interpreter's part lacks */
	uint64_t by_merge[MERGE_COUNT];
	uint64_t incomplete; /* in either part */
	uint64_t guessed;    /* of the complete ones: some caller was found without an unwind row */
	uint64_t processes_untold; /* times a sample would have told what its process is, without
				      room */
};

/* What a sample that was held back is counted as. */
struct sample_worth {
	enum sample_type type;
	uint64_t value;
	/* Of a wait: who ended it, EVENT_SAMPLE_WAKER; of that one: who waited. NULL: not known. */
	const struct sample_event *other;
	uint64_t count; /* of things in use; 0: one, a sample */
};

struct samples;

struct samples_sources { /* borrowed */
	struct process_table *table;
	struct stack_counts *counts;
	struct module_announcer *modules;
	struct code_pages *pages;  /* NULL: nobody needs to know which are in use */
	struct requests *requests; /* NULL: what programs publish is not asked for */
	struct jit_files *jit;     /* NULL: code in no file has no names */
	struct runtimes *runtimes; /* NULL: interpreters' frames are not read */
	const char *service;       /* the label for all, or NULL */
	bool keep_times;           /* when each sample was taken */
	FILE *print;               /* NULL, or where every stack is written as text */
	/* Takes the stacks of switches, whose worth is known only later: samples_add_held(). NULL:
	 * there are none. */
	void (*hold)(void *context, const struct sample_event *sample, size_t walked);
	void *context;
};

struct samples *samples_new(const struct samples_sources *from, struct error *err);

/* A report begins at that unix time: what processes are is told anew with each hour. */
void samples_begin_report(struct samples *samples, uint64_t start_ns);

/* Nothing is allocated for a known process and stack. */
void samples_add(struct samples *samples, const struct sample_event *sample);

/* The same for one that was finished from its copy. kernel_side_count: so many of its user frames
 * the kernel side had found. */
void samples_add_finished(struct samples *samples, const struct sample_event *sample,
			  size_t kernel_side_count);

/* A sample that hold() was given, with what that had been told. */
void samples_add_held(struct samples *samples, const struct sample_event *sample, size_t walked,
		      const struct sample_worth *worth);

/* What the kernel side has copied of an interpreter's code, before the sample that has it. */
void samples_add_code(struct samples *samples, const struct runtime_code_event *told);

/* The scheduler's own functions, which do not belong to the stacks of switches and wake-ups. */
void samples_set_scheduler(struct samples *samples, const struct kernel_scheduler *scheduler);
/* The functions by which it is said what was waited for and what woke; borrowed. */
void samples_set_waits(struct samples *samples, const struct kernel_waits *waits);

/* All 0 where interpreters' frames are not read. */
void samples_runtime_counters(const struct samples *samples, struct runtime_stacks_counters *out);
void samples_java_counters(const struct samples *samples, struct java_frames_counters *out);
void samples_counters(const struct samples *samples, struct sample_counters *out);

void samples_free(struct samples *samples);

#endif
