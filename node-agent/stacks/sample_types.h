/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NODE_AGENT_STACKS_SAMPLE_TYPES_H
#define NODE_AGENT_STACKS_SAMPLE_TYPES_H

/* --profile, in the order of struct profile_sample's types: TYPE(id, name, unit, what it wants of the
 * kernel side: enum kernel_wants, the record that is a sample of it at once: enum event_type; 0: its
 * worth is known only later, and a room holds it). */
#define SAMPLE_TYPES(TYPE)                                                                  \
	TYPE(on_cpu, "on-cpu", "nanoseconds", KERNEL_WANTS_TICKS, EVENT_SAMPLE_CPU)         \
	TYPE(off_cpu, "off-cpu", "nanoseconds", KERNEL_WANTS_WAITS, 0)                      \
	TYPE(waker, "waker", "nanoseconds", KERNEL_WANTS_WAKERS, 0)                         \
	TYPE(run_queue, "run-queue", "nanoseconds", KERNEL_WANTS_RUN_QUEUE, 0)              \
	TYPE(still_blocked, "still-blocked", "nanoseconds", KERNEL_WANTS_WAITS, 0)          \
	TYPE(page_fault, "page-fault", "bytes", KERNEL_WANTS_FAULTS, EVENT_SAMPLE_FAULT)    \
	TYPE(mem_alloc, "mem-alloc", "bytes", KERNEL_WANTS_ALLOCS, 0)                       \
	TYPE(mem_inuse, "mem-inuse", "bytes", KERNEL_WANTS_ALLOCS, 0)

/* What stacks may cost: BUDGET(enum kernel_source's name, option, default, what --help says). */
#define STACK_BUDGETS(BUDGET)                                                                    \
	BUDGET(off_cpu, "off-cpu-budget", "0.1%",                                                \
	       "share of the machine that stacks of threads off their CPU may cost, 0.001% to "  \
	       "100%; fewer are taken then, and each stands for more")                           \
	BUDGET(page_fault, "page-fault-budget", "0.05%", "the same of page faults")              \
	BUDGET(alloc, "mem-budget", "1%",                                                        \
	       "share of a program's own CPU time that probes of what memory it takes may cost " \
	       "it, 0.001% to 100%; one that would cost more is cut off. With "                  \
	       "libfarflame-malloc.so loaded it is a share of one CPU: fewer samples are taken " \
	       "then, and each stands for more")

#define SAMPLE_TYPE_ENUM(id_, name_, unit_, wants_, record_) SAMPLE_TYPE_##id_,
enum sample_type { SAMPLE_TYPES(SAMPLE_TYPE_ENUM) SAMPLE_TYPE_COUNT };

#define SAMPLE_TYPE_WANTS(id_, name_, unit_, wants_, record_)  wants_,
#define SAMPLE_TYPE_RECORD(id_, name_, unit_, wants_, record_) record_,
#define SAMPLE_TYPE_LISTED(id_, name_, unit_, wants_, record_) name_ ", "

#endif
