/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The ring that all records but copied stacks go up in. */
#ifndef BPF_SAMPLE_RING_BPF_H
#define BPF_SAMPLE_RING_BPF_H

#include "bpf/kernel_types.h"

/* Set by the loader. The reader polls; it is woken early at this fill. */
const volatile __u32 wakeup_bytes = 1 << 16;

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 18);
} samples SEC(".maps");

#endif
