/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* pid → its mappings: which executable's code lies at an address. Maps of bpf/unwind_rows.h. */
#ifndef BPF_PROCESS_MAP_BPF_H
#define BPF_PROCESS_MAP_BPF_H

#include "bpf/kernel_types.h"
#include "bpf/unwind_rows.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, PROCESS_HEADS);
	__type(key, __u32);   /* tgid */
	__type(value, __u32); /* index into process_heads */
} processes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PROCESS_HEADS);
	__type(key, __u32);
	__type(value, struct process_head);
} process_heads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PROCESS_BLOCKS);
	__type(key, __u32);
	__type(value, struct process_block);
} process_blocks SEC(".maps");

#endif
