/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/stacks/runtime_stack.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bpf/off_cpu.h"
#include "bpf/runtime_frames.h"
#include "common/clock.h"
#include "node-agent/kernel/stranger_reader.h"
#include "node-agent/processes/process_files.h"
#include "node-agent/runtimes/python_thread_names.h"

struct runtime_stacks {
	struct runtimes *runtimes;
	struct python_codes *codes;
	struct python_thread_names *names;
	struct runtime_stacks_counters counters;
	uint8_t roles[USER_FRAMES_MAX];
	struct counted_frame native[USER_FRAMES_MAX];
	struct merged_frame merged[USER_FRAMES_MAX + RUNTIME_FRAMES_MAX];
};

struct runtime_stacks *runtime_stacks_new(struct runtimes *runtimes, struct error *err)
{
	struct runtime_stacks *stacks = calloc(1, sizeof *stacks);

	if (stacks)
		stacks->codes = python_codes_new(PYTHON_CODES_BYTES);
	if (stacks)
		stacks->names = python_thread_names_new();
	if (!stacks || !stacks->codes || !stacks->names) {
		error_set(err, ERROR_MEMORY, "no memory for interpreters' names");
		runtime_stacks_free(stacks);
		return NULL;
	}
	stacks->runtimes = runtimes;
	return stacks;
}

void runtime_stacks_free(struct runtime_stacks *stacks)
{
	if (!stacks)
		return;
	python_codes_free(stacks->codes);
	python_thread_names_free(stacks->names);
	free(stacks);
}

/* --- names --- */

/* The process' memory; its directory is opened once something has to be read. */
struct reading {
	struct runtime_stacks *stacks;
	struct process_key process;
	struct python_memory memory;
	struct python_layout layout;
	uint64_t now_ns;
	int directory; /* −1: not yet; −2: it cannot be */
	bool has_layout;
};

static bool open_process(struct reading *reading)
{
	if (reading->directory == -1)
		reading->directory = process_directory_open("/proc", reading->process.tgid,
							    reading->process.start_time_ns);
	if (reading->directory < 0)
		reading->directory = -2;
	return reading->directory >= 0;
}

static bool read_memory(void *context, uint64_t address, void *to, size_t bytes)
{
	struct reading *reading = context;

	return open_process(reading) &&
	       stranger_memory_read(reading->directory, address, to, bytes);
}

static bool copy_code(void *context, struct runtime_code_event *told)
{
	struct reading *reading = context;
	struct runtime_place place;
	uint32_t version;

	return runtimes_place(reading->stacks->runtimes, &reading->process, &place, &version) &&
	       open_process(reading) && stranger_code_read(reading->directory, &place.layout, told);
}

static void reading_begin(struct reading *reading, struct runtime_stacks *stacks,
			  struct process_key process)
{
	*reading = (struct reading){.stacks = stacks,
				    .process = process,
				    .memory = {read_memory, reading, copy_code},
				    .now_ns = monotonic_ns(),
				    .directory = -1};
	reading->has_layout = runtimes_layout(stacks->runtimes, &process, &reading->layout);
}

static void reading_end(struct reading *reading)
{
	if (reading->directory >= 0)
		close(reading->directory);
}

/* NULL: it has no name. */
static const struct python_code *find_code(struct reading *reading, const uint64_t *words)
{
	if (!reading->has_layout)
		return NULL;
	return python_codes_find(reading->stacks->codes, &reading->process, &reading->memory,
				 &reading->layout, stack_frame_address(words[0]),
				 runtime_frame_cookie(words[1]), reading->now_ns);
}

/* What has no name still is a frame of Python's. False: it is the interpreter's own. */
static bool name_frame(struct reading *reading, const uint64_t *words, struct counted_frame *frame)
{
	struct runtime_stacks *stacks = reading->stacks;
	const struct python_code *code = find_code(reading, words);

	if (code && code->is_interpreters)
		return false;
	*frame = (struct counted_frame){
		.kind = PROFILE_FRAME_NAMED, .function = "[no name]", .type = "cpython"};
	stacks->counters.frames++;
	stacks->counters.nameless += !code;
	if (!code)
		return true;
	frame->function = code->name;
	frame->file = code->file;
	frame->line = python_code_line(code, runtime_frame_position(words[1]));
	return true;
}

/* --- the thread --- */

static bool is_alive(void *context, uint32_t tid)
{
	const struct reading *reading = context;
	char path[32];
	struct stat st;

	snprintf(path, sizeof path, "task/%u", tid);
	return reading->directory >= 0 && !fstatat(reading->directory, path, &st, 0);
}

const char *runtime_stacks_thread_name(struct runtime_stacks *stacks,
				       const struct sample_event *sample)
{
	const char *name = NULL;
	struct reading reading;

	if (!sample->runtime_thread || sample->tid == sample->tgid)
		return NULL;
	reading_begin(&reading, stacks, process_key_of(sample));
	if (reading.has_layout)
		name = python_thread_names_find(
			stacks->names,
			&(struct python_thread){
				.process = reading.process,
				.tid = sample->tid,
				.thread = sample->runtime_thread,
				.state = runtimes_state(stacks->runtimes, &reading.process),
				.now_ns = reading.now_ns,
				.memory = &reading.memory,
				.layout = &reading.layout,
				.is_alive = is_alive});
	reading_end(&reading);
	return name;
}

/* --- the interpreter's lock --- */

bool runtime_stacks_is_lock(const struct runtime_stacks *stacks, const struct sample_event *sample)
{
	const struct process_key key = process_key_of(sample);

	return sample->type == EVENT_SAMPLE_SWITCH && sample->wait.state != SWITCH_RUNNABLE &&
	       runtimes_is_lock(stacks->runtimes, &key, sample->wait.futex);
}

struct counted_frame runtime_lock_frame(void)
{
	return (struct counted_frame){
		.kind = PROFILE_FRAME_NAMED, .function = "[GIL]", .type = "cpython"};
}

size_t runtime_stacks_lock_leaves(const struct runtime_stacks *stacks,
				  const struct located_frame *located, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (located[i].place == PLACE_FILE &&
		    runtimes_is_file(stacks->runtimes, located[i].executable->index))
			return i;
	return 0;
}

/* --- joining --- */

/* Of no interpreter's file. Which files have greenlets is asked where it matters. */
static enum native_role other_role(struct runtime_stacks *stacks, const struct located_frame *frame,
				   bool has_list)
{
	return has_list && frame->place == PLACE_FILE &&
			       runtimes_has_greenlets(stacks->runtimes, frame->executable->index)
		       ? NATIVE_SWITCH
	       : frame->place == PLACE_ANONYMOUS ? NATIVE_MADE
						 : NATIVE_OTHER;
}

/* Whether any of them is an interpreter's. */
static bool find_roles(struct runtime_stacks *stacks, const struct located_frame *located,
		       size_t count, bool has_list)
{
	bool has_runtime = false;

	for (size_t i = 0; i < count; i++) {
		const struct located_frame *frame = &located[i];

		if (frame->place != PLACE_FILE ||
		    !runtimes_is_file(stacks->runtimes, frame->executable->index)) {
			stacks->roles[i] = other_role(stacks, frame, has_list);
			continue;
		}
		has_runtime = true;
		stacks->roles[i] = runtimes_is_loop(stacks->runtimes, frame->executable->index,
						    frame->address)
					   ? NATIVE_LOOP
					   : NATIVE_RUNTIME;
	}
	return has_runtime;
}

/* What -X perf has CPython call its loop by, named in its perf map: it says the frame once more. */
static bool is_trampoline(const struct runtime_stacks *stacks, uint32_t at)
{
	const struct counted_frame *frame = &stacks->native[at];

	return at > 0 && stacks->roles[at - 1] == NATIVE_LOOP &&
	       frame->kind == PROFILE_FRAME_NAMED && frame->type && !strcmp(frame->type, "cpython");
}

static size_t put_frames(struct runtime_stacks *stacks, const struct sample_event *sample,
			 struct counted_frame *frames, size_t count)
{
	const uint64_t *list = sample_runtime_frames(sample);
	struct reading reading;
	size_t put = 0;

	reading_begin(&reading, stacks, process_key_of(sample));
	python_codes_begin(stacks->codes);
	for (size_t i = 0; i < count; i++) {
		const struct merged_frame *from = &stacks->merged[i];

		if (from->is_language ? !name_frame(&reading, &list[from->at], &frames[put])
				      : is_trampoline(stacks, from->at))
			continue;
		if (!from->is_language)
			frames[put] = stacks->native[from->at];
		if (from->is_runtime)
			frames[put].kind = PROFILE_FRAME_RUNTIME;
		put++;
	}
	reading_end(&reading);
	return put;
}

static bool has_language(const struct runtime_stacks *stacks, size_t count)
{
	bool has = false;

	for (size_t i = 0; i < count; i++)
		has |= stacks->merged[i].is_language;
	return has;
}

void runtime_stacks_tell(struct runtime_stacks *stacks, const struct runtime_code_event *told)
{
	struct reading reading;

	reading_begin(&reading, stacks,
		      (struct process_key){told->tgid, told->exec_id, told->start_time_ns});
	if (reading.has_layout)
		python_codes_tell(stacks->codes, &reading.process, &reading.memory, &reading.layout,
				  told, reading.now_ns);
	reading_end(&reading);
}

void runtime_stacks_see(struct runtime_stacks *stacks, const struct sample_event *sample)
{
	const uint64_t *list = sample_runtime_frames(sample);
	struct reading reading;

	if (!sample->runtime_count)
		return;
	reading_begin(&reading, stacks, process_key_of(sample));
	python_codes_begin(stacks->codes);
	for (size_t i = 0; i + 1 < sample->runtime_count; i += 2)
		if (stack_frame_address(list[i]))
			find_code(&reading, &list[i]);
	reading_end(&reading);
}

size_t runtime_stacks_join(struct runtime_stacks *stacks, struct runtime_join *join,
			   struct counted_frame *frames, size_t count, size_t room,
			   enum frame_merge_result *result)
{
	const struct sample_event *sample = join->sample;
	struct frame_merge stack = {
		.roles = stacks->roles,
		.native_count = count,
		.is_native_whole = join->is_whole,
		.is_for_lock = join->is_for_lock,
		.list = sample_runtime_frames(sample),
		.list_words = sample->runtime_count,
	};
	const struct process_key key = process_key_of(sample);
	size_t merged = count, running;
	bool is_merged;

	*result = MERGE_none;
	if (count > USER_FRAMES_MAX || room < count + sample->runtime_count / 2)
		return count;
	is_merged = find_roles(stacks, join->located, count, sample->runtime_count) ||
		    sample->runtime_count;
	running = is_merged ? frame_merge_running(&stack) : count;
	if (running < count) {
		stack.native_count = merged = count = running;
		stack.is_native_whole = join->is_whole = true;
	}
	if (is_merged)
		*result = frame_merge(&stack, stacks->merged, &merged);
	if (*result == MERGE_no_list)
		*result = runtimes_why(stacks->runtimes, &key, sample->time_ns);
	else if (!sample->runtime_count &&
		 runtimes_is_unsure(stacks->runtimes, &key, join->located, count))
		*result = MERGE_unsure;
	stacks->counters.merged[*result]++;
	if (!is_merged || !has_language(stacks, merged))
		return count;
	memcpy(stacks->native, frames, count * sizeof *frames);
	return put_frames(stacks, sample, frames, merged);
}

void runtime_stacks_counters(const struct runtime_stacks *stacks,
			     struct runtime_stacks_counters *out)
{
	*out = stacks->counters;
	python_codes_counters(stacks->codes, &out->codes);
}
