/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/runtimes/jit_files.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "node-agent/kernel/stranger_reader.h"
#include "node-agent/processes/process_files.h"
#include "node-agent/processes/processes.h"
#include "node-agent/runtimes/jit_places.h"

enum {
	PROCESSES_MAX = 1024,
	CODE_BYTES_MAX = 8 << 20, /* of a process */
	ALL_BYTES_MAX = 24 << 20,
	LOOKS_A_RUN = 8,
	PIECES_A_SECOND = 64,
	LOOK_AGAIN_MS = 1000, /* whether a file has grown */
	LOOK_SOON_MS = 250,   /* the same, when it does, or many samples wait */
	LOOK_FIRST_MS = 250,  /* whether there is one; doubles … */
	LOOK_DOUBLINGS = 6,   /* … up to 16 s */
	MAPS_EVERY = 16, /* looks, after the first ones: reading maps is dear, 0.3 ms and more */
	FAILED_PAUSE_MS = 600 * 1000,
	EMPTY_MAX = 16,        /* pieces in a row without any code: a file of something else */
	ANSWER_MS = 10 * 1000, /* a parser that has forgotten the question is asked again */
};

#define FILE_BYTES_MAX (UINT64_C(1) << 30) /* read of one file */

struct file {
	struct jit_place place;
	uint64_t next, limit; /* read up to; there were so many bytes */
	uint64_t seen_ns;     /* when limit was */
	uint64_t read_ns;     /* all that was there then is read; 0: nothing was */
	int fd;               /* −1: it is not being read */
	int64_t asked_ms;     /* 0: nothing is asked */
	int64_t not_before_ms;
	uint32_t empty; /* pieces since the last code */
	bool is_full;
};

struct followed {
	struct process *process;
	uint32_t at, number; /* in items; of questions */
	uint32_t looks;      /* without having found a file, … */
	uint32_t all_looks;  /* … and in all */
	bool has_grown;      /* a file, when it was looked at last */
	int64_t due_ms, looked_ms, used_ms;
	struct jit_owner owner;
	struct file files[JIT_FORMATS];
	struct jit_code *code; /* NULL: nothing is known */
};

struct jit_files {
	struct processes *processes;
	struct code_pages *pages;
	struct jit_files_counters counters;
	uint32_t room, last_number;
	struct followed *items[PROCESSES_MAX]; /* [count]; the last fills a gap */
	uint32_t count, at;
	uint32_t reading; /* have a file that is being read */
	int64_t now_ms, second_ms;
	uint32_t pieces; /* in this second */
	uint32_t progress;
};

const char *jit_language_type(enum jit_language language)
{
	static const char *const types[JIT_LANGUAGES] = {
		[JIT_UNKNOWN] = "jit",   [JIT_V8] = "v8js",   [JIT_PYTHON] = "cpython",
		[JIT_DOTNET] = "dotnet", [JIT_BEAM] = "beam", [JIT_LUAJIT] = "luajit",
		[JIT_JVM] = "jvm"};

	return types[language];
}

/* --- processes --- */

static void end_reading(struct jit_files *files, struct file *file)
{
	if (file->fd >= 0) {
		close(file->fd);
		files->reading--;
	}
	file->fd = -1;
	file->asked_ms = 0;
	files->progress++;
}

static void drop_code(struct jit_files *files, struct followed *followed)
{
	if (followed->code) {
		files->counters.bytes -= jit_code_bytes(followed->code);
		files->counters.entries -= jit_code_count(followed->code);
	}
	jit_code_free(followed->code);
	followed->code = NULL;
}

static void forget(struct jit_files *files, struct followed *followed)
{
	struct followed *last = files->items[--files->count];

	for (int i = 0; i < JIT_FORMATS; i++)
		end_reading(files, &followed->files[i]);
	drop_code(files, followed);
	last->at = followed->at;
	files->items[last->at] = last;
	processes_hang(files->processes, followed->process, files->room, NULL);
	free(followed);
}

static void forget_process(void *context, struct process *process)
{
	struct jit_files *files = context;

	forget(files, process->states[files->room]);
}

static struct followed *follow(struct jit_files *files, struct process *process)
{
	struct followed *followed = files->count < PROCESSES_MAX ? calloc(1, sizeof *followed)
								 : NULL;

	if (!followed)
		return NULL;
	followed->process = process;
	followed->at = files->count;
	followed->number = ++files->last_number % (1u << 28);
	for (int i = 0; i < JIT_FORMATS; i++)
		followed->files[i].fd = -1;
	files->items[files->count++] = followed;
	processes_hang(files->processes, process, files->room, followed);
	return followed;
}

static struct jit_code *code_of(struct jit_files *files, struct followed *followed)
{
	if (followed->code || files->counters.bytes > ALL_BYTES_MAX)
		return followed->code;
	followed->code = jit_code_new(CODE_BYTES_MAX);
	if (followed->code)
		files->counters.bytes += jit_code_bytes(followed->code);
	return followed->code;
}

enum jit_find jit_files_find(struct jit_files *files, const struct process_key *key,
			     uint64_t address, uint64_t time_ns, struct jit_name *name)
{
	struct process *process = processes_find(files->processes, key);
	struct followed *followed = process ? process->states[files->room] : NULL;
	enum jit_find found = JIT_NOT_FOUND;

	if (process && !followed)
		followed = follow(files, process);
	if (!followed)
		return JIT_NOT_FOUND;
	followed->used_ms = files->now_ms;
	if (followed->code)
		found = jit_code_find(followed->code, address, time_ns, name);
	files->counters.named += found == JIT_FOUND;
	files->counters.unnamed += found != JIT_FOUND;
	files->counters.unsure += found == JIT_UNSURE;
	if (found == JIT_FOUND && name->language == JIT_UNKNOWN)
		name->language = followed->owner.language;
	return found;
}

/* Where there is a dump it alone is read. */
static bool is_unread(const struct jit_files *files, const struct followed *followed,
		      uint64_t time_ns)
{
	const struct file *dump = &followed->files[JIT_DUMP];
	const struct file *file = dump->place.inode ? dump : &followed->files[JIT_PERF_MAP];

	return file->place.inode && !file->is_full && files->now_ms >= file->not_before_ms &&
	       file->read_ns <= time_ns;
}

bool jit_files_is_coming(struct jit_files *files, const struct process_key *key, uint64_t time_ns,
			 bool is_urgent)
{
	struct process *process = processes_find(files->processes, key);
	struct followed *followed = process ? process->states[files->room] : NULL;

	if (process && !followed && !process->ended_ns)
		followed = follow(files, process);
	if (!followed || process->ended_ns)
		return false;
	followed->used_ms = files->now_ms;
	if (!followed->looked_ms)
		return true;
	if (!is_unread(files, followed, time_ns))
		return false;
	if ((is_urgent || followed->has_grown) &&
	    followed->due_ms > followed->looked_ms + LOOK_SOON_MS)
		followed->due_ms = followed->looked_ms + LOOK_SOON_MS;
	return true;
}

uint32_t jit_files_progress(const struct jit_files *files)
{
	return files->progress;
}

/* --- reading --- */

static bool may_read(struct jit_files *files)
{
	if (files->now_ms - files->second_ms >= 1000) {
		files->second_ms = files->now_ms;
		files->pieces = 0;
	}
	return files->pieces < PIECES_A_SECOND;
}

static void ask(struct jit_files *files, struct followed *followed, enum jit_format format)
{
	struct file *file = &followed->files[format];
	const struct file_parser_piece piece = {format, file->next, file->limit};

	if (file->fd < 0 || !may_read(files) ||
	    (file->asked_ms && files->now_ms - file->asked_ms < ANSWER_MS))
		return;
	file->asked_ms = 0;
	if (!code_pages_ask_jit(files->pages, followed->number * JIT_FORMATS + format, file->fd,
				&piece))
		return;
	files->pieces++;
	file->asked_ms = files->now_ms;
}

static void give_up(struct jit_files *files, struct followed *followed, struct file *file,
		    const char *why)
{
	files->counters.failed++;
	file->not_before_ms = files->now_ms + FAILED_PAUSE_MS;
	file->limit = file->next; /* the rest is as good as new then */
	end_reading(files, file);
	log_debug("names of code not read", "pid=%u why=\"%s\"", followed->process->key.tgid, why);
}

static void keep(struct jit_files *files, struct followed *followed, struct file *file,
		 const struct jit_chunk *chunk)
{
	struct jit_code *code = code_of(files, followed);
	uint32_t refused = chunk->head.count;

	if (code) {
		files->counters.bytes -= jit_code_bytes(code);
		files->counters.entries -= jit_code_count(code);
		refused = jit_code_add(code, chunk, file->read_ns, file->seen_ns);
		files->counters.bytes += jit_code_bytes(code);
		files->counters.entries += jit_code_count(code);
	}
	files->counters.pieces++;
	file->empty = chunk->head.count ? 0 : file->empty + (chunk->head.next > file->next);
	files->counters.refused += refused + chunk->head.refused;
	files->counters.cut += chunk->head.cut;
	file->is_full |= refused || files->counters.bytes > ALL_BYTES_MAX;
}

static struct followed *find_number(struct jit_files *files, uint32_t number)
{
	for (uint32_t i = 0; i < files->count; i++)
		if (files->items[i]->number == number)
			return files->items[i];
	return NULL;
}

static void take(void *context, uint32_t number, const struct jit_chunk *chunk)
{
	struct jit_files *files = context;
	struct followed *followed = find_number(files, number / JIT_FORMATS);
	struct file *file = followed ? &followed->files[number % JIT_FORMATS] : NULL;
	uint64_t before;

	if (!file || !file->asked_ms)
		return;
	file->asked_ms = 0;
	if (chunk && !chunk->head.is_wrong)
		keep(files, followed, file, chunk);
	if (!chunk || chunk->head.is_wrong || file->empty >= EMPTY_MAX) {
		file->empty = 0;
		give_up(files, followed, file, chunk ? "no such file" : "it could not be read");
		return;
	}
	before = file->next;
	if (chunk->head.next > before)
		file->next = chunk->head.next < file->limit ? chunk->head.next : file->limit;
	if (file->next > before && file->next < file->limit && !file->is_full) {
		ask(files, followed, (enum jit_format)(number % JIT_FORMATS));
		return;
	}
	file->read_ns = file->seen_ns;
	end_reading(files, file);
}

/* --- looking --- */

static void count_found(struct jit_files *files, const struct file *file)
{
	files->counters.maps += file->place.format == JIT_PERF_MAP;
	files->counters.dumps += file->place.format == JIT_DUMP;
}

/* Another file, or one that begins anew: what was known is of no use. */
static void begin(struct jit_files *files, struct followed *followed, struct file *file)
{
	drop_code(files, followed);
	for (int i = 0; i < JIT_FORMATS; i++) {
		struct file *each = &followed->files[i];

		each->next = each->limit = each->read_ns = 0;
		each->is_full = false;
	}
	count_found(files, file);
}

/* What cannot be opened is tried again with the next look. */
static void begin_reading(struct jit_files *files, struct followed *followed, struct file *file,
			  int path_fd)
{
	file->fd = stranger_reopen(path_fd);
	if (file->fd < 0)
		return;
	files->reading++;
	file->seen_ns = file->place.seen_ns;
	file->limit = file->place.bytes < FILE_BYTES_MAX ? file->place.bytes : FILE_BYTES_MAX;
	ask(files, followed, file->place.format);
}

/* What there is of it now, and reads what has come. */
static bool look_at(struct jit_files *files, struct followed *followed, int directory,
		    enum jit_format format)
{
	struct file *file = &followed->files[format];
	const struct jit_place before = file->place;
	int path_fd;

	if (file->fd >= 0 || file->is_full || files->now_ms < file->not_before_ms)
		return file->place.inode;
	file->place.format = format;
	path_fd = jit_place_look(directory, followed->process, &followed->owner, &file->place);
	if (path_fd == JIT_PLACE_FOREIGN) {
		files->counters.foreign++;
		file->not_before_ms = files->now_ms + FAILED_PAUSE_MS;
	}
	if (path_fd < 0)
		return false;
	if (!jit_place_is_same(&before, &file->place) || file->place.bytes < file->next)
		begin(files, followed, file);
	followed->has_grown = file->place.bytes > file->limit && file->limit < FILE_BYTES_MAX;
	if (followed->has_grown)
		begin_reading(files, followed, file, path_fd);
	else
		file->read_ns = file->place.seen_ns;
	close(path_fd);
	return true;
}

static bool look_in(struct jit_files *files, struct followed *followed, int directory)
{
	struct jit_place *dump = &followed->files[JIT_DUMP].place;
	const bool reads_maps = followed->all_looks < LOOK_DOUBLINGS ||
				followed->all_looks % MAPS_EVERY == 0;

	if (!jit_owner_read(directory, &followed->owner))
		return false;
	if (!dump->end && reads_maps)
		jit_place_find(directory, &followed->owner, dump);
	if (dump->end && look_at(files, followed, directory, JIT_DUMP))
		return true;
	return look_at(files, followed, directory, JIT_PERF_MAP);
}

static void look(struct jit_files *files, struct followed *followed)
{
	const struct process_key *key = &followed->process->key;
	int directory = process_directory_open("/proc", key->tgid, key->start_time_ns);
	bool is_found = directory >= 0 && look_in(files, followed, directory);
	uint32_t doublings = followed->looks < LOOK_DOUBLINGS ? followed->looks : LOOK_DOUBLINGS;

	if (directory >= 0)
		close(directory);
	followed->looked_ms = files->now_ms;
	files->progress++;
	followed->looks = is_found ? 0 : followed->looks + 1;
	followed->all_looks++;
	followed->due_ms = files->now_ms +
			   (is_found ? LOOK_AGAIN_MS : (int64_t)LOOK_FIRST_MS << doublings);
}

static bool is_due(const struct jit_files *files, const struct followed *followed)
{
	return !followed->process->ended_ns && files->now_ms >= followed->due_ms &&
	       (!followed->looked_ms || followed->used_ms >= followed->looked_ms);
}

void jit_files_run(struct jit_files *files, int64_t now_ms)
{
	uint32_t looks = 0;

	files->now_ms = now_ms;
	for (uint32_t seen = 0; seen < files->count && looks < LOOKS_A_RUN; seen++) {
		struct followed *followed;

		if (files->at >= files->count)
			files->at = 0;
		followed = files->items[files->at++];
		for (int i = 0; files->reading && i < JIT_FORMATS; i++)
			ask(files, followed, (enum jit_format)i);
		if (!is_due(files, followed))
			continue;
		look(files, followed);
		looks++;
	}
}

/* --- life --- */

struct jit_files *jit_files_new(struct processes *processes, struct code_pages *pages,
				struct error *err)
{
	struct jit_files *files = calloc(1, sizeof *files);

	if (!files) {
		error_set(err, ERROR_MEMORY, "no memory for the names of code");
		return NULL;
	}
	files->processes = processes;
	files->pages = pages;
	files->room = processes_room(
		processes, &(struct process_room){.forget = forget_process, .context = files});
	code_pages_set_jit(pages, take, files);
	return files;
}

void jit_files_free(struct jit_files *files)
{
	if (!files)
		return;
	while (files->count)
		forget(files, files->items[files->count - 1]);
	processes_leave(files->processes, files->room);
	code_pages_set_jit(files->pages, NULL, NULL);
	free(files);
}

void jit_files_counters(const struct jit_files *files, struct jit_files_counters *out)
{
	*out = files->counters;
	out->processes = 0;
	for (uint32_t i = 0; i < files->count; i++)
		out->processes += files->items[i]->code != NULL;
}
