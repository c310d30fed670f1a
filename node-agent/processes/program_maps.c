/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/processes/program_maps.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "node-agent/processes/memory_map.h"
#include "node-agent/processes/process_files.h"

enum {
	RETRY_FIRST_MS = 100,
	RETRY_DOUBLINGS = 8, /* 25.6 s */
	/* A line is at most 4 × 4095 bytes of escaped path and some 75 before it. */
	TEXT_ROOM = 32768,
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
	return mapped_files_resolve(maps->files, row, program->key.tgid,
				    program->is_identified ? program->key.start_time_ns : 0);
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
static bool read_text(struct program_maps *maps, int fd, struct mapping_set *set,
		      const struct program *program)
{
	struct maps_text text = {.length = 0};
	bool any = false;

	for (;;) {
		ssize_t got = read(fd, text.bytes + text.length, sizeof(text.bytes) - text.length);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return false;
		text.length += (size_t)got;
		add_lines(maps, set, program, &text, got == 0);
		if (!got)
			return any;
		any = true;
	}
}

static bool replace_set(struct program_maps *maps, struct program *program, int fd)
{
	struct mapping_set *set = mapping_set_new(maps->pool);

	if (!set || !read_text(maps, fd, set, program)) {
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
static bool read_maps(struct program_maps *maps, struct program *program)
{
	int directory = process_directory_of(maps->directory, program->key.tgid,
					     program->is_identified ? program->key.start_time_ns
								    : 0);
	bool ok;
	int fd;

	if (directory < 0) {
		program->is_gone = true;
		return false;
	}
	fd = openat(directory, "maps", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		program->is_gone = errno == ENOENT || errno == ESRCH;
	ok = fd >= 0 && replace_set(maps, program, fd);
	if (fd >= 0)
		close(fd);
	return ok;
}

bool program_maps_read(struct program_maps *maps, struct program *program, uint64_t time_ns,
		       enum program_need need)
{
	uint32_t attempts = program->maps_read[need].attempts;

	if (program->is_gone)
		return false;
	if (time_ns < program->maps_read[need].next_ns) {
		maps->backed_off++;
		return false;
	}
	program->maps_read[need].next_ns = time_ns + (RETRY_FIRST_MS * 1000000ull << attempts);
	if (attempts < RETRY_DOUBLINGS)
		program->maps_read[need].attempts++;
	if (!read_maps(maps, program)) {
		maps->failed++;
		return false;
	}
	maps->read++;
	return true;
}

void program_maps_helped(struct program *program, enum program_need need)
{
	program->maps_read[need].attempts = 0;
	program->maps_read[need].next_ns = 0;
}
