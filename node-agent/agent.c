/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/agent.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "node-agent/aggregate/stack_counts.h"
#include "node-agent/kernel/stranger_reader.h"
#include "node-agent/kernel/lacks.h"
#include "node-agent/own_process.h"
#include "node-agent/processes/process_table.h"

enum {
	STACKS_LIMIT = 16 << 20,       /* of one report interval */
	STACKS_LIMIT_FILE = 128 << 20, /* of a whole --output */
	ROWS_LIMIT = 8 << 20,          /* unwind rows, in the kernel's maps */
	EXECUTABLES_MAX = 4096, /* each is kept open, in the table and, while the server may ask for
				   it, in ship */
	FILES_RESERVED = 256,   /* descriptors that are not executables' */
};

static bool takes(const struct agent_options *options, enum sample_type type)
{
	return options->types >> type & 1;
}

uint32_t agent_wants(const struct agent_options *options)
{
	static const uint32_t wants[] = {SAMPLE_TYPES(SAMPLE_TYPE_WANTS)};
	uint32_t all = 0;

	for (int type = 0; type < SAMPLE_TYPE_COUNT; type++)
		all |= takes(options, (enum sample_type)type) ? wants[type] : 0;
	return all;
}

static bool open_stages(struct agent *agent, struct error *err)
{
	const struct agent_options *options = agent->options;
	const struct process_table_limits limits = {
		.processes = 32768,
		.mappings = 1 << 20,
		.executables = own_file_limit(FILES_RESERVED, EXECUTABLES_MAX)};

	agent->table = process_table_new(&limits, "/proc", err);
	agent->counts = stack_counts_new(options->output ? STACKS_LIMIT_FILE : STACKS_LIMIT, err);
	if (!agent->table || !agent->counts)
		return false;
	process_table_set_command_lines(agent->table, options->command_lines);
	agent->modules = module_announcer_new(agent->table, options->upload_missing, err);
	return agent->modules;
}

static struct capture_options capture_options_of(const struct agent_options *from)
{
	struct capture_options options = {
		.way = (enum capture_way)from->capture,
		.frequency_hz = from->frequency_hz,
		.max_frames = from->max_frames,
		.pids = from->pids,
		.pid_count = from->pid_count,
		.use_rows = true,
		.stop_after_sample = from->debug_stop,
		.wants = agent_wants(from),
	};

	memcpy(options.budgets, from->budgets, sizeof options.budgets);
	return options;
}

static bool open_capture(struct agent *agent, struct error *err)
{
	const struct capture_options options = capture_options_of(agent->options);
	const struct capture_callbacks callbacks = agent_callbacks(agent);

	agent->capture = capture_open(&options, &callbacks, err);
	return agent->capture;
}

bool agent_could_use_bpf(const struct agent *agent)
{
	const struct capture_options options = capture_options_of(agent->options);
	struct error err = {0};

	if (options.way != CAPTURE_AUTO || capture_way(agent->capture) != CAPTURE_PERF)
		return false;
	if (capture_try_bpf(&options, &err))
		return true;
	lack_note(LACK_bpf, err.message);
	return false;
}

static bool open_print(struct agent *agent, struct error *err)
{
	const char *path = agent->options->debug_stacks;

	if (!path)
		return true;
	agent->print = strcmp(path, "-") ? fopen(path, "we") : stdout;
	return agent->print || error_set_system(err, errno, "--debug-stacks '%s'", path);
}

static bool look_at_thread(void *context, uint32_t tid, struct thread_switch *thread)
{
	return capture_map_read(((struct agent *)context)->capture, KERNEL_MAP_THREADS, &tid,
				thread);
}

static bool open_waits(struct agent *agent, struct error *err)
{
	const struct waits_sources sources = {.samples = agent->samples,
					      .types = agent->options->types,
					      .look = look_at_thread,
					      .context = agent};

	if (!(agent_wants(agent->options) & KERNEL_WANTS_OFF_CPU))
		return true;
	samples_set_scheduler(agent->samples, &agent->scheduler);
	samples_set_waits(agent->samples, &agent->kernel_waits);
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
	const struct allocation_windows_sources from = {
		.processes = process_table_processes(agent->table),
		.capture = agent->capture,
		.pages = agent->pages,
		.samples = agent->samples,
		.budget = agent->options->budgets[KERNEL_SOURCE_alloc],
		.pids = agent->options->pids,
		.pid_count = agent->options->pid_count};

	code_pages_set_memory(agent->pages, on_places, agent);
	if (takes(agent->options, SAMPLE_TYPE_mem_alloc))
		agent->windows = allocation_windows_new(&from, err);
	return agent->windows || !takes(agent->options, SAMPLE_TYPE_mem_alloc);
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

static bool open_memory(struct agent *agent, struct error *err)
{
	const struct memory_probes_sources probes = {
		.processes = process_table_processes(agent->table),
		.capture = agent->capture,
		.pages = agent->pages,
		.budget = agent->options->budgets[KERNEL_SOURCE_alloc],
		.wants_frees = takes(agent->options, SAMPLE_TYPE_mem_inuse),
		.pids = agent->options->pids,
		.pid_count = agent->options->pid_count,
		.lost = memory_lost,
		.bound = memory_bound,
		.context = agent};
	struct allocations_sources allocations = {.processes = probes.processes,
						  .samples = agent->samples,
						  .types = agent->options->types,
						  .rate = memory_probes_rate};

	if (!(agent_wants(agent->options) & KERNEL_WANTS_ALLOCS))
		return true;
	agent->probes = memory_probes_new(&probes, err);
	allocations.context = agent->probes;
	agent->allocations = agent->probes ? allocations_new(&allocations, err) : NULL;
	return agent->allocations && open_windows(agent, err);
}

static void hold(void *context, const struct sample_event *sample, size_t walked)
{
	struct agent *agent = context;

	if (sample->type == EVENT_SAMPLE_ALLOC && sample->alloc.source == ALLOC_WINDOW) {
		if (agent->windows)
			allocation_windows_hold(agent->windows, sample, walked);
	} else if (sample->type == EVENT_SAMPLE_ALLOC)
		allocations_hold(agent->allocations, sample, walked);
	else
		waits_hold(agent->waits, sample, walked);
}

static bool open_runtimes(struct agent *agent, struct error *err)
{
	struct runtimes_sources from = {
		.table = agent->table,
		.pages = agent->pages,
		.places_map = capture_map(agent->capture, KERNEL_MAP_RUNTIMES),
		.pids_map = capture_map(agent->capture, KERNEL_MAP_RUNTIME_PIDS),
		.hotspots_map = capture_map(agent->capture, KERNEL_MAP_HOTSPOTS)};

	if (agent->options->interpreters != INTERPRETERS_ON)
		return true;
	from.has_no_lists = from.places_map < 0;
	if (from.has_no_lists)
		log_info("stacks of interpreters are native",
			 "why=\"their own frames are read at the sample, which takes BPF\"");
	agent->runtimes = runtimes_new(&from, err);
	return agent->runtimes;
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
	agent->jit = jit_files_new(process_table_processes(agent->table), agent->pages, err);
	if (!agent->requests || !agent->jit || !open_runtimes(agent, err))
		return false;
	samples.requests = agent->requests;
	samples.jit = stacks.jit = agent->jit;
	samples.runtimes = stacks.runtimes = agent->runtimes;
	samples.print = agent->print;
	if (agent_wants(agent->options) & (KERNEL_WANTS_OFF_CPU | KERNEL_WANTS_ALLOCS)) {
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

bool agent_open(struct agent *agent, struct error *err)
{
	return stranger_reader_start(err) && open_stages(agent, err) && open_capture(agent, err) &&
	       open_stacks(agent, err);
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

bool agent_open_output(struct agent *agent, struct error *err)
{
	const struct report_sources sources = {.options = agent->options,
					       .capture = agent->capture,
					       .table = agent->table,
					       .counts = agent->counts,
					       .samples = agent->samples,
					       .stacks = agent->stacks,
					       .requests = agent->requests,
					       .jit = agent->jit,
					       .runtimes = agent->runtimes,
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

uint64_t agent_stop_ship(struct agent *agent, int drain_ms, struct ship_counters *counters)
{
	const uint64_t unsent = ship_stop(agent->ship, drain_ms, counters);

	agent->ship = NULL;
	agent->is_left_behind |= counters->is_left_behind;
	return unsent;
}

void agent_close(struct agent *agent)
{
	struct ship_counters counters;

	agent_stop_ship(agent, 0, &counters);    /* it asks the reporter who we are */
	allocation_windows_stop(agent->windows); /* they use what the capture has */
	capture_close(agent->capture);
	if (!agent->is_left_behind) {
		reporter_free(agent->reporter);
		module_announcer_free(agent->modules);
		allocation_windows_free(agent->windows);
	}
	stacks_free(agent->stacks);
	waits_free(agent->waits);
	memory_probes_free(agent->probes);
	allocations_free(agent->allocations);
	samples_free(agent->samples);
	jit_files_free(agent->jit);
	requests_free(agent->requests);
	runtimes_free(agent->runtimes);
	code_pages_free(agent->pages);
	if (agent->print && agent->print != stdout)
		fclose(agent->print);
	stack_counts_free(agent->counts);
	process_table_free(agent->table);
	stranger_reader_stop();
}
