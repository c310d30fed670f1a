/* SPDX-License-Identifier: Apache-2.0 */
/* One pass over a tree. Files that did not change are taken over from the pass before. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/file_hash.h"
#include "common/hash_table.h"
#include "common/log.h"
#include "symbol-server/symbolize/sources/file_tree_state.h"

enum { DEPTH_MAX = 32 };

struct scan {
	struct file_tree *tree;
	const struct file_index *old; /* may be NULL */
	struct symbol_directories_progress *now;
	char path[PATH_MAX]; /* below the tree, of what is looked at */
	size_t length;       /* of its folder's part */
};

struct level { /* one folder while it is read */
	int fd;
	unsigned depth;
	int64_t number; /* in the index; FILE_INDEX_NONE before its first file */
};

static void lock(struct scan *scan)
{
	pthread_mutex_lock(&scan->tree->lock);
}

static void unlock(struct scan *scan)
{
	pthread_mutex_unlock(&scan->tree->lock);
}

static bool stops(const struct scan *scan)
{
	return atomic_load(&scan->tree->stops);
}

/* A thread that was held up until after the stop talks to nobody any more. */
static void tell(struct scan *scan, const struct build_id *id)
{
	if (!stops(scan))
		scan->tree->found(scan->tree->context, id);
}

/* ---- files ---- */

static uint64_t fingerprint_of(const struct scan *scan, const struct stat *stat)
{
	uint64_t hash = hash_bytes(scan->path, strlen(scan->path), 1);

	hash = hash_word(hash, stat->st_ino);
	hash = hash_word(hash, (uint64_t)stat->st_size);
	hash = hash_word(hash, (uint64_t)stat->st_mtim.tv_sec);
	return hash_word(hash, (uint64_t)stat->st_mtim.tv_nsec);
}

static void add_file(struct scan *scan, struct level *level, const char *name,
		     const struct build_id *id, unsigned content, uint64_t fingerprint)
{
	char slash = scan->path[scan->length];

	lock(scan);
	if (level->number == FILE_INDEX_NONE) {
		scan->path[scan->length] = '\0';
		level->number = file_index_add_folder(scan->tree->next, scan->path);
		scan->path[scan->length] = slash;
	}
	scan->now->elf_files++;
	if (level->number == FILE_INDEX_NONE ||
	    !file_index_add(scan->tree->next, level->number, name, id, content, fingerprint))
		scan->now->left_out++;
	unlock(scan);
}

static void add_other(struct scan *scan, uint64_t fingerprint)
{
	lock(scan);
	if (!file_index_add_other(scan->tree->next, fingerprint))
		scan->now->left_out++;
	unlock(scan);
}

static void refuse(struct scan *scan, const char *reason)
{
	file_tree_refused(scan->tree, scan->path, reason);
}

static void leave_out(struct scan *scan, const char *reason)
{
	refuse(scan, reason);
	lock(scan);
	scan->now->left_out++;
	unlock(scan);
}

/* False: not an ELF file, or none that can be read. */
static bool read_file(struct scan *scan, int fd, struct build_id *id, unsigned *content)
{
	struct elf_image *image;
	struct error err = {0};
	char magic[4];
	bool ok;

	if (pread(fd, magic, sizeof(magic), 0) != sizeof(magic) ||
	    memcmp(magic, "\177ELF", 4) != 0 || !(image = malloc(sizeof(*image))))
		return false;
	ok = elf_image_read(fd, image, &err);
	if (ok) {
		*id = image->gnu;
		*content = file_content(image);
		if (!id->length && (image->has_code || !image->has_split_info) &&
		    !file_hash(fd, id, NULL))
			id->length = 0;
	} else {
		refuse(scan, err.message);
		lock(scan);
		scan->now->damaged++;
		unlock(scan);
	}
	free(image);
	return ok;
}

static void unreadable(struct scan *scan, int error)
{
	refuse(scan, strerror(error));
	lock(scan);
	scan->now->unreadable++;
	unlock(scan);
}

static void look_at_new_file(struct scan *scan, struct level *level, const char *name,
			     uint64_t fingerprint)
{
	int fd = openat(level->fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	struct build_id id = {0};
	unsigned content = 0;

	if (fd < 0) {
		if (errno != ENOENT && errno != ELOOP) /* gone, or became a link */
			unreadable(scan, errno);
		return;
	}
	if (read_file(scan, fd, &id, &content)) {
		add_file(scan, level, name, &id, content, fingerprint);
		if (id.length)
			tell(scan, &id);
	} else {
		add_other(scan, fingerprint);
	}
	close(fd);
}

/* ---- the tree ---- */

static bool is_package(const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot && (!strcmp(dot, ".deb") || !strcmp(dot, ".ddeb") || !strcmp(dot, ".rpm"));
}

/* Not read here, and said so: elfutils' debuginfod does. */
static void meet_package(struct scan *scan)
{
	refuse(scan, "a package: let debuginfod read such, and name it by --debuginfod");
	lock(scan);
	scan->now->packages++;
	unlock(scan);
}

static void meet_file(struct scan *scan, struct level *level, const char *name,
		      const struct stat *stat)
{
	uint64_t fingerprint = fingerprint_of(scan, stat);
	struct file_view view;
	int64_t known;

	lock(scan);
	scan->now->files++;
	unlock(scan);
	if (is_package(name)) {
		meet_package(scan);
		return;
	}
	if (scan->old && file_index_has_other(scan->old, fingerprint)) {
		add_other(scan, fingerprint);
		return;
	}
	known = scan->old ? file_index_find(scan->old, fingerprint) : FILE_INDEX_NONE;
	if (known == FILE_INDEX_NONE) {
		look_at_new_file(scan, level, name, fingerprint);
		return;
	}
	file_index_view(scan->old, known, &view);
	add_file(scan, level, name, &view.id, view.content, fingerprint);
}

static void read_folder(struct scan *scan, int fd, unsigned depth);

static void enter_folder(struct scan *scan, const struct level *level, const char *name)
{
	size_t length = scan->length;
	int fd;

	if (level->depth == DEPTH_MAX) {
		leave_out(scan, "it lies too deep");
		return;
	}
	fd = openat(level->fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0) {
		if (errno != ENOENT)
			unreadable(scan, errno);
		return;
	}
	scan->length = strlen(scan->path);
	read_folder(scan, fd, level->depth + 1);
	scan->length = length;
}

static void meet_entry(struct scan *scan, struct level *level, const struct dirent *entry)
{
	struct stat stat;

	if (entry->d_type != DT_UNKNOWN && entry->d_type != DT_REG && entry->d_type != DT_DIR &&
	    entry->d_type != DT_LNK)
		return; /* a pipe, a socket, a device: never opened */
	if (fstatat(level->fd, entry->d_name, &stat, AT_SYMLINK_NOFOLLOW)) {
		if (errno != ENOENT)
			unreadable(scan, errno);
	} else if (S_ISREG(stat.st_mode) && stat.st_size > 0) {
		meet_file(scan, level, entry->d_name, &stat);
	} else if (S_ISDIR(stat.st_mode)) {
		enter_folder(scan, level, entry->d_name);
	} else if (S_ISLNK(stat.st_mode)) {
		lock(scan);
		scan->now->links++;
		unlock(scan);
	}
}

/* The name is put behind the folder's path. */
static bool name_path(struct scan *scan, const char *name)
{
	size_t room = sizeof(scan->path) - scan->length;

	return (size_t)snprintf(scan->path + scan->length, room, "%s%s", scan->length ? "/" : "",
				name) < room;
}

/* Takes fd. */
static void read_folder(struct scan *scan, int fd, unsigned depth)
{
	struct level level = {.fd = fd, .depth = depth, .number = FILE_INDEX_NONE};
	DIR *directory = fdopendir(fd);
	struct dirent *entry = NULL;

	lock(scan);
	scan->now->folders++;
	unlock(scan);
	if (!directory) {
		close(fd);
		return;
	}
	while (errno = 0, !stops(scan) && (entry = readdir(directory)) != NULL) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		if (name_path(scan, entry->d_name))
			meet_entry(scan, &level, entry);
		else
			leave_out(scan, "its path is too long");
		scan->path[scan->length] = '\0';
	}
	if (!entry && errno)
		unreadable(scan, errno);
	closedir(directory);
}

/* ---- the pass ---- */

static bool start_pass(struct scan *scan)
{
	struct file_index *next = file_index_new();

	if (!next)
		return false;
	lock(scan);
	scan->tree->next = next;
	scan->tree->now = (struct symbol_directories_progress){0};
	unlock(scan);
	return true;
}

/* What this pass found is what there is, when it came to its end. */
static void end_pass(struct scan *scan, bool is_whole, int64_t start_ms)
{
	struct file_tree *tree = scan->tree;
	struct file_index *gone;
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	is_whole = is_whole && !stops(scan) && file_index_seal(tree->next);
	lock(scan);
	gone = is_whole ? tree->index : tree->next;
	if (is_whole) {
		file_index_trim(tree->next);
		tree->index = tree->next;
	}
	tree->next = NULL;
	tree->now.passes = tree->last.passes + is_whole;
	tree->now.pass_ms = monotonic_ms() - start_ms;
	tree->now.read_at_ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
	tree->now.first_pass_done = tree->last.first_pass_done || is_whole;
	if (is_whole)
		tree->last = tree->now;
	unlock(scan);
	file_index_free(gone);
}

void file_tree_scan(struct file_tree *tree)
{
	struct scan *scan = calloc(1, sizeof(*scan));
	int64_t start = monotonic_ms();
	int fd;

	if (!scan)
		return;
	*scan = (struct scan){.tree = tree, .old = tree->index, .now = &tree->now};
	if (start_pass(scan)) {
		fd = open(tree->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd >= 0) {
			read_folder(scan, fd, 0);
		} else {
			unreadable(scan, errno);
			log_warn("symbol directory cannot be read", "path=\"%s\" reason=\"%s\"",
				 tree->path, strerror(errno));
		}
		end_pass(scan, fd >= 0 || !tree->index, start);
	}
	free(scan);
}
