/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* pid → its mappings: which executable's code lies at an address. Maps of bpf/unwind_rows.h. */
#ifndef BPF_PROCESS_MAP_BPF_H
#define BPF_PROCESS_MAP_BPF_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

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

/* The process of one sample, and the mapping that was asked for last: stacks stay in a few. */
struct process_view {
	__u32 head;    /* index + 1; 0: the process is not known */
	__u32 nothing; /* 0, which the verifier does not know: paths that differ in it are one */
	struct process_mapping mapping;
};

/* What is published for the pid may be another program's: the pid's user before, or itself before
 * execve(). Returns the generation, or 0. */
static __always_inline __u32 process_view_begin(struct process_view *view, __u32 tgid,
						__u32 exec_id, __u64 start_time_ns)
{
	__u32 *index = bpf_map_lookup_elem(&processes, &tgid);
	struct process_head *head;
	__u32 key;

	view->head = 0;
	view->nothing = 0;
	view->mapping.start = view->mapping.end = 0;
	if (!index)
		return 0;
	key = *index;
	head = bpf_map_lookup_elem(&process_heads, &key);
	if (!head || head->tgid != tgid || head->exec_id != exec_id ||
	    head->start_time_ns != start_time_ns)
		return 0;
	view->head = key + 1;
	return head->generation;
}

/* The last block that does not begin above the address; the first, if all do. Indexes are
 * masked at every turn, so that the verifier sees the same range on every path. */
static __always_inline __u32 process_block_find(const struct process_head *head, __u32 at,
						__u64 address)
{
	for (__u32 step = PROCESS_BLOCKS_MAX / 2; step; step /= 2) {
		__u32 next = (at + step) & (PROCESS_BLOCKS_MAX - 1);

		if (at + step < head->block_count && head->first_start[next] <= address)
			at = next;
	}
	return at & (PROCESS_BLOCKS_MAX - 1);
}

/* The same among the block's mappings; count: of it and of those after it. */
static __always_inline const struct process_mapping *
process_block_mapping(const struct process_block *block, __u32 at, __u32 count, __u64 address)
{
	for (__u32 step = PROCESS_BLOCK_MAPPINGS / 2; step; step /= 2) {
		__u32 next = (at + step) & (PROCESS_BLOCK_MAPPINGS - 1);

		if (at + step < count && block->mappings[next].start <= address)
			at = next;
	}
	return &block->mappings[at & (PROCESS_BLOCK_MAPPINGS - 1)];
}

/* 0: it lies in view->mapping. */
static __always_inline int process_mapping_find(struct process_view *view, __u64 address)
{
	const struct process_mapping *mapping;
	const struct process_block *block;
	struct process_head *head;
	__u32 key = view->head - 1, number;

	if (address >= view->mapping.start && address < view->mapping.end)
		return 0;
	head = bpf_map_lookup_elem(&process_heads, &key); /* of 0 − 1 there is none */
	if (!head)
		return 1;
	number = process_block_find(head, view->nothing, address);
	key = head->blocks[number];
	block = bpf_map_lookup_elem(&process_blocks, &key);
	if (!block)
		return 1;
	mapping = process_block_mapping(block, view->nothing,
					head->mapping_count - number * PROCESS_BLOCK_MAPPINGS,
					address);
	if (address < mapping->start || address >= mapping->end)
		return 1;
	view->mapping = *mapping;
	return 0;
}

#endif
