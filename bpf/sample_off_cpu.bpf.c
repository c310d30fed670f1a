/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Threads that leave their CPU: how long, and for some of them the stack at which they left. Loads
 * from 5.10 on. These programs run with interrupts off, so none of them nests on its CPU.
 *
 * A stack is walked as its thread leaves, in the thread's own context, under the run queue's lock;
 * how long it took is said when it comes back, wherever that is. */
#define SAMPLE_COPY_BYTES    SWITCH_COPY_BYTES
#define SAMPLE_SOURCE(event) SOURCE_SWITCHES
#define SAMPLE_RING_FULL     COUNT_switch_ring_full
#include "bpf/off_cpu.h"
#define STACK_FRAMES_ROOM         (SWITCH_KERNEL_FRAMES_MAX + SWITCH_FRAMES_MAX)
#define SAMPLE_RUNTIME_FRAMES_MAX SWITCH_RUNTIME_FRAMES_MAX
#include "bpf/sample_stack.bpf.h"
#include "bpf/switch_rate.bpf.h"

const volatile __u32 has_prev_state = 0; /* the tracepoint's fourth argument, from 5.18 on */
const volatile __u32 take_run_queue = 0; /* blocks of runnable threads count too */
const volatile __u32 take_wakers = 0;    /* stacks of who wakes */
const volatile __u64 swept_after_ns = SWITCH_SWEEP_MS * 1000000ULL;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32); /* tid */
	__type(value, struct thread_switch);
} threads SEC(".maps");

/* Threads that wait without a stack, or did a while ago: each once. Sleepers whose stack is known
 * are not in it, so an idle host's looks find nothing. */
struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, 4096);
	__uint(key_size, 0);
	__uint(value_size, sizeof(__u32)); /* tid */
} unsampled SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct switch_look);
} looks SEC(".maps");

struct task_struct___before_5_14 {
	long state;
} __attribute__((preserve_access_index));

enum {
	TASK_STATE_WAITS = 3,       /* TASK_INTERRUPTIBLE, TASK_UNINTERRUPTIBLE */
	TASK_STATE_NO_LOAD = 0x400, /* idles: not a wait */
	/* PF_KTHREAD, PF_IO_WORKER, PF_USER_WORKER, PF_EXITING: no code of the process' runs */
	TASK_IS_NO_PROGRAM = 0x00200000 | 0x10 | 0x4000 | 0x4,
};

static __always_inline __u32 state_of(struct task_struct *task)
{
	struct task_struct___before_5_14 *before = (void *)task;

	if (bpf_core_field_exists(task->__state))
		return BPF_CORE_READ(task, __state);
	return (__u32)BPF_CORE_READ(before, state);
}

/* -1: it is neither waiting nor runnable, or the latter and nobody asks. */
static __always_inline int switch_state_of(int is_preempted, __u32 state)
{
	if (is_preempted || !state)
		return take_run_queue ? SWITCH_RUNNABLE : -1;
	if (!(state & TASK_STATE_WAITS) || state & TASK_STATE_NO_LOAD)
		return -1;
	return state & 2 ? SWITCH_UNINTERRUPTIBLE : SWITCH_INTERRUPTIBLE;
}

/* --- stacks --- */

/* Of the current thread; tid: whose block it is of. */
static __always_inline void take_stack(struct sample_scratch *s, void *context,
				       enum event_type type, const struct thread_switch *thread,
				       __u32 tid, __u64 now)
{
	sample_describe(&s->event, type, SAMPLE_IN_KERNEL, now, count(COUNT_switch_stacks));
	s->event.wait.since_ns = now;
	s->event.wait.tid = tid;
	s->event.wait.state = thread->state;
	s->event.weight_log2 = thread->weight_log2;
	s->event.wait.block = thread->block;
	sample_user_stack(s, sample_kernel_stack(s, context, SWITCH_KERNEL_FRAMES_MAX), 1, 0);
}

/* SENT_SHORT: the stack waits for rows and could not be copied; a sweep may have all of it. */
enum { SENT, SENT_SHORT, SENT_NOT, SENT_NEVER };

static __always_inline int is_cut_short(const struct sample_event *event)
{
	return event->result == WALK_not_loaded && !(event->flags & SAMPLE_HAS_COPY);
}

static __always_inline int send_wait(void *context, const struct thread_switch *thread, __u64 now,
				     __u32 tid)
{
	struct sample_scratch *s = scratch_find();

	if (!s)
		return SENT_NOT;
	take_stack(s, context, EVENT_SAMPLE_SWITCH, thread, tid, now);
	if (!s->walk.count) {
		count(COUNT_waits_no_user);
		return SENT_NEVER;
	}
	s->event.wait.futex = registers_futex(&s->registers);
	if (sample_send(s))
		return SENT_NOT;
	return is_cut_short(&s->event) ? SENT_SHORT : SENT;
}

/* --- switches --- */

static const struct thread_switch no_switches = {.usual = {USUAL_FIRST, USUAL_FIRST}};

static __always_inline struct thread_switch *thread_of(__u32 tid, __u32 tgid)
{
	struct thread_switch *thread = bpf_map_lookup_elem(&threads, &tid);

	if (thread && thread->tgid == tgid)
		return thread;
	if (thread) /* whose number that was before */
		bpf_map_delete_elem(&threads, &tid);
	if (bpf_map_update_elem(&threads, &tid, &no_switches, BPF_NOEXIST))
		count(COUNT_threads_full);
	thread = bpf_map_lookup_elem(&threads, &tid);
	if (thread)
		thread->tgid = tgid;
	return thread;
}

/* Reserved, not put together here: the stack under the walk is short on 5.10. */
static __always_inline void send_switch_in(const struct thread_switch *thread, __u32 tid, __u64 now)
{
	struct switch_in_event *event = bpf_ringbuf_reserve(&samples, sizeof(*event), 0);

	if (!event) {
		count(COUNT_wakes_ring_full);
		return;
	}
	event->type = EVENT_SWITCH_IN;
	event->state = thread->state;
	event->weight_log2 = thread->weight_log2;
	event->size = sizeof(*event);
	event->time_ns = now;
	event->since_ns = thread->since_ns;
	event->runnable_ns = thread->runnable_ns;
	event->tid = tid;
	event->block = thread->block;
	event->tgid = thread->tgid;
	event->cpu = bpf_get_smp_processor_id();
	bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
}

static __always_inline void count_waited(struct thread_switch *thread, __u64 waited)
{
	if (waited > SWITCH_WAIT_LIMIT_NS) {
		count(COUNT_waits_too_long);
		return;
	}
	if (thread->state == SWITCH_INTERRUPTIBLE) {
		thread->waited_ns[0] += waited;
		count_more(COUNT_waited_ns, waited);
	} else {
		thread->waited_ns[1] += waited;
		count_more(COUNT_waited_disk_ns, waited);
	}
	if (waited >= SWITCH_LONG_MS * 1000000ULL && thread->done != thread->block)
		count(COUNT_waits_escaped);
}

static __always_inline void block_ends(struct thread_switch *thread, __u32 tid, __u64 now)
{
	__u64 waited = now - thread->since_ns;

	usual_add(&thread->usual[thread->state == SWITCH_RUNNABLE], thread->block, waited);
	if (thread->state != SWITCH_RUNNABLE)
		count_waited(thread, waited);
	if (take_run_queue && thread->runnable_ns)
		count_more(COUNT_run_queue_ns, now - thread->runnable_ns);
	if (thread->taken == thread->block)
		send_switch_in(thread, tid, now);
	thread->since_ns = 0;
}

static __always_inline void switched_in(__u32 tid, __u64 now)
{
	struct thread_switch *thread = bpf_map_lookup_elem(&threads, &tid);

	if (thread && thread->since_ns)
		block_ends(thread, tid, now);
}

/* A sweep has to find it should it wait for long. Twice is no harm. */
static __always_inline void queue(struct thread_switch *thread, __u32 tid)
{
	__u32 key = 0;
	struct switch_look *look;

	thread->is_queued = 1;
	if (!bpf_map_push_elem(&unsampled, &tid, 0))
		return;
	thread->is_queued = 0;
	count(COUNT_threads_full);
	look = bpf_map_lookup_elem(&looks, &key);
	if (look)
		look->lost = 1;
}

/* Ends, and the timer's samples, shall find room whatever happens. */
static __always_inline int ring_is_filling(void)
{
	if (bpf_ringbuf_query(&samples, BPF_RB_AVAIL_DATA) < 3 * (__u64)wakeup_bytes)
		return 0;
	count(COUNT_switch_stacks);
	count(COUNT_switch_ring_full);
	return 1;
}

/* True: chance has chosen it, and its whole stack is on its way, or it has none. */
static __always_inline int take_wait(void *context, struct thread_switch *thread,
				     struct stack_rate *rate, __u64 now, __u32 tid)
{
	int sent;

	if (!rate_allows(rate, thread->usual[thread->state == SWITCH_RUNNABLE], now,
			 &thread->weight_log2))
		return 0;
	if (ring_is_filling()) {
		rate_back_off(rate, now);
		return 0;
	}
	thread->taken = thread->block; /* at once: it may be woken meanwhile */
	sent = send_wait(context, thread, now, tid);
	if (sent > SENT_SHORT)
		thread->taken = thread->block - 1;
	stack_rate_spend(rate, now, budget_ns, LEVEL_MAX);
	return sent == SENT || sent == SENT_NEVER;
}

static __always_inline void switched_out(void *context, int state, __u64 now)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid();
	__u32 tgid = pid_tgid >> 32, key = 0;
	struct thread_switch *thread;
	struct stack_rate *rate;

	if (only_filtered_pids && !bpf_map_lookup_elem(&filter_pids, &tgid))
		return;
	thread = thread_of((__u32)pid_tgid, tgid);
	rate = bpf_map_lookup_elem(&switch_rates, &key);
	if (!thread || !rate)
		return;
	if (state != SWITCH_RUNNABLE)
		count(COUNT_waits);
	if (thread->since_ns) { /* nobody was told that it came back: seen on 6.18 */
		count(COUNT_ends_unseen);
		block_ends(thread, (__u32)pid_tgid, now);
	}
	thread->state = state;
	thread->runnable_ns = state == SWITCH_RUNNABLE ? now : 0;
	thread->block++;
	thread->since_ns = now;
	if (take_wait(context, thread, rate, now, (__u32)pid_tgid))
		thread->done = thread->block;
	else if (state != SWITCH_RUNNABLE && !thread->is_queued)
		queue(thread, (__u32)pid_tgid);
}

/* prev_flags: of a thread that has no program, nothing counts. */
static __always_inline int switched(void *context, int is_preempted, __u32 state, __u32 prev_tid,
				    __u32 prev_flags, __u32 next_tid)
{
	__u64 now = bpf_ktime_get_ns();
	int how = switch_state_of(is_preempted, state);

	if (next_tid)
		switched_in(next_tid, now);
	if (how >= 0 && prev_tid && !(prev_flags & TASK_IS_NO_PROGRAM))
		switched_out(context, how, now);
	return 0;
}

SEC("tp_btf/sched_switch")
int switch_typed(__u64 *context)
{
	struct task_struct *prev = (struct task_struct *)context[1];
	struct task_struct *next = (struct task_struct *)context[2];
	__u32 state = has_prev_state ? (__u32)context[3] : state_of(prev);

	return switched(context, context[0] & 1, state, prev->pid, prev->flags, next->pid);
}

/* Where there is no BPF trampoline. */
SEC("raw_tp/sched_switch")
int switch_raw(struct bpf_raw_tracepoint_args *context)
{
	struct task_struct *prev = (struct task_struct *)context->args[1];
	struct task_struct *next = (struct task_struct *)context->args[2];
	__u32 state = has_prev_state ? (__u32)context->args[3] : state_of(prev);

	return switched(context, context->args[0] & 1, state, BPF_CORE_READ(prev, pid),
			BPF_CORE_READ(prev, flags), BPF_CORE_READ(next, pid));
}

/* --- wake-ups --- */

/* Whoever wakes a thread is the current one, or an interrupt on top of it: the kernel part of its
 * stack says which. */
SEC("raw_tp/sched_waking")
int thread_waking(struct bpf_raw_tracepoint_args *context)
{
	struct task_struct *task = (struct task_struct *)context->args[0];
	__u32 tid = BPF_CORE_READ(task, pid), key = 0;
	struct thread_switch *thread;
	struct sample_scratch *s;
	struct stack_rate *rate;
	__u64 now;

	thread = bpf_map_lookup_elem(&threads, &tid);
	if (!thread || !thread->since_ns || thread->runnable_ns ||
	    tid == (__u32)bpf_get_current_pid_tgid())
		return 0;
	now = bpf_ktime_get_ns();
	thread->runnable_ns = now;
	if (!take_wakers || thread->taken != thread->block || ring_is_filling())
		return 0;
	s = scratch_find();
	rate = bpf_map_lookup_elem(&switch_rates, &key);
	if (!s || !rate)
		return 0;
	take_stack(s, context, EVENT_SAMPLE_WAKER, thread, tid, now);
	sample_send(s);
	stack_rate_spend(rate, now, budget_ns, LEVEL_MAX);
	return 0;
}

/* A thread's number may be another's soon. */
SEC("raw_tp/sched_process_exit")
int thread_exit(struct bpf_raw_tracepoint_args *context)
{
	__u32 tid = (__u32)bpf_get_current_pid_tgid();

	(void)context;
	bpf_map_delete_elem(&threads, &tid);
	return 0;
}

/* A thread that is not the first and calls execve() becomes it, and its own number goes with the
 * task that had been the first: nobody exits by that number, whatever becomes of the execve(). */
SEC("raw_tp/sched_process_free")
int thread_free(struct bpf_raw_tracepoint_args *context)
{
	struct task_struct *task = (struct task_struct *)context->args[0];
	__u32 tid = BPF_CORE_READ(task, pid);
	const struct thread_switch *thread = bpf_map_lookup_elem(&threads, &tid);

	if (thread && thread->tgid == BPF_CORE_READ(task, tgid))
		bpf_map_delete_elem(&threads, &tid);
	return 0;
}

/* --- looks: is there anything to sweep? --- */

enum { LOOK_NEXT, LOOK_END };

/* The first thread of the queue: it leaves it if it runs, or its stack is known. */
int look_at_one(void);
__attribute__((noinline)) int look_at_one(void)
{
	__u32 key = 0, tid = 0;
	struct switch_look *look = bpf_map_lookup_elem(&looks, &key);
	struct thread_switch *thread;
	__u64 since_ns;

	if (!look || bpf_map_pop_elem(&unsampled, &tid))
		return LOOK_END;
	thread = bpf_map_lookup_elem(&threads, &tid);
	if (!thread)
		return LOOK_NEXT;
	thread->is_queued = 0;
	since_ns = thread->since_ns;
	if (!since_ns || thread->state == SWITCH_RUNNABLE || thread->done == thread->block)
		return LOOK_NEXT;
	if (bpf_ktime_get_ns() - since_ns >= swept_after_ns) {
		if (look->due < SWITCH_DUE_MAX)
			look->tids[look->due & (SWITCH_DUE_MAX - 1)] = tid;
		look->due++;
	}
	queue(thread, tid);
	if (thread->looked == look->number)
		return LOOK_END; /* once around */
	thread->looked = look->number;
	return LOOK_NEXT;
}

/* Called by user space. */
SEC("raw_tp/look")
int look(void *context)
{
	__u32 key = 0, said = SWITCH_LOOK_MORE;
	struct switch_look *look = bpf_map_lookup_elem(&looks, &key);

	(void)context;
	if (!look)
		return SWITCH_LOOK_LOST;
	if (look->is_over) {
		look->is_over = 0;
		look->due = 0;
		look->number++;
	}
	for (__u32 i = 0; i < SWITCH_LOOK_MAX; i++) {
		if (look_at_one() == LOOK_END) {
			look->is_over = 1;
			said = 0;
			break;
		}
	}
	said |= look->due ? SWITCH_LOOK_DUE : 0;
	said |= look->lost ? SWITCH_LOOK_LOST : 0;
	look->lost = 0;
	return said;
}

/* --- sweeps --- */

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
} __attribute__((preserve_access_index));

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
} __attribute__((preserve_access_index));

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct switch_sweep_record);
} sweeps SEC(".maps");

/* When the thread came to its CPU the last time, by the scheduler's clock: nearly when it left it,
 * for one that has waited for long. The reader itself came to its own just now. */
static __always_inline __u64 waits_since(struct task_struct *task, __u64 now)
{
	struct task_struct *reader = (struct task_struct *)bpf_get_current_task();
	__u64 then, here;

	if (!bpf_core_field_exists(task->sched_info))
		return now;
	then = BPF_CORE_READ(task, sched_info.last_arrival);
	here = BPF_CORE_READ(reader, sched_info.last_arrival);
	return then && then < here && here - then < now ? now - (here - then) : now;
}

/* One that had left its CPU before it could be followed. */
static __always_inline void sweep_stranger(struct task_struct *task, __u32 tid, __u64 now)
{
	int state = switch_state_of(0, state_of(task));
	struct thread_switch new = {.block = 1,
				    .tgid = task->tgid,
				    .state = state,
				    .is_queued = 1,
				    .usual = {USUAL_FIRST, USUAL_FIRST}};

	if (state <= SWITCH_RUNNABLE || task->flags & TASK_IS_NO_PROGRAM ||
	    (only_filtered_pids && !bpf_map_lookup_elem(&filter_pids, &new.tgid)))
		return;
	new.since_ns = waits_since(task, now);
	if (bpf_map_update_elem(&threads, &tid, &new, BPF_NOEXIST) ||
	    bpf_map_push_elem(&unsampled, &tid, 0))
		count(COUNT_threads_full);
}

static __always_inline int sweep_registers(struct task_struct *task,
					   struct switch_sweep_record *record)
{
	user_registers saved;
	const void *from;

	if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs)) /* 5.15 */
		from = (const void *)bpf_task_pt_regs(task);
	else
		from = task->stack + saved_registers_at();
	if (bpf_probe_read_kernel(&saved, sizeof(saved), from) ||
	    (!PT_REGS_IP(&saved) && !PT_REGS_SP(&saved)))
		return 0;
	record->is_32bit = registers_are_32bit(&saved);
	record->known = registers_known(&saved);
	record->ip = PT_REGS_IP(&saved);
	record->sp = PT_REGS_SP(&saved);
	record->fp = PT_REGS_FP(&saved);
	record->is_system_call = registers_are_system_call(&saved);
	record->futex = registers_futex(&saved);
	registers_copy(record->registers, &saved);
	return 1;
}

/* Threads that have been waiting for long without a stack. */
SEC("iter/task")
int sweep(struct bpf_iter__task *context)
{
	struct task_struct *task = context->task, *leader;
	struct switch_sweep_record *record;
	struct thread_switch *thread;
	__u64 now = bpf_ktime_get_ns();
	__u32 tid, key = 0;
	long bytes;

	if (!task)
		return 0;
	tid = task->pid;
	thread = bpf_map_lookup_elem(&threads, &tid);
	if (!thread) {
		sweep_stranger(task, tid, now);
		return 0;
	}
	record = bpf_map_lookup_elem(&sweeps, &key);
	if (!record)
		return 0;
	record->block = thread->block;
	record->since_ns = thread->since_ns;
	record->state = thread->state;
	if (!record->since_ns || record->state == SWITCH_RUNNABLE ||
	    thread->done == record->block || now - record->since_ns < swept_after_ns)
		return 0;
	if (!sweep_registers(task, record)) {
		thread->done = record->block;
		return 0;
	}
	leader = task->group_leader;
	record->tid = tid;
	record->tgid = task->tgid;
	record->start_time_ns = leader->start_boottime;
	record->exec_id = (__u32)leader->self_exec_id;
	record->tls = thread_pointer_of(task);
	bpf_core_read(record->comm, sizeof(record->comm), &task->comm);
	bpf_core_read(record->process_comm, sizeof(record->process_comm), &leader->comm);
	bytes = bpf_get_task_stack(task, record->kernel_frames, sizeof(record->kernel_frames), 0);
	record->kernel_count = bytes > 0 ? (__u32)bytes / sizeof(__u64) : 0;
	if (!bpf_seq_write(context->meta->seq, record, sizeof(*record)))
		thread->taken = thread->done = record->block;
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
