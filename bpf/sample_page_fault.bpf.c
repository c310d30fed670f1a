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

static __always_inline __u32 fault_kernel_stack(struct sample_scratch *s,
						struct bpf_perf_event_data *fault)
{
	long bytes = bpf_get_stack(fault, s->frames, KERNEL_FRAMES_MAX * sizeof(__u64), 0);

	return bytes > 0 ? (__u32)bytes / sizeof(__u64) : 0;
}

/* False: there is no user part, event and walk say why. */
static __always_inline int fault_user_start(struct sample_scratch *s,
					    struct bpf_perf_event_data *fault,
					    struct task_struct *task)
{
	struct stack_walk *walk = &s->walk;
	int is_32bit;

	if (s->event.flags & SAMPLE_IN_KERNEL)
		return sample_saved_start(s, task, &is_32bit) && sample_leaf(s, is_32bit);
	walk->known = REGISTERS_ALL;
	registers_copy(walk->registers, &fault->regs);
	walk->ip = PT_REGS_IP(&fault->regs);
	walk->sp = PT_REGS_SP(&fault->regs);
	walk->fp = PT_REGS_FP(&fault->regs);
	return sample_leaf(s, registers_are_32bit(&fault->regs));
}

static __always_inline void describe(struct sample_scratch *s, struct bpf_perf_event_data *fault,
				     struct task_struct *task, int is_major, __u32 weight_log2)
{
	s->event.type = EVENT_SAMPLE_FAULT;
	s->event.flags = registers_are_user(&fault->regs) ? 0 : SAMPLE_IN_KERNEL;
	s->event.time_ns = bpf_ktime_get_ns();
	s->event.cpu = bpf_get_smp_processor_id();
	s->event.cpu_taken = count(COUNT_fault_stacks);
	s->event.cpu_ring_full = counted(COUNT_fault_ring_full);
	s->event.value = (fault->sample_period * page_bytes) << (weight_log2 & 31);
	s->event.generation = 0;
	s->event.state = is_major;
	s->event.weight_log2 = weight_log2;
	s->event.is_swept = 0;
	s->event.block = 0;
	sample_who(&s->event, task, bpf_get_current_pid_tgid());
}

static __always_inline int faulted(struct bpf_perf_event_data *fault, int is_major)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32, key = 0, kernel_count = 0;
	struct task_struct *task;
	struct sample_scratch *s;
	struct stack_rate *rate;
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
	task = (struct task_struct *)bpf_get_current_task();
	describe(s, fault, task, is_major, weight_log2);
	if (s->event.flags & SAMPLE_IN_KERNEL)
		kernel_count = fault_kernel_stack(s, fault);
	sample_walk_init(s, kernel_count);
	if (fault_user_start(s, fault, task))
		sample_walk(s);
	sample_walk_end(s);
	sample_send(s, kernel_count);
	stack_rate_spend(rate, now, budget_ns);
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
