/* SPDX-License-Identifier: Apache-2.0 */
/* Raw samples and process events out of the kernel, in time order: timers per CPU, the sample ring,
 * perf's mmap/comm/exit records. */
#ifndef NODE_AGENT_CAPTURE_CAPTURE_H
#define NODE_AGENT_CAPTURE_CAPTURE_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/alloc.h"
#include "bpf/counters.h"
#include "bpf/events.h"
#include "bpf/off_cpu.h"
#include "bpf/runtime_frames.h"
#include "bpf/thread_context.h"
#include "common/error.h"
#include "node-agent/kernel/loader.h"
#include "node-agent/kernel/mapping_event.h"

/* Choices of --capture, in its order. */
enum capture_way {
	CAPTURE_AUTO, /* by BPF; where that is not permitted, by perf */
	CAPTURE_BPF,
	CAPTURE_PERF, /* perf_event_open(2) alone: every stack comes as a copy */
};

struct capture_options {
	enum capture_way way;
	uint32_t frequency_hz; /* 1–1000 */
	uint32_t max_frames;   /* 1–USER_FRAMES_MAX */
	const uint32_t *pids;  /* host pids; none: all processes */
	size_t pid_count;
	/* Walk by the unwind rows and process mappings that are put into capture_map()s, and copy
	 * up the stacks of code they lack. Otherwise by frame pointers alone. */
	bool use_rows;
	bool stop_after_sample; /* with pids: a sampled thread gets SIGSTOP, for a debugger */
	uint32_t wants;         /* enum kernel_wants; by perf: ticks alone */
	/* What stacks may cost: share of the machine; of alloc: of a CPU, by one process. */
	double budgets[KERNEL_SOURCE_COUNT];
};

/* Called during capture_poll(), in time order; everything is borrowed. NULL: not wanted. */
struct capture_callbacks {
	/* Once or twice during capture_open(), before the first record: there is time for what will
	 * be read anyway, the kernel is loading the programs. */
	void (*on_loading)(void *context);
	void (*on_exec)(void *context, uint32_t tgid, uint64_t time_ns); /* old mappings are gone */
	void (*on_fork)(void *context, uint32_t tgid, uint32_t parent_tgid, uint64_t time_ns);
	void (*on_exit)(void *context, uint32_t tgid, uint64_t time_ns); /* of the whole process */
	void (*on_mapping)(void *context, const struct mapping_event *mapping);
	/* Of all types. copy: with SAMPLE_HAS_COPY, checked against its length; NULL also
	 * when it got lost. */
	void (*on_sample)(void *context, const struct sample_event *sample,
			  const struct stack_copy_event *copy);
	/* Of a block that on_sample was given a stack of, which may still come: a waker's does. */
	void (*on_switch_in)(void *context, const struct switch_in_event *event);
	/* Where the sample's process has what its threads say of their requests. False: nowhere. */
	bool (*find_context)(void *context, const struct sample_event *sample,
			     struct thread_context_place *place);
	/* Where its interpreter has its threads' frames, as the kernel side was told. */
	bool (*find_runtime)(void *context, const struct sample_event *sample,
			     struct runtime_place *place);
	/* A sweep from start to end had all threads that were waiting without a stack for
	 * SWITCH_SWEEP_MS at its start, as samples that are swept. */
	void (*on_sweep)(void *context, uint64_t start_ns, uint64_t end_ns);
	/* In front of the sample that has it for the first time; checked against its length. */
	void (*on_code)(void *context, const struct runtime_code_event *told);
	/* Memory is given back. */
	void (*on_free)(void *context, const struct alloc_free_event *event);
	void *context;
};

/* Exact for what on_sample has been given so far, and for what is known lost before it. */
struct capture_totals {
	/* Timer periods, from the kernel's counters now: ticks = taken + idle + filtered once the
	 * capture has stopped. idle has those of idle CPUs that did not tick, see cpu_ticks.h. */
	uint64_t ticks, idle, filtered;
	uint64_t missed; /* neither a tick nor idle: the hypervisor ran something else */
	uint64_t taken;  /* kernel side's own count up to the last sample delivered, per CPU, summed
			  */
	uint64_t delivered; /* samples given to on_sample */
	uint64_t ring_full, no_scratch;
	uint64_t malformed;          /* taken, and not given to on_sample: damaged */
	uint64_t copies, copy_bytes; /* stacks given to on_sample, and what the ring carried */
	uint64_t copies_unmatched;         /* their sample found its ring full */
	uint64_t process_events_lost;      /* perf's PERF_RECORD_LOST of the mapping rings */
	uint64_t perf_count_ns; /* the perf events' own counts: cpu-clock nanoseconds over all CPUs
				 */
	uint64_t stacks_by_result[32]; /* enum walk_result, as the kernel side said */
	uint64_t kernel[KERNEL_COUNTER_COUNT]; /* what the kernel side counts, of all CPUs */
	struct sweep_totals {                  /* of threads that wait, see switch_sweeps.h */
		uint64_t done, stacks, cpu_ns, contexts, contexts_unread;
	} sweeps;
	struct fault_totals { /* exact, of all processes */
		uint64_t minor, major;
	} faults;
};

struct capture;

/* By BPF: loads the programs through a child that exits (its BTF parse does not stay), attaches one
 * cpu-clock event per online CPU and to process events. By perf: see perf_capture.h.
 * ERROR_UNSUPPORTED with a sentence where the kernel or the privileges do not allow it. */
struct capture *capture_open(const struct capture_options *options,
			     const struct capture_callbacks *callbacks, struct error *err);

/* Waits up to timeout_ms for records and delivers all there are. CPUs that came or went are noticed
 * here (within five seconds). false: the capture is broken for good. */
bool capture_poll(struct capture *capture, int timeout_ms, struct error *err);

/* CLOCK_MONOTONIC: what was recorded before has been delivered. Records that came while others were
 * delivered, or since then, are later. 0: nothing was looked at yet. */
uint64_t capture_delivered_until_ns(const struct capture *capture);

/* A descriptor (−1: none) whose being readable ends the wait of capture_poll() as well; it replaces
 * the one before. To be called again when the descriptor was opened anew, even with the same
 * number.
 */
void capture_watch(struct capture *capture, int fd);

/* Stops the timers and delivers what is left: afterwards totals are final and equal the kernel's.
 */
void capture_stop(struct capture *capture);

void capture_totals(struct capture *capture, struct capture_totals *totals);
/* The same with a perf_count_ns up to a second old, since reading it interrupts every CPU: for
 * every report. */
void capture_counts(struct capture *capture, struct capture_totals *totals);

/* Bytes of kernel memory held by our BPF maps (bpftool's memlock sum). */
uint64_t capture_map_bytes(const struct capture *capture);

/* How it is taken: CAPTURE_BPF or CAPTURE_PERF. */
enum capture_way capture_way(const struct capture *capture);
/* Whether BPF programs could be loaded now, where they could not at the start. */
bool capture_try_bpf(const struct capture_options *options, struct error *err);

/* Of one of the programs' maps. False: the key is not there; by perf none is. */
bool capture_map_read(const struct capture *capture, enum kernel_map map, const void *key,
		      void *value);
void capture_map_remove(const struct capture *capture, enum kernel_map map, const void *key);
/* For a room that fills the map or reads it in a thread of its own: the descriptor, borrowed. −1: by
 * perf there are none. */
int capture_map(const struct capture *capture, enum kernel_map map);

/* One of the programs, for uprobe_open(); borrowed. −1: it is not loaded. */
int capture_program(const struct capture *capture, enum kernel_program program);

void capture_close(struct capture *capture); /* NULL is fine */

#endif
