/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What could not be walked goes up: registers and the stack from there on, into a ring of its own,
 * so that samples never wait for room behind them. */
#ifndef BPF_STACK_COPY_BPF_H
#define BPF_STACK_COPY_BPF_H

#include "bpf/events.h"
#include "bpf/kernel_types.h"

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 19);
} copies SEC(".maps");

/* Tokens of a bucket, as the time at which it would be full again. */
struct stack_copy_rate {
	__u64 full_ns;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct stack_copy_rate);
} copy_rate SEC(".maps");

#endif
