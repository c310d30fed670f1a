/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/allocations/allocation_window.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "node-agent/kernel/bpf_map.h"
#include "node-agent/kernel/lacks.h"
#include "node-agent/kernel/uprobe.h"

enum {
	GONE_NS = 10 * 1000000,      /* how often it looks whether probes are gone */
	GONE_TIMES = 200,
	LOOK_NS_MIN = 4 * 1000000,   /* a look interrupts the program, which is charged with it */
	OPEN_NS_MAX = 300 * 1000000, /* of a window */
	/* of one whose program had no turn yet on a busy machine, and what is one */
	OPEN_NS_LONGEST = 1000 * 1000000,
	TURN_NS = 5 * 1000000,
	STACK_BYTES = 128 << 10,
	PROBES_MAX = ALLOC_FUNCTIONS + 1, /* and a sentinel */
	BLUR = 20, /* an edge takes at most such a part of its window */
};

static uint64_t cost_of(const struct allocation_window *window,
			const struct alloc_window_counts *counts)
{
	return (counts->hits - counts->stepped) * window->price.ns +
	       counts->stepped * window->price.stepped_ns + counts->ns;
}

static bool counts_read(const struct allocation_window *window, struct alloc_window_counts *counts)
{
	return bpf_map_read(window->counts_map, &window->tgid, counts, NULL);
}

static bool is_open_set(struct allocation_window *window, bool is_open)
{
	window->settings.is_open = is_open;
	return bpf_map_write(window->windows_map, &window->tgid, &window->settings, &window->why);
}

/* --- probes: the hot one comes last --- */

static bool should_end(const struct allocation_window *window)
{
	return __atomic_load_n(&window->should_end, __ATOMIC_RELAXED);
}

static bool attach(struct allocation_window *window, int *fds, bool is_hot)
{
	for (uint32_t i = 0; i < window->probe_count; i++) {
		const struct window_probe *probe = &window->probes[i];

		if (probe->is_hot != is_hot)
			continue;
		if (should_end(window))
			return error_set(&window->why, ERROR_SYSTEM, "the agent ends");
		fds[i] = uprobe_open_process(probe->file, probe->offset, window->tgid,
					     probe->program, &window->why);
		if (fds[i] < 0)
			return false;
	}
	return true;
}

static void *take_away(void *fd)
{
	close(*(const int *)fd);
	return NULL;
}

/* What the program ran into since the window was closed, uncounted: as much of its time as while it
 * was open. */
static uint64_t unseen_cost(const struct allocation_window *window)
{
	const uint64_t all = window->open_traps_ns + window->open_used_ns;
	const uint64_t now = process_cpu_ns(window->tgid);
	const uint64_t used = now > window->closed_used_ns ? now - window->closed_used_ns : 0;

	if (!window->closed_used_ns || !all)
		return 0;
	return (uint64_t)((double)used * (double)window->open_traps_ns / (double)all);
}

/* Not longer than the kernel takes for it. */
static void wait_until_gone(struct allocation_window *window, int sentinel)
{
	const struct timespec pause = {.tv_nsec = GONE_NS};

	for (int i = 0; i < GONE_TIMES && probe_sentinel_is_there(sentinel); i++)
		clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
	window->cost_ns += unseen_cost(window);
}

/* All at once: each waits a tenth of a second for whoever may be in it, and costs meanwhile. */
static void detach(struct allocation_window *window, int *fds, int sentinel)
{
	pthread_t threads[PROBES_MAX];
	bool is_running[PROBES_MAX];
	pthread_attr_t small;
	bool is_any = false, is_lacking = false;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, PTHREAD_STACK_MIN);
	for (uint32_t i = 0; i < PROBES_MAX; i++) {
		is_running[i] = fds[i] >= 0 &&
				!pthread_create(&threads[i], &small, take_away, &fds[i]);
		is_any |= is_running[i];
		if (fds[i] >= 0 && !is_running[i]) {
			is_lacking = true;
			lack_note(LACK_threads, strerror(EAGAIN));
			take_away(&fds[i]);
		}
	}
	if (is_any && !is_lacking)
		lack_note(LACK_threads, NULL);
	if (sentinel >= 0)
		wait_until_gone(window, sentinel);
	for (uint32_t i = 0; i < PROBES_MAX; i++)
		if (is_running[i])
			pthread_join(threads[i], NULL);
	pthread_attr_destroy(&small);
}

/* --- the window --- */

struct edge { /* one end of a window: whatever is read lies between both moments */
	struct alloc_window_counts counts;
	uint64_t used_ns, before_ns, after_ns;
};

static void go_to(int cpu)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	sched_setaffinity(0, sizeof one, &one);
}

/* Where the process' first thread was last; −1: it is gone. */
static int cpu_of(uint32_t tgid)
{
	enum { PROCESSOR = 39 - 2 }; /* proc(5); counted from the name's end */
	char path[32], text[1024] = "";
	const char *at;
	int cpu = -1;
	FILE *file;

	snprintf(path, sizeof path, "/proc/%u/stat", tgid);
	file = fopen(path, "re");
	if (file && !fread(text, 1, sizeof text - 1, file))
		text[0] = '\0';
	if (file)
		fclose(file);
	at = strrchr(text, ')');
	for (int field = 0; at && field < PROCESSOR; field++)
		at = strchr(at + 1, ' ');
	if (at)
		sscanf(at, "%d", &cpu);
	return cpu < CPU_SETSIZE ? cpu : -1;
}

/* The CPU time of a thread that runs is as of its CPU's last tick, up to 10 ms ago: as much as a
 * whole window. It is brought up to date where the thread has to give way: so this one goes and
 * runs on each CPU for a moment (kernel/sched/core.c, thread_group_cputime()). It stays on the
 * process' own, where that cannot go on meanwhile: else the time until it is read would be
 * counted to a window at whose begin it runs and at whose end it does not. */
static void used_bring_up_to_date(uint32_t tgid, const cpu_set_t *cpus)
{
	int own;

	for (int cpu = 0, last = cpu_of(tgid); cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, cpus) && cpu != last)
			go_to(cpu);
	own = cpu_of(tgid);
	if (own >= 0 && CPU_ISSET(own, cpus))
		go_to(own);
}

/* In the process' place, which gives way: what it costs elsewhere while that runs is the price on
 * half a core. */
static struct probe_price price_there(const struct allocation_window *window, uint32_t others)
{
	struct probe_price price;
	cpu_set_t cpus;
	const bool is_known = !sched_getaffinity(0, sizeof cpus, &cpus);
	const int cpu = cpu_of(window->tgid);

	if (is_known && cpu >= 0 && CPU_ISSET(cpu, &cpus))
		go_to(cpu);
	price = probe_price_now(window->meter, window->settings.stepped, window->apart_ns);
	if (is_known)
		sched_setaffinity(0, sizeof cpus, &cpus);
	probe_price_share(&price, window->meter, others);
	return price;
}

static bool edge_take(struct allocation_window *window, bool is_open, struct edge *edge)
{
	cpu_set_t cpus;
	const bool is_known = !sched_getaffinity(0, sizeof cpus, &cpus);
	bool is_taken;

	if (is_known)
		used_bring_up_to_date(window->tgid, &cpus);
	edge->before_ns = monotonic_ns();
	edge->used_ns = process_cpu_ns(window->tgid);
	is_taken = is_open_set(window, is_open) && counts_read(window, &edge->counts);
	edge->after_ns = monotonic_ns();
	if (is_known)
		sched_setaffinity(0, sizeof cpus, &cpus);
	return is_taken;
}

/* An edge is of one moment only if nobody else is given this CPU in between. */
static void watch_set(bool is_watching)
{
	const struct sched_param first = {.sched_priority = is_watching};

	if (sched_setscheduler(0, is_watching ? SCHED_FIFO : SCHED_OTHER, &first))
		lack_note(LACK_realtime, strerror(errno));
	else if (is_watching)
		lack_note(LACK_realtime, NULL);
}

static uint32_t others_now(const struct allocation_window *window)
{
	return window->company ? __atomic_load_n(window->company, __ATOMIC_RELAXED) - 1 : 0;
}

static uint64_t used_between(const struct edge *from, const struct edge *to)
{
	return to->used_ns > from->used_ns ? to->used_ns - from->used_ns : 0;
}

static uint64_t cost_between(const struct allocation_window *window, const struct edge *from,
			     const struct edge *to)
{
	return cost_of(window, &to->counts) - cost_of(window, &from->counts);
}

/* The price is that of hits as far apart as these were; a single measurement is a rough one. */
static void price_settle(struct allocation_window *window, const struct edge *from,
			 const struct edge *to)
{
	const uint64_t used = used_between(from, to), cost = cost_between(window, from, to);
	const uint64_t hits = to->counts.hits - from->counts.hits;
	const bool was_known = window->apart_ns;
	struct probe_price now;

	if (hits)
		window->apart_ns = 1 + (used > cost ? used - cost : 0) / hits;
	now = price_there(window, others_now(window));
	if (was_known)
		probe_price_mean(&window->price, now);
	else
		window->price = now;
	if (window->price_before.ns)
		probe_price_mean(&window->price, window->price_before);
}

static void sum_up(struct allocation_window *window, const struct edge *from, const struct edge *to)
{
	const uint64_t used = used_between(from, to), cost = cost_between(window, from, to);
	const uint64_t blurred = to->after_ns - to->before_ns + from->after_ns - from->before_ns;

	window->open_cost_ns = cost;
	window->open_traps_ns = cost - (to->counts.ns - from->counts.ns);
	window->closed_used_ns = to->used_ns;
	window->open_used_ns = used > cost ? used - cost : 0;
	window->is_blurred = blurred > (to->before_ns - from->after_ns) / BLUR;
}

static void company_add(const struct allocation_window *window, uint32_t count)
{
	if (window->company)
		__atomic_add_fetch(window->company, count, __ATOMIC_RELAXED);
}

static bool is_over(const struct allocation_window *window, const struct edge *from)
{
	const uint64_t open_ns = monotonic_ns() - from->after_ns;

	return should_end(window) || open_ns >= OPEN_NS_LONGEST ||
	       (open_ns >= OPEN_NS_MAX &&
		process_cpu_ns(window->tgid) >= from->used_ns + TURN_NS);
}

/* Until half of what may still be spent can have been, or some of the time is over. */
static bool pause_until_spent(const struct allocation_window *window, const struct edge *from)
{
	struct timespec pause = {0};
	struct alloc_window_counts now;
	uint64_t cost, left;

	if (!counts_read(window, &now))
		return false;
	cost = cost_of(window, &now);
	if (cost >= window->cost_max_ns || now.stacks >= window->stacks_max ||
	    is_over(window, from))
		return false;
	left = (window->cost_max_ns - cost) / 2;
	if (left > OPEN_NS_MAX / 4)
		left = OPEN_NS_MAX / 4;
	pause.tv_nsec = left < LOOK_NS_MIN ? LOOK_NS_MIN : (long)left;
	clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
	return true;
}

static void watch(struct allocation_window *window)
{
	const uint32_t others = others_now(window);
	struct edge from, to;

	watch_set(true);
	window->price = price_there(window, others);
	if (edge_take(window, true, &from)) {
		while (pause_until_spent(window, &from))
			;
		if (edge_take(window, false, &to)) {
			window->is_cut = should_end(window);
			price_settle(window, &from, &to);
			sum_up(window, &from, &to);
		}
	}
	watch_set(false);
}

static void *run(void *context)
{
	struct allocation_window *window = context;
	const struct alloc_window_counts none = {0};
	int fds[PROBES_MAX], sentinel;

	for (uint32_t i = 0; i < PROBES_MAX; i++)
		fds[i] = -1;
	window->has_failed = !is_open_set(window, false) ||
			     !bpf_map_write(window->counts_map, &window->tgid, &none,
					    &window->why) ||
			     !attach(window, fds, false) || !attach(window, fds, true);
	company_add(window, 1);
	if (!window->has_failed)
		watch(window);
	sentinel = probe_sentinel_open(window->probes[0].program, &fds[ALLOC_FUNCTIONS]);
	detach(window, fds, sentinel);
	if (sentinel >= 0)
		probe_sentinel_leave(sentinel);
	company_add(window, (uint32_t)-1);
	counts_read(window, &window->counts);
	window->cost_ns += cost_of(window, &window->counts);
	window->used_ns = process_cpu_ns(window->tgid);
	bpf_map_remove(window->windows_map, &window->tgid, NULL);
	bpf_map_remove(window->counts_map, &window->tgid, NULL);
	__atomic_store_n(&window->is_done, true, __ATOMIC_RELEASE);
	return NULL;
}

bool allocation_window_start(struct allocation_window *window, struct error *err)
{
	pthread_attr_t small;
	sigset_t all, before;
	int failure;

	window->is_done = false;
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, STACK_BYTES);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are for those who wait for them */
	failure = pthread_create(&window->thread, &small, run, window);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&small);
	if (failure)
		lack_note(LACK_threads, strerror(failure));
	return !failure || error_set_system(err, failure, "start a thread for probes");
}

void allocation_window_end(struct allocation_window *window)
{
	__atomic_store_n(&window->should_end, true, __ATOMIC_RELAXED);
}

void allocation_window_join(struct allocation_window *window)
{
	if (!window->is_joined)
		pthread_join(window->thread, NULL);
	window->is_joined = true;
}
