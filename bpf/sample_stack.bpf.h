/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* One sample of the current thread: who it is, its user stack walked by the rows, and into the
 * ring. Every program of an event source that includes this has a scratch of its own; the other
 * maps are one for all of them, the loader sees to that. A source defines
 *
 *	SAMPLE_COPY_BYTES     most of a stack that may be copied where rows are missing
 *	SAMPLE_SOURCE(event)  enum sample_source
 *	SAMPLE_RING_FULL      enum kernel_counter for samples that found the ring full
 *
 * and may be preempted by no other of its kind on the same CPU, unless it defines
 * SAMPLE_SCRATCH_SLOTS; that and what makes its scratch smaller: bpf/sample_scratch.bpf.h. */
#ifndef BPF_SAMPLE_STACK_BPF_H
#define BPF_SAMPLE_STACK_BPF_H

#include "bpf/hotspot_frames.bpf.h"
#include "bpf/runtime_codes.bpf.h"
#include "bpf/runtime_frames.bpf.h"
#include "bpf/sample_ring.bpf.h"
#include "bpf/sample_scratch.bpf.h"
#include "bpf/stack_copy.bpf.h"
#include "bpf/stack_read.bpf.h"
#include "bpf/stack_walk.bpf.h"
#include "bpf/thread_context.bpf.h"

/* Set by the loader before the verifier sees them: branches on them cost nothing. */
const volatile __u32 max_user_frames = USER_FRAMES_DEFAULT;
const volatile __u32 only_filtered_pids = 0;

/* --pid: process ids whose samples are wanted. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u8);
} filter_pids SEC(".maps");

enum { FRAMES_A_CALL = 8 };

int walk_one_frame(void);
__attribute__((noinline)) int walk_one_frame(void)
{
	struct sample_scratch *s = scratch_find();

	return s ? stack_walk_step(&s->walk, s->frames) : 1;
}

/* One of a JVM's, or of its code that is not known. */
static __always_inline int walk_java(void)
{
	int ended = walk_java_frame();

	return ended == HOTSPOT_UNTOLD ? walk_one_frame() : ended;
}

/* Some frames, since calls cost more than what is done in them. 1: the walk has ended. */
int walk_frames(void);
__attribute__((noinline)) int walk_frames(void)
{
	struct sample_scratch *s = scratch_find();
	struct rule_cache *cache = s ? rule_cache_of(s) : 0;

	if (!cache)
		return 1;
	for (int i = 0; i < FRAMES_A_CALL; i++)
		if (hotspot_has(&s->java, s->walk.ip) ? walk_java()
		    : known_rule_find(s, cache)       ? stack_walk_by_cfa(&s->walk, s->frames, 0)
						      : walk_one_frame())
			return 1;
	return 0;
}

/* The stack from where the walk stopped. 1: it is on its way. */
int copy_stack(void);
__attribute__((noinline)) int copy_stack(void)
{
	struct sample_scratch *s = scratch_find();
	int refused;

	if (!s)
		return 0;
	refused = stack_copy_send(&s->walk,
				  s->event.cpu + ((__u32)SAMPLE_SOURCE(&s->event) << SOURCE_SHIFT),
				  s->event.cpu_taken, s->event.time_ns, SAMPLE_COPY_BYTES);
	count(refused ? refused : COUNT_copies);
	return !refused;
}

/* Who and when; the rest says nothing until the source and the walk do. */
static __always_inline void sample_describe(struct sample_event *event, enum event_type type,
					    __u16 flags, __u64 now, __u64 cpu_taken)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct task_struct *leader = BPF_CORE_READ(task, group_leader);
	const __u64 pid_tgid = bpf_get_current_pid_tgid();

	event->type = type;
	event->flags = flags;
	event->time_ns = now;
	event->start_time_ns = BPF_CORE_READ(leader, start_boottime);
	event->tgid = pid_tgid >> 32;
	event->tid = (__u32)pid_tgid;
	event->exec_id = (__u32)BPF_CORE_READ(leader, self_exec_id);
	event->cpu = bpf_get_smp_processor_id();
	event->cpu_taken = cpu_taken;
	for (int i = 0; i < SAMPLE_OWN_WORDS; i++)
		event->words[i] = 0;
	event->cgroup_id = bpf_get_current_cgroup_id();
	bpf_get_current_comm(event->comm, sizeof(event->comm));
	bpf_core_read(event->process_comm, sizeof(event->process_comm), &leader->comm);
	event->generation = 0;
	event->kernel_count = event->user_count = 0;
	event->result = WALK_complete;
	event->weight_log2 = 0;
	event->runtime_count = 0;
	event->runtime_thread = 0;
	event->java_unloads = 0;
}

/* The kernel part, of so many frames at most. Returns how many there are. */
static __always_inline __u32 sample_kernel_stack(struct sample_scratch *s, void *context,
						 __u32 most)
{
	long bytes = bpf_get_stack(context, s->frames, most * sizeof(__u64), 0);

	if (bytes <= 0)
		return 0;
	if (bytes == most * sizeof(__u64)) /* just enough looks the same as cut */
		s->event.flags |= SAMPLE_KERNEL_CUT;
	return (__u32)bytes / sizeof(__u64);
}

/* An exiting thread gives up its memory, execve() gets a new one while the registers are still
 * those of the program before. Such stacks are whole without a user part. */
static __always_inline int user_stack_is_gone(struct task_struct *task, const user_registers *saved)
{
	__u64 word;

	return !BPF_CORE_READ(task, mm) ||
	       (registers_are_execve(saved) &&
		bpf_probe_read_user(&word, sizeof(word), (const void *)PT_REGS_SP(saved)));
}

/* Where the user part starts, and its leaf: entry_bytes before the registers' instruction. known:
 * as struct stack_walk has it. False: there is nothing to walk, event and walk say why. */
static __always_inline int sample_start(struct sample_scratch *s, const user_registers *registers,
					__u64 known, __u64 entry_bytes)
{
	struct stack_walk *walk = &s->walk;

	walk->known = known;
	registers_copy(walk->registers, registers);
	walk->ip = PT_REGS_IP(registers) - entry_bytes;
	walk->sp = PT_REGS_SP(registers);
	walk->fp = PT_REGS_FP(registers);
	if (stack_walk_begin(walk, s->frames))
		return 0;
	if (registers_are_32bit(registers)) {
		walk->result = WALK_compat_32bit;
		return 0;
	}
	return 1;
}

/* The same from where the thread entered the kernel. */
static __always_inline int sample_saved_start(struct sample_scratch *s)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	user_registers *saved = &s->registers;

	if (BPF_CORE_READ(task, flags) & TASK_IS_KERNEL_THREAD) {
		s->event.flags |= SAMPLE_KERNEL_THREAD;
		return 0;
	}
	if (!task_user_registers(task, saved)) {
		s->walk.result = WALK_no_registers;
		return 0;
	}
	/* Threads the kernel makes inside a process (io_uring's workers) have no user part. */
	if ((!PT_REGS_IP(saved) && !PT_REGS_SP(saved)) || user_stack_is_gone(task, saved)) {
		s->event.flags |= SAMPLE_KERNEL_THREAD;
		return 0;
	}
	return sample_start(s, saved, registers_known(saved), registers_entry_bytes(saved));
}

static __always_inline void sample_walk_init(struct sample_scratch *s, __u32 kernel_count)
{
	struct stack_walk *walk = &s->walk;

	walk->first = kernel_count;
	walk->limit = max_user_frames;
	walk->count = 0;
	walk->is_guessed = 0;
	walk->is_end_guessed = 0;
	walk->result = WALK_complete;
}

/* From the leaf on, so many frames at most as the loader has said. */
static __always_inline void sample_walk(struct sample_scratch *s)
{
	if (walk_by_rows)
		s->event.generation = process_view_begin(&s->process, s->event.tgid,
							 s->event.exec_id, s->event.start_time_ns);
	s->window.bytes = 0;
	hotspot_begin(s);
	for (__u32 i = 0; i < USER_FRAMES_MAX / FRAMES_A_CALL; i++)
		if (walk_frames())
			break;
}

static __always_inline void sample_walk_end(struct sample_scratch *s)
{
	const struct stack_walk *walk = &s->walk;

	if (walk->is_guessed)
		s->event.flags |= SAMPLE_FRAME_GUESSED;
	if (walk->is_end_guessed)
		s->event.flags |= SAMPLE_END_GUESSED;
	if (walk->result == WALK_not_loaded && copy_stack())
		s->event.flags |= SAMPLE_HAS_COPY;
	s->event.result = walk->result;
	s->event.kernel_count = walk->first;
	s->event.user_count = walk->count;
}

/* The user part behind so many kernel frames: of a thread that is in the kernel from where it
 * entered that, of any other from these registers on. */
static __always_inline void sample_user_stack(struct sample_scratch *s, __u32 kernel_count,
					      int is_in_kernel, const user_registers *registers)
{
	sample_walk_init(s, kernel_count);
	if (is_in_kernel ? sample_saved_start(s) : sample_start(s, registers, REGISTERS_ALL, 0))
		sample_walk(s);
	sample_walk_end(s);
	if (!(s->event.flags & SAMPLE_KERNEL_THREAD))
		if (sample_runtime(s))
			tell_codes();
}

/* 0: it is in the ring. */
static __always_inline int sample_send(struct sample_scratch *s)
{
	struct sample_event *event = &s->event;
	__u64 words = sample_event_words(event);
	__u64 flags = BPF_RB_NO_WAKEUP;
	__u64 size, context = 0;

	/* Never true; it shows the verifier that the record ends inside the scratch. */
	if (words > SCRATCH_WORDS)
		return 1;
	if (!(event->flags & SAMPLE_KERNEL_THREAD))
		context = read_thread_context();
	if (context > THREAD_CONTEXT_MAX / sizeof(__u64))
		return 1;
	size = sample_event_bytes(words + context);
	event->size = size;
	/* A copied stack waits for rows to be loaded: the sooner, the fewer follow it. */
	if (event->flags & SAMPLE_HAS_COPY ||
	    bpf_ringbuf_query(&samples, BPF_RB_AVAIL_DATA) >= wakeup_bytes)
		flags = BPF_RB_FORCE_WAKEUP;
	if (bpf_ringbuf_output(&samples, event, size, flags)) {
		count(SAMPLE_RING_FULL);
		return 1;
	}
	return 0;
}

#endif
