/* SPDX-License-Identifier: Apache-2.0 */
/* Our BPF programs into the kernel, by a child that passes the descriptors and exits: libbpf's
 * parse of the kernel's type information takes 14 MB, which would otherwise stay with the agent.
 * Door to libbpf. */
#ifndef NODE_AGENT_KERNEL_LOADER_H
#define NODE_AGENT_KERNEL_LOADER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"

/* A skeleton each, bpf/sample_….skel.h: SOURCE(name). The first one's are always loaded; what the
 * others have of the same name as one of its maps is that map. */
#define KERNEL_SOURCES(SOURCE) SOURCE(cpu) SOURCE(off_cpu) SOURCE(page_fault) SOURCE(alloc)

#define KERNEL_SOURCE_ENUM(name_) KERNEL_SOURCE_##name_,
enum kernel_source { KERNEL_SOURCES(KERNEL_SOURCE_ENUM) KERNEL_SOURCE_COUNT };

/* MAP(NAME, source, name there); −1 where the source is not wanted. */
#define KERNEL_MAPS(MAP)                                                                           \
	MAP(SAMPLES, cpu, samples)   /* ring buffer of struct sample_event */                      \
	MAP(COUNTERS, cpu, counters) /* per CPU, keys are enum kernel_counter */                   \
	MAP(FILTER_PIDS, cpu, filter_pids) /* hash of __u32 tgid → __u8 */                         \
	MAP(UNWIND_PAGES, cpu, unwind_pages) /* as the next two: bpf/unwind_rows.h; a hash of */   \
	MAP(UNWIND_RULES, cpu, unwind_rules) /* struct unwind_page; array of struct unwind_rule */ \
	MAP(UNWIND_POOLS, cpu, unwind_pools) /* array of arrays of UNWIND_POOL_ELEMENTS times */   \
					     /* UNWIND_ELEMENT_ROWS rows; empty */                 \
	MAP(PROCESSES, cpu, processes) /* hash of __u32 tgid → __u32 index into the heads */       \
	MAP(PROCESS_HEADS, cpu, process_heads)                                                     \
	MAP(PROCESS_BLOCKS, cpu, process_blocks)                                                   \
	MAP(COPIES, cpu, copies) /* ring buffer of struct stack_copy_event */                      \
	MAP(THREAD_CONTEXTS, cpu, thread_contexts) /* array of one hash; empty */                  \
	MAP(RUNTIMES, cpu, runtimes) /* array of arrays of struct runtime_place; empty */          \
	MAP(RUNTIME_PIDS, cpu, runtime_pids) /* which of these a process has */                    \
	MAP(HOTSPOTS, cpu, hotspots) /* array of one hash of struct hotspot_place; empty */        \
	MAP(THREADS, off_cpu, threads) /* hash of __u32 tid → struct thread_switch */              \
	MAP(SWITCH_RATES, off_cpu, switch_rates)                                                   \
	MAP(UNSAMPLED, off_cpu, unsampled)                                                         \
	MAP(LOOKS, off_cpu, looks)                                                                 \
	MAP(SWEEPS, off_cpu, sweeps)                                                               \
	MAP(ALLOC_COSTS, alloc, alloc_costs) /* hash of __u32 tgid → struct alloc_cost */          \
	MAP(ALLOC_WINDOWS, alloc, alloc_windows) /* hash of __u32 tgid → struct alloc_window */    \
	MAP(ALLOC_COUNTS, alloc, alloc_counts)   /* the same → struct alloc_window_counts */       \
	MAP(ALLOC_CALLS, alloc, alloc_calls)                                                       \
	MAP(FAULT_RATES, page_fault, stack_rates)

/* What each source has for itself: MAP(source, name there) */
#define KERNEL_OWN_MAPS(MAP, source_) \
	MAP(source_, scratch)         \
	MAP(source_, rule_caches)     \
	MAP(source_, copy_rate)       \
	MAP(source_, rodata)

#define KERNEL_MAP_ENUM(name_, source_, map_) KERNEL_MAP_##name_,
#define KERNEL_OWN_MAP_ENUM(source_, map_) KERNEL_MAP_##source_##_##map_,
#define KERNEL_OWN_MAPS_ENUM(source_)      KERNEL_OWN_MAPS(KERNEL_OWN_MAP_ENUM, source_)
enum kernel_map {
	KERNEL_MAPS(KERNEL_MAP_ENUM) KERNEL_SOURCES(KERNEL_OWN_MAPS_ENUM) KERNEL_MAP_COUNT
};

/* PROGRAM(NAME, source, name there) */
#define KERNEL_PROGRAMS(PROGRAM)                                                                   \
	PROGRAM(SAMPLE_CPU, cpu, sample_cpu)        /* for PERF_EVENT_IOC_SET_BPF */               \
	PROGRAM(SWITCH_TYPED, off_cpu, switch_typed) /* to _FREE: for kernel_program_attach(); */  \
	PROGRAM(SWITCH_RAW, off_cpu, switch_raw)     /* one of the two is loaded */                \
	PROGRAM(WAKING, off_cpu, thread_waking)                                                    \
	PROGRAM(EXIT, off_cpu, thread_exit)                                                        \
	PROGRAM(FREE, off_cpu, thread_free)                                                        \
	PROGRAM(SWEEP, off_cpu, sweep)      /* for kernel_sweep_open() */                          \
	PROGRAM(LOOK, off_cpu, look)        /* for kernel_program_run() */                         \
	PROGRAM(GO_TAKEN, alloc, go_taken)  /* as all of alloc: for uprobe_open() */               \
	PROGRAM(GO_GIVEN, alloc, go_given)                                                         \
	PROGRAM(GO_TAKEN_BY_STACK, alloc, go_taken_by_stack)                                       \
	PROGRAM(GO_GIVEN_BY_STACK, alloc, go_given_by_stack)                                       \
	PROGRAM(LIBRARY_TAKEN, alloc, library_taken)                                               \
	PROGRAM(LIBRARY_GIVEN, alloc, library_given)                                               \
	PROGRAM(LIBRARY_BATCH, alloc, library_batch)                                               \
	PROGRAM(MALLOC, alloc, malloc_called)                                                      \
	PROGRAM(CALLOC, alloc, calloc_called)                                                      \
	PROGRAM(REALLOC, alloc, realloc_called)                                                    \
	PROGRAM(POSIX_MEMALIGN, alloc, posix_memalign_called)                                      \
	PROGRAM(REALLOCARRAY, alloc, reallocarray_called)                                          \
	PROGRAM(PYTHON_POOL, alloc, pool_taken)                                                    \
	PROGRAM(FAULT_MINOR, page_fault, minor_fault) /* for perf_faults_open() */                 \
	PROGRAM(FAULT_MAJOR, page_fault, major_fault)

#define KERNEL_PROGRAM_ENUM(name_, source_, program_) KERNEL_PROGRAM_##name_,
enum kernel_program { KERNEL_PROGRAMS(KERNEL_PROGRAM_ENUM) KERNEL_PROGRAM_COUNT };

/* What is wanted of the sources: bits. */
enum kernel_wants {
	KERNEL_WANTS_TICKS = 1 << 0, /* else they are counted only, as filtered */
	KERNEL_WANTS_WAITS = 1 << 1, /* of threads off their CPU, as the next two */
	KERNEL_WANTS_RUN_QUEUE = 1 << 2,
	KERNEL_WANTS_WAKERS = 1 << 3,
	KERNEL_WANTS_OFF_CPU = KERNEL_WANTS_WAITS | KERNEL_WANTS_RUN_QUEUE | KERNEL_WANTS_WAKERS,
	KERNEL_WANTS_FAULTS = 1 << 4,
	KERNEL_WANTS_ALLOCS = 1 << 5, /* programs for probes in allocators */
};

/* What the child is told, as NAME=NUMBER: OPTION(name). */
#define KERNEL_LOAD_OPTIONS(OPTION)                                                                \
	OPTION(ring_bytes) /* a power of two and whole pages, as copies_bytes */                   \
	OPTION(copies_bytes)                                                                       \
	OPTION(max_frames)  /* of the user part, 1 to USER_FRAMES_MAX */                           \
	OPTION(period_ns)   /* what one sample is worth */                                         \
	OPTION(filter_pids) /* process ids that will be added to the filter; 0: all are wanted */  \
	OPTION(use_rows)    /* 1: walk by the rows that the maps will have, and copy up what */    \
			    /* they lack; 0: by frame pointers alone */                            \
	OPTION(stop_after_sample) /* 1: every sampled thread gets SIGSTOP; needs a filter */       \
	OPTION(wants)             /* enum kernel_wants */                                          \
	OPTION(threads_max)       /* that are followed off their CPU at a time */

#define KERNEL_LOAD_OPTION_MEMBER(name_) uint64_t name_;
struct kernel_load_options {
	KERNEL_LOAD_OPTIONS(KERNEL_LOAD_OPTION_MEMBER)
	/* For stacks, in STACK_RATE_WINDOW_MS of each CPU; of alloc: of each process. */
	uint64_t budgets_ns[KERNEL_SOURCE_COUNT];
};

struct kernel_programs { /* descriptors, close-on-exec; −1: not wanted */
	int programs[KERNEL_PROGRAM_COUNT];
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
