/* SPDX-License-Identifier: Apache-2.0 */
/* What programs in C, C++, Rust and Python allocate, without touching them: probes on allocators'
 * functions, in each process for moments only, so that what they cost it stays within a budget. A
 * window's samples are held back until it has ended; then each stands for what the process has
 * allocated since the window before, by the CPU time that it used in both, less what the probes
 * cost. What is allocated is seen, not what is given back. Joins kernel, unwind and processes, as
 * only main may. */
#ifndef NODE_AGENT_ALLOCATIONS_ALLOCATION_WINDOWS_H
#define NODE_AGENT_ALLOCATIONS_ALLOCATION_WINDOWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/alloc.h"
#include "common/error.h"
#include "node-agent/allocations/allocators.h"
#include "node-agent/allocations/nameless_files.h"
#include "node-agent/capture/capture.h"
#include "node-agent/processes/processes.h"
#include "node-agent/allocations/window_spread.h"
#include "node-agent/stacks/code_pages.h"
#include "node-agent/stacks/samples.h"

struct allocation_windows_sources { /* borrowed */
	struct processes *processes; /* ends are heard of from there */
	const struct capture *capture;
	struct code_pages *pages;
	struct samples *samples;
	double budget;        /* share of a process' CPU time that its probes may cost */
	const uint32_t *pids; /* whom to look at; none: all */
	size_t pid_count;
};

struct allocation_windows;

struct allocation_windows *allocation_windows_new(const struct allocation_windows_sources *from,
						  struct error *err);
/* From now on the server is asked where functions lie in files without names; again_ms as of
 * nameless_files_new(). ship: borrowed until the last run. */
bool allocation_windows_ask(struct allocation_windows *windows, struct ship *ship, int64_t again_ms,
			    struct error *err);
/* At the end, NULL is none: stop() waits for windows that are open, a second at most; once their
 * samples have come, finish() adds what is known by then. */
void allocation_windows_stop(struct allocation_windows *windows);
void allocation_windows_finish(struct allocation_windows *windows);
void allocation_windows_free(struct allocation_windows *windows);

/* For file_parser_set_memory(). */
void allocation_windows_places(struct allocation_windows *windows, uint32_t number,
			       const struct memory_places *places);

/* Opens and ends windows: often, it looks at the clock itself. */
void allocation_windows_run(struct allocation_windows *windows);

/* Takes a sample of ALLOC_WINDOW; for struct samples_sources. */
void allocation_windows_hold(struct allocation_windows *windows, const struct sample_event *sample,
			     size_t walked);

struct allocation_windows_counters { /* since the start, but for processes and hit_ns */
	uint32_t processes;          /* that windows have been opened in, and that are there */
	uint32_t hit_ns;             /* what one hit cost on this host, as measured last */
	uint64_t windows, failed, blurred; /* blurred: nobody knows exactly how long they were open */
	uint64_t hits;             /* that cost, cost_ns together */
	uint64_t cost_ns, used_ns; /* used_ns: of the processes' CPU time that this is a part of */
	uint64_t cut_off;          /* processes that one window cost too much */
	uint64_t dear; /* windows that were mostly the probes' own cost: their sums are rough */
	uint64_t refused, files_refused; /* looks at processes, and files, without room */
	uint64_t unseen_ns; /* CPU time of processes that ended before they had a window */
	struct nameless_files_counters names; /* refused: functions that are not there, too */
	uint64_t samples, lost; /* lost: no room to hold them, or their window was not known */
	struct window_spread spread;
};
void allocation_windows_counters(const struct allocation_windows *windows,
				 struct allocation_windows_counters *out);

#endif
