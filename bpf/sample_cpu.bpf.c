/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* On every timer tick: one stack of whatever this CPU runs, into the ring. Loads from 5.10 on. The
 * timer's interrupt does not nest on its CPU. */
#define SAMPLE_COPY_BYTES    STACK_COPY_BYTES_MAX
#define SAMPLE_SOURCE(event) SOURCE_TICKS
#define SAMPLE_RING_FULL     COUNT_ring_full
#include "bpf/sample_stack.bpf.h"

const volatile __u64 period_ns = 1000000000 / 19;
const volatile __u32 take_ticks = 1;        /* 0: nobody wants them, all count as filtered */
const volatile __u32 stop_after_sample = 0; /* a debugger is to find the thread where it was */

/* Returns the number of kernel frames. */
static __always_inline __u32 sample_kernel_stack(struct sample_scratch *s,
						 struct bpf_perf_event_data *tick)
{
	long bytes = bpf_get_stack(tick, s->frames, KERNEL_FRAMES_MAX * sizeof(__u64), 0);

	if (bytes <= 0) {
		s->frames[0] = PT_REGS_IP(&tick->regs);
		return 1;
	}
	if (bytes == KERNEL_FRAMES_MAX * sizeof(__u64)) /* just enough looks the same as cut */
		s->event.flags |= SAMPLE_KERNEL_CUT;
	return (__u32)bytes / sizeof(__u64);
}

/* Where the user part starts: what its registers were. False: there is none, event and walk say
 * why. */
static __always_inline int sample_user_start(struct sample_scratch *s,
					     struct bpf_perf_event_data *tick,
					     struct task_struct *task)
{
	struct stack_walk *walk = &s->walk;
	int is_32bit;

	if (s->event.flags & SAMPLE_IN_KERNEL) {
		if (!sample_saved_start(s, task, &is_32bit))
			return 0;
	} else {
		walk->known = REGISTERS_ALL;
		registers_copy(walk->registers, &tick->regs);
		walk->ip = PT_REGS_IP(&tick->regs);
		walk->sp = PT_REGS_SP(&tick->regs);
		walk->fp = PT_REGS_FP(&tick->regs);
		is_32bit = registers_are_32bit(&tick->regs);
	}
	return sample_leaf(s, is_32bit);
}

static __always_inline void sample_user_stack(struct sample_scratch *s,
					      struct bpf_perf_event_data *tick,
					      struct task_struct *task, __u32 kernel_count)
{
	sample_walk_init(s, kernel_count);
	if (sample_user_start(s, tick, task))
		sample_walk(s);
	sample_walk_end(s);
}

SEC("perf_event")
int sample_cpu(struct bpf_perf_event_data *tick)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid();
	__u32 tgid = pid_tgid >> 32;
	struct task_struct *task;
	struct sample_scratch *s;
	__u32 kernel_count = 0;
	__u64 taken;

	count(COUNT_ticks);
	if ((__u32)pid_tgid == 0) { /* the idle task; interrupts it serves count as idle too */
		count(COUNT_idle);
		return 0;
	}
	if (!take_ticks || (only_filtered_pids && !bpf_map_lookup_elem(&filter_pids, &tgid))) {
		count(COUNT_filtered);
		return 0;
	}
	taken = count(COUNT_taken);
	s = scratch_find();
	if (!s) {
		count(COUNT_no_scratch);
		return 0;
	}
	task = (struct task_struct *)bpf_get_current_task();
	s->event.type = EVENT_SAMPLE_CPU;
	s->event.flags = 0;
	s->event.time_ns = bpf_ktime_get_ns();
	s->event.cpu = bpf_get_smp_processor_id();
	s->event.cpu_taken = taken;
	s->event.cpu_ring_full = counted(COUNT_ring_full);
	s->event.value = period_ns;
	s->event.generation = 0;
	s->event.state = 0;
	s->event.weight_log2 = 0;
	s->event.is_swept = 0;
	s->event.block = 0;
	sample_who(&s->event, task, pid_tgid);
	if (!registers_are_user(&tick->regs)) {
		s->event.flags |= SAMPLE_IN_KERNEL;
		kernel_count = sample_kernel_stack(s, tick);
	}
	sample_user_stack(s, tick, task, kernel_count);
	sample_send(s, kernel_count);
	if (stop_after_sample)
		bpf_send_signal_thread(SIGNAL_STOP);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
