/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks of waits and wake-ups of kernels from 5.10 to 6.18, written as names, in a made-up kernel
 * that has these functions. */
#include "node-agent/processes/kernel_waits.h"

#include "tests/check.h"
#include "tests/unit/processes/fake_proc.h"

#define BASE 0xffffffff91000000ull

enum { NAMES_MAX = 400, DEPTH_MAX = 32, BYTES = 0x100 };

static const struct {
	const char *stack, *wait;
} waits[] = {
	{"schedule do_nanosleep hrtimer_nanosleep common_nsleep __x64_sys_clock_nanosleep",
	 "sleep"},
	{"__schedule schedule futex_wait_queue __futex_wait futex_wait do_futex", "lock"},
	{"schedule futex_wait_queue_me futex_wait do_futex", "lock"}, /* 5.10 */
	{"schedule rwsem_down_write_slowpath down_write ext4_buffered_write_iter vfs_write",
	 "lock"},
	{"schedule __mutex_lock.constprop.0 pipe_read vfs_read", "lock"},
	{"schedule anon_pipe_read vfs_read ksys_read", "pipe"},
	{"schedule pipe_read new_sync_read vfs_read", "pipe"},
	{"schedule schedule_timeout wait_woken sk_wait_data tcp_recvmsg_locked tcp_recvmsg "
	 "inet_recvmsg sock_recvmsg",
	 "socket"},
	{"schedule schedule_timeout inet_csk_accept inet_accept do_accept", "socket"},
	{"schedule schedule_timeout unix_stream_read_generic unix_stream_recvmsg", "socket"},
	{"schedule schedule_hrtimeout_range ep_poll do_epoll_wait", "poll"},
	{"schedule schedule_hrtimeout_range do_sys_poll", "poll"},
	{"io_schedule folio_wait_bit_common filemap_get_pages filemap_read vfs_read", "disk"},
	{"io_schedule wait_on_page_bit_killable generic_file_buffered_read vfs_read", "disk"},
	{"schedule jbd2_log_wait_commit ext4_sync_file do_fsync", "disk"},
	{"schedule p9_client_rpc v9fs_vfs_lookup walk_component path_openat", "file"},
	{"io_schedule folio_wait_bit_common filemap_fault handle_mm_fault do_user_addr_fault",
	 "page-fault"},
	{"schedule do_wait kernel_wait4", "child"},
	{"schedule wait_for_completion wait_for_vfork_done kernel_clone", "child"},
	{"schedule n_tty_read tty_read vfs_read", "terminal"},
	{"schedule do_sigtimedwait __x64_sys_rt_sigtimedwait", "signal"},
	{"schedule io_cqring_wait __do_sys_io_uring_enter", "io-uring"},
	{"schedule timerfd_read vfs_read", "timer"},
	{"schedule synchronize_rcu do_syscall_64", "other"},
	{"", "other"},
};

static const struct {
	const char *stack;
	enum kernel_waker waker;
	size_t own;
} wakes[] = {
	/* a thread's own doing: a pipe, a futex, a socket by the loopback device */
	{"try_to_wake_up autoremove_wake_function __wake_up_common anon_pipe_write vfs_write",
	 WAKER_THREAD, 5},
	{"try_to_wake_up wake_up_q futex_wake do_futex", WAKER_THREAD, 4},
	{"try_to_wake_up sock_def_readable tcp_v4_rcv process_backlog net_rx_action "
	 "handle_softirqs do_softirq.part.0 __local_bh_enable_ip __dev_queue_xmit "
	 "ip_finish_output2 tcp_write_xmit tcp_sendmsg_locked",
	 WAKER_THREAD, 12},
	/* timers: of high resolution, the wheel's, of a soft interrupt on top of nothing */
	{"try_to_wake_up hrtimer_wakeup __hrtimer_run_queues hrtimer_interrupt "
	 "__sysvec_apic_timer_interrupt sysvec_apic_timer_interrupt "
	 "asm_sysvec_apic_timer_interrupt anon_pipe_write vfs_write",
	 WAKER_TIMER, 7},
	{"try_to_wake_up hrtimer_wakeup __hrtimer_run_queues hrtimer_interrupt "
	 "__sysvec_apic_timer_interrupt asm_call_irq_on_stack sysvec_apic_timer_interrupt "
	 "asm_sysvec_apic_timer_interrupt",
	 WAKER_TIMER, 8}, /* 5.10 */
	{"try_to_wake_up process_timeout call_timer_fn __run_timers.part.0 run_timer_softirq "
	 "handle_softirqs __irq_exit_rcu irq_exit_rcu sysvec_apic_timer_interrupt "
	 "asm_sysvec_apic_timer_interrupt",
	 WAKER_TIMER, 10},
	{"try_to_wake_up process_timeout call_timer_fn run_timer_softirq __do_softirq do_softirq "
	 "__local_bh_enable_ip tcp_sendmsg_locked",
	 WAKER_TIMER, 6},
	{"try_to_wake_up hrtimer_wakeup __hrtimer_run_queues hrtimer_interrupt arch_timer_handler "
	 "gic_handle_irq do_interrupt_handler el0_interrupt el0t_64_irq_handler el0t_64_irq",
	 WAKER_TIMER, 10}, /* arm64 */
	/* the network's soft interrupt, also over one who sends, and in its thread */
	{"try_to_wake_up sock_def_readable net_rx_action handle_softirqs __irq_exit_rcu "
	 "common_interrupt asm_common_interrupt tcp_sendmsg_locked",
	 WAKER_NETWORK, 7},
	{"try_to_wake_up net_rx_action __do_softirq run_ksoftirqd smpboot_thread_fn", WAKER_NETWORK,
	 4},
	{"try_to_wake_up net_rx_action __do_softirq do_softirq __local_bh_enable_ip fpu_save",
	 WAKER_NETWORK, 4},
	/* others; what the interrupted one was about to do is its own affair */
	{"try_to_wake_up blk_mq_end_request nvme_irq common_interrupt asm_common_interrupt "
	 "call_timer_fn run_timer_softirq",
	 WAKER_INTERRUPT, 5},
	{"try_to_wake_up flush_smp_call_function_queue do_idle", WAKER_INTERRUPT, 2},
	{"try_to_wake_up worker_wakes kthread", WAKER_THREAD, 3},
	{"", WAKER_THREAD, 0},
};

static char names[NAMES_MAX][64];
static size_t name_count;
static struct kernel_waits kernel;

/* Return addresses but for the first; a function may end with a call. */
static size_t frames_of(const char *stack, uint64_t *frames)
{
	char text[1024], *rest = text;
	size_t depth = 0;

	snprintf(text, sizeof text, "%s", stack);
	for (char *name; (name = strtok_r(rest, " ", &rest)); depth++) {
		size_t i = 0;

		while (i < name_count && strcmp(names[i], name))
			i++;
		if (i == name_count)
			snprintf(names[name_count++], sizeof *names, "%s", name);
		frames[depth] = BASE + i * BYTES + (depth ? BYTES : 0);
	}
	return depth;
}

static void fake_kernel(bool is_hidden)
{
	uint64_t frames[DEPTH_MAX];
	static char text[1 << 15];
	size_t used;

	for (size_t i = 0; i < sizeof waits / sizeof *waits; i++)
		frames_of(waits[i].stack, frames);
	for (size_t i = 0; i < sizeof wakes / sizeof *wakes; i++)
		frames_of(wakes[i].stack, frames);
	used = (size_t)sprintf(text, "0000000000001000 A do_wait\n");
	for (size_t i = 0; i < name_count; i++)
		used += (size_t)sprintf(text + used, "%016llx %c %s\n",
					is_hidden ? 0ll : (long long)(BASE + i * BYTES),
					i % 2 ? 't' : 'T', names[i]);
	sprintf(text + used, "%016llx T _etext\n%016llx t do_wait\t[module]\n",
		(long long)(BASE + name_count * BYTES), (long long)BASE + 0x1000000);
	fake_file("proc/kallsyms", "%s", text);
	kernel_waits_find(fake_proc, &kernel);
}

static void test_waits(void)
{
	uint64_t frames[DEPTH_MAX];

	for (size_t i = 0; i < sizeof waits / sizeof *waits; i++)
		CHECK_TEXT(kernel_waits_class(&kernel, frames, frames_of(waits[i].stack, frames)),
			   waits[i].wait);
}

static void test_wakes(void)
{
	uint64_t frames[DEPTH_MAX];

	for (size_t i = 0; i < sizeof wakes / sizeof *wakes; i++) {
		size_t own, count = frames_of(wakes[i].stack, frames);

		CHECK_NUMBER(kernel_waits_waker(&kernel, frames, count, &own), wakes[i].waker);
		CHECK_NUMBER(own, wakes[i].own);
	}
	CHECK_TEXT(kernel_waker_name(WAKER_TIMER), "timer");
	CHECK_TEXT(kernel_waker_name(WAKER_THREAD), "");
}

static void test_hidden(void)
{
	uint64_t frames[DEPTH_MAX];
	size_t own, count = frames_of(wakes[3].stack, frames);

	CHECK_NUMBER(kernel.count, 0);
	CHECK_TEXT(kernel_waits_class(&kernel, frames, count), "");
	CHECK_NUMBER(kernel_waits_waker(&kernel, frames, count, &own), WAKER_THREAD);
	CHECK_NUMBER(own, count);
}

/* The functions of the kernel that runs here, where it tells. */
static void test_running_kernel(void)
{
	kernel_waits_find("/proc", &kernel);
	if (!kernel.count) {
		printf("# kallsyms is hidden here\n");
		return;
	}
	printf("# %u functions\n", kernel.count);
	CHECK(kernel.count > 100 && !kernel.dropped);
	for (uint32_t i = 1; i < kernel.count; i++)
		if (kernel.ranges[i].start < kernel.ranges[i - 1].start ||
		    kernel.ranges[i].end <= kernel.ranges[i].start)
			CHECK(!"ranges ascend");
}

int main(void)
{
	fake_make();
	fake_kernel(false);
	test_waits();
	test_wakes();
	fake_kernel(true);
	test_hidden();
	test_running_kernel();
	fake_clean();
	return checks_done();
}
