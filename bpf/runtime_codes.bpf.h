/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What an interpreter's code objects say of themselves, copied as they are into the ring, in front
 * of the first sample that has them: those of exec() are gone before user space could look. */
#ifndef BPF_RUNTIME_CODES_BPF_H
#define BPF_RUNTIME_CODES_BPF_H

#include "bpf/sample_ring.bpf.h"
#include "bpf/sample_scratch.bpf.h" /* says how much room the list has */

#include "bpf/runtime_copy.bpf.h"

enum {
	/* Of objects that are near each other, as those are that call each other: their marks are
	 * in few cache lines. Less than 32 KiB in all, which the kernel has in large pages. */
	RUNTIME_CODES_GROUPS = 240,
	RUNTIME_CODES_GROUP = 32,  /* are told once; what takes another's place is told again */
	RUNTIME_CODES_TRIED = 16,  /* places for one */
	RUNTIME_CODES_LOOKED = 12, /* innermost frames, where what lives shortly is: others are
				      looked for in the process' memory */
};

struct runtime_codes_group {
	__u32 marks[RUNTIME_CODES_GROUP]; /* which ones they are; 0: none */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, RUNTIME_CODES_GROUPS);
	__type(key, __u32);
	__type(value, struct runtime_codes_group);
} runtime_codes SEC(".maps");

/* 0: it is in the ring. */
static __always_inline int runtime_code_send(const struct sample_scratch *s, __u64 address,
					     __u16 cookie)
{
	const struct runtime_layout *layout = &s->runtime.layout;
	struct runtime_code_event *event;

	if (bpf_ringbuf_query(&samples, BPF_RB_AVAIL_DATA) >= wakeup_bytes)
		return 1; /* samples need the room */
	event = bpf_ringbuf_reserve(&samples, sizeof(*event), 0);
	if (!event)
		return 1;
	event->type = EVENT_RUNTIME_CODE;
	event->cookie = cookie;
	event->size = sizeof(*event);
	event->time_ns = s->event.time_ns;
	event->start_time_ns = s->event.start_time_ns;
	event->tgid = s->event.tgid;
	event->exec_id = s->event.exec_id;
	event->address = address;
	runtime_code_fill(layout, event);
	bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
	return 0;
}

/* Objects of 3.11 and later have their bytecode in them, and lie farther apart. */
static __always_inline __u32 runtime_codes_group_of(const struct sample_scratch *s, __u64 address)
{
	const __u32 near = s->runtime.layout.flags & RUNTIME_INSTR_IS_POINTER ? 13 : 11;
	const __u32 mixed = ((__u32)(address >> near) + s->event.tgid * 0x85ebca6bU) * 0x9e3779b1U;

	return (mixed >> 16) * RUNTIME_CODES_GROUPS >> 16;
}

/* Of the sample's frame with that number, leaf first. */
int tell_code(__u32 number);
__attribute__((noinline)) int tell_code(__u32 number)
{
	struct sample_scratch *s = scratch_find();
	struct runtime_codes_group *group;
	__u32 key, mark, place;
	__u64 at, address;
	__u16 cookie;

	if (!s || number >= RUNTIME_CODES_LOOKED || 2 * number + 1 >= s->runtime.count)
		return 1;
	at = (__u64)s->runtime.first + 2 * number;
	if (at >= SCRATCH_WORDS - 1 || stack_frame_kind(s->frames[at]) != STACK_FRAME_PYTHON)
		return 1;
	address = stack_frame_address(s->frames[at]);
	cookie = runtime_frame_cookie(s->frames[at + 1]);
	if (!address || !cookie)
		return 0;
	key = runtime_codes_group_of(s, address);
	group = bpf_map_lookup_elem(&runtime_codes, &key);
	if (!group)
		return 1;
	mark = ((__u32)(address >> 4) + s->event.tgid * 0x85ebca6bU) * 0x9e3779b1U;
	place = mark >> 27; /* RUNTIME_CODES_GROUP */
	mark = ((mark ^ cookie) * 31 + (__u32)s->event.start_time_ns + s->event.exec_id) | 1;
	for (__u32 i = 0; i < RUNTIME_CODES_TRIED; i++) {
		const __u32 next = (place + i) & (RUNTIME_CODES_GROUP - 1);

		if (group->marks[next] == mark)
			return 0;
		if (!group->marks[next]) {
			place = next;
			break;
		}
	}
	if (!runtime_code_send(s, address, cookie))
		group->marks[place & (RUNTIME_CODES_GROUP - 1)] = mark;
	return 0;
}

static __always_inline void tell_codes(void)
{
	for (__u32 i = 0; i < RUNTIME_CODES_LOOKED; i++)
		if (tell_code(i))
			break;
}

#endif
