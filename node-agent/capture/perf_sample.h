/* SPDX-License-Identifier: Apache-2.0 */
/* One sample of perf's → what the BPF side would have sent: kernel frames, the leaf, and registers
 * and stack to walk by. Pure. Format: PERF_RECORD_SAMPLE in <linux/perf_event.h> with the fields of
 * perf_sampler_open(); register numbers of <asm/perf_regs.h>. */
#ifndef NODE_AGENT_CAPTURE_PERF_SAMPLE_H
#define NODE_AGENT_CAPTURE_PERF_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/events.h"

struct perf_sample {
	uint64_t ip, time_ns;
	uint32_t tgid, tid; /* both 0: the idle task; UINT32_MAX: a task that is gone already */
	bool is_in_kernel;
	bool is_kernel_cut; /* there are more kernel frames than that */
	uint16_t kernel_count;
	uint64_t kernel[KERNEL_FRAMES_MAX];
	enum { PERF_USER_NONE, PERF_USER_32BIT, PERF_USER_64BIT } user;
	/* With a user part. */
	uint64_t user_ip, registers[UNWIND_REGISTERS]; /* DWARF numbers */
	uint64_t known;                                /* bit n: registers[n] is the thread's */
	uint32_t entry_bytes; /* of the instruction that entered the kernel: user_ip is behind it */
	const uint8_t *stack; /* points into the record */
	uint32_t stack_bytes; /* readable from the stack pointer on */
};

/* False: no sample record, or shorter than its own counts say. */
bool perf_sample_parse(const void *record, size_t length, struct perf_sample *sample);

/* Only its time; 0 when it is too short. */
uint64_t perf_sample_time(const void *record, size_t length);

/* Fills everything of the event but who it was and the counters; frames has room for
 * KERNEL_FRAMES_MAX + 1. With SAMPLE_HAS_COPY the copy is filled too: room for 65536 bytes of
 * stack. */
void perf_sample_event(const struct perf_sample *sample, struct sample_event *event,
		       struct stack_copy_event *copy);

#endif
