/* SPDX-License-Identifier: Apache-2.0 */
/* Our BPF programs into the kernel, by a child that passes the descriptors and exits: libbpf's
 * parse of the kernel's type information takes 14 MB, which would otherwise stay with the agent.
 * Door to libbpf. */
#ifndef NODE_AGENT_KERNEL_LOADER_H
#define NODE_AGENT_KERNEL_LOADER_H

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
	KERNEL_MAP_COUNT,
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
};

struct kernel_programs { /* descriptors, close-on-exec */
	int sample_cpu;  /* for PERF_EVENT_IOC_SET_BPF */
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

/* Also what was never loaded, if set to {−1}s by kernel_programs_init(). */
void kernel_programs_init(struct kernel_programs *programs);
void kernel_programs_close(struct kernel_programs *programs);

#endif
