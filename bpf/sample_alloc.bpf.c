/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Probes where processes take memory and give it back: one stack of each piece that is taken. Loads
 * from 5.10 on. From 6.0 on such a program may be preempted by another of its kind.
 *
 * Go's runtime has already chosen what is sampled: every piece that it remembers for its own heap
 * profile goes through setprofilebucket(p, b), on the thread's system stack, and what it forgets
 * through mProf_Free(b, size): runtime/mprof.go, mheap.go of Go 1.12 to 1.26. The probes lie behind
 * the check for room on the stack, since a function that finds none begins again. Arguments are in
 * registers since 1.17 (cmd/compile/abi-internal.md), on the stack before. */
#define SAMPLE_COPY_BYTES    ALLOC_COPY_BYTES
#define SAMPLE_SOURCE(event) (SOURCE_ALLOCS + (event)->cpu_taken % ALLOC_SLOTS)
#define SAMPLE_RING_FULL     COUNT_alloc_ring_full
#define SAMPLE_SCRATCH_SLOTS ALLOC_SLOTS
#include "bpf/alloc.h"
#include "bpf/alloc_batch.bpf.h"
#include "bpf/alloc_cost.bpf.h"
#include "bpf/sample_stack.bpf.h"

enum { GO_BUCKET_SIZE = 32 }; /* struct bucket: next, allnext, typ, hash, size */

/* weight_log2: of so many only one comes here. Whether the sample is on its way. */
static __always_inline int taken(const user_registers *registers, __u8 source, __u64 key,
				 __u64 bytes, __u32 size, __u32 weight_log2)
{
	__u64 now = bpf_ktime_get_ns();
	struct sample_scratch *s;
	int is_sent;

	count(COUNT_allocs);
	if (ring_is_beyond(source == ALLOC_GO ? 7 : 6)) {
		count(COUNT_alloc_ring_full);
		return 0;
	}
	s = scratch_claim();
	if (!s) {
		count(COUNT_alloc_no_scratch);
		return 0;
	}
	sample_describe(&s->event, EVENT_SAMPLE_ALLOC, 0, now,
			++s->numbered * ALLOC_SLOTS + s->slot);
	s->event.weight_log2 = weight_log2;
	s->event.alloc.key = key;
	s->event.alloc.bytes = bytes;
	s->event.alloc.size = size;
	s->event.alloc.source = source;
	sample_user_stack(s, 0, 0, registers);
	is_sent = !sample_send(s);
	scratch_release(s);
	return is_sent;
}

static __always_inline void given(__u16 source, __u64 key)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid();
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct task_struct *leader = BPF_CORE_READ(task, group_leader);
	struct alloc_free_event event = {
		.type = EVENT_ALLOC_FREE,
		.source = source,
		.size = sizeof(event),
		.time_ns = bpf_ktime_get_ns(),
		.start_time_ns = BPF_CORE_READ(leader, start_boottime),
		.tgid = pid_tgid >> 32,
		.exec_id = (__u32)BPF_CORE_READ(leader, self_exec_id),
		.key = key,
	};
	__u64 flags = BPF_RB_NO_WAKEUP;

	struct alloc_cost *cost = cost_of(event.tgid);

	count(COUNT_frees);
	if (bpf_ringbuf_query(&samples, BPF_RB_AVAIL_DATA) >= wakeup_bytes)
		flags = BPF_RB_FORCE_WAKEUP;
	if (ring_is_beyond(7) || bpf_ringbuf_output(&samples, &event, sizeof(event), flags)) {
		count(COUNT_frees_ring_full);
		if (cost)
			__sync_fetch_and_add(&cost->frees_lost, 1);
	}
	if (cost)
		cost_add(cost, event.time_ns);
}

/* --- Go --- */

static __always_inline void go_take(const user_registers *registers, __u64 bucket)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;
	__u64 began = bpf_ktime_get_ns(), bytes;
	struct alloc_cost *cost;

	if (is_filtered(tgid))
		return;
	if (bpf_probe_read_user(&bytes, sizeof(bytes), (const void *)(bucket + GO_BUCKET_SIZE))) {
		count(COUNT_alloc_unreadable);
		return;
	}
	taken(registers, ALLOC_GO, bucket, bytes, 0, 0);
	cost = cost_of(tgid);
	if (cost)
		cost_add(cost, began);
}

static __always_inline void go_give(__u64 bucket)
{
	if (!is_filtered(bpf_get_current_pid_tgid() >> 32))
		given(ALLOC_GO, bucket);
}

static __always_inline __u64 stack_argument(const user_registers *registers, __u32 number)
{
	__u64 value = 0;

	bpf_probe_read_user(&value, sizeof(value),
			    (const void *)(PT_REGS_SP(registers) + 8 * (1 + number)));
	return value;
}

#if defined(__TARGET_ARCH_x86)
#define GO_FIRST(registers)  ((registers)->rax)
#define GO_SECOND(registers) ((registers)->rbx)
#else
#define GO_FIRST(registers)  ((registers)->regs[0])
#define GO_SECOND(registers) ((registers)->regs[1])
#endif

SEC("uprobe")
int go_taken(user_registers *registers)
{
	go_take(registers, GO_SECOND(registers));
	return 0;
}

SEC("uprobe")
int go_given(user_registers *registers)
{
	go_give(GO_FIRST(registers));
	return 0;
}

SEC("uprobe")
int go_taken_by_stack(user_registers *registers)
{
	go_take(registers, stack_argument(registers, 1));
	return 0;
}

SEC("uprobe")
int go_given_by_stack(user_registers *registers)
{
	go_give(stack_argument(registers, 0));
	return 0;
}

/* --- libraries that sample: their probes' arguments are those of a function --- */

/* Longer, and others ran meanwhile: the program is not charged with them. */
enum { TAKEN_NS_MAX = 20000 };

static __always_inline __u64 began_lately(__u64 began)
{
	const __u64 now = bpf_ktime_get_ns();

	return now - began < TAKEN_NS_MAX ? began : now - TAKEN_NS_MAX;
}

SEC("uprobe")
int library_taken(user_registers *registers)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;
	__u64 began = bpf_ktime_get_ns(), size = PT_REGS_PARM2(registers);
	struct alloc_cost *cost;
	__u32 weight_log2;

	if (is_filtered(tgid))
		return 0;
	cost = cost_of(tgid);
	if (!cost)
		return 0;
	if (stack_rate_allows(&cost->rate, began, alloc_budget_ns, &weight_log2)) {
		taken(registers, ALLOC_LIBRARY, PT_REGS_PARM1(registers), PT_REGS_PARM3(registers),
		      size >> 32 ? 0 : (__u32)size, weight_log2);
		stack_rate_spend(&cost->rate, began_lately(began), alloc_budget_ns,
				 STACK_RATE_LOG2_MAX);
	} else {
		count(COUNT_allocs_thinned);
	}
	cost_add(cost, began);
	return 0;
}

SEC("uprobe")
int library_given(user_registers *registers)
{
	if (!is_filtered(bpf_get_current_pid_tgid() >> 32))
		given(ALLOC_LIBRARY, PT_REGS_PARM1(registers));
	return 0;
}

/* --- C's allocators and CPython's, in windows --- */

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, ALLOC_WINDOWS);
	__type(key, __u32); /* tgid */
	__type(value, struct alloc_window);
} alloc_windows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, ALLOC_WINDOWS);
	__type(key, __u32);
	__type(value, struct alloc_window_counts);
} alloc_counts SEC(".maps");

/* What a thread called last but malloc(): what that jumps to comes with its stack and caller. */
struct last_call {
	__u64 sp, from, at;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, __u64); /* pid_tgid */
	__type(value, struct last_call);
} alloc_calls SEC(".maps");

static __always_inline __u64 called_from(const user_registers *registers)
{
#if defined(__TARGET_ARCH_x86)
	return stack_argument(registers, (__u32)-1);
#else
	return registers->regs[30];
#endif
}

static __always_inline int is_part(const struct alloc_window *window, __u64 from)
{
	for (__u32 i = 0; i < ALLOC_FUNCTIONS; i++) {
		if (!window->functions[i].end)
			break;
		if (from - window->functions[i].start <
		    window->functions[i].end - window->functions[i].start)
			return 1;
	}
	return 0;
}

static __always_inline int is_stepped(const struct alloc_window *window, __u64 at)
{
	for (__u32 i = 0; i < ALLOC_FUNCTIONS; i++)
		if (window->functions[i].probe == at)
			return window->stepped >> i & 1;
	return 0;
}

/* The same piece came by another of the functions, which jumped here. */
static __always_inline int is_continued(const user_registers *registers, __u64 from, int is_malloc)
{
	__u64 thread = bpf_get_current_pid_tgid();
	struct last_call now = {
		.sp = PT_REGS_SP(registers), .from = from, .at = PT_REGS_IP(registers)};
	const struct last_call *last = bpf_map_lookup_elem(&alloc_calls, &thread);

	if (last && last->sp == now.sp && last->from == from && last->at != now.at)
		return 1;
	if (!is_malloc)
		bpf_map_update_elem(&alloc_calls, &thread, &now, BPF_ANY);
	return 0;
}

static __always_inline __u64 register_of(const user_registers *registers, __u32 place)
{
	__u64 value = 0;

	/* not by the pointer itself: the verifier wants offsets that it knows */
	bpf_probe_read_kernel(&value, sizeof(value), (const __u8 *)registers + (place & 0x78));
	return value;
}

/* One piece that comes and goes may take and give back one pool each time. 0: nobody knows which
 * one that is. */
static __always_inline int is_pool_known(struct alloc_window_counts *counts, __u64 pool)
{
	int is_known = 0;

	for (__u32 i = 0; i < ALLOC_POOLS; i++)
		is_known |= counts->pools[i] == pool;
	counts->pools[counts->pool_count++ % ALLOC_POOLS] = pool;
	return is_known;
}

enum hit_kind { HIT_FUNCTION, HIT_MALLOC, HIT_POOL };

static __always_inline void window_look(const user_registers *registers, __u64 bytes,
					enum hit_kind kind, __u32 tgid,
					struct alloc_window_counts *counts)
{
	const struct alloc_window *window = bpf_map_lookup_elem(&alloc_windows, &tgid);
	__u64 from, mean, thinned;

	if (!window)
		return;
	if (window->stepped && is_stepped(window, PT_REGS_IP(registers)))
		__sync_fetch_and_add(&counts->stepped, 1);
	if (!window->is_open)
		return;
	if (kind == HIT_POOL) {
		bytes = window->pool_bytes;
		if (is_pool_known(counts, register_of(registers, window->pool_register)))
			return;
	} else {
		from = called_from(registers);
		if (is_part(window, from) || is_continued(registers, from, kind == HIT_MALLOC))
			return;
	}
	__sync_fetch_and_add(&counts->counted, 1);
	__sync_fetch_and_add(&counts->bytes, bytes);
	thinned = counts->stacks / ALLOC_STACKS_THINNED;
	mean = (__u64)window->mean
	       << (thinned < ALLOC_STACKS_THINNED_MAX ? thinned : ALLOC_STACKS_THINNED_MAX);
	/* One in mean / bytes, which stands for so many. */
	if (bytes < mean) {
		if (mean >> 32 || ((__u64)bpf_get_prandom_u32() * mean) >> 32 >= bytes)
			return;
	} else {
		mean = bytes;
	}
	__sync_fetch_and_add(&counts->stacks, 1);
	if (taken(registers, ALLOC_WINDOW, window->number, mean, 0, 0))
		__sync_fetch_and_add(&counts->sampled, mean);
}

/* Longer, and others ran meanwhile. */
enum { HIT_NS_MAX = 100000 };

static __always_inline int window_hit(const user_registers *registers, __u64 bytes,
				      enum hit_kind kind)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;
	struct alloc_window_counts *counts = bpf_map_lookup_elem(&alloc_counts, &tgid);
	__u64 ns = bpf_ktime_get_ns();

	if (!counts)
		return 0;
	window_look(registers, bytes, kind, tgid, counts);
	ns = bpf_ktime_get_ns() - ns;
	__sync_fetch_and_add(&counts->hits, 1);
	__sync_fetch_and_add(&counts->ns, ns < HIT_NS_MAX ? ns : HIT_NS_MAX);
	return 0;
}

SEC("uprobe")
int malloc_called(user_registers *registers)
{
	return window_hit(registers, PT_REGS_PARM1(registers), HIT_MALLOC);
}

SEC("uprobe")
int calloc_called(user_registers *registers)
{
	return window_hit(registers, PT_REGS_PARM1(registers) * PT_REGS_PARM2(registers),
			  HIT_FUNCTION);
}

SEC("uprobe")
int realloc_called(user_registers *registers) /* and aligned_alloc(), memalign() */
{
	return window_hit(registers, PT_REGS_PARM2(registers), HIT_FUNCTION);
}

SEC("uprobe")
int posix_memalign_called(user_registers *registers)
{
	return window_hit(registers, PT_REGS_PARM3(registers), HIT_FUNCTION);
}

SEC("uprobe")
int reallocarray_called(user_registers *registers)
{
	return window_hit(registers, PT_REGS_PARM2(registers) * PT_REGS_PARM3(registers),
			  HIT_FUNCTION);
}

/* An interpreter takes a pool for its small objects; a register has it. */
SEC("uprobe")
int pool_taken(user_registers *registers)
{
	return window_hit(registers, 0, HIT_POOL);
}

char LICENSE[] SEC("license") = "GPL";
