/* SPDX-License-Identifier: Apache-2.0 */
/* Which processes run an interpreter, and where the kernel side finds its threads' frames: looked
 * for when a process maps such a file, until it has started, when answers about its files come, and
 * when it is sampled. A child of fork() has its parent's places at once; a process with a file that
 * another has had is expected to have that one's, until it has started.
 *
 * Of several interpreters in one process the first that has threads is taken, by its address;
 * others are counted, and their threads have no lists. */
#ifndef NODE_AGENT_RUNTIMES_RUNTIMES_H
#define NODE_AGENT_RUNTIMES_RUNTIMES_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/runtime_frames.h"
#include "common/error.h"
#include "node-agent/kernel/mapping_event.h"
#include "node-agent/processes/process_table.h"
#include "node-agent/runtimes/frame_merge.h"
#include "node-agent/runtimes/hotspot_processes.h"
#include "node-agent/runtimes/python_layout.h"
#include "node-agent/stacks/code_pages.h"

struct runtimes_sources { /* borrowed */
	struct process_table *table;
	struct code_pages *pages;
	int places_map, pids_map; /* KERNEL_MAP_RUNTIMES, …_PIDS; −1: there is none */
	/* Nobody reads lists: which samples lack theirs is all that is asked, and files say that. */
	bool has_no_lists;
	int hotspots_map; /* KERNEL_MAP_HOTSPOTS; −1: nobody walks stacks of Java's */
};

struct runtimes;

struct runtimes *runtimes_new(const struct runtimes_sources *from, struct error *err);
void runtimes_free(struct runtimes *runtimes);

/* Behind process_table_mapping(): a process has one more file. Cheap where that is no interpreter.
 */
void runtimes_mapping(struct runtimes *runtimes, const struct mapping_event *mapping);
/* A sample of the process, which the registry has. Until the first one its place has start_time_ns
 * 0: whoever has the pid now. */
void runtimes_sampled(struct runtimes *runtimes, const struct process_key *process);

/* Looks at those that are due, some at a time. */
void runtimes_run(struct runtimes *runtimes, int64_t now_ms);
/* When it wants to be called again, at most so long from now. */
int64_t runtimes_wait_ms(const struct runtimes *runtimes, int64_t now_ms, int64_t most_ms);

/* How the process' interpreter is laid out, or was, if it has ended. False: it has none whose frames
 * are read. */
bool runtimes_layout(const struct runtimes *runtimes, const struct process_key *process,
		     struct python_layout *layout);
/* The address of its state: _PyRuntime, before 3.7 _PyThreadState_Current. 0: as above. */
uint64_t runtimes_state(const struct runtimes *runtimes, const struct process_key *process);

/* The process' place, as the kernel side has it; version: PY_VERSION_HEX. False: none. */
bool runtimes_place(struct runtimes *runtimes, const struct process_key *process,
		    struct runtime_place *place, uint32_t *version);

/* Whether a thread of the process that waits at that address waits for the interpreter's lock (the
 * GIL): to take it, or to see another one do so. Not known of musl, whose condition variables have
 * their threads wait on their own stacks, and of stripped files of 3.6. */
bool runtimes_is_lock(const struct runtimes *runtimes, const struct process_key *process,
		      uint64_t address);

/* Whether an executable is an interpreter, and its ELF address in the interpreter's loop. */
bool runtimes_is_file(const struct runtimes *runtimes, uint32_t executable);
bool runtimes_is_loop(const struct runtimes *runtimes, uint32_t executable, uint64_t address);
/* As runtime_files_has_greenlets(). */
bool runtimes_has_greenlets(struct runtimes *runtimes, uint32_t executable);

/* Whether it is not known yet if the process has an interpreter; whether it is of these frames of
 * its, whose files are asked about then. */
bool runtimes_is_new(const struct runtimes *runtimes, const struct process_key *process);
bool runtimes_is_unsure(struct runtimes *runtimes, const struct process_key *process,
			const struct located_frame *frames, size_t count);
/* Another number when an answer to that may have changed. */
uint32_t runtimes_progress(const struct runtimes *runtimes);

/* Why the process' sample of that time, in an interpreter's loop, has no list: MERGE_not_by_perf,
 * early, too_new, unknown, no_place, or no_list where its thread is none of the interpreter's that
 * is read. */
enum frame_merge_result runtimes_why(const struct runtimes *runtimes,
				     const struct process_key *process, uint64_t time_ns);

/* Whether the process has a machine of HotSpot's that is known. */
bool runtimes_has_hotspot(const struct runtimes *runtimes, const struct process_key *process);
/* Of a process with HotSpot: hotspot_processes_layout(), hotspot_processes_place(); whether a file
 * is its. */
bool runtimes_hotspot_layout(const struct runtimes *runtimes, const struct process_key *process,
			     struct hotspot_layout *layout);
bool runtimes_hotspot_place(const struct runtimes *runtimes, const struct process_key *process,
			    struct hotspot_place *place);
bool runtimes_is_hotspot_file(const struct runtimes *runtimes, uint32_t executable);

struct runtimes_counters {
	struct hotspot_processes_counters hotspots;
	uint64_t looks;   /* at processes */
	uint64_t located; /* processes whose places were found, or had from their parent */
	/* Declared: processes with … */
	uint64_t unknown;      /* a version, or a build, whose layout is not known */
	uint64_t not_located;  /* threads whose states are nowhere near them */
	uint64_t contradicted; /* memory that is not what it looks like */
	uint64_t others;       /* more than one interpreter */
	uint64_t refused;      /* no room for them, or for their places */
	uint32_t processes;    /* now with an interpreter, or being looked at */
	uint32_t places;       /* now */
};
void runtimes_counters(const struct runtimes *runtimes, struct runtimes_counters *out);

#endif
