/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* A copy of a code object of CPython's and of what it leads to, as struct runtime_code_event has
 * it. RUNTIME_READ is as in python_walk.bpf.h. */
#ifndef BPF_RUNTIME_COPY_BPF_H
#define BPF_RUNTIME_COPY_BPF_H

#include "bpf/python_walk.bpf.h"

/* Of a str or a bytes, up to `room`. Returns how many bytes are there. */
static __always_inline __u16 runtime_code_read(const struct runtime_layout *layout, int is_text,
					       __u8 *to, __u32 room, __u64 from)
{
	const __u32 last = RUNTIME_CODE_CHUNK - sizeof(__u64);
	__u64 length, bytes;

	if (RUNTIME_READ(to, RUNTIME_CODE_CHUNK, from))
		return 0;
	length = *(const __u64 *)(to + (layout->text_length & last));
	if (length > room)
		length = room;
	if (is_text)
		length *= *(const __u32 *)(to + (layout->text_state & last)) >>
				  (layout->text_kind & 31) &
			  7;
	bytes = layout->text_data + length;
	if (bytes <= RUNTIME_CODE_CHUNK)
		return RUNTIME_CODE_CHUNK;
	bytes -= RUNTIME_CODE_CHUNK;
	if (bytes > room - RUNTIME_CODE_CHUNK)
		bytes = room - RUNTIME_CODE_CHUNK;
	return RUNTIME_READ(to + RUNTIME_CODE_CHUNK, bytes, from + RUNTIME_CODE_CHUNK)
		       ? RUNTIME_CODE_CHUNK
		       : RUNTIME_CODE_CHUNK + bytes;
}

static __always_inline __u64 runtime_code_member(const struct runtime_code_event *event,
						 __u32 offset)
{
	return offset <= RUNTIME_CODE_HEAD - sizeof(__u64)
		       ? *(const __u64 *)(event->head + (offset & ~7U))
		       : 0;
}

/* What is at event->address. */
static __always_inline void runtime_code_fill(const struct runtime_layout *layout,
					      struct runtime_code_event *event)
{
	__u32 head = (__u32)layout->code_from + layout->code_read;

	if (head > RUNTIME_CODE_HEAD)
		head = RUNTIME_CODE_HEAD;
	event->head_bytes = RUNTIME_READ(event->head, head, event->address) ? 0 : head;
	event->name_at = runtime_code_member(event, layout->code_name);
	event->file_at = runtime_code_member(event, layout->code_filename);
	event->lines_at = runtime_code_member(event, layout->code_lines);
	event->name_bytes = runtime_code_read(layout, 1, event->name, sizeof(event->name),
					      event->name_at);
	event->file_bytes = runtime_code_read(layout, 1, event->file, sizeof(event->file),
					      event->file_at);
	event->lines_bytes = runtime_code_read(layout, 0, event->lines, sizeof(event->lines),
					       event->lines_at);
}

#endif
