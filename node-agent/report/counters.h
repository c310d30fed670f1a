/* SPDX-License-Identifier: Apache-2.0 */
/* Every figure the agent tells of itself, once: one row of the table in counters.c says what it is
 * called in the log and on the wire and which parts' counts it is the sum of. What BPF counts needs
 * a row in bpf/counters.h and one here. */
#ifndef NODE_AGENT_REPORT_COUNTERS_H
#define NODE_AGENT_REPORT_COUNTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/log.h"
#include "common/profile.h"
#include "node-agent/kernel/lacks.h"
#include "node-agent/kernel/stranger_reader.h"
#include "node-agent/report/report.h"
#include "node-agent/stacks/java_frames.h"
#include "node-agent/stacks/runtime_stack.h"

/* Lines of the log, in its order, and groups of what is reported: LINE(name, "event", level). */
#define COUNTER_LINES(LINE)                                   \
	LINE(samples, "samples", LOG_INFO)                    \
	LINE(times, "timestamps left out", LOG_WARN)          \
	LINE(stacks, "stacks", LOG_INFO)                      \
	LINE(copies, "copies", LOG_DEBUG)                     \
	LINE(pages, "pages", LOG_DEBUG)                       \
	LINE(published, "published processes", LOG_DEBUG)     \
	LINE(waits, "waits", LOG_INFO)                        \
	LINE(faults, "page faults", LOG_INFO)                 \
	LINE(memory, "memory", LOG_INFO)                      \
	LINE(contexts, "contexts", LOG_INFO)                  \
	LINE(jit, "names of code", LOG_INFO)                  \
	LINE(runtimes, "interpreters", LOG_INFO)              \
	LINE(strangers, "strangers", LOG_INFO)                \
	LINE(windows, "allocations", LOG_INFO)                \
	LINE(results, "results", LOG_DEBUG)                   \
	LINE(processes, "processes", LOG_DEBUG)               \
	LINE(timer, "timer", LOG_DEBUG)                       \
	LINE(own, "memory", LOG_DEBUG)                        \
	LINE(lacks, "lacks", LOG_DEBUG) /* said by itself: no row has a key */

#define COUNTER_LINE_ENUM(name_, event_, level_) LINE_##name_,
enum counter_line { COUNTER_LINES(COUNTER_LINE_ENUM) LINE_COUNT };

/* All parts' counts at one moment. */
struct counted {
	/* --- the caller's --- */
	struct ship_counters shipped;
	uint64_t lost_encoding, clock_jumps;

	/* --- counters_read()'s --- */
	struct capture_totals capture;
	struct sample_counters samples;
	struct process_table_counters table;
	struct stacks_counters stacks;
	struct code_pages_counters pages;
	struct waits_counters waits;
	struct allocations_counters allocations;
	struct memory_probes_counters probes;
	struct allocation_windows_counters windows;
	struct requests_counters requests;
	struct jit_files_counters jit;
	struct runtimes_counters runtimes;
	struct runtime_stacks_counters names;
	struct java_frames_counters java;
	struct stranger_reader_counters strangers;
	uint64_t taken_whole; /* a sample whose stack waits counts once it is finished */
	uint64_t cpus, times_lost, attributes_lost, lacks[LACK_COUNT];
	uint64_t windows_within, windows_between, map_bytes, own_kib;
	double windows_percent, windows_budget; /* both in percent */
	bool is_there[LINE_COUNT];  /* what is off is neither said nor reported */
	bool is_silent[LINE_COUNT]; /* there, but nothing to say */
};

/* is_exact: with what interrupts every CPU to be read, and own memory. */
void counters_read(const struct report_sources *from, bool is_exact, struct counted *now);

enum counters_reader {
	COUNTERS_REPORT = 1 << 0, /* struct ship_report's more: ship names its own members */
	COUNTERS_FILE = 1 << 1,   /* a profile in a file */
	COUNTERS_HOST = 1 << 2,   /* this host's monitoring */
};
/* Those for that reader, as schema/README.md names them; names are static. What came later than the
 * room allows is left out; SHIP_COUNTERS_MAX has room for a report's. */
size_t counters_list(const struct counted *now, enum counters_reader reader,
		     struct profile_counter *out, size_t room);

/* The line's "key=value …"; "": there is nothing to say. */
void counters_text(const struct counted *now, enum counter_line line, char *text, size_t room);
/* All lines. */
void counters_log(const struct counted *now);

#endif
