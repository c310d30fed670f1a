/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Every so many page faults: one stack of who touched the page, into the ring. Loads from 5.10 on.
 * The kernel's software events PAGE_FAULTS_MIN and …_MAJ count what it has resolved, one for each
 * whatever the size of the page; they do not nest on their CPU, and a timer tick that comes in
 * between has a scratch of its own. */
#include "bpf/events.h"
#define SAMPLE_COPY_BYTES    STACK_COPY_BYTES_MAX
#define SAMPLE_SOURCE(event) SOURCE_FAULTS
#define SAMPLE_RING_FULL     COUNT_fault_ring_full
#include "bpf/sample_stack.bpf.h"
#include "bpf/stack_rate.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct stack_rate);
} stack_rates SEC(".maps");

const volatile __u64 budget_ns = 100000; /* for stacks, in STACK_RATE_WINDOW_MS of each CPU */
const volatile __u32 page_bytes = 4096;

static __always_inline int faulted(struct bpf_perf_event_data *fault, int is_major)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32, key = 0, kernel_count = 0;
	struct sample_scratch *s;
	struct stack_rate *rate;
	int in_kernel = !registers_are_user(&fault->regs);
	__u32 weight_log2;
	__u64 now;

	if (only_filtered_pids && !bpf_map_lookup_elem(&filter_pids, &tgid))
		return 0;
	count(COUNT_faults);
	rate = bpf_map_lookup_elem(&stack_rates, &key);
	now = bpf_ktime_get_ns();
	if (!rate || !stack_rate_allows(rate, now, budget_ns, &weight_log2))
		return 0;
	s = scratch_find();
	if (!s)
		return 0;
	sample_describe(&s->event, EVENT_SAMPLE_FAULT, in_kernel ? SAMPLE_IN_KERNEL : 0, now,
			count(COUNT_fault_stacks));
	s->event.fault.bytes = (fault->sample_period * page_bytes) << (weight_log2 & 31);
	s->event.fault.is_major = is_major;
	s->event.weight_log2 = weight_log2;
	if (in_kernel)
		kernel_count = sample_kernel_stack(s, fault, KERNEL_FRAMES_MAX);
	sample_user_stack(s, kernel_count, in_kernel, &fault->regs);
	sample_send(s);
	stack_rate_spend(rate, now, budget_ns, STACK_RATE_LOG2_MAX);
	return 0;
}

SEC("perf_event")
int minor_fault(struct bpf_perf_event_data *fault)
{
	return faulted(fault, 0);
}

SEC("perf_event")
int major_fault(struct bpf_perf_event_data *fault)
{
	return faulted(fault, 1);
}

char LICENSE[] SEC("license") = "GPL";
