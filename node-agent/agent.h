/* SPDX-License-Identifier: Apache-2.0 */
/* One profiling agent: its parts, made from options in the order in which they need each other. */
#ifndef FARFLAME_AGENT_H
#define FARFLAME_AGENT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "common/error.h"
#include "node-agent/agent_options.h"
#include "node-agent/allocations/allocation_windows.h"
#include "node-agent/allocations/allocations.h"
#include "node-agent/allocations/memory_probes.h"
#include "node-agent/capture/capture.h"
#include "node-agent/contexts/requests.h"
#include "node-agent/report/modules.h"
#include "node-agent/report/report.h"
#include "node-agent/runtimes/jit_files.h"
#include "node-agent/runtimes/runtimes.h"
#include "node-agent/ship/ship.h"
#include "node-agent/stacks/code_pages.h"
#include "node-agent/stacks/samples.h"
#include "node-agent/stacks/stacks.h"
#include "node-agent/waits/waits.h"

struct agent {
	const struct agent_options *options;
	struct process_table *table;
	struct stack_counts *counts;
	struct module_announcer *modules;
	struct capture *capture;
	struct code_pages *pages;
	struct requests *requests;
	struct jit_files *jit;
	struct runtimes *runtimes; /* NULL: interpreters' frames are not read */
	struct samples *samples;
	struct stacks *stacks;
	struct waits *waits;                /* NULL: threads off their CPU are not profiled */
	struct allocations *allocations;    /* NULL: memory is not profiled */
	struct memory_probes *probes;       /* the same */
	struct allocation_windows *windows; /* NULL: allocations are not profiled */
	struct kernel_scheduler scheduler;
	struct kernel_waits kernel_waits;
	FILE *print; /* --debug-stacks */
	struct reporter *reporter;
	struct ship *ship;   /* NULL with --output */
	bool is_left_behind; /* a thread of ship could not be stopped: what it uses stays */
};

/* What the types that are profiled want of the kernel side: enum kernel_wants. */
uint32_t agent_wants(const struct agent_options *options);

/* What capture calls: each event goes to the stages that it concerns. */
struct capture_callbacks agent_callbacks(struct agent *agent);

/* From options to stacks: samples are taken when it returns. False: *err says why;
 * ERROR_UNSUPPORTED where this kernel or these privileges do not allow it. agent_close() in both
 * cases. */
bool agent_open(struct agent *agent, struct error *err);

/* Where reports go: a server or a file. ERROR_OPTION: the options name a place that cannot be used.
 */
bool agent_open_output(struct agent *agent, struct error *err);

/* As ship_stop(). */
uint64_t agent_stop_ship(struct agent *agent, int drain_ms, struct ship_counters *counters);
/* Stacks are taken by perf events since BPF programs could not be loaded at the start, and now they
 * can: it is time to begin anew. Takes some tenths of a second where it tries. */
bool agent_could_use_bpf(const struct agent *agent);

void agent_close(struct agent *agent);

#endif
