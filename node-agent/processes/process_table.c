/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/processes/process_table.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bpf/frames.h"
#include "node-agent/processes/executables.h"
#include "node-agent/processes/file_identities.h"
#include "node-agent/processes/kernel_map.h"
#include "node-agent/processes/mapped_files.h"
#include "node-agent/processes/memory_map.h"
#include "node-agent/processes/places.h"
#include "node-agent/processes/process_files.h"
#include "node-agent/processes/program_maps.h"
#include "node-agent/processes/programs.h"

enum {
	PROCESSES_DEFAULT = 32768,
	MAPPINGS_DEFAULT = 262144, /* 48 bytes each */
	EXECUTABLES_DEFAULT = 4096,
	LOOKS_MAX = 64, /* at files' contents, for the mappings of one program */
	CHECKS_PER_SWEEP = 16,
	LOWEST_CODE = 0x1000, /* below it is no code, whatever a wild frame pointer says */
};

#define STARTS_WITHIN_NS 10000000000ull /* an execve() that has to read its files */

struct process_table {
	char *proc_root;
	struct process_directory directory;
	struct executables *executables;
	struct file_identities *identities;
	struct mapped_files *files;
	struct mapping_pool pool;
	struct processes *processes;
	struct programs programs;
	struct program_maps maps;
	struct kernel_map *kernel;
	struct places places;
	unsigned command_lines;
	uint64_t refused; /* mapping events over a limit */
};

static void keep_file(void *context, uint32_t file)
{
	mapped_files_keep(context, file);
}

static void drop_file(void *context, uint32_t file)
{
	mapped_files_drop(context, file);
}

static size_t limit_or(size_t limit, size_t fallback)
{
	return limit ? limit : fallback;
}

static bool make_parts(struct process_table *table, const struct process_table_limits *limits,
		       struct error *err)
{
	size_t executables = limit_or(limits->executables, EXECUTABLES_DEFAULT);

	table->executables = executables_new(executables, err);
	if (!table->executables)
		return false;
	if (limits->numbers)
		executables_set_last_number(table->executables, limits->numbers);
	table->identities = file_identities_new(2 * executables, table->executables, err);
	if (!table->identities)
		return false;
	table->files = mapped_files_new(executables, table->executables, table->identities,
					&table->directory, err);
	table->processes = processes_new(limit_or(limits->processes, PROCESSES_DEFAULT), err);
	table->kernel = kernel_map_new(table->proc_root, table->executables, err);
	if (!table->files || !table->processes || !table->kernel)
		return false;
	programs_init(&table->programs, table->processes);
	table->pool = (struct mapping_pool){
		.limit = limit_or(limits->mappings, MAPPINGS_DEFAULT),
		.file_keep = keep_file,
		.file_drop = drop_file,
		.context = table->files,
	};
	table->maps = (struct program_maps){
		.directory = &table->directory,
		.files = table->files,
		.pool = &table->pool,
	};
	table->places = (struct places){.executables = table->executables,
					.files = table->files,
					.programs = &table->programs};
	return true;
}

struct process_table *process_table_new(const struct process_table_limits *limits,
					const char *proc_root, struct error *err)
{
	struct process_table *table = calloc(1, sizeof(*table));

	if (!table || !(table->proc_root = strdup(proc_root))) {
		free(table);
		error_set(err, ERROR_MEMORY, "no memory for the process table");
		return NULL;
	}
	process_directory_init(&table->directory, table->proc_root);
	if (!make_parts(table, limits, err)) {
		process_table_free(table);
		return NULL;
	}
	return table;
}

void process_table_free(struct process_table *table)
{
	if (!table)
		return;
	kernel_map_free(table->kernel);
	processes_free(table->processes); /* drops file references */
	mapped_files_free(table->files);
	file_identities_free(table->identities);
	executables_free(table->executables);
	process_directory_close(&table->directory);
	free(table->proc_root);
	free(table);
}

struct processes *process_table_processes(struct process_table *table)
{
	return table->processes;
}

void process_table_set_command_lines(struct process_table *table, unsigned what)
{
	table->command_lines = what;
}

/* --- files --- */

void process_table_set_reader(struct process_table *table, const struct file_reader *reader)
{
	file_identities_set_reader(table->identities, reader);
}

void process_table_file(struct process_table *table, uint32_t number,
			const struct file_content *content, bool is_hung)
{
	file_identities_answer(table->identities, number, content, is_hung);
}

uint32_t process_table_files(const struct process_table *table)
{
	return file_identities_answered(table->identities);
}

/* --- events --- */

void process_table_exec(struct process_table *table, uint32_t tgid, uint64_t time_ns)
{
	processes_exec(table->processes, tgid, time_ns);
}

void process_table_fork(struct process_table *table, uint32_t tgid, uint32_t parent,
			uint64_t time_ns)
{
	processes_fork(table->processes, tgid, parent, time_ns);
}

void process_table_exit(struct process_table *table, uint32_t tgid, uint64_t time_ns)
{
	processes_exit(table->processes, tgid, time_ns);
}

/* The file is opened at once when nothing is known of its content, or it is not open: its process
 * may be gone before a sample asks for it. */
static bool fill_file_row(struct process_table *table, const struct program *program,
			  const struct mapping_event *event, const char *path, struct mapping *row)
{
	const struct mapped_file_key key = {
		.inode = event->inode,
		.device_major = event->device_major,
		.device_minor = event->device_minor,
		.build_id = event->build_id,
		.path = path,
	};

	row->kind = MAPPING_FILE;
	row->file_offset = event->file_offset;
	row->file = mapped_files_add(table->files, &key);
	if (row->file == MAPPED_FILE_NONE)
		return false;
	if (!mapped_files_is_known(table->files, row->file) ||
	    !mapped_files_is_open(table->files, row->file))
		mapped_files_resolve(table->files, row, event->tgid, program_start_ns(program));
	return true;
}

static bool own_set(struct process_table *table, struct program *program)
{
	if (!program->set)
		program->set = mapping_set_new(&table->pool);
	return program->set && mapping_set_own(&program->set);
}

void process_table_mapping(struct process_table *table, const struct mapping_event *event)
{
	struct mapping row = {.start = event->start,
			      .end = event->start + event->length,
			      .since = MAPPING_SINCE_NOW};
	struct program *program;
	char path[MEMORY_PATH_MAX];
	enum memory_kind kind;

	program = programs_current_or_new(&table->programs, event->tgid, event->time_ns);
	if (!program || row.end <= row.start || !own_set(table, program)) {
		table->refused++;
		return;
	}
	if (strlen(event->path) < sizeof(path))
		strcpy(path, event->path);
	else
		path[0] = '\0';
	memory_path_cut_deleted(path);
	kind = memory_kind_of(path, event->inode || event->build_id.length);
	if (event->is_anonymous && kind == MEMORY_FILE)
		kind = MEMORY_ANONYMOUS;
	row.kind = mapping_kind_of(kind);
	if (kind == MEMORY_FILE) {
		if (program->process->origin == PROCESS_EXECED && !program->exec_path &&
		    path[0] == '/')
			program->exec_path = strdup(path);
		if (!fill_file_row(table, program, event, path, &row)) {
			program->set->is_truncated = true;
			table->refused++;
			return;
		}
	}
	table->refused += !mapping_set_add(program->set, &row);
}

/* --- one sample --- */

/* A forked process has its parent's memory, and the parent is there longer: its maps are read once
 * for all the children. */
static void take_from_parent(struct process_table *table, struct program *program, uint64_t time_ns)
{
	struct program *parent = programs_parent(&table->programs, program);

	if (!parent || (!parent->is_complete &&
			!program_maps_read(&table->maps, parent, time_ns, NEED_CERTAIN)))
		return;
	mapping_set_free(program->set);
	program->set = mapping_set_share(parent->set);
	program->is_complete = true;
}

static void read_info(struct process_table *table, struct program *program,
		      const struct program_info *inherited, bool is_forked, uint64_t time_ns)
{
	int directory = -1; /* gone, or the pid runs something else by now */
	struct program_info *info;

	if (program->process->is_current)
		directory = process_directory_of(&table->directory, program->process->key.tgid,
						 program_start_ns(program));
	info = program_info_read(directory,
				 &(struct program_info_source){
					 .key = program->process->key,
					 .inherited = inherited,
					 .exec_path = program->exec_path,
					 .is_execed = program->process->origin == PROCESS_EXECED,
					 .is_forked = is_forked,
					 .command_lines = table->command_lines,
				 });
	program->info_ns = time_ns;
	if (program->info && !(info && *info->lifetime.command)) { /* it has ended meanwhile */
		program_info_free(info);
		return;
	}
	program_info_free(program->info);
	program->info = info;
}

/* The kernel counts the programs of a process, and a child begins with its parent's count: where
 * that is another one, a program began of which nobody told. */
static bool runs_as_parent(const struct program *program, const struct program *parent)
{
	return program->process->origin == PROCESS_FORKED &&
	       !(parent && parent->process->is_identified && program->process->is_identified &&
		 parent->process->key.exec_id != program->process->key.exec_id);
}

/* Of a forked process its parent says what it ran before it started something else. */
static void read_infos(struct process_table *table, struct program *program, uint64_t time_ns)
{
	struct program *parent = programs_parent(&table->programs, program);
	const struct program_info *inherited = program->inherited;

	if (parent && !inherited) {
		if (!parent->info)
			read_info(table, parent, parent->inherited, false, time_ns);
		inherited = parent->info;
	}
	read_info(table, program, inherited, runs_as_parent(program, parent), time_ns);
}

/* One that was read while it began is read again, some times if it has no arguments at all. */
static bool needs_info(const struct program *program, uint64_t time_ns)
{
	return !program->info ||
	       (program->info->is_starting && time_ns > program->info_ns + PROCESS_DOUBT_NS &&
		time_ns < program->process->born_ns + STARTS_WITHIN_NS);
}

/* Whether all its mappings are known. A program has some soon after its exec: else nobody told. */
static bool is_told(const struct program *program, uint64_t time_ns)
{
	return program->is_complete &&
	       (program->set || time_ns <= program->process->born_ns + PROCESS_DOUBT_NS);
}

/* Everything that is known of a program with its first sample, while it is most likely still there.
 */
static void prepare(struct process_table *table, struct program *program, uint64_t time_ns)
{
	if (needs_info(program, time_ns))
		read_infos(table, program, time_ns);
	if (is_told(program, time_ns))
		return;
	if (program->process->origin == PROCESS_FORKED)
		take_from_parent(table, program, time_ns);
	if (!is_told(program, time_ns))
		program_maps_read(&table->maps, program, time_ns, NEED_CERTAIN);
}

static struct mapping *find_mapping(struct process_table *table, struct program *program,
				    uint64_t address, uint64_t time_ns, bool *may_read,
				    enum program_need need)
{
	struct mapping *row = NULL;

	if (program->set)
		row = mapping_set_find(program->set, address, &program->near);
	if (row || !*may_read || address < LOWEST_CODE || address > INT64_MAX)
		return row;
	*may_read = false; /* once a sample */
	if (!program_maps_read(&table->maps, program, time_ns, need))
		return NULL;
	row = mapping_set_find(program->set, address, &program->near);
	if (row)
		program_maps_helped(program, need);
	return row;
}

static void fill_rest(struct located_frame *out, size_t from, size_t count, enum frame_place where)
{
	for (size_t i = from; i < count; i++)
		out[i] = (struct located_frame){.place = where};
}

size_t process_table_locate(struct process_table *table, const struct process_key *key,
			    uint64_t time_ns, const uint64_t *words, size_t count,
			    bool is_interrupted_leaf, struct located_frame *out)
{
	const uint32_t frames = stack_frame_count(words, (uint32_t)count);
	struct program *program = programs_for_sample(&table->programs, key, time_ns);
	bool may_read = program && program->is_complete;
	uint32_t at = 0;
	size_t i;

	executables_set_time(table->executables, time_ns);
	if (program)
		prepare(table, program, time_ns);
	if (!program || !program->set) {
		fill_rest(out, 0, frames, PLACE_UNKNOWN);
		return 0;
	}
	for (i = 0; i < frames; i++, at = stack_frame_next(words, (uint32_t)count, at)) {
		bool is_exact = i == 0 && is_interrupted_leaf;
		uint64_t address = words[at] - !is_exact;
		struct mapping *row;

		if (stack_frame_is_java(words[at])) {
			out[i] = (struct located_frame){.place = PLACE_JAVA, .address = at};
			continue;
		}
		row = find_mapping(table, program, address, time_ns, &may_read,
				   is_exact ? NEED_CERTAIN : NEED_PERHAPS);
		if (!row) {
			bool known = program->is_complete && !program->set->is_truncated;

			fill_rest(out, i, frames, known ? PLACE_NOT_CODE : PLACE_UNKNOWN);
			return i;
		}
		places_locate(&table->places, program, row, address, time_ns, &out[i]);
	}
	return frames;
}

/* --- for the kernel side --- */

/* NULL: nothing is known of its mappings. */
static struct program *prepared(struct process_table *table, const struct process_key *key,
				uint64_t time_ns)
{
	struct program *program = programs_for_sample(&table->programs, key, time_ns);

	if (program)
		prepare(table, program, time_ns);
	return program && program->set ? program : NULL;
}

static size_t program_mappings(struct process_table *table, struct program *program,
			       uint64_t time_ns, struct process_mapping *out, size_t room,
			       uint32_t *generation)
{
	bool is_unseen_left = false;
	size_t count = 0;
	int looks = 0;

	executables_set_time(table->executables, time_ns);
	for (uint32_t i = 0; i < program->set->count && count < room; i++) {
		struct mapping *row = &program->set->rows[i];
		bool is_unseen = places_is_unseen(&table->places, row, time_ns);

		is_unseen_left |= !places_mapping(&table->places, program, row, time_ns,
						  looks < LOOKS_MAX, &out[count++]);
		looks += is_unseen;
	}
	*generation = program->set->version;
	if (is_unseen_left)
		mapping_set_changed(program->set); /* the next answer has more */
	return count;
}

size_t process_table_mappings(struct process_table *table, const struct process_key *key,
			      uint64_t time_ns, struct process_mapping *out, size_t room,
			      uint32_t *generation)
{
	struct program *program = prepared(table, key, time_ns);

	*generation = 0;
	if (!program)
		return 0;
	if (program->process->ended_ns) { /* a late sample's; nobody would take it back */
		*generation = program->set->version;
		return 0;
	}
	return program_mappings(table, program, time_ns, out, room, generation);
}

size_t process_table_current_mappings(struct process_table *table, uint32_t tgid, uint64_t time_ns,
				      struct process_mapping *out, size_t room)
{
	struct process *process = processes_current(table->processes, tgid);
	struct program *program = process ? programs_current_or_new(&table->programs, tgid, time_ns)
					  : NULL;
	uint32_t generation;

	return program && program->set && !process->ended_ns
		       ? program_mappings(table, program, time_ns, out, room, &generation)
		       : 0;
}

uint32_t process_table_generation(struct process_table *table, const struct process_key *key,
				  uint64_t time_ns)
{
	const struct program *program = prepared(table, key, time_ns);

	return program ? program->set->version : 0;
}

bool process_table_read_code(struct process_table *table, const struct process_key *key,
			     uint64_t address, void *to, size_t length)
{
	struct program *program = programs_find(&table->programs, key);
	struct mapping *row = program && program->set
				      ? mapping_set_find(program->set, address, &program->near)
				      : NULL;

	if (row && row->kind == MAPPING_FILE && row->executable_index)
		process_table_reopen(table, row->executable_index);
	return row && length <= row->end - address &&
	       places_read(&table->places, row, address, to, length);
}

size_t process_table_locate_kernel(struct process_table *table, const uint64_t *addresses,
				   size_t count, bool is_interrupted_leaf,
				   struct located_frame *out)
{
	for (size_t i = 0; i < count; i++)
		kernel_map_locate(table->kernel, addresses[i] - (i > 0 || !is_interrupted_leaf),
				  &out[i]);
	return count;
}

const struct process_info *process_table_info(struct process_table *table,
					      const struct process_key *key, uint64_t time_ns)
{
	static const struct process_info nothing = {"", "", "", "", "", "", NULL};
	struct program *program = programs_for_sample(&table->programs, key, time_ns);

	if (program && needs_info(program, time_ns))
		read_infos(table, program, time_ns);
	return program && program->info ? &program->info->shown : &nothing;
}

/* --- the rest --- */

const struct executable *process_table_executable(struct process_table *table, uint32_t index)
{
	return executables_by_index(table->executables, index);
}

void process_table_announced(struct process_table *table, uint32_t index)
{
	executables_announced(table->executables, index);
}

uint32_t process_table_take_forgotten(struct process_table *table)
{
	return executables_take_forgotten(table->executables);
}

bool process_table_reopen(struct process_table *table, uint32_t index)
{
	return file_identities_reopen(table->identities, table->proc_root, index);
}

static bool is_there(const struct process_table *table, const struct process *process)
{
	const uint64_t start_ns = process->is_identified ? process->key.start_time_ns : 0;
	int directory = !process->is_current ? -1
					     : process_directory_open(table->proc_root,
								      process->key.tgid, start_ns);

	if (directory >= 0)
		close(directory);
	return directory >= 0;
}

void process_table_sweep(struct process_table *table, uint64_t time_ns)
{
	executables_set_time(table->executables, time_ns);
	executables_close_idle(table->executables);
	process_directory_close(&table->directory);
	for (int i = 0; i < CHECKS_PER_SWEEP; i++) {
		struct process *process = processes_next_to_check(table->processes, time_ns);

		if (!process)
			break;
		if (!is_there(table, process))
			processes_end(table->processes, process, time_ns);
	}
	processes_sweep(table->processes, time_ns);
}

void process_table_counters(const struct process_table *table, struct process_table_counters *out)
{
	const struct file_identities_counters *files = file_identities_counters(table->identities);
	struct processes_counters processes;

	processes_counters(table->processes, &processes);
	*out = (struct process_table_counters){
		.maps_read = table->maps.read,
		.maps_failed = table->maps.failed,
		.maps_backed_off = table->maps.backed_off,
		.files_opened = files->opened,
		.files_failed = mapped_files_failed(table->files),
		.files_hung = files->hung,
		.files_unnumbered = executables_unnumbered(table->executables),
		.lost_limit = table->refused + table->maps.refused +
			      executables_refused(table->executables) + processes.pushed_out +
			      processes.refused,
	};
}
