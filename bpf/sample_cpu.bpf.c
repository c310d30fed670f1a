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

SEC("perf_event")
int sample_cpu(struct bpf_perf_event_data *tick)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid();
	__u32 tgid = pid_tgid >> 32;
	__u32 kernel_count = 0;
	struct sample_scratch *s;
	__u64 taken;
	int in_kernel;

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
	in_kernel = !registers_are_user(&tick->regs);
	sample_describe(&s->event, EVENT_SAMPLE_CPU, in_kernel ? SAMPLE_IN_KERNEL : 0,
			bpf_ktime_get_ns(), taken);
	s->event.tick.cpu_ring_full = counted(COUNT_ring_full);
	s->event.tick.period_ns = period_ns;
	if (in_kernel) {
		kernel_count = sample_kernel_stack(s, tick, KERNEL_FRAMES_MAX);
		if (!kernel_count)
			s->frames[kernel_count++] = PT_REGS_IP(&tick->regs);
	}
	sample_user_stack(s, kernel_count, in_kernel, &tick->regs);
	sample_send(s);
	if (stop_after_sample)
		bpf_send_signal_thread(SIGNAL_STOP);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
