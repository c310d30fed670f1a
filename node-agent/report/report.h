/* SPDX-License-Identifier: Apache-2.0 */
/* Closing a report interval: what was counted becomes OTLP bytes that go to the server or into a
 * file, and the files they refer to are announced. */
#ifndef NODE_AGENT_REPORT_REPORT_H
#define NODE_AGENT_REPORT_REPORT_H

#include <stdbool.h>

#include "common/error.h"
#include "node-agent/agent_options.h"
#include "node-agent/aggregate/stack_counts.h"
#include "node-agent/allocations/allocation_windows.h"
#include "node-agent/allocations/allocations.h"
#include "node-agent/allocations/memory_probes.h"
#include "node-agent/capture/capture.h"
#include "node-agent/contexts/requests.h"
#include "node-agent/processes/process_table.h"
#include "node-agent/report/modules.h"
#include "node-agent/runtimes/runtimes.h"
#include "node-agent/ship/ship.h"
#include "node-agent/stacks/samples.h"
#include "node-agent/stacks/stacks.h"
#include "node-agent/waits/waits.h"

/* Everything is borrowed for the reporter's life. */
struct report_sources {
	const struct agent_options *options;
	struct capture *capture;
	struct process_table *table;
	struct stack_counts *counts;
	struct samples *samples;
	struct stacks *stacks;
	struct requests *requests;
	struct jit_files *jit;
	struct runtimes *runtimes; /* NULL: interpreters' frames are not read */
	struct code_pages *pages;
	struct module_announcer *modules;
	struct waits *waits;                /* NULL: threads off their CPU are not profiled */
	struct allocations *allocations;    /* NULL: memory is not profiled */
	struct memory_probes *probes;       /* the same */
	struct allocation_windows *windows; /* NULL: allocations are not profiled */
};

struct reporter;

/* The first interval begins now. */
struct reporter *reporter_new(const struct report_sources *sources, struct error *err);

/* Fills who we are; safe on any thread, the reporter's data for this never change. */
void reporter_fill_host(void *reporter, struct profile_host *host);

/* Closes the interval and hands it to ship. A report that cannot be made is a loss that is counted
 * ("aggregate_full") and said. */
void reporter_ship(struct reporter *reporter, struct ship *ship);

/* Closes the interval and writes it as one uncompressed ExportProfilesServiceRequest; the file
 * appears whole or not at all. */
bool reporter_write(struct reporter *reporter, const char *path, struct error *err);

/* A line at level info: what was taken, lost and sent since the start; more at level debug. */
void reporter_log_summary(const struct reporter *reporter, const struct ship_counters *shipped);

void reporter_free(struct reporter *reporter);

#endif
