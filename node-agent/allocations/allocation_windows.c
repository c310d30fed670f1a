/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/allocations/allocation_windows.h"

#include <ctype.h>
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "node-agent/allocations/allocation_window.h"
#include "node-agent/allocations/held_samples.h"
#include "node-agent/processes/process_files.h"

enum {
	PROCESSES_MAX = 512,
	OPEN_MAX =
		4, /* windows at a time: most of its time one waits; each makes all hits dearer */
	USED_MS = 100,
	LOOK_MS = 1000,
	BETWEEN_MS = 1000,  /* windows of one process */
	QUIET_MAX = 5,      /* who takes nothing is looked at less often: half a minute */
	AGAIN_MS = 9000,    /* more, where there is nothing to probe */
	HELD_FOR_TAIL = 24, /* once it has been told */
	HELD_BYTES_MAX = 4 << 20,
	CREDIT_NS_MIN = 4 * 1000000, /* a window for less sees little */
	CREDIT_NS_MAX = 100 * 1000000,
	CUT_OFF_SECONDS = 300, /* of its CPU time, that one window would cost its budget of */
	MEAN_FIRST = 65536,
	MEAN_MAX = 4 << 20, /* thinned by 2^10 it fits 32 bits: more stacks than a window has */
	STACKS_WANTED = 128, /* in a window */
	STACKS_ENOUGH = 384,
	STACKS_FEW = 16, /* of so few the bytes say nothing of those that were not chosen */
	DEAR = 4,     /* a window may cost so much more than what it sees */
	DEAR_MAX = 3, /* windows in a row that do */
	COST_NS_MIN = 1000000,
	USED_NS_MIN = 200000, /* a window that sees less says nothing */
};

struct target { /* what hangs on the registry's entry */
	struct process *process;
	uint32_t at; /* in targets */
	uint32_t tgid;
	struct allocators allocators;
	bool is_cut_off, has_ended, has_windows;
	uint64_t used_ns;  /* CPU time, as of the last look */
	uint64_t since_ns; /* CPU time at the end of the last window that said something */
	uint64_t since_cost_ns;     /* of that what windows cost which said nothing */
	int64_t credit_ns; /* of its budget */
	uint64_t credited_ns;
	uint64_t apart_ns;          /* CPU time from hit to hit; 0: not known */
	struct probe_price price;   /* of hits that are so far apart */
	int64_t window_ms;          /* when the last one ended */
	uint32_t mean, dear, quiet; /* windows in a row that cost too much, that saw nothing */
	struct allocation_window *window; /* that is open */
	uint64_t number;                  /* of that, or of the one before */
	struct held_samples held;         /* of that, until it has ended */
	/* The last one that said what the process is like: what comes after it is taken to be like
	 * it until the next has. */
	uint64_t told_number, open_used_ns;
	double scale, counted;    /* its samples have stood for so many; in it alone */
	struct window_rate rate;
	struct held_samples told; /* some of its samples */
};

struct allocation_windows {
	struct allocation_windows_sources from;
	struct allocation_windows_counters counters;
	struct allocator_files *files;
	struct nameless_files *names; /* NULL: there is no server */
	uint32_t room;                /* the registry's number of this */
	struct target *targets[PROCESSES_MAX]; /* the last fills a gap */
	uint32_t target_count, open_count, next;
	uint64_t last_window;
	struct probe_meter meter;
	int64_t looked_ms, used_ms;
	uint64_t looked_ns, held_bytes; /* CLOCK_BOOTTIME of the last look; of all that is held */
};

/* --- processes --- */

static struct target *target_of(const struct allocation_windows *windows,
				const struct process *process)
{
	return process ? process->states[windows->room] : NULL;
}

/* Returns the square of what it stands for. */
static double deliver(struct allocation_windows *windows, const struct sample_event *sample,
		      size_t walked, double scale)
{
	const struct sample_worth worth = {
		.type = SAMPLE_TYPE_mem_alloc,
		.value = (uint64_t)((double)sample->alloc.bytes * scale + 0.5)};

	samples_add_held(windows->from.samples, sample, walked, &worth);
	windows->counters.samples++;
	return (double)worth.value * (double)worth.value;
}

/* Less what windows cost that said nothing. */
static uint64_t used_since(const struct target *target, uint64_t used)
{
	const uint64_t all = used > target->since_ns ? used - target->since_ns : 0;

	return all > target->since_cost_ns ? all - target->since_cost_ns : 0;
}

/* What it has allocated since the last window is like what it did in that. */
static void tail_deliver(struct allocation_windows *windows, struct target *target)
{
	uint64_t used = process_cpu_ns(target->tgid);
	double squares = 0, time_ns;

	if (!used)
		used = target->used_ns;
	if (used <= target->since_ns)
		return;
	if (!target->has_windows) {
		windows->counters.unseen_ns += used - target->since_ns;
		return;
	}
	windows->counters.used_ns += used - target->since_ns;
	time_ns = (double)used_since(target, used);
	for (size_t i = 0; i < target->told.count; i++)
		squares += deliver(windows, target->told.items[i], target->told.walked[i],
				   target->told.part * target->counted * time_ns /
					   (double)target->open_used_ns);
	window_spread_stretch(&windows->counters.spread, &target->rate, time_ns, squares);
}

static void target_drop(struct allocation_windows *windows, struct target *target)
{
	struct target *last = windows->targets[--windows->target_count];

	last->at = target->at;
	windows->targets[last->at] = last;
	processes_hang(windows->from.processes, target->process, windows->room, NULL);
	held_free(&target->held, &windows->held_bytes);
	held_free(&target->told, &windows->held_bytes);
	free(target->window);
	free(target);
}

/* Not while its window is open. */
static void target_forget(struct allocation_windows *windows, struct target *target)
{
	tail_deliver(windows, target);
	allocators_leave(windows->files, &target->allocators);
	target_drop(windows, target);
}

/* What a process has used at its end is known as of the last look. */
static void used_look(struct target *target)
{
	const uint64_t used = process_cpu_ns(target->tgid);

	if (used)
		target->used_ns = used;
}

static bool is_wanted(const struct allocation_windows *windows, uint32_t tgid)
{
	for (size_t i = 0; i < windows->from.pid_count; i++)
		if (windows->from.pids[i] == tgid)
			return true;
	return !windows->from.pid_count && tgid != (uint32_t)getpid();
}

/* Threads of the kernel have none. */
static bool has_program(uint32_t tgid)
{
	char path[32], program[2];

	snprintf(path, sizeof path, "/proc/%u/exe", tgid);
	return readlink(path, program, sizeof program) > 0;
}

static struct target *target_add(struct allocation_windows *windows, uint32_t tgid, uint64_t used,
				 int64_t now)
{
	const uint64_t start_ns = process_start_ns(tgid);
	/* What has begun since the last look is known from its first nanosecond on. */
	const uint64_t before = windows->looked_ns && start_ns >= windows->looked_ns ? 0 : used;
	struct process *process;
	struct target *target;

	if (!is_wanted(windows, tgid) || !start_ns || !has_program(tgid))
		return NULL;
	process = processes_current_or_new(windows->from.processes, tgid, (uint64_t)now * 1000000);
	target = process && windows->target_count < PROCESSES_MAX ? malloc(sizeof *target) : NULL;
	if (!target) {
		windows->counters.refused++;
		return NULL;
	}
	*target = (struct target){.process = process,
				  .at = windows->target_count++,
				  .tgid = tgid,
				  .allocators = {.tgid = tgid},
				  .used_ns = used,
				  .since_ns = before,
				  .credited_ns = before,
				  .window_ms = now,
				  .mean = MEAN_FIRST};
	windows->targets[target->at] = target;
	processes_hang(windows->from.processes, process, windows->room, target);
	return target;
}

static void target_end(struct allocation_windows *windows, struct target *target)
{
	if (!target->window) {
		target_forget(windows, target);
		return;
	}
	target->has_ended = true;
	allocation_window_end(target->window);
}

static void end(void *context, struct process *process)
{
	struct allocation_windows *windows = context;

	target_end(windows, process->states[windows->room]);
}

static void target_see(struct allocation_windows *windows, uint32_t tgid, int64_t now)
{
	struct target *target = target_of(windows,
					  processes_current(windows->from.processes, tgid));
	const uint64_t used = process_cpu_ns(tgid);

	if (!used)
		return;
	if (target && used < target->credited_ns) { /* another by the same number */
		target_end(windows, target);
		return;
	}
	if (!target)
		target = target_add(windows, tgid, used, now);
	if (!target)
		return;
	target->used_ns = used;
	target->credit_ns += (int64_t)((double)(used - target->credited_ns) * windows->from.budget);
	if (target->credit_ns > CREDIT_NS_MAX)
		target->credit_ns = CREDIT_NS_MAX;
	target->credited_ns = used;
}

/* --- windows --- */

static enum kernel_program program_of(uint32_t kind)
{
	switch (kind) {
	case MEMORY_MALLOC:
		return KERNEL_PROGRAM_MALLOC;
	case MEMORY_CALLOC:
		return KERNEL_PROGRAM_CALLOC;
	case MEMORY_REALLOC:
		return KERNEL_PROGRAM_REALLOC;
	case MEMORY_POSIX_MEMALIGN:
		return KERNEL_PROGRAM_POSIX_MEMALIGN;
	case MEMORY_REALLOCARRAY:
		return KERNEL_PROGRAM_REALLOCARRAY;
	case MEMORY_PYTHON_POOL:
		return KERNEL_PROGRAM_PYTHON_POOL;
	default:
		return KERNEL_PROGRAM_COUNT;
	}
}

/* In struct pt_regs (asm/ptrace.h), by its number in instructions; rsp and r12 are no bases. */
static uint32_t register_place(uint32_t number)
{
	static const uint8_t places[16] = {80, 88, 96, 40, 0,  32, 104, 112,
					   72, 64, 56, 48, 24, 16, 8,   0};

	return places[number % 16];
}

static void probes_of(const struct allocation_windows *windows, const struct allocator *mapped,
		      struct allocation_window *window)
{
	int fd;
	const struct memory_places *places = allocator_places(windows->files, mapped, &fd);

	for (uint32_t i = 0; i < places->count && window->probe_count < ALLOC_FUNCTIONS; i++) {
		const struct memory_place *place = &places->items[i];
		enum kernel_program program = program_of(place->kind);
		uint64_t address = mapped->start + place->at - mapped->offset;
		const bool is_pool = place->kind == MEMORY_PYTHON_POOL;

		if (program == KERNEL_PROGRAM_COUNT || place->at < mapped->offset ||
		    address + place->skip >= mapped->limit)
			continue;
		window->settings.functions[window->probe_count] = (struct alloc_function){
			address, address + (is_pool ? 0 : place->bytes), address + place->skip};
		if (is_pool) {
			window->settings.pool_bytes = place->bytes;
			window->settings.pool_register = register_place(place->reg);
		}
		if (program == KERNEL_PROGRAM_MALLOC)
			window->company = allocator_windows(windows->files, mapped);
		if (!place->is_cheap)
			window->settings.stepped |= UINT64_C(1) << window->probe_count;
		window->probes[window->probe_count++] = (struct window_probe){
			.file = fd,
			.program = capture_program(windows->from.capture, program),
			.offset = place->at + place->skip,
			.is_hot = program == KERNEL_PROGRAM_MALLOC,
		};
	}
}

static void window_open(struct allocation_windows *windows, struct target *target)
{
	const struct capture *capture = windows->from.capture;
	struct allocation_window *window = calloc(1, sizeof *window);
	struct error err = {0};

	if (!window)
		return;
	window->tgid = target->tgid;
	window->windows_map = capture_map(capture, KERNEL_MAP_ALLOC_WINDOWS);
	window->counts_map = capture_map(capture, KERNEL_MAP_ALLOC_COUNTS);
	window->cost_max_ns = (uint64_t)target->credit_ns;
	window->stacks_max = STACKS_ENOUGH;
	window->meter = &windows->meter;
	window->apart_ns = target->apart_ns;
	window->price_before = target->price;
	window->settings.number = windows->last_window + 1;
	window->settings.mean = target->mean;
	for (uint32_t i = 0; i < target->allocators.count; i++)
		probes_of(windows, &target->allocators.items[i], window);
	if (!window->probe_count || !allocation_window_start(window, &err)) {
		free(window);
		target->window_ms = monotonic_ms() + AGAIN_MS;
		target->allocators.is_looked_at = false; /* it may load one */
		return;
	}
	target->number = ++windows->last_window;
	target->window = window;
	windows->open_count++;
}

/* It costs the process much more than it sees of it: what is left is a small difference of large
 * numbers. */
static bool is_dear(const struct allocation_window *window)
{
	return window->open_cost_ns > COST_NS_MIN &&
	       window->open_used_ns * DEAR < window->open_cost_ns;
}

static void cut_off(struct allocation_windows *windows, struct target *target,
		    const struct allocation_window *window)
{
	target->is_cut_off = true;
	held_free(&target->told, &windows->held_bytes);
	windows->counters.cut_off++;
	log_warn("allocations of a process are cut off",
		 "pid=%u hits=%" PRIu64 " cost_ms=%" PRIu64 " open_cost_ms=%" PRIu64
		 " open_used_ms=%" PRIu64
		 " why=\"it allocates so often that probes would cost more than they may, or that "
		 "sums would be wrong\"",
		 target->tgid, (uint64_t)window->counts.hits, window->cost_ns / 1000000,
		 window->open_cost_ns / 1000000, window->open_used_ns / 1000000);
}

static void charge(struct allocation_windows *windows, struct target *target,
		   const struct allocation_window *window)
{
	struct allocation_windows_counters *counters = &windows->counters;

	target->credit_ns -= (int64_t)window->cost_ns;
	target->since_cost_ns += window->cost_ns;
	target->apart_ns = window->apart_ns;
	target->price = window->price;
	counters->hits += window->counts.hits;
	counters->cost_ns += window->cost_ns;
	counters->hit_ns = (uint32_t)window->price.ns;
	counters->windows++;
	counters->blurred += window->is_blurred;
	target->dear = is_dear(window) ? target->dear + 1 : 0;
	counters->dear += target->dear > 0;
	if (target->dear == DEAR_MAX ||
	    (double)window->cost_ns > windows->from.budget * CUT_OFF_SECONDS * 1e9)
		cut_off(windows, target, window);
}

/* What was allocated since the window before, as a multiple of what was while this one was open. */
static double scale_of(const struct target *target, const struct allocation_window *window)
{
	const uint64_t all = used_since(target, window->used_ns);

	if (all < window->open_used_ns)
		return 1;
	return (double)all / (double)window->open_used_ns;
}

/* All bytes are counted, whoever is chosen of them, and wherever a sample found no room. */
static double counted_of(const struct allocation_window *window)
{
	const struct alloc_window_counts *counts = &window->counts;

	if (counts->stacks < STACKS_FEW || !counts->sampled)
		return 1;
	return (double)counts->bytes / (double)counts->sampled;
}

/* A window that says what the time since the one before was like. */
static void conclude(struct allocation_windows *windows, struct target *target,
		     const struct allocation_window *window)
{
	const uint64_t mean = window->counts.bytes / STACKS_WANTED;
	struct window_sum sum = {.bytes = (double)window->counts.bytes,
				 .open_ns = (double)window->open_used_ns};

	target->counted = counted_of(window);
	target->scale = scale_of(target, window);
	sum.stands_ns = target->scale * sum.open_ns;
	target->scale *= target->counted;
	target->open_used_ns = window->open_used_ns;
	target->told_number = target->number;
	windows->counters.used_ns += window->used_ns > target->since_ns
					     ? window->used_ns - target->since_ns
					     : 0;
	target->since_ns = window->used_ns;
	target->since_cost_ns = 0;
	target->mean = mean < 1 ? 1 : mean > MEAN_MAX ? MEAN_MAX : (uint32_t)mean;
	for (size_t i = 0; i < target->held.count; i++)
		sum.squares += deliver(windows, target->held.items[i], target->held.walked[i],
				       target->scale);
	window_spread_add(&windows->counters.spread, &target->rate, &sum);
	held_free(&target->told, &windows->held_bytes);
	target->told = target->held;
	target->held = (struct held_samples){0};
	held_thin(&target->told, HELD_FOR_TAIL, &windows->held_bytes);
}

void allocation_windows_places(struct allocation_windows *windows, uint32_t number,
			       const struct memory_places *places)
{
	const int64_t now = monotonic_ms();

	allocator_files_places(windows->files, number, places);
	for (uint32_t i = 0; i < windows->target_count; i++) {
		struct target *target = windows->targets[i];

		/* there may be something to probe now */
		if (target->window_ms > now &&
		    allocators_have(windows->files, &target->allocators, number))
			target->window_ms = now - BETWEEN_MS;
	}
}

static void failed(struct allocation_windows *windows, struct target *target,
		   const struct allocation_window *window)
{
	windows->counters.failed++;
	log_debug("no window", "pid=%u why=\"%s\"", target->tgid, window->why.message);
	target->allocators.is_looked_at = false;
	target->credit_ns = 0;
}

static void window_end(struct allocation_windows *windows, struct target *target)
{
	struct allocation_window *window = target->window;
	bool is_good;

	allocation_window_join(window);
	target->window = NULL;
	windows->open_count--;
	target->quiet = window->counts.hits ? 0 : target->quiet + (target->quiet < QUIET_MAX);
	target->window_ms = monotonic_ms() + ((int64_t)BETWEEN_MS << target->quiet) - BETWEEN_MS;
	if (!window->used_ns)
		window->used_ns = target->used_ns; /* it has exited */
	if (window->has_failed)
		failed(windows, target, window);
	else
		charge(windows, target, window);
	log_debug("window",
		  "pid=%u hits=%" PRIu64 " counted=%" PRIu64 " bytes=%" PRIu64 " stacks=%" PRIu64
		  " open_used_us=%" PRIu64 " open_cost_us=%" PRIu64 " cost_us=%" PRIu64
		  " hit_ns=%" PRIu64 " blurred=%d",
		  target->tgid, (uint64_t)window->counts.hits, (uint64_t)window->counts.counted,
		  (uint64_t)window->counts.bytes, (uint64_t)window->counts.stacks,
		  window->open_used_ns / 1000, window->open_cost_ns / 1000, window->cost_ns / 1000,
		  window->price.ns, window->is_blurred);
	is_good = !window->has_failed && !(target->has_ended && window->is_cut) &&
		  !target->is_cut_off && !target->dear && !window->is_blurred &&
		  window->open_used_ns >= USED_NS_MIN;
	target->has_windows |= is_good;
	if (is_good)
		conclude(windows, target, window);
	held_free(&target->held,
		  &windows->held_bytes); /* the next one stands for its time as well */
	free(window);
	if (target->has_ended)
		target_forget(windows, target);
}

/* A sample of the window that was told last: it came too late to be held. */
static void late_deliver(struct allocation_windows *windows, struct target *target,
			 const struct sample_event *sample, size_t walked)
{
	const double count = target->told.part * (double)target->told.count + 1;

	window_spread_stretch(&windows->counters.spread, &target->rate, 0,
			      deliver(windows, sample, walked, target->scale));
	if (target->told.count < HELD_FOR_TAIL)
		held_add(&target->told, sample, walked, &windows->held_bytes, HELD_BYTES_MAX);
	if (target->told.count)
		target->told.part = count / (double)target->told.count;
}

void allocation_windows_hold(struct allocation_windows *windows, const struct sample_event *sample,
			     size_t walked)
{
	const struct process_key key = process_key_of(sample);
	struct target *target = target_of(windows, processes_find(windows->from.processes, &key));
	const uint64_t number = sample->alloc.window;

	if (target && number == target->told_number && !target->is_cut_off)
		late_deliver(windows, target, sample, walked);
	else if (!target || !target->window || number != target->number ||
		 !held_add(&target->held, sample, walked, &windows->held_bytes, HELD_BYTES_MAX))
		windows->counters.lost++;
}

/* --- the run --- */

static void look_at_processes(struct allocation_windows *windows, int64_t now)
{
	DIR *directory = opendir("/proc");
	const uint64_t began_ns = boot_time_ns();
	const struct dirent *entry;

	while (directory && (entry = readdir(directory)))
		if (isdigit((unsigned char)entry->d_name[0]))
			target_see(windows, (uint32_t)strtoul(entry->d_name, NULL, 10), now);
	if (directory)
		closedir(directory);
	windows->looked_ns = began_ns;
	for (uint32_t i = windows->target_count; i-- > 0;)
		if (i < windows->target_count && !windows->targets[i]->window &&
		    !process_cpu_ns(windows->targets[i]->tgid))
			target_forget(windows, windows->targets[i]);
}

/* In turn, and only those that have used CPU time enough for one. */
static void windows_open(struct allocation_windows *windows, int64_t now)
{
	for (uint32_t i = 0; i < windows->target_count && windows->open_count < OPEN_MAX; i++) {
		struct target *target = windows->targets[windows->next++ % windows->target_count];

		if (target->window || target->is_cut_off || target->credit_ns < CREDIT_NS_MIN ||
		    now - target->window_ms < BETWEEN_MS)
			continue;
		if (!target->allocators.is_looked_at)
			allocators_look(windows->files, &target->allocators);
		else if (allocators_are_known(windows->files, &target->allocators))
			window_open(windows, target);
	}
}

/* Where there was nothing to probe there may be now. */
static void look_again(struct allocation_windows *windows, int64_t now)
{
	for (uint32_t i = 0; i < windows->target_count; i++)
		if (windows->targets[i]->window_ms > now)
			windows->targets[i]->window_ms = now;
}

void allocation_windows_run(struct allocation_windows *windows)
{
	const int64_t now = monotonic_ms();
	const bool is_due = now - windows->used_ms >= USED_MS;

	if (is_due)
		windows->used_ms = now;
	for (uint32_t i = windows->target_count; i-- > 0;) {
		struct target *target = i < windows->target_count ? windows->targets[i] : NULL;

		if (!target) /* others went with the one before */
			continue;
		if (is_due && target->told.count)
			used_look(target);
		if (target->window && __atomic_load_n(&target->window->is_done, __ATOMIC_ACQUIRE))
			window_end(windows, target);
	}
	if (is_due && windows->names && allocator_files_name(windows->files, windows->names, now))
		look_again(windows, now);
	if (windows->names)
		nameless_files_run(windows->names, now);
	allocator_files_ask(windows->files, windows->from.pages);
	if (now - windows->looked_ms >= LOOK_MS) {
		windows->looked_ms = now;
		look_at_processes(windows, now);
	}
	windows_open(windows, now);
}

struct allocation_windows *allocation_windows_new(const struct allocation_windows_sources *from,
						  struct error *err)
{
	struct allocation_windows *windows = calloc(1, sizeof *windows);
	struct error why = {0};

	if (windows) {
		windows->from = *from;
		windows->room = processes_room(
			from->processes,
			&(struct process_room){.end = end, .context = windows, .holds = true});
		windows->files = allocator_files_new(err);
	}
	if (!windows || !windows->files) {
		allocation_windows_free(windows);
		error_set(err, ERROR_MEMORY, "no memory for windows in allocators");
		return NULL;
	}
	probe_meter_open(&windows->meter, capture_map(from->capture, KERNEL_MAP_ALLOC_WINDOWS),
			 capture_map(from->capture, KERNEL_MAP_ALLOC_COUNTS),
			 capture_program(from->capture, KERNEL_PROGRAM_MALLOC), &why);
	if (windows->meter.probe < 0)
		log_warn("what a probe costs could not be measured", "why=\"%s\"", why.message);
	windows->counters.hit_ns = (uint32_t)windows->meter.first.ns;
	return windows;
}

bool allocation_windows_ask(struct allocation_windows *windows, struct ship *ship, int64_t again_ms,
			    struct error *err)
{
	windows->names = nameless_files_new(ship, again_ms, err);
	return windows->names;
}

void allocation_windows_stop(struct allocation_windows *windows)
{
	for (uint32_t i = 0; windows && i < windows->target_count; i++)
		if (windows->targets[i]->window)
			allocation_window_end(windows->targets[i]->window);
	for (uint32_t i = 0; windows && i < windows->target_count; i++)
		if (windows->targets[i]->window)
			allocation_window_join(windows->targets[i]->window);
}

void allocation_windows_finish(struct allocation_windows *windows)
{
	while (windows && windows->target_count) {
		struct target *target = windows->targets[windows->target_count - 1];

		const bool has_ended = target->has_ended;

		if (target->window)
			window_end(windows, target);
		if (!has_ended)
			target_forget(windows, target);
	}
}

void allocation_windows_free(struct allocation_windows *windows)
{
	if (!windows)
		return;
	allocation_windows_stop(windows);
	while (windows->target_count)
		target_drop(windows, windows->targets[0]);
	processes_leave(windows->from.processes, windows->room);
	probe_meter_close(&windows->meter);
	allocator_files_free(windows->files);
	nameless_files_free(windows->names);
	free(windows);
}

void allocation_windows_counters(const struct allocation_windows *windows,
				 struct allocation_windows_counters *out)
{
	*out = windows->counters;
	out->processes = 0;
	out->files_refused = allocator_files_refused(windows->files);
	if (windows->names)
		nameless_files_counters(windows->names, &out->names);
	out->names.refused += allocator_functions_refused(windows->files);
	for (uint32_t i = 0; i < windows->target_count; i++)
		out->processes += windows->targets[i]->has_windows;
}
