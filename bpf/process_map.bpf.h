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

/* The process of one sample, and the two mappings that were asked for last: stacks stay in a few.
 * They hold for the next sample too if it is of the same process and its mappings are the same. */
struct process_view {
	__u64 start_time_ns; /* identity, as in struct process_head */
	__u32 tgid, exec_id;
	__u32 head;    /* index + 1; 0: the process is not known */
	__u32 nothing; /* 0, which the verifier does not know: paths that differ in it are one */
	__u32 generation, reserved;
	struct process_mapping mapping, other;
};

static __always_inline int process_view_is_of(const struct process_view *view, __u32 index,
					      const struct process_head *head)
{
	return view->head == index + 1 && view->tgid == head->tgid &&
	       view->exec_id == head->exec_id && view->start_time_ns == head->start_time_ns &&
	       view->generation == head->generation;
}

/* What is published for the pid may be another program's: the pid's user before, or itself before
 * execve(). Returns the generation, or 0. */
static __always_inline __u32 process_view_begin(struct process_view *view, __u32 tgid,
						__u32 exec_id, __u64 start_time_ns)
{
	__u32 *index = bpf_map_lookup_elem(&processes, &tgid);
	struct process_head *head = 0;
	__u32 key = 0;

	if (index) {
		key = *index;
		head = bpf_map_lookup_elem(&process_heads, &key);
	}
	if (head && head->tgid == tgid && head->exec_id == exec_id &&
	    head->start_time_ns == start_time_ns) {
		if (process_view_is_of(view, key, head))
			return view->generation;
		view->head = key + 1;
		view->generation = head->generation;
	} else {
		view->head = view->generation = 0;
	}
	view->tgid = tgid;
	view->exec_id = exec_id;
	view->start_time_ns = start_time_ns;
	view->nothing = 0;
	view->mapping.start = view->mapping.end = 0;
	view->other = view->mapping;
	return view->generation;
}

/* Asked again after what its blocks say was read: a program that was preempted for long may have
 * read another's, since heads and blocks are used again. */
static __always_inline int process_head_is_of(const struct process_head *head,
					      const struct process_view *view)
{
	const volatile struct process_head *now = head;

	return now->tgid == view->tgid && now->exec_id == view->exec_id &&
	       now->start_time_ns == view->start_time_ns && now->generation == view->generation;
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

static __always_inline int process_mapping_has(const struct process_mapping *mapping, __u64 address)
{
	return address >= mapping->start && address < mapping->end;
}

/* 0: it lies in view->mapping. */
static __always_inline int process_mapping_find(struct process_view *view, __u64 address)
{
	const struct process_mapping *mapping;
	const struct process_block *block;
	struct process_head *head;
	__u32 key = view->head - 1, number;

	if (process_mapping_has(&view->mapping, address))
		return 0;
	if (process_mapping_has(&view->other, address)) {
		const struct process_mapping last = view->mapping;

		view->mapping = view->other;
		view->other = last;
		return 0;
	}
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
	if (!process_mapping_has(mapping, address))
		return 1;
	view->other = view->mapping;
	view->mapping = *mapping;
	if (process_head_is_of(head, view))
		return 0;
	view->mapping.start = view->mapping.end = 0;
	return 1;
}

#endif
