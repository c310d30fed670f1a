/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/allocations/allocators.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "node-agent/kernel/stranger_reader.h"
#include "node-agent/processes/memory_map.h"

#define SAMPLING_LIBRARY "libfarflame-malloc.so"

enum { FILES_MAX = 256 };

enum file_state { FILE_NEW, FILE_ASKED, FILE_KNOWN };

struct allocator_file {
	dev_t device;
	ino_t inode;
	struct timespec changed;
	uint32_t number; /* of the question; 0: no file */
	uint32_t users;
	int fd;
	enum file_state state;
	struct memory_places places;
	uint32_t windows; /* atomic */
	bool is_named;    /* by the server: functions */
	bool is_waiting;  /* for what the server says the first time */
	struct memory_functions functions;
};

struct allocator_files {
	uint32_t count, last_number;
	uint64_t refused, functions_refused;
	bool has_names; /* somebody asks the server */
	struct allocator_file items[FILES_MAX];
};

struct allocator_files *allocator_files_new(struct error *err)
{
	struct allocator_files *files = calloc(1, sizeof *files);

	if (!files)
		error_set(err, ERROR_MEMORY, "no memory for allocators' files");
	return files;
}

void allocator_files_free(struct allocator_files *files)
{
	for (uint32_t i = 0; files && i < files->count; i++)
		if (files->items[i].number)
			close(files->items[i].fd);
	free(files);
}

/* --- files --- */

static void file_leave(struct allocator_files *files, uint32_t at)
{
	struct allocator_file *file = &files->items[at];

	if (--file->users || file->state == FILE_ASKED)
		return;
	close(file->fd);
	file->number = 0;
}

static bool file_is(const struct allocator_file *file, const struct stat *st)
{
	return file->number && file->device == st->st_dev && file->inode == st->st_ino &&
	       file->changed.tv_sec == st->st_ctim.tv_sec &&
	       file->changed.tv_nsec == st->st_ctim.tv_nsec;
}

/* Takes fd. FILES_MAX: no room, or nothing to read. */
static uint32_t file_take(struct allocator_files *files, int fd)
{
	struct stat st;
	uint32_t at = FILES_MAX, i;

	if (!stranger_file_stat(fd, &st) || !S_ISREG(st.st_mode)) {
		close(fd);
		return FILES_MAX;
	}
	for (i = 0; i < files->count && !file_is(&files->items[i], &st); i++)
		if (!files->items[i].number)
			at = i;
	if (i < files->count) {
		close(fd);
		files->items[i].users++;
		return i;
	}
	if (at == FILES_MAX && files->count < FILES_MAX)
		at = files->count++;
	if (at == FILES_MAX) {
		files->refused++;
		close(fd);
		return at;
	}
	files->items[at] = (struct allocator_file){
		.device = st.st_dev,
		.inode = st.st_ino,
		.changed = st.st_ctim,
		.fd = fd,
		.users = 1,
		.number = ALLOCATOR_FILES_FIRST +
			  ++files->last_number % (ALLOCATOR_FILES_FIRST - 1),
	};
	return at;
}

void allocator_files_ask(struct allocator_files *files, struct code_pages *pages)
{
	for (uint32_t i = 0; i < files->count; i++) {
		struct allocator_file *file = &files->items[i];

		if (!file->number || file->state != FILE_NEW)
			continue;
		if (!code_pages_ask_memory(pages, file->number, file->fd,
					   file->is_named ? &file->functions : NULL))
			return; /* later */
		file->state = FILE_ASKED;
	}
}

void allocator_files_places(struct allocator_files *files, uint32_t number,
			    const struct memory_places *places)
{
	for (uint32_t i = 0; i < files->count; i++) {
		struct allocator_file *file = &files->items[i];

		if (file->number != number)
			continue;
		file->state = FILE_KNOWN;
		if (places) {
			file->places = *places;
			file->is_waiting = files->has_names && !file->is_named &&
					   places->nameless.length;
			files->functions_refused += places->refused;
		}
		if (!file->users) {
			close(file->fd);
			file->number = 0;
		}
	}
}

bool allocator_files_name(struct allocator_files *files, struct nameless_files *names,
			  int64_t now_ms)
{
	bool is_any = false;

	files->has_names = true;
	for (uint32_t i = 0; i < files->count; i++) {
		struct allocator_file *file = &files->items[i];
		const struct memory_functions *functions;

		if (!file->number || file->state != FILE_KNOWN || file->is_named ||
		    !file->places.nameless.length)
			continue;
		functions = nameless_files_find(names, &file->places.nameless, now_ms);
		file->is_waiting = nameless_files_is_new(names, &file->places.nameless);
		if (!functions)
			continue;
		file->functions = *functions;
		file->is_named = true;
		file->state = FILE_NEW;
		is_any = true;
	}
	return is_any;
}

/* --- processes --- */

void allocators_leave(struct allocator_files *files, struct allocators *of)
{
	while (of->count)
		file_leave(files, of->items[--of->count].file);
	of->is_looked_at = false;
}

static bool is_allocator(const char *name)
{
	static const char *const names[] = {"libc.so",     "libc-2.",     "ld-musl-", "libjemalloc",
					    "libtcmalloc", "libmimalloc", "libpython"};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (!strncmp(name, names[i], strlen(names[i])))
			return true;
	return false;
}

/* Its own file and libraries, by their names. */
static void mapping_look(struct allocator_files *files, struct allocators *of, int directory,
			 const struct memory_row *row, const char *own)
{
	struct allocator mapped = {
		.start = row->start, .limit = row->end, .offset = row->file_offset};
	const char *name = strrchr(row->path, '/');
	char path[80];
	int path_fd, fd;

	if (!row->is_executable || !row->inode || of->count == ALLOCATORS_MAX || !name ||
	    (strcmp(row->path, own) != 0 && !is_allocator(name + 1)))
		return;
	snprintf(path, sizeof path, "map_files/%" PRIx64 "-%" PRIx64, mapped.start, mapped.limit);
	path_fd = stranger_open_at(directory, path);
	fd = path_fd < 0 ? -1 : stranger_reopen(path_fd);
	if (path_fd >= 0)
		close(path_fd);
	mapped.file = fd < 0 ? FILES_MAX : file_take(files, fd);
	if (mapped.file != FILES_MAX)
		of->items[of->count++] = mapped;
}

static void look(struct allocator_files *files, struct allocators *of)
{
	char path[40], own[MEMORY_PATH_MAX];
	struct memory_row row;
	ssize_t length;
	bool is_told = false; /* by the process itself: node-agent/malloc/ */
	struct stranger_maps maps;
	int directory;

	snprintf(path, sizeof path, "/proc/%u", of->tgid);
	directory = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	length = directory < 0 ? -1 : readlinkat(directory, "exe", own, sizeof own - 1);
	own[length > 0 ? length : 0] = '\0';
	memory_path_cut_deleted(own);
	stranger_maps_begin(&maps, directory);
	while (length > 0 && memory_map_read(&maps, &row)) {
		mapping_look(files, of, directory, &row, own);
		is_told |= strstr(row.path, "/" SAMPLING_LIBRARY) != NULL;
	}
	stranger_maps_end(&maps);
	if (directory >= 0)
		close(directory);
	if (is_told)
		allocators_leave(files, of);
}

/* Those that it still has are not looked at once more. */
void allocators_look(struct allocator_files *files, struct allocators *of)
{
	struct allocators before = *of;

	of->count = 0;
	look(files, of);
	of->is_looked_at = true;
	allocators_leave(files, &before);
}

/* --- what is known --- */

bool allocators_have(const struct allocator_files *files, const struct allocators *of,
		     uint32_t number)
{
	for (uint32_t i = 0; i < of->count; i++)
		if (files->items[of->items[i].file].number == number)
			return true;
	return false;
}

bool allocators_are_known(const struct allocator_files *files, const struct allocators *of)
{
	for (uint32_t i = 0; i < of->count; i++)
		if (files->items[of->items[i].file].state != FILE_KNOWN ||
		    files->items[of->items[i].file].is_waiting)
			return false;
	return true;
}

const struct memory_places *allocator_places(const struct allocator_files *files,
					     const struct allocator *of, int *fd)
{
	*fd = files->items[of->file].fd;
	return &files->items[of->file].places;
}

uint32_t *allocator_windows(struct allocator_files *files, const struct allocator *of)
{
	return &files->items[of->file].windows;
}

uint64_t allocator_functions_refused(const struct allocator_files *files)
{
	return files->functions_refused;
}

uint64_t allocator_files_refused(const struct allocator_files *files)
{
	return files->refused;
}
