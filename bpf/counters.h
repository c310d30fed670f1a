/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What the kernel side counts, per CPU: COUNTER(name, "what it means"). The position is the key in
 * the counters map; rows are only ever added. `taken` counts samples after idle and filtered ticks
 * are set apart: taken = records in the ring + ring_full + no_scratch. */
#ifndef BPF_COUNTERS_H
#define BPF_COUNTERS_H

#define KERNEL_COUNTERS(COUNTER)                                                                \
	COUNTER(ticks, "timer ticks seen")                                                      \
	COUNTER(idle, "ticks that found the CPU idle")                                          \
	COUNTER(filtered, "ticks of processes outside --pid")                                   \
	COUNTER(taken, "samples taken")                                                         \
	COUNTER(ring_full, "samples lost because the ring buffer was full")                     \
	COUNTER(no_scratch, "samples lost because per-CPU scratch memory was missing")          \
	COUNTER(copies, "stacks copied for want of unwind rows")                                \
	COUNTER(copies_rate, "stacks not copied because there were too many at once")           \
	COUNTER(copies_ring, "stacks not copied because the ring of copies was full")           \
	COUNTER(waits, "times that a thread began to wait")                                     \
	COUNTER(switch_stacks, "stacks wanted of threads that wait, and of their wakers")       \
	COUNTER(switch_ring_full, "of these those that found the ring full")                    \
	COUNTER(waits_no_user, "stacks without a user frame, which do not count")               \
	COUNTER(waits_too_long, "waits of more than an hour, which do not count")               \
	COUNTER(waited_ns, "nanoseconds waited, interruptibly")                                 \
	COUNTER(waited_disk_ns, "nanoseconds waited, uninterruptibly")                          \
	COUNTER(run_queue_ns, "nanoseconds runnable without a CPU")                             \
	COUNTER(threads_full, "waits of threads beyond the most that are followed")             \
	COUNTER(wakes_ring_full, "ends of waits that found the ring full")                      \
	COUNTER(allocs, "stacks wanted of memory that is taken")                                \
	COUNTER(alloc_ring_full, "of these those that found the ring full")                     \
	COUNTER(alloc_no_scratch, "of these those that found no scratch memory")                \
	COUNTER(alloc_unreadable, "those whose size could not be read, beside them")            \
	COUNTER(frees, "times that memory was given back")                                      \
	COUNTER(frees_ring_full, "of these those that found the ring full")                     \
	COUNTER(faults, "page faults that were counted out for a sample")                       \
	COUNTER(fault_stacks, "stacks wanted of page faults")                                   \
	COUNTER(fault_ring_full, "of these those that found the ring full")                     \
	COUNTER(contexts, "samples with the context of a request")                              \
	COUNTER(contexts_unread, "contexts whose memory was not there")                         \
	COUNTER(waits_escaped, "waits of a tenth of a second or more without a stack")          \
	COUNTER(ends_unseen, "ends of waits that are known only from the next one's beginning") \
	COUNTER(allocs_thinned, "samples of libraries for which others of the same process stand")      \
	COUNTER(alloc_batches, "times that a library told of many at once")                     \
	COUNTER(runtimes, "samples with frames of an interpreter")                              \
	COUNTER(runtimes_cut, "of these those with more of them than are taken")                \
	COUNTER(runtimes_unread, "of these those with more that could not be read")

#define KERNEL_COUNTER_ENUM(name_, meaning_) COUNT_##name_,
enum kernel_counter { KERNEL_COUNTERS(KERNEL_COUNTER_ENUM) KERNEL_COUNTER_COUNT };

#endif
