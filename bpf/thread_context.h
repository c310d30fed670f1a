/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What a thread says of the request that it serves, as it comes with its samples, and where the
 * kernel side finds it. Record: OpenTelemetry's thread context, OTEP 4947. Labels: runtime/pprof of
 * Go; internal/runtime/pprof/label and, before 1.24, runtime/map.go, runtime.g and runtime.m. */
#ifndef BPF_THREAD_CONTEXT_H
#define BPF_THREAD_CONTEXT_H

#include <linux/types.h>

#include "bpf/frames.h"

enum {
	THREAD_CONTEXT_HEADER = 28,
	THREAD_RECORD_MAX = 640, /* of a record; what is more is cut */
	THREAD_RECORD_ATTRIBUTES_BYTES = THREAD_RECORD_MAX - THREAD_CONTEXT_HEADER,
	THREAD_LABELS_MAX = 10,       /* of the longest; of shorter ones as many as have room */
	THREAD_LABEL_KEY_MAX = 64,    /* labels with a longer one are left out */
	THREAD_LABEL_VALUE_MAX = 128, /* what is more is cut */
	THREAD_LABEL_MAX = 2 + THREAD_LABEL_KEY_MAX + THREAD_LABEL_VALUE_MAX,
	THREAD_CONTEXT_MAX = 2048,
	THREAD_CONTEXT_PROCESSES = 1024,
	THREAD_CONTEXT_MODULES_MAX = 4096,
};

/* Behind the frames of a sample with SAMPLE_HAS_CONTEXT, up to its end: so much of attributes as
 * there was, then up to 7 bytes that mean nothing. */
struct thread_context {
	__u8 trace_id[16];
	__u8 span_id[8];
	__u8 valid; /* enum thread_context_form, else it is not sent */
	union {
		__u8 trace_flags;
		__u8 cut; /* of LABELS: how many are left out or cut, at least */
	};
	__u16 attributes_bytes; /* as published */
	/* {key, length, bytes}, one behind the other; of LABELS {the key's length, the value's,
	 * their bytes} */
	__u8 attributes[];
};

enum thread_context_form {
	THREAD_CONTEXT_RECORD = 1,
	THREAD_CONTEXT_LABELS = 2, /* without ids */
};

/* How what it says is found: a thread-local pointer to a record, or a goroutine's labels. */
enum thread_context_kind {
	THREAD_CONTEXT_STATIC = 1,  /* at the thread pointer + offset */
	THREAD_CONTEXT_DYNAMIC = 2, /* at offset of the module's block */
	/* g is at the thread pointer + offset */
	THREAD_CONTEXT_GO_LIST = 3,
	THREAD_CONTEXT_GO_MAP = 4,
};

/* One per process that says something; identity as in samples. */
struct thread_context_place {
	__u64 start_time_ns;
	__u32 exec_id;
	__u32 kind; /* enum thread_context_kind */
	__s64 offset;
	__u32 module; /* DYNAMIC: its number in the thread's vector */
	union {
		struct {
			__s16 vector_at;   /* of that vector's address, from the thread pointer */
			__u16 entry_bytes; /* of the vector */
		};
		struct {
			__u16 curg, labels; /* GO: offsets in m and in the goroutine */
		};
	};
};

#if !defined(__bpf__)
/* NULL: none. *bytes: that there are of it, as sample->size has them. */
static inline const struct thread_context *sample_event_context(const struct sample_event *sample,
								__u32 *bytes)
{
	const __u32 at = sample_event_frames_end(sample);

	*bytes = sample->size > at ? sample->size - at : 0;
	return sample->flags & SAMPLE_HAS_CONTEXT && *bytes >= THREAD_CONTEXT_HEADER
		       ? (const struct thread_context *)((const __u8 *)sample + at)
		       : (const struct thread_context *)0;
}
#endif

#endif
