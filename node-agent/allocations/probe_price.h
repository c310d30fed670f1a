/* SPDX-License-Identifier: Apache-2.0 */
/* What the trap of a probe in an allocator costs the program that runs into it, without ours: it
 * is measured by functions of this process' own, again and again, since it depends on the host and
 * on what else runs there by half. And on how much is done from one to the next: a trap also slows
 * down what comes after it, and finds less of the kernel in the caches. */
#ifndef NODE_AGENT_ALLOCATIONS_PROBE_PRICE_H
#define NODE_AGENT_ALLOCATIONS_PROBE_PRICE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"

enum {
	PROBE_APART_NS_MAX = 4000, /* further apart they cost a program little */
	PROBE_WORK_ROUNDS = 4096,
};

struct probe_price {
	uint64_t ns;         /* of an instruction that the kernel does itself */
	uint64_t stepped_ns; /* of one that it has to step over, which takes a second trap */
};

struct probe_meter {
	int probe, stepped; /* of our own functions, for good; −1: none */
	int counts_map;
	uint64_t work_ns;         /* of PROBE_WORK_ROUNDS rounds of work; 0: not known */
	struct probe_price first; /* as it was at the start, one after the other */
	uint64_t company_ns;      /* more, for each probe of another process at the same place */
};

/* The maps and the program are those of bpf/sample_alloc.bpf.c. Without a meter prices are guessed;
 * err says why. */
void probe_meter_open(struct probe_meter *meter, int windows_map, int counts_map, int program,
		      struct error *err);
void probe_meter_close(struct probe_meter *meter);

/* Of probes that a program runs into so far apart, of its own time. A millisecond of CPU time; with
 * is_stepped another, and that price is measured as well, else it is taken to change as the other
 * does. */
struct probe_price probe_price_now(const struct probe_meter *meter, bool is_stepped,
				   uint64_t apart_ns);
/* With others' probes at the same place: the kernel asks each whether it is meant
 * (kernel/events/uprobes.c, handler_chain()). */
void probe_price_share(struct probe_price *price, const struct probe_meter *meter, uint32_t others);
/* A probe in this process that is closed together with those of a window: what it takes the kernel
 * until it takes their instructions away cannot be seen in the program, and it runs into them
 * meanwhile, uncounted (kernel/trace/bpf_trace.c, perf_event_detach_bpf_prog()). Its number, or −1:
 * none; fd: to be closed, then the number is given back. */
int probe_sentinel_open(int program, int *fd);
bool probe_sentinel_is_there(int number);
void probe_sentinel_leave(int number);

void probe_price_mean(struct probe_price *price, struct probe_price other);

#endif
