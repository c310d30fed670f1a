/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/allocations/memory_probes.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "node-agent/allocations/go_buckets.h"
#include "node-agent/allocations/probed_files.h"
#include "node-agent/kernel/stranger_reader.h"
#include "node-agent/processes/memory_map.h"
#include "node-agent/processes/process_files.h"

enum {
	PROCESSES_MAX = 8192,
	LOOK_MS = 1000,
	SETTLED_MS = 3000, /* a program has set its rate by then, and its runtime begun */
	RATE_OLD_MS = 100,
	/* Of one hit, into the kernel and back: an empty probe made a malloc() of 0.02 µs 1.65
	   long. */
	TRAP_NS = 1500,
	DEBT_NS_MAX = 20 * 1000000, /* beyond the budget, before it is cut off */
	GO_RATE = 512 << 10,        /* the default of runtime.MemProfileRate */
	UNSEEN = 32,
	OPENED_AT_ONCE = 2, /* files' probes for one process: some 20 ms each */
};

struct probed_process { /* that has a file; of one with several there are several */
	struct process *process;
	struct probed_process *next; /* of the same process */
	uint32_t at;                 /* in processes */
	uint32_t tgid, file;         /* index */
	bool is_library;     /* it has mapped the file, and is another */
	bool is_settled, is_cut_off;
	int directory;                  /* /proc/PID, once its file is probed; −1 */
	int probes[PROBED_FILE_PROBES]; /* its own, where the file's are split; −1 */
	uint64_t rate_at, rate, last_cost_ns, last_cpu_ns, debt_ns, frees_lost;
	int64_t seen_ms, rate_ms;
};

struct memory_probes {
	struct memory_probes_sources from;
	struct memory_probes_counters counters;
	struct probed_files *files;
	uint32_t room;                     /* the registry's number of this */
	struct probed_process **processes; /* the last fills a gap */
	uint32_t process_count;
	uint32_t unseen[UNSEEN], unseen_next; /* were gone before their library was looked at */
	int64_t looked_ms;
};

static struct probed_file *file_of(const struct memory_probes *probes,
				   const struct probed_process *process)
{
	return &probes->files->items[process->file];
}

/* --- processes --- */

static struct probed_process *first_of(const struct memory_probes *probes,
				       const struct process *process)
{
	return process ? process->states[probes->room] : NULL;
}

/* By what it runs, not what it has loaded. */
static struct probed_process *program_find(const struct memory_probes *probes, uint32_t tgid)
{
	struct probed_process *found = first_of(probes,
						processes_current(probes->from.processes, tgid));

	while (found && found->is_library)
		found = found->next;
	return found;
}

static void process_drop(struct memory_probes *probes, struct probed_process *process)
{
	struct probed_process *first = first_of(probes, process->process), **link = &first;
	struct probed_process *last = probes->processes[--probes->process_count];

	if (process->directory >= 0)
		close(process->directory);
	probed_files_close(process->probes);
	probed_files_unuse(probes->files, process->file);
	while (*link != process)
		link = &(*link)->next;
	*link = process->next;
	processes_hang(probes->from.processes, process->process, probes->room, first);
	last->at = process->at;
	probes->processes[last->at] = last;
	free(process);
}

static bool is_wanted(const struct memory_probes *probes, uint32_t tgid)
{
	for (size_t i = 0; i < probes->from.pid_count; i++)
		if (probes->from.pids[i] == tgid)
			return true;
	return !probes->from.pid_count;
}

static void process_add(struct memory_probes *probes, struct process *process, uint32_t file,
			bool is_library)
{
	struct probed_process *added = NULL;

	if (!process || process->ended_ns)
		return;
	if (probes->process_count < PROCESSES_MAX)
		added = calloc(1, sizeof *added);
	if (!added) {
		probes->counters.refused++;
		return;
	}
	*added = (struct probed_process){.process = process,
					 .next = first_of(probes, process),
					 .at = probes->process_count++,
					 .tgid = process->key.tgid,
					 .file = file,
					 .is_library = is_library,
					 .directory = -1,
					 .probes = {-1, -1, -1},
					 .seen_ms = monotonic_ms()};
	probed_files_use(probes->files, file);
	probes->processes[added->at] = added;
	processes_hang(probes->from.processes, process, probes->room, added);
}

static struct process *entry_of(struct memory_probes *probes, uint32_t tgid)
{
	return processes_current_or_new(probes->from.processes, tgid, monotonic_ns());
}

static void look_at(struct memory_probes *probes, uint32_t tgid)
{
	uint32_t file = is_wanted(probes, tgid) ? probed_files_of_process(probes->files, tgid)
						: PROBED_FILES_MAX;

	if (file != PROBED_FILES_MAX && probes->files->items[file].state != FILE_NONE)
		process_add(probes, entry_of(probes, tgid), file, false);
}

void memory_probes_places(struct memory_probes *probes, uint32_t number,
			  const struct memory_places *places)
{
	uint32_t at = probed_files_answer(probes->files, number, places);

	if (at == PROBED_FILES_MAX || probes->files->items[at].state != FILE_NONE)
		return;
	for (uint32_t i = probes->process_count; i-- > 0;)
		if (probes->processes[i]->file == at)
			process_drop(probes, probes->processes[i]);
}

/* --- the library that samples --- */

static const char library_name[] = "libfarflame-malloc.so";

static bool is_library(const char *path)
{
	const char *name = strrchr(path, '/');

	return name && !strcmp(name + 1, library_name);
}

static void take_library(struct memory_probes *probes, uint32_t tgid, uint32_t file)
{
	struct process *process = entry_of(probes, tgid);
	const struct probed_process *known = first_of(probes, process);

	while (known && known->file != file)
		known = known->next;
	if (!known && probes->files->items[file].state != FILE_NONE)
		process_add(probes, process, file, true);
}

/* False: it is not there, or could not be opened. */
static bool look_for_library(struct memory_probes *probes, uint32_t tgid)
{
	uint32_t file = PROBED_FILES_MAX;
	int directory = is_wanted(probes, tgid) ? process_directory_open("/proc", tgid, 0) : -1;
	struct stranger_maps maps;
	struct memory_row row;

	if (directory < 0)
		return false;
	stranger_maps_begin(&maps, directory);
	while (memory_map_read(&maps, &row))
		if (is_library(row.path)) {
			file = probed_files_mapping(probes->files, tgid, row.start, row.end,
						    row.path);
			break;
		}
	stranger_maps_end(&maps);
	close(directory);
	if (file != PROBED_FILES_MAX)
		take_library(probes, tgid, file);
	return file != PROBED_FILES_MAX;
}

void memory_probes_mapping(struct memory_probes *probes, uint32_t tgid, const char *path)
{
	uint32_t file;

	if (!path || !is_library(path) || !is_wanted(probes, tgid))
		return;
	file = probed_files_mapped(probes->files, tgid, path);
	if (file != PROBED_FILES_MAX)
		take_library(probes, tgid, file);
	else if (!look_for_library(probes,
				   tgid)) /* it has ended; whom it has forked may not have */
		probes->unseen[probes->unseen_next++ % UNSEEN] = tgid;
}

static void look_at_all(struct memory_probes *probes)
{
	DIR *directory = opendir("/proc");
	const struct dirent *entry;

	while (directory && (entry = readdir(directory))) {
		uint32_t tgid = (uint32_t)strtoul(entry->d_name, NULL, 10);

		if (!tgid)
			continue;
		look_at(probes, tgid);
		look_for_library(probes, tgid);
	}
	if (directory)
		closedir(directory);
}

/* Where the process has its file's first byte. 0: it is not mapped. */
static uint64_t mapped_at(uint32_t tgid, const struct probed_file *file)
{
	int directory = process_directory_open("/proc", tgid, 0);
	struct stranger_maps maps;
	struct memory_row row;
	uint64_t found = 0;

	if (directory < 0)
		return 0;
	stranger_maps_begin(&maps, directory);
	while (!found && memory_map_read(&maps, &row))
		if (!row.file_offset && row.inode == file->inode)
			found = row.start;
	stranger_maps_end(&maps);
	close(directory);
	return found;
}

/* --- rates --- */

static bool rate_find(struct memory_probes *probes, struct probed_process *process)
{
	const struct probed_file *file = file_of(probes, process);
	uint64_t start;

	if (process->directory >= 0)
		return true;
	if ((file->state != FILE_PROBED && file->state != FILE_BY_PROCESS) || !file->rate)
		return false;
	start = mapped_at(process->tgid, file);
	if (!start)
		return false;
	process->rate_at = file->rate - file->base + start;
	process->directory = process_directory_open("/proc", process->tgid, 0);
	return process->directory >= 0;
}

/* False: it could not be read. What the program says of itself is a number and nothing more. */
static bool rate_read(struct memory_probes *probes, struct probed_process *process, int64_t now)
{
	uint64_t rate;

	if (!rate_find(probes, process) ||
	    !stranger_memory_read(process->directory, process->rate_at, &rate, sizeof rate))
		return false;
	process->rate_ms = now;
	process->rate = rate > INT64_MAX ? 0 : rate;
	return true;
}

uint64_t memory_probes_rate(void *context, const struct sample_event *sample)
{
	struct memory_probes *probes = context;
	struct probed_process *process = program_find(probes, sample->tgid);
	int64_t now = monotonic_ms();

	if (!process) {
		look_at(probes, sample->tgid);
		process = program_find(probes, sample->tgid);
	}
	if (process && (!process->rate || now - process->rate_ms > RATE_OLD_MS))
		rate_read(probes, process, now);
	if (process && process->rate)
		return process->rate;
	probes->counters.unknown_rates++;
	return GO_RATE;
}

/* The linker leaves the profile out of programs that cannot ask for it: the rate is 0 then. */
static void settle(struct memory_probes *probes, struct probed_process *process, int64_t now)
{
	struct probed_file *file = file_of(probes, process);

	if (process->is_library || process->is_settled || now - process->seen_ms < SETTLED_MS)
		return;
	process->is_settled = true;
	if (process->rate || process->directory < 0)
		return;
	probes->counters.without++;
	if (!file->is_told)
		log_info("this Go program keeps no memory profile",
			 "program=\"%s\" pid=%u why=\"its runtime.MemProfileRate is 0: it never "
			 "reads its profile, or has switched it off\"",
			 file->name, process->tgid);
	file->is_told = true;
}

/* --- what it costs --- */

/* The others of its file get probes of their own: until then nothing is seen of them. */
static void cut_off(struct memory_probes *probes, struct probed_process *process)
{
	struct probed_file *file = file_of(probes, process);

	process->is_cut_off = true;
	probes->counters.cut_off++;
	log_warn("memory of a program is cut off",
		 "program=\"%s\" pid=%u why=\"it samples so often that probes would cost it more "
		 "than --mem-budget\"",
		 file->name, process->tgid);
	probes->from.lost(probes->from.context, process->tgid);
	probed_files_close(process->probes);
	if (file->state != FILE_PROBED)
		return;
	probed_files_split(probes->files, process->file);
	for (uint32_t i = 0; i < probes->process_count; i++)
		if (probes->processes[i]->file == process->file)
			probes->from.lost(probes->from.context, probes->processes[i]->tgid);
}

static void open_own(struct memory_probes *probes, struct probed_process *process)
{
	if (probed_files_open_for(probes->files, process->file, process->tgid, process->probes)) {
		log_debug("program probed by itself", "program=\"%s\" pid=%u",
			  file_of(probes, process)->name, process->tgid);
		return;
	}
	process->is_cut_off = true;
	probes->counters.cut_off++;
}

static uint64_t in_use(void *context, uint64_t key)
{
	const struct probed_process *process = context;

	return go_bucket_in_use(process->directory, key);
}

/* Ends were lost: what they were of is in use for longer, as far as anybody knows. Go's runtime
 * does know. */
static void correct(struct memory_probes *probes, struct probed_process *process)
{
	if (process->directory >= 0) {
		probes->counters.corrected += probes->from.bound(probes->from.context,
								 process->tgid, in_use, process);
		return;
	}
	if (process->frees_lost)
		return;
	probes->counters.unsure++;
	log_warn("a program seems to have more memory in use than it has",
		 "program=\"%s\" pid=%u why=\"it gives back faster than the agent can follow\"",
		 file_of(probes, process)->name, process->tgid);
}

static void charge(struct memory_probes *probes, struct probed_process *process)
{
	struct alloc_cost cost = {0};
	uint64_t cost_ns, used_ns = process_cpu_ns(process->tgid), allowed, more;

	if (!capture_map_read(probes->from.capture, KERNEL_MAP_ALLOC_COSTS, &process->tgid, &cost))
		return;
	cost_ns = cost.ns + cost.hits * TRAP_NS;
	more = cost_ns > process->last_cost_ns ? cost_ns - process->last_cost_ns : 0;
	allowed =
		used_ns > process->last_cpu_ns
			? (uint64_t)((double)(used_ns - process->last_cpu_ns) * probes->from.budget)
			: 0;
	process->last_cost_ns = cost_ns;
	process->last_cpu_ns = used_ns;
	process->debt_ns += more;
	process->debt_ns -= process->debt_ns < allowed ? process->debt_ns : allowed;
	probes->counters.cost_ns += more;
	if (cost.frees_lost > process->frees_lost)
		correct(probes, process);
	process->frees_lost = cost.frees_lost;
	/* Of the library's samples the kernel side takes as many as the budget allows. */
	if (process->debt_ns > DEBT_NS_MAX && !process->is_library)
		cut_off(probes, process);
}

bool memory_probes_has(const struct memory_probes *probes, uint32_t tgid)
{
	const struct probed_process *process = program_find(probes, tgid);

	return !process || !process->is_cut_off;
}

/* --- the run --- */

static void look_at_processes(struct memory_probes *probes, int64_t now)
{
	uint32_t opened = 0;

	for (uint32_t i = 0; i < probes->process_count; i++) {
		struct probed_process *process = probes->processes[i];
		const enum file_state state = file_of(probes, process)->state;

		if (process->is_cut_off || (state != FILE_PROBED && state != FILE_BY_PROCESS))
			continue;
		if (state == FILE_BY_PROCESS && process->probes[0] < 0 && opened < OPENED_AT_ONCE) {
			open_own(probes, process);
			opened++;
		}
		rate_read(probes, process, now);
		settle(probes, process, now);
		if (first_of(probes, process->process) == process)
			charge(probes, process);
	}
}

void memory_probes_run(struct memory_probes *probes)
{
	int64_t now = monotonic_ms();

	probed_files_ask(probes->files);
	if (now - probes->looked_ms < LOOK_MS)
		return;
	probes->looked_ms = now;
	look_at_processes(probes, now);
	probed_files_tidy(probes->files, now);
}

static bool is_unseen(const struct memory_probes *probes, uint32_t tgid)
{
	for (uint32_t i = 0; i < UNSEEN; i++)
		if (probes->unseen[i] == tgid)
			return true;
	return false;
}

/* What has been forked has its parent's files mapped; another program begins with none. */
static void begin(void *context, struct process *process, struct process *from)
{
	struct memory_probes *probes = context;
	const uint32_t tgid = process->key.tgid;

	if (!from || from->key.tgid == tgid) {
		look_at(probes, tgid);
		return;
	}
	if (!is_wanted(probes, tgid))
		return;
	if (is_unseen(probes, from->key.tgid))
		look_for_library(probes, tgid);
	for (const struct probed_process *of = first_of(probes, from); of; of = of->next)
		process_add(probes, process, of->file, of->is_library);
}

static void end(void *context, struct process *process)
{
	struct memory_probes *probes = context;

	while (process->states[probes->room])
		process_drop(probes, process->states[probes->room]);
	capture_map_remove(probes->from.capture, KERNEL_MAP_ALLOC_COSTS, &process->key.tgid);
}

struct memory_probes *memory_probes_new(const struct memory_probes_sources *from, struct error *err)
{
	struct memory_probes *probes = calloc(1, sizeof *probes);

	if (probes) {
		probes->from = *from;
		probes->room = processes_room(
			from->processes,
			&(struct process_room){
				.begin = begin, .end = end, .context = probes, .holds = true});
		probes->files = calloc(1, sizeof *probes->files);
		probes->processes = calloc(PROCESSES_MAX, sizeof *probes->processes);
	}
	if (!probes || !probes->files || !probes->processes) {
		memory_probes_free(probes);
		error_set(err, ERROR_MEMORY, "no memory for probes");
		return NULL;
	}
	probes->files->capture = from->capture;
	probes->files->pages = from->pages;
	probes->files->wants_frees = from->wants_frees;
	look_at_all(probes);
	return probes;
}

void memory_probes_free(struct memory_probes *probes)
{
	if (!probes)
		return;
	while (probes->processes && probes->process_count)
		process_drop(probes, probes->processes[probes->process_count - 1]);
	processes_leave(probes->from.processes, probes->room);
	code_pages_set_memory(probes->from.pages, NULL, NULL);
	probed_files_free(probes->files);
	free(probes->processes);
	free(probes);
}

void memory_probes_counters(const struct memory_probes *probes, struct memory_probes_counters *out)
{
	*out = probes->counters;
	out->files = probed_files_now(probes->files);
	out->failed = probes->files->failed;
	out->refused += probes->files->refused;
	out->processes = 0;
	for (uint32_t i = 0; i < probes->process_count; i++) {
		const struct probed_process *process = probes->processes[i];
		const enum file_state state = file_of(probes, process)->state;

		out->processes += !process->is_cut_off &&
				  (state == FILE_PROBED || state == FILE_BY_PROCESS);
	}
}
