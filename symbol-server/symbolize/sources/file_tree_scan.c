/* SPDX-License-Identifier: Apache-2.0 */
/* One pass over a tree. Files that did not change are taken over from the pass before; packages
 * that did are read after everything else, and for a while only: then comes the next pass, so that
 * new files are seen while a thousand packages are waiting. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/file_hash.h"
#include "common/hash_table.h"
#include "common/log.h"
#include "symbol-server/symbolize/sources/file_tree_state.h"
#include "symbol-server/symbolize/sources/package_files.h"
#include "symbol-server/symbolize/sources/package_notes.h"

enum {
	DEPTH_MAX = 32,
	PACKAGES_MS = 30 * 1000, /* at least, and as often as it took to read the tree: */
	PACKAGES_SHARE = 4,
	MISSED_MS = 3 * 1000, /* when something was missed meanwhile */
	PENDING_MAX = 1000000,
};

struct pending_package {
	char *path;
	uint64_t fingerprint;
};

struct scan {
	struct file_tree *tree;
	const struct file_index *old; /* may be NULL */
	struct symbol_directories_progress *now;
	struct pending_package *pending;
	size_t pending_count, pending_room;
	bool has_read_packages;
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
		level->number = file_index_add_folder(scan->tree->next, scan->path, false, 0);
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

/* ---- packages ---- */

static bool take_over_package(struct scan *scan, uint64_t fingerprint)
{
	struct file_view view;
	int64_t first, count, folder;
	bool is_first_pass = !scan->tree->last.passes;

	if (!scan->old ||
	    file_index_find_package(scan->old, fingerprint, &first, &count) == FILE_INDEX_NONE)
		return false;
	lock(scan);
	scan->now->members += (uint64_t)count;
	folder = file_index_add_folder(scan->tree->next, scan->path, true, fingerprint);
	unlock(scan);
	for (int64_t i = first; folder != FILE_INDEX_NONE && i < first + count; i++) {
		file_index_view(scan->old, i, &view);
		lock(scan);
		if (!file_index_add(scan->tree->next, folder, view.name, &view.id, view.content, 0))
			scan->now->left_out++;
		unlock(scan);
		if (is_first_pass && view.id.length) /* from the notes */
			tell(scan, &view.id);
	}
	return true;
}

static void postpone_package(struct scan *scan, uint64_t fingerprint)
{
	struct pending_package package = {.fingerprint = fingerprint};

	if (scan->pending_count == scan->pending_room) {
		size_t room = scan->pending_room * 2 + 64;
		struct pending_package *moved =
			room > PENDING_MAX ? NULL
					   : realloc(scan->pending, room * sizeof(*scan->pending));

		if (!moved)
			return; /* in a later pass */
		scan->pending = moved;
		scan->pending_room = room;
	}
	package.path = strdup(scan->path);
	if (package.path)
		scan->pending[scan->pending_count++] = package;
}

static void meet_package(struct scan *scan, uint64_t fingerprint)
{
	bool is_refused = scan->old && file_index_has_other(scan->old, fingerprint);

	lock(scan);
	scan->now->packages++;
	scan->now->packages_refused += is_refused;
	unlock(scan);
	if (is_refused)
		add_other(scan, fingerprint);
	else if (!take_over_package(scan, fingerprint))
		postpone_package(scan, fingerprint);
}

struct adding {
	struct scan *scan;
	const struct pending_package *package;
	int64_t folder; /* FILE_INDEX_NONE before the first member */
};

/* Lock held. */
static bool add_package(struct adding *adding)
{
	if (adding->folder == FILE_INDEX_NONE)
		adding->folder = file_index_add_folder(adding->scan->tree->next,
						       adding->package->path, true,
						       adding->package->fingerprint);
	return adding->folder != FILE_INDEX_NONE;
}

static bool add_member(void *context, const struct package_member *member)
{
	struct adding *adding = context;
	struct scan *scan = adding->scan;
	bool ok;

	lock(scan);
	ok = add_package(adding) && file_index_add(scan->tree->next, adding->folder, member->path,
						   &member->id, member->content, 0);
	scan->now->members += ok;
	scan->now->left_out += !ok;
	unlock(scan);
	if (ok && member->id.length)
		tell(scan, &member->id);
	return ok;
}

static bool list_package(struct scan *scan, const struct pending_package *package, int fd,
			 struct error *err)
{
	struct adding adding = {.scan = scan, .package = package, .folder = FILE_INDEX_NONE};
	struct stat stat;

	if (!package_files_list(fd, scan->tree->stop_fd, add_member, &adding, err) ||
	    fstat(fd, &stat))
		return false;
	scan->has_read_packages = true;
	lock(scan);
	add_package(&adding); /* one without ELF files is known as such */
	scan->now->package_bytes_read += (uint64_t)stat.st_size;
	unlock(scan);
	return true;
}

static void read_package(struct scan *scan, const struct pending_package *package)
{
	int fd = file_tree_open(scan->tree, package->path, NULL);
	struct error err = {0};

	if (fd < 0)
		return; /* gone, or not to be had now: the next pass will say */
	if (!list_package(scan, package, fd, &err) && err.kind != ERROR_BUSY) {
		log_warn("package not read", "path=\"%s/%s\" reason=\"%s\"", scan->tree->path,
			 package->path, err.message);
		file_tree_refused(scan->tree, package->path, err.message);
		lock(scan);
		scan->now->packages_refused++;
		unlock(scan);
		if (err.kind != ERROR_SYSTEM && err.kind != ERROR_MEMORY)
			add_other(scan, package->fingerprint);
	}
	close(fd);
}

static void read_packages(struct scan *scan, int64_t walk_ms)
{
	int64_t start = file_opener_now_ms(), share = walk_ms * PACKAGES_SHARE;
	int64_t limit = share > PACKAGES_MS ? share : PACKAGES_MS;
	size_t done = 0;

	while (done < scan->pending_count && !stops(scan)) {
		int64_t took = file_opener_now_ms() - start;

		if (took > limit ||
		    (atomic_load(&scan->tree->was_missed) && took > MISSED_MS + walk_ms))
			break;
		lock(scan);
		scan->now->packages_left = scan->pending_count - done;
		unlock(scan);
		read_package(scan, &scan->pending[done++]);
	}
	lock(scan);
	scan->now->packages_left = scan->pending_count - done;
	unlock(scan);
}

/* ---- the tree ---- */

static void meet_file(struct scan *scan, struct level *level, const char *name,
		      const struct stat *stat)
{
	uint64_t fingerprint = fingerprint_of(scan, stat);
	struct file_view view;
	int64_t known;

	lock(scan);
	scan->now->files++;
	unlock(scan);
	if (*scan->tree->notes && package_files_is_one(name)) {
		meet_package(scan, fingerprint);
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
	scan->tree->now = (struct symbol_directories_progress){
		.package_bytes_read = scan->tree->last.package_bytes_read};
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
	tree->now.pass_ms = file_opener_now_ms() - start_ms;
	tree->now.read_at_ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
	tree->now.first_pass_done = tree->last.first_pass_done ||
				    (is_whole && !tree->now.packages_left);
	if (is_whole)
		tree->last = tree->now;
	unlock(scan);
	file_index_free(gone);
}

static void save_notes(struct scan *scan)
{
	struct error err = {0};

	if (scan->has_read_packages && scan->tree->index &&
	    !package_notes_save(scan->tree->notes, scan->tree->index, &err))
		log_warn("packages' contents not noted down", "reason=\"%s\"", err.message);
}

void file_tree_scan(struct file_tree *tree)
{
	struct scan *scan = calloc(1, sizeof(*scan));
	int64_t start = file_opener_now_ms();
	int fd;

	if (!scan)
		return;
	*scan = (struct scan){.tree = tree, .old = tree->index, .now = &tree->now};
	if (start_pass(scan)) {
		fd = open(tree->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd >= 0) {
			read_folder(scan, fd, 0);
			tree->walk_ms = file_opener_now_ms() - start;
			read_packages(scan, tree->walk_ms);
		} else {
			unreadable(scan, errno);
			log_warn("symbol directory cannot be read", "path=\"%s\" reason=\"%s\"",
				 tree->path, strerror(errno));
		}
		end_pass(scan, fd >= 0 || !tree->index, start);
		save_notes(scan);
	}
	for (size_t i = 0; i < scan->pending_count; i++)
		free(scan->pending[i].path);
	free(scan->pending);
	free(scan);
}
