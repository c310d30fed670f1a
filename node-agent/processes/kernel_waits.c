/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/processes/kernel_waits.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "node-agent/processes/kernel_symbols.h"

/* What a function says of a wake-up. */
enum {
	MARK_NONE,
	MARK_TIMER,   /* it calls who waits for a time */
	MARK_NETWORK, /* it takes what came by the network */
	MARK_SEND,    /* a thread sends: what the network's soft interrupt takes then is that */
	MARK_SOFTIRQ,
	MARK_INTERRUPT, /* it is the way of an interrupt into the kernel */
};

enum { PATTERNS_MAX = 300, NAME_ROOM = 40 };

/* Names of functions, a star for the rest of one. Compilers append a dot and more: that is cut. */
struct group {
	int meaning;
	const char *names;
};

static const struct group waits_by_name[] = {
	{WAIT_lock,
	 "futex_* __futex_* do_futex mutex_lock* __mutex_lock* __ww_mutex_* rwsem_* __down_* "
	 "down down_* rt_mutex_* __rt_mutex_* rtlock_* percpu_down_* __percpu_down_* "
	 "percpu_rwsem_* do_semtimedop __do_semtimedop flock_lock_inode_wait "
	 "locks_lock_inode_wait do_lock_file_wait fcntl_setlk"},
	{WAIT_sleep, "do_nanosleep hrtimer_nanosleep common_nsleep* msleep*"},
	{WAIT_timer, "timerfd_read*"},
	{WAIT_poll,
	 "ep_poll do_epoll_wait do_select core_sys_select do_poll do_sys_poll eventfd_read "
	 "inotify_read fanotify_read"},
	{WAIT_socket,
	 "sk_wait_data sk_stream_wait_* inet_csk_accept inet_csk_wait_for_connect "
	 "__skb_wait_for_more_packets __skb_recv_datagram __skb_recv_udp tcp_recvmsg* "
	 "tcp_sendmsg* tcp_close udp_recvmsg udpv6_recvmsg udp_sendmsg udpv6_sendmsg "
	 "unix_stream_* unix_wait_for_peer unix_accept unix_dgram_* inet_wait_for_connect "
	 "inet_stream_connect __inet_stream_connect inet_accept inet_shutdown __lock_sock "
	 "lock_sock_nested packet_recvmsg sock_recvmsg sock_sendmsg "
	 "__sock_sendmsg sock_read_iter sock_write_iter sock_close do_accept __sys_accept4 "
	 "__sys_connect __sys_recvfrom __sys_sendto __sys_shutdown ___sys_recvmsg "
	 "___sys_sendmsg sock_wait_for_wmem sock_alloc_send_pskb"},
	{WAIT_pipe,
	 "pipe_read anon_pipe_read fifo_pipe_read pipe_write anon_pipe_write fifo_pipe_write "
	 "fifo_open pipe_wait pipe_wait_* wait_for_partner ipipe_prep opipe_prep"},
	{WAIT_disk,
	 "io_schedule io_schedule_timeout blk_io_schedule blk_execute_rq blk_mq_get_tag "
	 "rq_qos_wait folio_wait_* wait_on_page_* __wait_on_buffer submit_bio_wait "
	 "balance_dirty_pages* vfs_fsync_range do_fsync ksys_sync iomap_dio_rw __iomap_dio_rw "
	 "wb_wait_for_completion sync_inodes_sb jbd2_log_wait_commit jbd2__journal_start "
	 "read_events"},
	{WAIT_file,
	 "vfs_read vfs_readv vfs_write vfs_writev vfs_iter_* do_iter_* do_filp_open "
	 "path_openat vfs_open vfs_statx vfs_getattr vfs_readlink iterate_dir filename_lookup "
	 "walk_component do_unlinkat do_renameat2 do_mkdirat do_rmdir do_truncate "
	 "vfs_fallocate do_sendfile do_splice"},
	{WAIT_page_fault,
	 "handle_mm_fault do_user_addr_fault exc_page_fault do_page_fault do_mem_abort "
	 "handle_userfault"},
	{WAIT_child,
	 "do_wait __do_wait kernel_wait4 kernel_waitid wait_for_vfork_done kernel_clone _do_fork"},
	{WAIT_signal, "sigsuspend do_sigtimedwait __do_sys_pause __se_sys_pause __x64_sys_pause "
		      "__arm64_sys_pause signalfd_read*"},
	{WAIT_terminal,
	 "n_tty_read n_tty_write tty_read tty_write file_tty_write tty_wait_until_sent "
	 "tty_port_block_til_ready"},
	{WAIT_queue, "do_mq_timedreceive do_mq_timedsend wq_sleep do_msgrcv do_msgsnd"},
	{WAIT_io_uring, "io_cqring_* __do_sys_io_uring_enter __se_sys_io_uring_enter"},
	{WAIT_memory, "try_to_free_pages reclaim_throttle throttle_direct_reclaim try_charge_memcg "
		      "mem_cgroup_handle_over_high __alloc_pages_slowpath"},
	{WAIT_device, "vfs_ioctl __x64_sys_ioctl __arm64_sys_ioctl kvm_vcpu_block kvm_vcpu_halt"},
	{WAIT_throttled, "throttle_cfs_rq_work"},
};

static const struct group marks_by_name[] = {
	{MARK_TIMER,
	 "hrtimer_interrupt __hrtimer_run_queues hrtimer_run_queues hrtimer_run_softirq "
	 "run_timer_softirq run_timer_base __run_timer_base __run_timers call_timer_fn "
	 "expire_timers tmigr_handle_remote"},
	{MARK_NETWORK, "net_rx_action net_tx_action"},
	{MARK_SEND,
	 "__dev_queue_xmit ip_finish_output2 ip6_finish_output2 __ip_queue_xmit ip_local_out "
	 "ip6_xmit ip_send_skb tcp_write_xmit __tcp_transmit_skb __tcp_push_pending_frames "
	 "tcp_sendmsg* tcp_close udp_sendmsg udpv6_sendmsg sock_sendmsg __sock_sendmsg "
	 "sock_write_iter sock_close __sys_sendto __sys_connect __sys_shutdown "
	 "inet_stream_connect __inet_stream_connect inet_shutdown"},
	{MARK_SOFTIRQ, "__do_softirq handle_softirqs do_softirq do_softirq_own_stack"},
	{MARK_INTERRUPT,
	 "asm_sysvec_* sysvec_* __sysvec_* asm_common_interrupt common_interrupt "
	 "__common_interrupt asm_call_irq_on_stack asm_call_sysvec_on_stack irq_exit "
	 "irq_exit_rcu __irq_exit_rcu exc_nmi asm_exc_nmi fred_extint fred_sysvec_* "
	 "xen_pv_evtchn_do_upcall el0_interrupt el1_interrupt __el1_irq el0t_64_irq "
	 "el0t_64_irq_handler el0t_32_irq el0t_32_irq_handler el1h_64_irq el1h_64_irq_handler "
	 "el0_irq el1_irq gic_handle_irq do_interrupt_handler handle_domain_irq "
	 "__handle_domain_irq generic_handle_domain_irq flush_smp_call_function_queue "
	 "__flush_smp_call_function_queue run_ksoftirqd"},
};

struct pattern {
	char name[NAME_ROOM];
	size_t length;
	bool is_prefix;
	int meaning;
};

struct patterns {
	size_t count;
	struct pattern rows[PATTERNS_MAX];
};

struct finder {
	struct kernel_waits *out;
	struct patterns waits, marks;
	uint32_t closed; /* ranges whose end is known */
};

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct pattern *)a)->name, ((const struct pattern *)b)->name);
}

static void add_names(struct patterns *patterns, const struct group *group)
{
	for (const char *at = group->names; *at && patterns->count < PATTERNS_MAX;) {
		struct pattern *row = &patterns->rows[patterns->count++];
		size_t length = strcspn(at, " ");

		row->is_prefix = at[length - 1] == '*';
		row->length = length - row->is_prefix;
		if (row->length >= sizeof(row->name))
			row->length = sizeof(row->name) - 1;
		memcpy(row->name, at, row->length);
		row->name[row->length] = '\0';
		row->meaning = group->meaning;
		at += length + (at[length] == ' ');
	}
}

static void fill_patterns(struct patterns *patterns, const struct group *groups, size_t count)
{
	patterns->count = 0;
	for (size_t i = 0; i < count; i++)
		add_names(patterns, &groups[i]);
	qsort(patterns->rows, patterns->count, sizeof(*patterns->rows), by_name);
}

static int compare_pattern(const void *key, const void *element)
{
	const struct pattern *pattern = element;
	const char *name = key;
	int order = strncmp(name, pattern->name, pattern->length);

	if (order || pattern->is_prefix)
		return order;
	return name[pattern->length] != '\0';
}

/* 0: nothing is known of it. */
static int meaning_of(const struct patterns *patterns, const char *name)
{
	const struct pattern *found = bsearch(name, patterns->rows, patterns->count,
					      sizeof(*patterns->rows), compare_pattern);

	return found ? found->meaning : 0;
}

static void end_ranges(struct finder *finder, uint64_t address)
{
	struct kernel_waits *out = finder->out;

	while (finder->closed < out->count && out->ranges[finder->closed].start < address)
		out->ranges[finder->closed++].end = address;
}

static bool is_neighbour(const struct kernel_waits *out, uint64_t address, int wait, int mark)
{
	const struct kernel_wait_range *last = out->ranges + (out->count ? out->count - 1 : 0);

	return out->count && (last->end == address || last->start == address) &&
	       last->wait == wait && last->mark == mark;
}

/* Addresses ascend: a function ends where the next begins. */
static bool add_symbol(void *context, const struct kernel_symbol *symbol)
{
	struct finder *finder = context;
	struct kernel_waits *out = finder->out;
	char name[128];
	int wait, mark;

	if (*symbol->module)
		return false; /* modules come last */
	end_ranges(finder, symbol->address);
	if (!symbol->address || !strchr("tTwW", symbol->type))
		return true;
	strncpy(name, symbol->name, sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	name[strcspn(name, ".")] = '\0';
	wait = meaning_of(&finder->waits, name);
	mark = meaning_of(&finder->marks, name);
	if (!wait && !mark)
		return true;
	if (is_neighbour(out, symbol->address, wait, mark))
		finder->closed = out->count - 1; /* goes on */
	else if (out->count == KERNEL_WAIT_RANGES_MAX)
		out->dropped++;
	else
		out->ranges[out->count++] = (struct kernel_wait_range){
			.start = symbol->address, .wait = (uint8_t)wait, .mark = (uint8_t)mark};
	return true;
}

void kernel_waits_find(const char *proc_root, struct kernel_waits *out)
{
	struct finder *finder = malloc(sizeof(*finder));

	out->count = out->dropped = 0;
	if (!finder)
		return;
	finder->out = out;
	finder->closed = 0;
	fill_patterns(&finder->waits, waits_by_name,
		      sizeof(waits_by_name) / sizeof(*waits_by_name));
	fill_patterns(&finder->marks, marks_by_name,
		      sizeof(marks_by_name) / sizeof(*marks_by_name));
	if (!kernel_symbols_each(proc_root, add_symbol, finder, NULL))
		out->count = 0;
	else
		out->count = finder->closed;
	free(finder);
}

/* --- stacks --- */

static int compare_range(const void *key, const void *element)
{
	const struct kernel_wait_range *range = element;
	const uint64_t address = *(const uint64_t *)key;

	return address < range->start ? -1 : address >= range->end;
}

static struct kernel_wait_range frame_of(const struct kernel_waits *waits, const uint64_t *frames,
					 size_t at)
{
	static const struct kernel_wait_range none;
	const uint64_t address = frames[at] - (at > 0);
	const struct kernel_wait_range *found = bsearch(&address, waits->ranges, waits->count,
							sizeof(*waits->ranges), compare_range);

	return found ? *found : none;
}

static const char *const class_names[] = {
#define CLASS_NAME(id_, name_) name_,
	WAIT_CLASSES(CLASS_NAME)};

const char *wait_class_name(enum wait_class class)
{
	return class_names[class];
}

/* The innermost function that says it; a page fault may have to wait for much. */
const char *kernel_waits_class(const struct kernel_waits *waits, const uint64_t *frames,
			       size_t count)
{
	int class = WAIT_other;

	if (!waits->count)
		return "";
	for (size_t i = 0; i < count && class != WAIT_page_fault; i++) {
		int here = frame_of(waits, frames, i).wait;

		if (class == WAIT_other || here == WAIT_page_fault)
			class = here;
	}
	return class_names[class];
}

/* The interrupt that came last, up to its way into the kernel, or all of the stack, where a thread
 * may run what soft interrupts have to do. */
enum kernel_waker kernel_waits_waker(const struct kernel_waits *waits, const uint64_t *frames,
				     size_t count, size_t *own)
{
	bool has[MARK_INTERRUPT + 1] = {false};
	size_t softirq_end = 0;

	*own = count;
	for (size_t i = 0; i < count; i++) {
		int mark = frame_of(waits, frames, i).mark;

		if (has[MARK_INTERRUPT] && mark != MARK_INTERRUPT) {
			*own = i;
			break;
		}
		has[mark] = true;
		if (mark == MARK_SOFTIRQ)
			softirq_end = i + 1;
	}
	if (!has[MARK_INTERRUPT]) {
		if (!has[MARK_TIMER] && (!has[MARK_NETWORK] || has[MARK_SEND]))
			return WAKER_THREAD;
		*own = softirq_end ? softirq_end : count;
	}
	return has[MARK_TIMER] ? WAKER_TIMER : has[MARK_NETWORK] ? WAKER_NETWORK : WAKER_INTERRUPT;
}

const char *kernel_waker_name(enum kernel_waker waker)
{
	static const char *const names[] = {"", "timer", "network", "interrupt"};

	return names[waker];
}
