/* SPDX-License-Identifier: Apache-2.0 */
/* HotSpot's frames of a stack with names: each that was put down in words (bpf/hotspot_frames.h)
 * becomes its calls, those that were inlined one by one, by runtimes/hotspot_codes.h while their
 * process lives. Names are made here as those of Python's are (stacks/runtime_stack.h), and for the
 * same reasons: an nmethod's scopes are some 10 KB, of which a sample needs 50 bytes. */
#ifndef NODE_AGENT_STACKS_JAVA_FRAMES_H
#define NODE_AGENT_STACKS_JAVA_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/events.h"
#include "common/error.h"
#include "node-agent/aggregate/stack_counts.h"
#include "node-agent/processes/process_table.h"
#include "node-agent/runtimes/hotspot_codes.h"
#include "node-agent/runtimes/runtimes.h"

enum { JAVA_CALLS_MAX = 1024 }; /* that are shown of one stack beyond its frames */

struct java_frames;

struct java_frames_counters {      /* cumulative */
	uint64_t frames, nameless; /* of Java; the inlined ones are some of them */
	uint64_t cut;              /* calls that had no room in their stacks */
	struct hotspot_codes_counters codes;
};

/* runtimes: borrowed. */
struct java_frames *java_frames_new(struct runtimes *runtimes, struct error *err);
void java_frames_free(struct java_frames *java);

/* A frame of PLACE_JAVA, until java_frames_name(). */
struct counted_frame java_frame_of(const struct located_frame *located);

/* frames: count of them, in room for `room`; those of java_frame_of() become their calls, innermost
 * first. Native frames of HotSpot's own with one of Java's on their leaf side are marked as the
 * runtime's, and stubs there, which are ways into Java, left out. Returns how many there are now.
 * Texts are lent until the next call. */
size_t java_frames_name(struct java_frames *java, const struct sample_event *sample,
			struct counted_frame *frames, size_t count, size_t room);

/* What Java calls the thread, where the kernel's name is that cut short: read as
 * runtimes/hotspot_thread_names.h says. NULL: not known. Lent until the next call. */
const char *java_frames_thread_name(struct java_frames *java, const struct sample_event *sample,
				    const char *kernel);

/* Of a thread of HotSpot's own, without a frame of Java: "[GC]", "[JIT]" or "[VM]" as its outermost
 * frame, so that the like are together. Returns how many there are then. */
size_t java_frames_group(const struct java_frames *java, const struct sample_event *sample,
			 struct counted_frame *frames, size_t count, size_t room);

void java_frames_counters(const struct java_frames *java, struct java_frames_counters *out);

#endif
