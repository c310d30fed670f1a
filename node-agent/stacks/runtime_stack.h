/* SPDX-License-Identifier: Apache-2.0 */
/* A sample's native frames and what its interpreter had to say, as one stack of frames with names:
 * runtimes/frame_merge.h joins them, runtimes/python_codes.h names them while their process lives.
 *
 * Names are made here rather than at the server: a code object with its table is 100 to 5000 bytes
 * that would go over the wire and be kept for each host and process, and reading one costs some
 * 100 µs, once. What is sent is OTLP's own: a location with function, file and line. */
#ifndef NODE_AGENT_STACKS_RUNTIME_STACK_H
#define NODE_AGENT_STACKS_RUNTIME_STACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/events.h"
#include "common/error.h"
#include "node-agent/aggregate/stack_counts.h"
#include "node-agent/processes/process_table.h"
#include "node-agent/runtimes/frame_merge.h"
#include "node-agent/runtimes/python_codes.h"
#include "node-agent/runtimes/runtimes.h"

struct runtime_stacks;

struct runtime_stacks_counters {      /* cumulative */
	uint64_t merged[MERGE_COUNT]; /* stacks */
	uint64_t frames, nameless;    /* of the language */
	struct python_codes_counters codes;
};

/* runtimes: borrowed. */
struct runtime_stacks *runtime_stacks_new(struct runtimes *runtimes, struct error *err);
void runtime_stacks_free(struct runtime_stacks *stacks);

/* What its program calls the sample's thread, if that is none of the first thread's, which has the
 * process' name: read as python_thread_names.h says. NULL: not known. Lent until the next call. */
const char *runtime_stacks_thread_name(struct runtime_stacks *stacks,
				       const struct sample_event *sample);

/* Whether the thread waits for its interpreter's lock: then runtime_lock_frame() stands for what
 * the C library and the kernel do for that. */
bool runtime_stacks_is_lock(const struct runtime_stacks *stacks, const struct sample_event *sample);
struct counted_frame runtime_lock_frame(void);
/* How many leaves are the C library's, below the interpreter's own; 0 where there are none of it.
 */
size_t runtime_stacks_lock_leaves(const struct runtime_stacks *stacks,
				  const struct located_frame *located, size_t count);

struct runtime_join {
	const struct sample_event *sample;
	const struct located_frame *located; /* where the native frames are */
	/* They reach the thread's start; or, then, that of what has a stack of its own. */
	bool is_whole;
	bool is_for_lock; /* the frame on their leaf side is the lock's */
};

/* frames: count native ones; becomes the joined stack, of at most `room`. Returns how many there
 * are now. Texts are lent until the next call. */
size_t runtime_stacks_join(struct runtime_stacks *stacks, struct runtime_join *join,
			   struct counted_frame *frames, size_t count, size_t room,
			   enum frame_merge_result *result);

/* A code object that a sample to come has, as it was then. */
void runtime_stacks_tell(struct runtime_stacks *stacks, const struct runtime_code_event *told);

/* Of a sample that is joined later: its code objects are read now, since its process may end. */
void runtime_stacks_see(struct runtime_stacks *stacks, const struct sample_event *sample);

void runtime_stacks_counters(const struct runtime_stacks *stacks,
			     struct runtime_stacks_counters *out);

#endif
