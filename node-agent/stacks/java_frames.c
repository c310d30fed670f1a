/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/stacks/java_frames.h"

#include <stdlib.h>
#include <string.h>

#include "bpf/hotspot_frames.h"
#include "common/clock.h"
#include "node-agent/runtimes/hotspot_thread_names.h"
#include "node-agent/runtimes/hotspot_threads.h"
#include "node-agent/stacks/process_memory.h"

struct java_frames {
	struct runtimes *runtimes;
	struct hotspot_codes *codes;
	struct hotspot_thread_names *threads;
	struct java_frames_counters counters;
	struct counted_frame before[USER_FRAMES_MAX + RUNTIME_FRAMES_MAX];
	struct hotspot_named named[HOTSPOT_CALLS_MAX];
};

struct java_frames *java_frames_new(struct runtimes *runtimes, struct error *err)
{
	struct java_frames *java = calloc(1, sizeof *java);

	if (java) {
		java->codes = hotspot_codes_new(HOTSPOT_CODES_BYTES);
		java->threads = hotspot_thread_names_new();
	}
	if (!java || !java->codes || !java->threads) {
		error_set(err, ERROR_MEMORY, "no memory for Java's names");
		java_frames_free(java);
		return NULL;
	}
	java->runtimes = runtimes;
	return java;
}

void java_frames_free(struct java_frames *java)
{
	if (!java)
		return;
	hotspot_codes_free(java->codes);
	hotspot_thread_names_free(java->threads);
	free(java);
}

struct counted_frame java_frame_of(const struct located_frame *located)
{
	return (struct counted_frame){.kind = PROFILE_FRAME_NAMED, .address = located->address};
}

static bool is_java(const struct counted_frame *frame)
{
	return frame->kind == PROFILE_FRAME_NAMED && !frame->function;
}

/* What is being put together: the stack as it was, and as it becomes. */
struct naming {
	struct java_frames *java;
	const struct sample_event *sample;
	struct process_memory memory;
	struct python_memory reader;
	struct hotspot_layout layout;
	struct hotspot_codes_process process;
	bool has_layout;
	struct counted_frame *out;
	size_t put, room; /* that is left when each frame to come has one */
	bool has_java;    /* on the leaf side */
};

static struct counted_frame named_frame(struct java_frames *java, const struct hotspot_named *named)
{
	struct counted_frame frame = {
		.kind = PROFILE_FRAME_NAMED, .function = "[no name]", .type = "jvm"};

	java->counters.frames++;
	java->counters.nameless += !named || !named->name;
	if (!named || !named->name)
		return frame;
	frame.function = named->name;
	frame.file = named->file;
	frame.line = named->line;
	return frame;
}

static void put_java(struct naming *naming, uint64_t at)
{
	struct java_frames *java = naming->java;
	const uint64_t *words = sample_user_frames(naming->sample) + at;
	const bool is_whole = at + 2 <= naming->sample->user_count;
	size_t count;

	if (is_whole && naming->has_java && stack_frame_kind(words[0]) == STACK_FRAME_JAVA_STUB)
		return;
	naming->has_java |= stack_frame_kind(words[0]) != STACK_FRAME_JAVA_STUB;
	if (!is_whole || !naming->has_layout) {
		naming->out[naming->put++] = named_frame(java, NULL);
		return;
	}
	count = hotspot_codes_name(java->codes, &naming->process, words, java->named);
	if (count - 1 > naming->room) {
		java->counters.cut += count - 1 - naming->room;
		count = naming->room + 1;
	}
	naming->room -= count - 1;
	for (size_t i = 0; i < count; i++)
		naming->out[naming->put++] = named_frame(java, &java->named[i]);
}

static void put_other(struct naming *naming, const struct counted_frame *frame)
{
	struct counted_frame *to = &naming->out[naming->put++];

	*to = *frame;
	if (naming->has_java && frame->kind == PROFILE_FRAME_NATIVE &&
	    runtimes_is_hotspot_file(naming->java->runtimes, frame->mapping))
		to->kind = PROFILE_FRAME_RUNTIME;
}

static void naming_begin(struct naming *naming, struct java_frames *java,
			 const struct sample_event *sample)
{
	const struct process_key key = process_key_of(sample);
	struct hotspot_place place;

	process_memory_begin(&naming->memory, &key);
	naming->reader = (struct python_memory){process_memory_read, &naming->memory};
	naming->java = java;
	naming->sample = sample;
	naming->has_layout = runtimes_hotspot_layout(java->runtimes, &key, &naming->layout);
	naming->process = (struct hotspot_codes_process){.key = key,
							 .memory = &naming->reader,
							 .layout = &naming->layout,
							 .now_ns = monotonic_ns(),
							 .unloads = sample->java_unloads};
	if (runtimes_hotspot_place(java->runtimes, &key, &place))
		naming->process.unloads_at = place.unloads_at;
	hotspot_codes_begin(java->codes);
}

size_t java_frames_name(struct java_frames *java, const struct sample_event *sample,
			struct counted_frame *frames, size_t count, size_t room)
{
	struct naming naming = {.out = frames, .room = room - count};
	size_t first = 0;

	while (first < count && !is_java(&frames[first]))
		first++;
	if (first == count || count - first > sizeof java->before / sizeof *java->before)
		return count;
	memcpy(java->before, frames + first, (count - first) * sizeof *frames);
	naming_begin(&naming, java, sample);
	naming.put = first;
	for (size_t i = 0; i < count - first; i++) {
		if (is_java(&java->before[i]))
			put_java(&naming, java->before[i].address);
		else
			put_other(&naming, &java->before[i]);
	}
	process_memory_end(&naming.memory);
	return naming.put;
}

const char *java_frames_thread_name(struct java_frames *java, const struct sample_event *sample,
				    const char *kernel)
{
	struct hotspot_layout layout;
	struct process_memory memory;
	const struct process_key key = process_key_of(sample);
	const struct python_memory reader = {process_memory_read, &memory};
	const char *name;

	if (!hotspot_thread_name_is_cut(kernel) ||
	    !runtimes_hotspot_layout(java->runtimes, &key, &layout))
		return NULL;
	process_memory_begin(&memory, &key);
	name = hotspot_thread_names_find(java->threads,
					 &(struct hotspot_thread){.process = key,
								  .tid = sample->tid,
								  .kernel = kernel,
								  .now_ns = monotonic_ns(),
								  .memory = &reader,
								  .layout = &layout});
	process_memory_end(&memory);
	return name;
}

size_t java_frames_group(const struct java_frames *java, const struct sample_event *sample,
			 struct counted_frame *frames, size_t count, size_t room)
{
	const char *group = hotspot_thread_group(sample->comm, sizeof sample->comm);
	const struct process_key key = process_key_of(sample);

	if (!group || !runtimes_has_hotspot(java->runtimes, &key) || count == room)
		return count;
	for (size_t i = 0; i < count; i++)
		if (frames[i].type && !strcmp(frames[i].type, "jvm"))
			return count;
	frames[count] = (struct counted_frame){
		.kind = PROFILE_FRAME_NAMED, .function = group, .type = "jvm"};
	return count + 1;
}

void java_frames_counters(const struct java_frames *java, struct java_frames_counters *out)
{
	*out = java->counters;
	hotspot_codes_counters(java->codes, &out->codes);
}
