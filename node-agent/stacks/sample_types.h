/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NODE_AGENT_STACKS_SAMPLE_TYPES_H
#define NODE_AGENT_STACKS_SAMPLE_TYPES_H

/* --profile, in the order of struct profile_sample's types. */
#define SAMPLE_TYPES(TYPE)                                  \
	TYPE(on_cpu, "on-cpu", "nanoseconds")               \
	TYPE(off_cpu, "off-cpu", "nanoseconds")             \
	TYPE(waker, "waker", "nanoseconds")                 \
	TYPE(run_queue, "run-queue", "nanoseconds")         \
	TYPE(still_blocked, "still-blocked", "nanoseconds") \
	TYPE(page_fault, "page-fault", "bytes")             \
	TYPE(mem_alloc, "mem-alloc", "bytes")               \
	TYPE(mem_inuse, "mem-inuse", "bytes")

#define SAMPLE_TYPE_ENUM(id_, name_, unit_) SAMPLE_TYPE_##id_,
enum sample_type { SAMPLE_TYPES(SAMPLE_TYPE_ENUM) SAMPLE_TYPE_COUNT };

#endif
