/* SPDX-License-Identifier: Apache-2.0 */
/* Our BPF programs into the kernel, by a child that passes the descriptors and exits: libbpf's
 * parse of the kernel's type information takes 14 MB, which would otherwise stay with the agent.
 * Door to libbpf. */
#ifndef NODE_AGENT_KERNEL_LOADER_H
#define NODE_AGENT_KERNEL_LOADER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"

/* Every map of the programs; order of struct kernel_programs.maps. */
enum kernel_map {
	KERNEL_MAP_SAMPLES,     /* ring buffer of struct sample_event */
	KERNEL_MAP_COUNTERS,    /* per CPU, keys are enum kernel_counter */
	KERNEL_MAP_FILTER_PIDS, /* hash of __u32 tgid → __u8 */
	KERNEL_MAP_SCRATCH,
	/* bpf/unwind_rows.h: */
	KERNEL_MAP_UNWIND_PAGES, /* hash of struct unwind_page_key → struct unwind_page */
	KERNEL_MAP_UNWIND_RULES, /* array of struct unwind_rule */
	KERNEL_MAP_UNWIND_POOLS, /* array of arrays of UNWIND_POOL_ELEMENTS times
				    UNWIND_ELEMENT_ROWS rows; empty */
	KERNEL_MAP_PROCESSES,    /* hash of __u32 tgid → __u32 index into the heads */
	KERNEL_MAP_PROCESS_HEADS,
	KERNEL_MAP_PROCESS_BLOCKS,
	KERNEL_MAP_COPIES, /* ring buffer of struct stack_copy_event */
	KERNEL_MAP_COPY_RATE,
	KERNEL_MAP_CONSTANTS,
	KERNEL_MAP_THREAD_CONTEXTS, /* array of one hash, bpf/thread_context.bpf.h; empty */
	/* where threads off their CPU are profiled, else −1: */
	KERNEL_MAP_THREADS, /* hash of __u32 tid → struct thread_switch, bpf/off_cpu.h */
	KERNEL_MAP_SWITCH_RATES,
	KERNEL_MAP_UNSAMPLED,
	KERNEL_MAP_LOOKS,
	KERNEL_MAP_SWEEPS,
	KERNEL_MAP_SWITCH_SCRATCH,
	KERNEL_MAP_SWITCH_CONSTANTS,
	/* where memory that is taken and given back is profiled, else −1: */
	KERNEL_MAP_ALLOC_COSTS, /* hash of __u32 tgid → struct alloc_cost, bpf/alloc.h */
	KERNEL_MAP_ALLOC_SCRATCH,
	KERNEL_MAP_ALLOC_WINDOWS, /* hash of __u32 tgid → struct alloc_window */
	KERNEL_MAP_ALLOC_COUNTS,  /* hash of __u32 tgid → struct alloc_window_counts */
	KERNEL_MAP_ALLOC_CALLS,
	/* where page faults are profiled, else −1: */
	KERNEL_MAP_FAULT_RATES,
	KERNEL_MAP_FAULT_SCRATCH,
	KERNEL_MAP_FAULT_COPY_RATE,
	KERNEL_MAP_FAULT_CONSTANTS,
	KERNEL_MAP_COUNT,
};

enum kernel_program {
	KERNEL_PROGRAM_SAMPLE_CPU, /* for PERF_EVENT_IOC_SET_BPF */
	/* for kernel_program_attach(): */
	KERNEL_PROGRAM_SWITCH,
	KERNEL_PROGRAM_WAKING,
	KERNEL_PROGRAM_EXIT,
	KERNEL_PROGRAM_FREE,
	KERNEL_PROGRAM_SWEEP, /* for kernel_sweep_open() */
	/* for uprobe_open(): */
	KERNEL_PROGRAM_GO_TAKEN,
	KERNEL_PROGRAM_GO_GIVEN,
	KERNEL_PROGRAM_GO_TAKEN_BY_STACK,
	KERNEL_PROGRAM_GO_GIVEN_BY_STACK,
	KERNEL_PROGRAM_LIBRARY_TAKEN,
	KERNEL_PROGRAM_LIBRARY_GIVEN,
	KERNEL_PROGRAM_LIBRARY_BATCH,
	KERNEL_PROGRAM_MALLOC,
	KERNEL_PROGRAM_CALLOC,
	KERNEL_PROGRAM_REALLOC,
	KERNEL_PROGRAM_POSIX_MEMALIGN,
	KERNEL_PROGRAM_REALLOCARRAY,
	/* for perf_faults_open(): */
	KERNEL_PROGRAM_FAULT_MINOR,
	KERNEL_PROGRAM_FAULT_MAJOR,
	KERNEL_PROGRAM_LOOK, /* for kernel_program_run() */
	KERNEL_PROGRAM_COUNT,
};

/* What of threads off their CPU is wanted: bits. */
enum kernel_off_cpu {
	KERNEL_OFF_CPU_WAITS = 1 << 0,
	KERNEL_OFF_CPU_RUN_QUEUE = 1 << 1,
	KERNEL_OFF_CPU_WAKERS = 1 << 2,
};

struct kernel_load_options {
	uint32_t ring_bytes; /* a power of two and whole pages, as copies_bytes */
	uint32_t copies_bytes;
	uint32_t max_frames;  /* of the user part, 1 to USER_FRAMES_MAX */
	uint64_t period_ns;   /* what one sample is worth */
	uint32_t filter_pids; /* how many process ids will be added to the filter; 0: all are wanted
			       */
	uint32_t use_rows;    /* 1: walk by the rows that the maps will have, and copy up what they
				 lack; 0: by frame pointers alone */
	uint32_t stop_after_sample; /* 1: every sampled thread gets SIGSTOP, for a debugger to look
				       at; needs a filter */
	uint32_t take_ticks;        /* 0: timer ticks are counted only */
	uint32_t off_cpu;           /* enum kernel_off_cpu */
	uint32_t off_cpu_budget_ns; /* for stacks, of each CPU in STACK_RATE_WINDOW_MS */
	uint32_t threads_max;       /* that are followed at a time */
	uint32_t page_faults;       /* 1: they are wanted */
	uint32_t fault_budget_ns;   /* for stacks, of each CPU in STACK_RATE_WINDOW_MS */
	uint32_t allocs;            /* 1: programs for probes in allocators are wanted */
	uint32_t alloc_budget_ns;   /* of a process, for stacks in STACK_RATE_WINDOW_MS */
};

struct kernel_programs { /* descriptors, close-on-exec; −1: not wanted */
	int programs[KERNEL_PROGRAM_COUNT];
	bool is_switch_typed; /* KERNEL_PROGRAM_SWITCH knows its tracepoint by itself */
	int maps[KERNEL_MAP_COUNT];
};

/* To be called first in main(): does the child's work when this process is one, and returns its
 * exit status. −1: it is not, go on. */
int kernel_loader_main(int argc, char **argv);

/* Runs /proc/self/exe as the child and takes what it passes. meanwhile, or NULL: is called while
 * the child works, which takes some tenths of a second, most of them the kernel's verifier's.
 * ERROR_UNSUPPORTED with a sentence
 * where the kernel or the privileges do not allow it. */
bool kernel_load(const struct kernel_load_options *options, void (*meanwhile)(void *context),
		 void *context, struct kernel_programs *programs, struct error *err);

/* Runs the program at every event of its tracepoint until the descriptor that it returns is closed.
 * −1: it cannot be. */
int kernel_program_attach(const struct kernel_programs *programs, enum kernel_program program,
			  struct error *err);

/* The descriptor of an iterator over all threads, or (from 6.1 on) over one, unless tid is 0; each
 * opening of it is one that read(2) gives struct switch_sweep_record of, to its end. −1: there is
 * none. */
int kernel_sweep_attach(const struct kernel_programs *programs, uint32_t tid, struct error *err);
int kernel_sweep_open(int link, struct error *err);

/* Runs a program once, here and now, and gives what it returns. */
bool kernel_program_run(const struct kernel_programs *programs, enum kernel_program program,
			uint32_t *returned, struct error *err);

/* Also what was never loaded, if set to {−1}s by kernel_programs_init(). */
void kernel_programs_init(struct kernel_programs *programs);
void kernel_programs_close(struct kernel_programs *programs);

#endif
