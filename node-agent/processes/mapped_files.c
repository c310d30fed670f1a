/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/processes/mapped_files.h"

#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "common/array.h"
#include "common/hash_table.h"
#include "node-agent/kernel/stranger_file.h"
#include "node-agent/processes/process_files.h"

struct mapped_file {
	struct mapped_file_key key; /* path: owned; NULL: a free entry */
	uint64_t hash;
	struct executable_ref executable;
	uint32_t references;
	uint32_t previous,
		next; /* among those without references, oldest first; next: free entries */
};

struct mapped_files {
	struct executables *executables;
	struct file_identities *identities;
	struct process_directory *directory; /* borrowed */
	struct mapped_file *items;
	uint32_t count, capacity;
	uint32_t first_free;
	uint32_t oldest, newest; /* without references */
	uint32_t idle, idle_limit;
	struct hash_table table;
	uint64_t failed;
};

struct mapped_files *mapped_files_new(size_t limit, struct executables *executables,
				      struct file_identities *identities,
				      struct process_directory *directory, struct error *err)
{
	struct mapped_files *files = calloc(1, sizeof(*files));

	if (!files) {
		error_set(err, ERROR_MEMORY, "no memory for the table of mapped files");
		return NULL;
	}
	files->executables = executables;
	files->identities = identities;
	files->directory = directory;
	files->idle_limit = (uint32_t)limit;
	files->first_free = files->oldest = files->newest = MAPPED_FILE_NONE;
	hash_table_init(&files->table, UINT32_MAX - 2);
	return files;
}

void mapped_files_free(struct mapped_files *files)
{
	if (!files)
		return;
	for (uint32_t i = 0; i < files->count; i++)
		free((char *)(uintptr_t)files->items[i].key.path);
	hash_table_release(&files->table);
	free(files->items);
	free(files);
}

/* --- entries --- */

static uint64_t key_hash(const struct mapped_file_key *key)
{
	uint64_t hash = hash_word(key->inode,
				  (uint64_t)key->device_major << 32 | key->device_minor);

	hash = hash_word(hash, build_id_hash(&key->build_id));
	return hash_bytes(key->path, strlen(key->path), hash);
}

static bool key_equal(const struct mapped_file_key *a, const struct mapped_file_key *b)
{
	return a->inode == b->inode && a->device_major == b->device_major &&
	       a->device_minor == b->device_minor && build_id_equal(&a->build_id, &b->build_id) &&
	       !strcmp(a->path, b->path);
}

static void idle_remove(struct mapped_files *files, uint32_t number)
{
	struct mapped_file *file = &files->items[number];

	if (file->previous != MAPPED_FILE_NONE)
		files->items[file->previous].next = file->next;
	else
		files->oldest = file->next;
	if (file->next != MAPPED_FILE_NONE)
		files->items[file->next].previous = file->previous;
	else
		files->newest = file->previous;
	files->idle--;
}

static void idle_append(struct mapped_files *files, uint32_t number)
{
	struct mapped_file *file = &files->items[number];

	file->previous = files->newest;
	file->next = MAPPED_FILE_NONE;
	if (files->newest != MAPPED_FILE_NONE)
		files->items[files->newest].next = number;
	else
		files->oldest = number;
	files->newest = number;
	files->idle++;
}

static void forget(struct mapped_files *files, uint32_t number)
{
	struct mapped_file *file = &files->items[number];

	idle_remove(files, number);
	hash_table_remove(&files->table, file->hash, number);
	free((char *)(uintptr_t)file->key.path);
	*file = (struct mapped_file){.next = files->first_free};
	files->first_free = number;
}

static uint32_t take_entry(struct mapped_files *files)
{
	uint32_t number = files->first_free;

	if (number != MAPPED_FILE_NONE) {
		files->first_free = files->items[number].next;
		return number;
	}
	return ARRAY_GROW(files->items, files->count, files->capacity) ? files->count++
								       : MAPPED_FILE_NONE;
}

void mapped_files_keep(struct mapped_files *files, uint32_t number)
{
	if (!files->items[number].references++)
		idle_remove(files, number);
}

void mapped_files_drop(struct mapped_files *files, uint32_t number)
{
	if (--files->items[number].references)
		return;
	idle_append(files, number);
	if (files->idle > files->idle_limit)
		forget(files, files->oldest);
}

uint32_t mapped_files_add(struct mapped_files *files, const struct mapped_file_key *key)
{
	uint64_t hash = key_hash(key);
	uint32_t probe = 0, number;
	char *path;

	for (number = hash_table_first(&files->table, hash, &probe); number != HASH_TABLE_NONE;
	     number = hash_table_next(&files->table, hash, &probe)) {
		if (key_equal(&files->items[number].key, key)) {
			mapped_files_keep(files, number);
			return number;
		}
	}
	path = strdup(key->path);
	number = path ? take_entry(files) : MAPPED_FILE_NONE;
	if (number == MAPPED_FILE_NONE) {
		free(path);
		return MAPPED_FILE_NONE;
	}
	files->items[number] = (struct mapped_file){.key = *key, .hash = hash, .references = 1};
	files->items[number].key.path = path;
	if (!hash_table_add(&files->table, hash, number)) {
		free(path);
		files->items[number] = (struct mapped_file){.next = files->first_free};
		files->first_free = number;
		return MAPPED_FILE_NONE;
	}
	return number;
}

uint64_t mapped_files_failed(const struct mapped_files *files)
{
	return files->failed;
}

bool mapped_files_is_known(struct mapped_files *files, uint32_t number)
{
	struct mapped_file *file = &files->items[number];

	/* A path alone is another's file in another root, whatever build-id that says it has. */
	if (executables_get(files->executables, file->executable) &&
	    (file->key.inode || executables_is_trusted(files->executables, file->executable)))
		return true;
	return file->key.build_id.length &&
	       executables_find_gnu(files->executables, &file->key.build_id, &file->executable);
}

bool mapped_files_is_open(const struct mapped_files *files, uint32_t number)
{
	const struct executable *executable = executables_get(files->executables,
							      files->items[number].executable);

	return executable && (executable->fd >= 0 || executable->is_raw);
}

/* --- to an executable --- */

/* Whether an open file is the one the key means. The inode alone, without the device: on overlayfs
 * maps and stat(2) disagree about that (measured on 6.18). */
static bool is_same_file(const struct mapped_file_key *key, int fd, bool device_too)
{
	struct stat st;

	if (!key->inode || !stranger_file_stat(fd, &st) || st.st_ino != key->inode)
		return false;
	return !device_too ||
	       (major(st.st_dev) == key->device_major && minor(st.st_dev) == key->device_minor);
}

/* is_trusted: the way it was opened proves that it is the mapping's file. Takes fd. */
static enum file_found take_file(struct mapped_files *files, struct mapped_file *file, int fd,
				 bool is_trusted, uint32_t *asked)
{
	const struct mapped_file_key *key = &file->key;
	enum file_found result = FILE_OTHER;

	if (fd < 0)
		return FILE_FAILED;
	if (is_trusted || key->build_id.length || is_same_file(key, fd, false))
		result = file_identities_find(files->identities, fd, key->path, false,
					      &key->build_id, &file->executable, asked);
	close(fd);
	return result;
}

/* Of a process that is gone, by its path in our own root. What a stranger calls so, in a root of
 * its own, and gives the build-id of a private file here, is not that file. */
static enum file_found from_own_root(struct mapped_files *files, struct mapped_file *file,
				     uint32_t *asked)
{
	const struct mapped_file_key *key = &file->key;
	enum file_found result = FILE_OTHER;
	bool is_public = false, is_same;
	int fd = process_open_own_path(key->path, &is_public);

	if (fd < 0)
		return FILE_FAILED;
	is_same = is_same_file(key, fd, true);
	if (key->build_id.length || is_same)
		result = file_identities_find(files->identities, fd, key->path,
					      !is_public && !is_same, &key->build_id,
					      &file->executable, asked);
	close(fd);
	return result;
}

/* Most files were met before: their inode and times say so, and the build-id if events told it. */
static bool is_met_again(struct mapped_files *files, struct mapped_file *file,
			 const struct mapping *row, int directory)
{
	const struct mapped_file_key *key = &file->key;
	struct stat st;

	return (key->inode || key->build_id.length) &&
	       process_stat_mapping(directory, row->start, row->end, &st) &&
	       (key->build_id.length || st.st_ino == key->inode) &&
	       file_identities_find_open(files->identities, &st, &key->build_id, &file->executable);
}

/* Nothing better is to be found. */
static bool is_enough(enum file_found found)
{
	return found != FILE_FAILED && found != FILE_OTHER;
}

static enum file_found from_process(struct mapped_files *files, struct mapped_file *file,
				    struct mapping *row, uint32_t tgid, uint64_t start_time_ns)
{
	int directory = process_directory_of(files->directory, tgid, start_time_ns), fd;
	enum file_found result;
	bool is_trusted;

	if (directory < 0)
		return FILE_FAILED;
	if (is_met_again(files, file, row, directory))
		return FILE_FOUND;
	/* A reused pid or a program exec'ed meanwhile can have other memory at the same place. */
	is_trusted = start_time_ns &&
		     process_mapping_has_path(directory, row->start, row->end, file->key.path);
	fd = process_open_mapping(directory, row->start, row->end);
	result = take_file(files, file, fd, is_trusted, &row->executable);
	if (!is_enough(result))
		result = take_file(files, file, process_open_path(directory, file->key.path), false,
				   &row->executable);
	return result;
}

/* What was asked when the row was looked at before. The process may be gone since. */
static enum file_found take_answer(struct mapped_files *files, struct mapping *row)
{
	struct mapped_file *file = &files->items[row->file];
	enum file_found found = FILE_FAILED;

	if (row->executable)
		found = file_identities_outcome(files->identities, row->executable,
						&file->key.build_id, &file->executable);
	if (found != FILE_ASKED)
		row->executable = 0;
	return found;
}

static enum file_found find_file(struct mapped_files *files, struct mapping *row, uint32_t tgid,
				 uint64_t start_time_ns)
{
	struct mapped_file *file = &files->items[row->file];
	enum file_found result = take_answer(files, row);

	if (is_enough(result))
		return result;
	result = from_process(files, file, row, tgid, start_time_ns);
	if (is_enough(result))
		return result;
	if (mapped_files_is_known(files, row->file))
		return FILE_FOUND;
	return from_own_root(files, file, &row->executable);
}

enum file_found mapped_files_resolve(struct mapped_files *files, struct mapping *row, uint32_t tgid,
				     uint64_t start_time_ns)
{
	uint32_t number = row->file;
	enum file_found result = find_file(files, row, tgid, start_time_ns);

	if (result == FILE_NOT_CODE) {
		row->kind = MAPPING_ANONYMOUS;
		mapped_files_drop(files, number);
		return FILE_FOUND;
	}
	if (result == FILE_FOUND) {
		row->executable = files->items[number].executable.slot;
		row->executable_index = files->items[number].executable.index;
	} else if (result != FILE_ASKED) {
		files->failed++;
	}
	return result;
}
