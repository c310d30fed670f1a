/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What an interpreter's code objects say of themselves, copied as they are into the ring, in front
 * of the first sample that has them: those of exec() are gone before user space could look. */
#ifndef BPF_RUNTIME_CODES_BPF_H
#define BPF_RUNTIME_CODES_BPF_H

#include "bpf/sample_ring.bpf.h"
#include "bpf/sample_scratch.bpf.h"

enum {
	RUNTIME_CODES_KNOWN = 4096, /* are told once; what takes another's place is told again */
	RUNTIME_CODES_LOOKED = 12,  /* innermost frames, where what lives shortly is … */
	RUNTIME_CODES_TOLD = 3,     /* … and most of one sample: others come with later ones, and
				       are looked for in the process' memory until then */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, RUNTIME_CODES_KNOWN);
	__type(key, __u32);
	__type(value, __u32); /* which one it is that was told of; 0: none */
} runtime_codes SEC(".maps");

/* How many bytes are there. */
static __always_inline __u16 runtime_code_read(__u8 *to, __u32 bytes, __u64 from)
{
	__u32 there = 0;

#pragma unroll
	for (__u32 at = 0; at < bytes; at += RUNTIME_CODE_CHUNK)
		if (there == at && !RUNTIME_READ(to + at, RUNTIME_CODE_CHUNK, from + at))
			there += RUNTIME_CODE_CHUNK;
	return there;
}

static __always_inline __u64 runtime_code_member(__u64 address, __u32 offset)
{
	__u64 at;

	return RUNTIME_READ(&at, sizeof(at), address + offset) ? 0 : at;
}

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
	event->name_at = runtime_code_member(address, layout->code_name);
	event->file_at = runtime_code_member(address, layout->code_filename);
	event->lines_at = runtime_code_member(address, layout->code_lines);
	event->head_bytes = runtime_code_read(event->head, sizeof(event->head), address);
	event->name_bytes = runtime_code_read(event->name, sizeof(event->name), event->name_at);
	event->file_bytes = runtime_code_read(event->file, sizeof(event->file), event->file_at);
	event->lines_bytes = runtime_code_read(event->lines, sizeof(event->lines), event->lines_at);
	bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
	return 0;
}

/* Of the sample's frame with that number, leaf first. 1: it was told of. */
int tell_code(__u32 number);
__attribute__((noinline)) int tell_code(__u32 number)
{
	struct sample_scratch *s = scratch_find();
	__u32 key, mark, *known;
	__u64 at, address;
	__u16 cookie;

	if (!s || number >= RUNTIME_CODES_LOOKED || 2 * number + 1 >= s->runtime.count)
		return 0;
	at = (__u64)s->runtime.first + 2 * number;
	if (at >= SCRATCH_WORDS - 1 || stack_frame_kind(s->frames[at]) != STACK_FRAME_PYTHON)
		return 0;
	address = stack_frame_address(s->frames[at]);
	cookie = runtime_frame_cookie(s->frames[at + 1]);
	if (!address || !cookie)
		return 0;
	mark = ((__u32)(address >> 4) + s->event.tgid * 0x85ebca6bU) * 0x9e3779b1U;
	key = mark >> 20; /* RUNTIME_CODES_KNOWN */
	mark = ((mark ^ cookie) * 31 + (__u32)s->event.start_time_ns + s->event.exec_id) | 1;
	known = bpf_map_lookup_elem(&runtime_codes, &key);
	if (!known || *known == mark || runtime_code_send(s, address, cookie))
		return 0;
	*known = mark;
	return 1;
}

static __always_inline void tell_codes(void)
{
	__u32 told = 0;

	for (__u32 i = 0; i < RUNTIME_CODES_LOOKED && told < RUNTIME_CODES_TOLD; i++)
		told += tell_code(i);
}

#endif
