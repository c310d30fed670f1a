/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/processes/program_maps.h"

#include <errno.h>
#include <string.h>

#include "node-agent/kernel/stranger_reader.h"
#include "node-agent/processes/memory_map.h"
#include "node-agent/processes/process_files.h"

enum {
	RETRY_FIRST_MS = 100,
	RETRY_DOUBLINGS = 8, /* 25.6 s */
	/* A line is at most 4 × 4095 bytes of escaped path and some 75 before it. */
	TEXT_ROOM = 32768,
	/* A byte takes some 4 ns to read: what is longer is read for 2 % of the time at most,
	 * whatever it brings. */
	DEAR_BYTES = 64 << 10,
	DEAR_NS = 200,
};

/* The lines of a growing text, cut where reads end. */
struct maps_text {
	size_t length;
	char bytes[TEXT_ROOM];
};

enum mapping_kind mapping_kind_of(enum memory_kind kind)
{
	return kind == MEMORY_VDSO     ? MAPPING_VDSO
	       : kind == MEMORY_UPROBE ? MAPPING_UPROBE
				       : MAPPING_ANONYMOUS;
}

static enum file_found resolve(struct program_maps *maps, const struct program *program,
			       struct mapping *row)
{
	return mapped_files_resolve(maps->files, row, program->process->key.tgid,
				    program_start_ns(program));
}

/* Events name a file by its build-id, this text by its inode: both lead to one executable, or to
 * one question. */
static bool is_same_file(struct program_maps *maps, const struct program *program,
			 struct mapping *old, struct mapping *row)
{
	enum file_found found;

	if (old->file == row->file)
		return true;
	if (!old->executable_index && old->executable)
		resolve(maps, program, old); /* it may have been answered since */
	if (old->kind != MAPPING_FILE || (!old->executable_index && !old->executable))
		return false;
	found = resolve(maps, program, row);
	return (found == FILE_FOUND || found == FILE_ASKED) && row->kind == MAPPING_FILE &&
	       row->executable == old->executable && row->executable_index == old->executable_index;
}

static bool is_same(struct program_maps *maps, const struct program *program, struct mapping *old,
		    struct mapping *row)
{
	return old->start == row->start && old->end == row->end && old->kind == row->kind &&
	       old->file_offset == row->file_offset &&
	       (row->kind != MAPPING_FILE || is_same_file(maps, program, old, row));
}

/* What was found of the row before; what took another's place is new. */
static void keep_known(struct program_maps *maps, const struct program *program,
		       struct mapping *row)
{
	const struct mapping_set *before = program->set;
	struct mapping *old;
	uint32_t near = 0;

	if (!before)
		return;
	old = mapping_set_find(before, row->start, &near);
	if (old && is_same(maps, program, old, row)) {
		row->executable = old->executable;
		row->executable_index = old->executable_index;
		row->retry_s = old->retry_s;
		row->since = old->since;
	} else if (mapping_set_overlaps(before, row->start, row->end)) {
		row->since = MAPPING_SINCE_NOW;
	}
}

static void add_row(struct program_maps *maps, struct mapping_set *set,
		    const struct program *program, const struct memory_row *text)
{
	struct mapping row = {.start = text->start, .end = text->end};

	if (!text->is_executable)
		return;
	if (text->kind == MEMORY_FILE) {
		const struct mapped_file_key key = {
			.inode = text->inode,
			.device_major = text->device_major,
			.device_minor = text->device_minor,
			.path = text->path,
		};

		row.file = mapped_files_add(maps->files, &key);
		if (row.file == MAPPED_FILE_NONE) {
			set->is_truncated = true;
			maps->refused++;
			return;
		}
		row.kind = MAPPING_FILE;
		row.file_offset = text->file_offset;
	} else {
		row.kind = mapping_kind_of(text->kind);
	}
	keep_known(maps, program, &row);
	maps->refused += !mapping_set_add(set, &row);
}

static void add_lines(struct program_maps *maps, struct mapping_set *set,
		      const struct program *program, struct maps_text *text, bool is_last)
{
	const char *at = text->bytes, *end = text->bytes + text->length;
	struct memory_row row;
	enum memory_read result;

	if (!is_last) {
		const char *newline = memrchr(text->bytes, '\n', text->length);

		end = newline ? newline + 1 : text->bytes;
	}
	while ((result = memory_map_next(&at, end, &row)) != MEMORY_END)
		if (result == MEMORY_ROW)
			add_row(maps, set, program, &row);
	text->length -= (size_t)(end - text->bytes);
	memmove(text->bytes, end, text->length);
	if (text->length == sizeof(text->bytes))
		text->length = 0; /* one line longer than any can be */
}

/* False: the text could not be read, or there is none: the process is ending. */
static bool read_text(struct program_maps *maps, struct stranger_maps *from,
		      struct mapping_set *set, const struct program *program)
{
	struct maps_text text = {.length = 0};
	bool any = false;
	size_t got;

	do {
		got = stranger_maps_read(from, text.bytes + text.length,
					 sizeof(text.bytes) - text.length);
		if (from->has_failed)
			return false;
		text.length += got;
		if (!from->is_cut)
			add_lines(maps, set, program, &text, got == 0);
		any |= got > 0;
	} while (got);
	set->is_truncated |= from->is_cut;
	return any;
}

static bool replace_set(struct program_maps *maps, struct program *program,
			struct stranger_maps *from)
{
	struct mapping_set *set = mapping_set_new(maps->pool);

	if (!set || !read_text(maps, from, set, program)) {
		mapping_set_free(set);
		return false;
	}
	if (from->is_cut && program->set && program->set->count >= set->count) {
		program->set->is_truncated = true; /* what is there is more */
		mapping_set_free(set);
		return false;
	}
	mapping_set_free(program->set);
	program->set = set;
	program->near = 0;
	program->is_complete = true;
	return true;
}

/* The descriptor of the directory is bound to the process: ESRCH instead of another one's maps. */
static bool read_maps(struct program_maps *maps, struct program *program, uint64_t time_ns)
{
	int directory = process_directory_of(maps->directory, program->process->key.tgid,
					     program_start_ns(program));
	struct stranger_maps from;
	bool ok;

	if (directory < 0) {
		program->process->gone_ns = time_ns;
		return false;
	}
	stranger_maps_begin(&from, directory);
	ok = replace_set(maps, program, &from);
	if (from.has_failed && !from.bytes && (from.error == ENOENT || from.error == ESRCH))
		program->process->gone_ns = time_ns;
	stranger_maps_end(&from);
	program->maps_dear_until_ns = from.bytes > DEAR_BYTES ? time_ns + DEAR_NS * from.bytes : 0;
	return ok;
}

/* A sample of a time well after it was not there says that it is. */
static bool is_gone(const struct program *program, uint64_t time_ns)
{
	return program->process->gone_ns &&
	       (!program->process->is_current ||
		time_ns <= program->process->gone_ns + PROCESS_DOUBT_NS);
}

bool program_maps_read(struct program_maps *maps, struct program *program, uint64_t time_ns,
		       enum program_need need)
{
	uint32_t attempts = program->maps_read[need].attempts;

	if (is_gone(program, time_ns))
		return false;
	if (time_ns < program->maps_read[need].next_ns || time_ns < program->maps_dear_until_ns) {
		maps->backed_off++;
		return false;
	}
	program->maps_read[need].next_ns = time_ns + (RETRY_FIRST_MS * 1000000ull << attempts);
	if (attempts < RETRY_DOUBLINGS)
		program->maps_read[need].attempts++;
	if (!read_maps(maps, program, time_ns)) {
		maps->failed++;
		return false;
	}
	maps->read++;
	if (program->process->gone_ns) { /* what was said of it without its directory */
		program_info_free(program->info);
		program->info = NULL;
		program->process->gone_ns = 0;
	}
	return true;
}

void program_maps_helped(struct program *program, enum program_need need)
{
	program->maps_read[need].attempts = 0;
	program->maps_read[need].next_ns = 0;
}
