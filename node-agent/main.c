/* SPDX-License-Identifier: Apache-2.0 */
/* The agent: options, capture, locate, aggregate, ship; until a signal. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "common/error.h"
#include "common/log.h"
#include "common/self_path.h"
#include "node-agent/aggregate/stack_counts.h"
#include "node-agent/agent_options.h"
#include "node-agent/allocation_windows.h"
#include "node-agent/allocations.h"
#include "node-agent/capture/capture.h"
#include "node-agent/check/check.h"
#include "node-agent/code_pages.h"
#include "node-agent/kernel/bpf_map.h"
#include "node-agent/kernel/loader.h"
#include "node-agent/memory_probes.h"
#include "node-agent/modules.h"
#include "node-agent/processes/kernel_symbols.h"
#include "node-agent/processes/process_table.h"
#include "node-agent/report.h"
#include "node-agent/requests.h"
#include "node-agent/samples.h"
#include "node-agent/ship/ship.h"
#include "node-agent/stacks.h"
#include "node-agent/unwind/row_worker.h"
#include "node-agent/waits.h"

enum {
	EXIT_USAGE = 2,
	EXIT_NOT_PERMITTED = 3, /* this kernel or these privileges do not allow BPF */
};

enum {
	NICE = -10,
	POLL_MS = 200, /* the kernel wakes us for copied stacks, or when a ring fills */
	SWEEP_MS = 1000,
	SUMMARY_MS = 60 * 1000,
	LAST_STACKS_MS = 500,
	DRAIN_MS = 2000,               /* of the 3 s that SIGTERM has */
	STACKS_LIMIT = 16 << 20,       /* of one report interval */
	STACKS_LIMIT_FILE = 128 << 20, /* of a whole --output */
	ROWS_LIMIT = 8 << 20,          /* unwind rows, in the kernel's maps */
	EXECUTABLES_MAX = 4096,
	FILES_RESERVED = 256, /* descriptors that are not executables' */
};

struct agent {
	const struct agent_options *options;
	struct process_table *table;
	struct stack_counts *counts;
	struct module_announcer *modules;
	struct capture *capture;
	struct code_pages *pages;
	struct requests *requests;
	struct samples *samples;
	struct stacks *stacks;
	struct waits *waits;                /* NULL: threads off their CPU are not profiled */
	struct allocations *allocations;    /* NULL: memory is not profiled */
	struct memory_probes *probes;       /* the same */
	struct allocation_windows *windows; /* NULL: allocations are not profiled */
	struct kernel_scheduler scheduler;
	FILE *print; /* --debug-stacks */
	struct reporter *reporter;
	struct ship *ship; /* NULL with --output */
	int argument_count;
	char **arguments;
	bool begins_anew; /* with other options, once it has finished */
};

/* --- signals --- */

static volatile sig_atomic_t stop_signals, reload_signals;

/* The first asks to end well, the second to end. */
static void on_stop_signal(int number)
{
	(void)number;
	if (stop_signals++)
		_exit(EXIT_FAILURE);
}

static void on_reload_signal(int number)
{
	(void)number;
	reload_signals = 1;
}

/* One that comes while another program text is loaded waits until it is caught there. */
static void hold_reload(int how)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGHUP);
	sigprocmask(how, &signals, NULL);
}

static void catch_signals(void)
{
	struct sigaction action = {.sa_handler = on_stop_signal};
	struct sigaction reload = {.sa_handler = on_reload_signal};
	struct sigaction ignore = {.sa_handler = SIG_IGN};

	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGHUP, &reload, NULL);
	sigaction(SIGPIPE, &ignore, NULL);
	hold_reload(SIG_UNBLOCK);
}

/* --- this process --- */

/* Memory is what an agent is judged by on every host: one heap for all threads, and what a report
 * took goes back to the kernel after it. */
static void keep_small(void)
{
	mallopt(M_ARENA_MAX, 1);
	mallopt(M_MMAP_THRESHOLD, 64 << 10);
	mallopt(M_TRIM_THRESHOLD, 64 << 10);
}

/* Every executable is kept open, in the table and, while the server may ask for it, in ship. */
static size_t raise_file_limit(void)
{
	struct rlimit limit;
	size_t half;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return 256;
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
		getrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_cur <= 2 * FILES_RESERVED)
		return FILES_RESERVED / 2;
	half = (size_t)(limit.rlim_cur - FILES_RESERVED) / 2;
	return half < EXECUTABLES_MAX ? half : EXECUTABLES_MAX;
}

/* A stack that is copied up waits for us while others of its kind come: what we do is little, and
 * on a busy host it is wanted soon. Not permitted to users without privileges; it works without. */
static void be_prompt(void)
{
	FILE *file;

	if (getpriority(PRIO_PROCESS, 0) == 0) /* else somebody chose another */
		setpriority(PRIO_PROCESS, 0, NICE);
	/* Where sessions share the CPUs in groups, sched(7), "The autogroup feature", a priority
	 * counts only among a session's own: the group takes it when it is ours alone. */
	if (getsid(0) != getpid())
		return;
	file = fopen("/proc/self/autogroup", "we");
	if (!file)
		return;
	fprintf(file, "%d", getpriority(PRIO_PROCESS, 0));
	fclose(file);
}

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static bool takes(const struct agent_options *options, enum sample_type type)
{
	return options->types >> type & 1;
}

static uint32_t off_cpu_of(const struct agent_options *options)
{
	return (takes(options, SAMPLE_TYPE_off_cpu) || takes(options, SAMPLE_TYPE_still_blocked)
			? KERNEL_OFF_CPU_WAITS
			: 0) |
	       (takes(options, SAMPLE_TYPE_run_queue) ? KERNEL_OFF_CPU_RUN_QUEUE : 0) |
	       (takes(options, SAMPLE_TYPE_waker) ? KERNEL_OFF_CPU_WAKERS : 0);
}

static bool takes_memory(const struct agent_options *options)
{
	return takes(options, SAMPLE_TYPE_mem_alloc) || takes(options, SAMPLE_TYPE_mem_inuse);
}

/* --- from capture to the other stages --- */

/* The kernel's symbols are read with the first address: a tenth of a second in which stacks would
 * wait. */
static void on_loading(void *context)
{
	struct located_frame nowhere;

	struct agent *agent = context;

	process_table_locate_kernel(agent->table, &(uint64_t){0}, 1, true, &nowhere);
	if (off_cpu_of(agent->options))
		kernel_scheduler_find("/proc", &agent->scheduler);
}

static void memory_lost(void *context, uint32_t tgid)
{
	allocations_end(((struct agent *)context)->allocations, tgid);
}

static uint64_t memory_bound(void *context, uint32_t tgid,
			     uint64_t (*most)(void *context, uint64_t key), void *most_context)
{
	return allocations_bound(((struct agent *)context)->allocations, tgid, most, most_context);
}

static void on_exec(void *context, uint32_t tgid, uint64_t time_ns)
{
	struct agent *agent = context;

	process_table_exec(agent->table, tgid, time_ns);
	requests_process_ended(agent->requests, tgid);
	if (!agent->probes)
		return;
	allocations_end(agent->allocations, tgid);
	memory_probes_exec(agent->probes, tgid);
	if (agent->windows)
		allocation_windows_end(agent->windows, tgid);
}

static void on_fork(void *context, uint32_t tgid, uint32_t parent_tgid, uint64_t time_ns)
{
	struct agent *agent = context;

	process_table_fork(agent->table, tgid, parent_tgid, time_ns);
	if (agent->probes)
		memory_probes_fork(agent->probes, tgid, parent_tgid);
}

static void on_exit_event(void *context, uint32_t tgid, uint64_t time_ns)
{
	struct agent *agent = context;

	process_table_exit(agent->table, tgid, time_ns);
	stacks_process_ended(agent->stacks, tgid);
	requests_process_ended(agent->requests, tgid);
	if (!agent->probes)
		return;
	allocations_end(agent->allocations, tgid);
	memory_probes_exit(agent->probes, tgid);
	if (agent->windows)
		allocation_windows_end(agent->windows, tgid);
}

static void on_mapping(void *context, const struct capture_mapping *from)
{
	struct agent *agent = context;
	const struct process_mapping_event mapping = {
		.time_ns = from->time_ns,
		.start = from->start,
		.length = from->length,
		.file_offset = from->file_offset,
		.inode = from->inode,
		.inode_generation = from->inode_generation,
		.tgid = from->tgid,
		.device_major = from->device_major,
		.device_minor = from->device_minor,
		.build_id = from->build_id,
		.is_anonymous = from->is_anonymous,
		.path = from->path,
	};

	process_table_mapping(agent->table, &mapping);
	if (agent->probes && !from->is_anonymous)
		memory_probes_mapping(agent->probes, from->tgid, from->path);
}

static void on_sample(void *context, const struct sample_event *sample,
		      const struct stack_copy_event *copy)
{
	struct agent *agent = context;

	if (sample->type == EVENT_SAMPLE_ALLOC) {
		if (!agent->probes || (sample->state != ALLOC_WINDOW &&
				       !memory_probes_has(agent->probes, sample->tgid)))
			return;
		if (sample->state != ALLOC_WINDOW)
			allocations_expect(agent->allocations, sample);
	} else if (sample->type == EVENT_SAMPLE_SWITCH || sample->type == EVENT_SAMPLE_WAKER) {
		if (!agent->waits)
			return;
		waits_expect(agent->waits, sample);
	}
	stacks_add(agent->stacks, sample, copy);
}

static void on_free(void *context, const struct alloc_free_event *event)
{
	struct agent *agent = context;

	if (agent->allocations && memory_probes_has(agent->probes, event->tgid))
		allocations_give(agent->allocations, event);
}

static void on_switch_in(void *context, const struct switch_in_event *event)
{
	struct agent *agent = context;

	if (agent->waits)
		waits_end(agent->waits, event);
}

static void on_sweep(void *context, uint64_t start_ns, uint64_t end_ns)
{
	struct agent *agent = context;

	if (agent->waits)
		waits_swept(agent->waits, start_ns, end_ns);
}

static bool find_context(void *context, const struct sample_event *sample,
			 struct thread_context_place *place)
{
	struct agent *agent = context;

	return agent->requests && requests_find(agent->requests, sample, place);
}

static bool look_at_thread(void *context, uint32_t tid, struct thread_switch *thread)
{
	return bpf_map_read(capture_map(((struct agent *)context)->capture, KERNEL_MAP_THREADS),
			    &tid, thread, NULL);
}

/* --- the parts --- */

static bool open_stages(struct agent *agent, struct error *err)
{
	const struct agent_options *options = agent->options;
	const struct process_table_limits limits = {
		.processes = 32768, .mappings = 1 << 20, .executables = raise_file_limit()};

	agent->table = process_table_new(&limits, "/proc", err);
	agent->counts = stack_counts_new(options->output ? STACKS_LIMIT_FILE : STACKS_LIMIT, err);
	if (!agent->table || !agent->counts)
		return false;
	agent->modules = module_announcer_new(agent->table, options->upload_missing, err);
	return agent->modules;
}

static bool open_capture(struct agent *agent, struct error *err)
{
	const struct capture_options options = {
		.way = (enum capture_way)agent->options->capture,
		.frequency_hz = agent->options->frequency_hz,
		.max_frames = agent->options->max_frames,
		.pids = agent->options->pids,
		.pid_count = agent->options->pid_count,
		.use_rows = true,
		.stop_after_sample = agent->options->debug_stop,
		.no_on_cpu = !takes(agent->options, SAMPLE_TYPE_on_cpu),
		.off_cpu = off_cpu_of(agent->options),
		.off_cpu_budget = agent->options->off_cpu_budget,
		.page_faults = takes(agent->options, SAMPLE_TYPE_page_fault),
		.fault_budget = agent->options->fault_budget,
		.allocs = takes_memory(agent->options),
		.alloc_budget = agent->options->mem_budget,
	};
	const struct capture_callbacks callbacks = {
		.on_loading = on_loading,
		.on_exec = on_exec,
		.on_fork = on_fork,
		.on_exit = on_exit_event,
		.on_mapping = on_mapping,
		.on_sample = on_sample,
		.on_switch_in = on_switch_in,
		.on_sweep = on_sweep,
		.find_context = find_context,
		.on_free = on_free,
		.context = agent,
	};

	agent->capture = capture_open(&options, &callbacks, err);
	return agent->capture;
}

static bool open_print(struct agent *agent, struct error *err)
{
	const char *path = agent->options->debug_stacks;

	if (!path)
		return true;
	agent->print = strcmp(path, "-") ? fopen(path, "we") : stdout;
	return agent->print || error_set_system(err, errno, "--debug-stacks '%s'", path);
}

static bool open_waits(struct agent *agent, struct error *err)
{
	const struct waits_sources sources = {.samples = agent->samples,
					      .types = agent->options->types,
					      .look = look_at_thread,
					      .context = agent};

	if (!off_cpu_of(agent->options))
		return true;
	samples_set_scheduler(agent->samples, &agent->scheduler);
	agent->waits = waits_new(&sources, err);
	return agent->waits;
}

/* Questions of two have numbers of their own. */
static void on_places(void *context, uint32_t number, const struct memory_places *places)
{
	struct agent *agent = context;

	if (number < ALLOCATOR_FILES_FIRST)
		memory_probes_places(agent->probes, number, places);
	else if (agent->windows)
		allocation_windows_places(agent->windows, number, places);
}

static bool open_windows(struct agent *agent, struct error *err)
{
	const struct allocation_windows_sources from = {.capture = agent->capture,
							.pages = agent->pages,
							.samples = agent->samples,
							.budget = agent->options->mem_budget,
							.pids = agent->options->pids,
							.pid_count = agent->options->pid_count};

	code_pages_set_memory(agent->pages, on_places, agent);
	if (takes(agent->options, SAMPLE_TYPE_mem_alloc))
		agent->windows = allocation_windows_new(&from, err);
	return agent->windows || !takes(agent->options, SAMPLE_TYPE_mem_alloc);
}

static bool open_memory(struct agent *agent, struct error *err)
{
	const struct memory_probes_sources probes = {
		.capture = agent->capture,
		.pages = agent->pages,
		.budget = agent->options->mem_budget,
		.wants_frees = takes(agent->options, SAMPLE_TYPE_mem_inuse),
		.pids = agent->options->pids,
		.pid_count = agent->options->pid_count,
		.lost = memory_lost,
		.bound = memory_bound,
		.context = agent};
	struct allocations_sources allocations = {.samples = agent->samples,
						  .types = agent->options->types,
						  .rate = memory_probes_rate};

	if (!takes_memory(agent->options))
		return true;
	agent->probes = memory_probes_new(&probes, err);
	allocations.context = agent->probes;
	agent->allocations = agent->probes ? allocations_new(&allocations, err) : NULL;
	return agent->allocations && open_windows(agent, err);
}

static void hold(void *context, const struct sample_event *sample, size_t walked)
{
	struct agent *agent = context;

	if (sample->type == EVENT_SAMPLE_ALLOC && sample->state == ALLOC_WINDOW) {
		if (agent->windows)
			allocation_windows_hold(agent->windows, sample, walked);
	} else if (sample->type == EVENT_SAMPLE_ALLOC)
		allocations_hold(agent->allocations, sample, walked);
	else
		waits_hold(agent->waits, sample, walked);
}

static bool open_stacks(struct agent *agent, struct error *err)
{
	const struct row_pages_options rows = {
		.pages_map = capture_map(agent->capture, KERNEL_MAP_UNWIND_PAGES),
		.rules_map = capture_map(agent->capture, KERNEL_MAP_UNWIND_RULES),
		.pools_map = capture_map(agent->capture, KERNEL_MAP_UNWIND_POOLS),
		.limit_bytes = ROWS_LIMIT,
	};
	struct samples_sources samples = {.table = agent->table,
					  .counts = agent->counts,
					  .modules = agent->modules,
					  .service = agent->options->service,
					  .keep_times = agent->options->timestamps};
	struct requests_sources requests = {
		.table = agent->table,
		.places_map = capture_map(agent->capture, KERNEL_MAP_THREAD_CONTEXTS)};
	struct stacks_sources stacks = {.table = agent->table,
					.capture = agent->capture,
					.max_frames = agent->options->max_frames};

	agent->pages = code_pages_new(agent->table, &rows, err);
	if (!agent->pages || !open_print(agent, err))
		return false;
	requests.pages = samples.pages = stacks.pages = agent->pages;
	agent->requests = requests_new(&requests, err);
	if (!agent->requests)
		return false;
	samples.requests = agent->requests;
	samples.print = agent->print;
	if (off_cpu_of(agent->options) || takes_memory(agent->options)) {
		samples.hold = hold;
		samples.context = agent;
	}
	agent->samples = samples_new(&samples, err);
	if (!agent->samples || !open_waits(agent, err) || !open_memory(agent, err))
		return false;
	stacks.samples = agent->samples;
	agent->stacks = stacks_new(&stacks, err);
	return agent->stacks;
}

/* Known now rather than at the end of a long run. */
static bool check_output_directory(const char *path, struct error *err)
{
	char directory[PATH_MAX];
	const char *slash = strrchr(path, '/');
	size_t length = !slash ? 0 : slash == path ? 1 : (size_t)(slash - path);

	if (length >= sizeof directory)
		return error_set(err, ERROR_OPTION, "--output: the file name is too long");
	snprintf(directory, sizeof directory, "%.*s", slash ? (int)length : 1, slash ? path : ".");
	if (access(directory, W_OK | X_OK) < 0)
		return error_set_system(err, errno, "--output: write into '%s'", directory);
	return true;
}

static bool open_output(struct agent *agent, struct error *err)
{
	const struct report_sources sources = {.options = agent->options,
					       .capture = agent->capture,
					       .table = agent->table,
					       .counts = agent->counts,
					       .samples = agent->samples,
					       .stacks = agent->stacks,
					       .requests = agent->requests,
					       .pages = agent->pages,
					       .modules = agent->modules,
					       .waits = agent->waits,
					       .allocations = agent->allocations,
					       .probes = agent->probes,
					       .windows = agent->windows};
	struct ship_options ship = {
		.server_url = agent->options->server,
		.ca_file = agent->options->ca_file,
		.token_file = agent->options->token_file,
		.queue_limit_bytes = agent->options->queue_limit_bytes,
		.spool_directory = agent->options->spool,
		.spool_limit_bytes = agent->options->spool_limit_bytes,
		.spool_sync_ms = agent->options->spool_sync_ms,
		.upload_missing = agent->options->upload_missing,
		.upload_bytes_per_second = agent->options->upload_bytes_per_second,
		.timeout_ms = (int)agent->options->timeout_ms,
		.fill_host = reporter_fill_host,
	};

	if (agent->options->output && !check_output_directory(agent->options->output, err))
		return false;
	agent->reporter = reporter_new(&sources, err);
	if (!agent->reporter)
		return false;
	ship.context = agent->reporter;
	if (agent->options->server)
		agent->ship = ship_start(&ship, err);
	if (agent->ship && agent->windows)
		return allocation_windows_ask(agent->windows, agent->ship,
					      agent->options->report_interval_ms, err);
	return agent->ship || agent->options->output;
}

static void agent_close(struct agent *agent)
{
	allocation_windows_stop(agent->windows); /* they use what the capture has */
	capture_close(agent->capture);
	reporter_free(agent->reporter);
	stacks_free(agent->stacks);
	waits_free(agent->waits);
	allocation_windows_free(agent->windows);
	memory_probes_free(agent->probes);
	allocations_free(agent->allocations);
	samples_free(agent->samples);
	requests_free(agent->requests);
	code_pages_free(agent->pages);
	if (agent->print && agent->print != stdout)
		fclose(agent->print);
	module_announcer_free(agent->modules);
	stack_counts_free(agent->counts);
	process_table_free(agent->table);
}

/* --- the run --- */

static void say_start(const struct agent_options *options)
{
	log_info("profiling",
		 "version=%s host=\"%s\" rate_hz=%u report_interval_ms=%" PRId64 " to=%s",
		 FARFLAME_VERSION, options->host, options->frequency_hz,
		 options->report_interval_ms, options->server ? options->server : options->output);
	if (options->token_file && options->server && !strncmp(options->server, "http://", 7))
		log_warn("token without TLS", "url=%s everybody_on_the_way_can=read_it",
			 options->server);
}

static void say_summary(struct agent *agent)
{
	struct ship_counters counters = {0};

	if (agent->ship)
		ship_counters(agent->ship, &counters);
	reporter_log_summary(agent->reporter, &counters);
}

static int sooner(int64_t a_ms, int64_t b_ms)
{
	return (int)(a_ms < b_ms ? a_ms : b_ms);
}

/* Takes what has come of the parser's answers, and lets capture wait for the next. */
static void run_stacks(struct agent *agent)
{
	int fd;

	stacks_run(agent->stacks);
	if (stacks_descriptor(agent->stacks, &fd))
		capture_watch(agent->capture, fd);
}

/* SIGHUP: other options take effect by beginning anew, under the same process id. True: there are
 * others, and they are good. */
static bool reload(struct agent *agent)
{
	static struct agent_options read;
	struct error err = {0};

	reload_signals = 0;
	if (!agent->ship) {
		log_warn("not read again", "why=\"--output writes one profile\"");
		return false;
	}
	read = (struct agent_options){0};
	if (agent_options_read(agent->argument_count, agent->arguments, &read, &err) !=
	    OPTIONS_RUN) {
		log_set_level((enum log_level)agent->options->log_level);
		log_error("options not taken", "why=\"%s\"", err.message);
		return false;
	}
	if (agent_options_same(agent->options, &read)) {
		log_info("options read again", "changed=nothing");
		return false;
	}
	log_info("options read again", "profile=%s", read.profile);
	return true;
}

/* Until a signal, the end of --duration, or a broken capture. */
static bool profile(struct agent *agent, struct error *err)
{
	const struct agent_options *options = agent->options;
	int64_t now = now_ms(), sweep = now + SWEEP_MS, summary = now + SUMMARY_MS;
	int64_t report = now + options->report_interval_ms;
	int64_t end = options->duration_ms ? now + options->duration_ms : INT64_MAX;

	while (!stop_signals && now < end) {
		if (reload_signals && reload(agent)) {
			agent->begins_anew = true;
			break;
		}
		int64_t due = agent->ship && report < end ? report : end;

		if (!capture_poll(agent->capture, due > now ? sooner(due - now, POLL_MS) : 0, err))
			return error_prefix(err, "capture");
		run_stacks(agent);
		if (agent->probes)
			memory_probes_run(agent->probes);
		if (agent->windows)
			allocation_windows_run(agent->windows);
		now = now_ms();
		if (now >= sweep) {
			process_table_sweep(agent->table, (uint64_t)now * 1000000);
			requests_run(agent->requests, now);
			sweep = now + SWEEP_MS;
		}
		if (agent->ship && now >= report) {
			reporter_ship(agent->reporter, agent->ship);
			while (report <= now)
				report += options->report_interval_ms;
		}
		if (now >= summary) {
			say_summary(agent);
			summary = now + SUMMARY_MS;
		}
	}
	return true;
}

/* The last interval, then what waits for the server: all within 3 s of the signal. */
static bool finish(struct agent *agent, struct error *err)
{
	struct ship_counters counters;
	uint64_t unsent;

	allocation_windows_stop(agent->windows);
	capture_stop(agent->capture);
	stacks_drain(agent->stacks, LAST_STACKS_MS);
	waits_finish(agent->waits);
	allocation_windows_finish(agent->windows);
	if (!agent->ship) {
		say_summary(agent);
		return reporter_write(agent->reporter, agent->options->output, err);
	}
	reporter_ship(agent->reporter, agent->ship);
	unsent = ship_stop(agent->ship, DRAIN_MS, &counters);
	agent->ship = NULL;
	reporter_log_summary(agent->reporter, &counters);
	if (counters.spool_bytes)
		log_info("spool", "directory=\"%s\" keeps_bytes=%" PRIu64, agent->options->spool,
			 counters.spool_bytes);
	if (unsent)
		log_warn("samples not sent", "samples=%" PRIu64 " at=end", unsent);
	return true;
}

/* Does not return if it can be: options are read and programs loaded as at any start. */
static void begin_anew(char **arguments)
{
	char path[PATH_MAX];

	hold_reload(SIG_BLOCK);
	execv(self_path(path, sizeof path), arguments);
	fprintf(stderr, "farflame-agent: begin anew: %s\n", strerror(errno));
}

static int run(const struct agent_options *options, int argc, char **argv)
{
	struct agent agent = {.options = options, .argument_count = argc, .arguments = argv};
	struct error err = {0};
	int status = EXIT_FAILURE;

	if (!open_stages(&agent, &err) || !open_capture(&agent, &err) ||
	    !open_stacks(&agent, &err)) {
		status = err.kind == ERROR_UNSUPPORTED ? EXIT_NOT_PERMITTED : EXIT_FAILURE;
		goto out;
	}
	if (!open_output(&agent, &err)) {
		status = err.kind == ERROR_OPTION ? EXIT_USAGE : EXIT_FAILURE;
		goto out;
	}
	say_start(options);
	if (profile(&agent, &err))
		status = EXIT_SUCCESS;
	else
		log_error("profiling ended", "why=\"%s\"", err.message);
	if (!finish(&agent, &err))
		status = EXIT_FAILURE;
	else if (status == EXIT_SUCCESS)
		err.kind = ERROR_NONE;
out:
	if (err.kind != ERROR_NONE)
		fprintf(stderr, "farflame-agent: %s\n", err.message);
	agent_close(&agent);
	if (agent.begins_anew && status == EXIT_SUCCESS && !stop_signals) {
		begin_anew(argv);
		status = EXIT_FAILURE;
	}
	return status;
}

int main(int argc, char **argv)
{
	static struct agent_options options;
	struct error err = {0};
	int child = kernel_loader_main(argc, argv);

	if (child < 0)
		child = row_worker_main(argc, argv);
	if (child >= 0)
		return child; /* this was one that loads the BPF programs, or parses files */
	switch (agent_options_read(argc, argv, &options, &err)) {
	case OPTIONS_DONE:
		return EXIT_SUCCESS;
	case OPTIONS_FAILED:
		fprintf(stderr, "farflame-agent: %s\n", err.message);
		return EXIT_USAGE;
	case OPTIONS_RUN:
		break;
	}
	if (options.check)
		return check_run(stdout) ? EXIT_SUCCESS : EXIT_FAILURE;
	keep_small();
	be_prompt();
	catch_signals();
	return run(&options, argc, argv);
}
