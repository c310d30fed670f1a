/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/symbolize/symbol_directories.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "common/arena.h"
#include "common/file_hash.h"
#include "common/hash_table.h"
#include "common/log.h"

enum {
	FILES_MAX = 500000,
	PATHS_BYTES_MAX = 256 << 20,
	DEPTH_MAX = 32,
	SCAN_EVERY_MS = 60 * 1000,
	SCAN_PAUSE_MS = 3 * 1000, /* at least, after a miss */
	SCAN_SHARE = 20,          /* a scan takes at most a twentieth of the time */
};

struct known_file {
	struct build_id id; /* length 0: not an ELF file */
	const char *path;   /* below its directory */
	uint32_t directory;
	uint32_t next; /* another file of the same id; HASH_TABLE_NONE: none */
	dev_t device;
	ino_t inode;
	int64_t mtime_ns, size;
};

/* What one scan found; never changed afterwards. */
struct file_index {
	struct arena paths;
	struct known_file *files;
	uint32_t count, room;
	struct hash_table by_path, by_id;
	bool is_cut;
};

struct symbol_directories {
	char **paths;
	size_t count;
	void (*found)(void *context, const struct build_id *id);
	void *context;

	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct file_index *index; /* under lock; NULL before the first scan */
	bool was_missed, is_running;
	atomic_bool stops;
	pthread_t thread;
};

struct scan {
	struct symbol_directories *directories;
	const struct file_index *old; /* may be NULL */
	struct file_index *index;
	uint32_t directory;
	unsigned depth;
};

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
}

/* ---- index ---- */

static void index_free(struct file_index *index)
{
	if (!index)
		return;
	arena_release(&index->paths);
	hash_table_release(&index->by_path);
	hash_table_release(&index->by_id);
	free(index->files);
	free(index);
}

static struct file_index *index_new(void)
{
	struct file_index *index = calloc(1, sizeof(*index));

	if (!index)
		return NULL;
	arena_init(&index->paths, PATHS_BYTES_MAX);
	hash_table_init(&index->by_path, FILES_MAX);
	hash_table_init(&index->by_id, FILES_MAX);
	return index;
}

static uint64_t path_hash(uint32_t directory, const char *path)
{
	return hash_bytes(path, strlen(path), directory);
}

static const struct known_file *index_find_path(const struct file_index *index, uint32_t directory,
						const char *path)
{
	uint64_t hash = path_hash(directory, path);
	uint32_t probe;

	if (!index)
		return NULL;
	for (uint32_t i = hash_table_first(&index->by_path, hash, &probe); i != HASH_TABLE_NONE;
	     i = hash_table_next(&index->by_path, hash, &probe))
		if (index->files[i].directory == directory && !strcmp(index->files[i].path, path))
			return &index->files[i];
	return NULL;
}

static uint32_t index_find_id(const struct file_index *index, const struct build_id *id)
{
	uint64_t hash = build_id_hash(id);
	uint32_t probe;

	for (uint32_t i = hash_table_first(&index->by_id, hash, &probe); i != HASH_TABLE_NONE;
	     i = hash_table_next(&index->by_id, hash, &probe))
		if (build_id_equal(&index->files[i].id, id))
			return i;
	return HASH_TABLE_NONE;
}

static struct known_file *index_room(struct file_index *index)
{
	if (index->count == FILES_MAX)
		return NULL;
	if (index->count == index->room) {
		uint32_t room = index->room ? index->room * 2 : 256;
		struct known_file *files = realloc(index->files, room * sizeof(*files));

		if (!files)
			return NULL;
		index->files = files;
		index->room = room;
	}
	return &index->files[index->count];
}

/* Second and later files of an id hang behind the first one. */
static bool index_link_id(struct file_index *index, uint32_t number)
{
	struct known_file *file = &index->files[number];
	uint32_t first;

	file->next = HASH_TABLE_NONE;
	if (!file->id.length)
		return true;
	first = index_find_id(index, &file->id);
	if (first == HASH_TABLE_NONE)
		return hash_table_add(&index->by_id, build_id_hash(&file->id), number);
	file->next = index->files[first].next;
	index->files[first].next = number;
	return true;
}

static bool index_add(struct file_index *index, const struct known_file *file)
{
	struct known_file *added = index_room(index);

	if (!added)
		return false;
	*added = *file;
	added->path = arena_text(&index->paths, file->path, strlen(file->path));
	return added->path && index_link_id(index, index->count) &&
	       hash_table_add(&index->by_path, path_hash(file->directory, file->path),
			      index->count++);
}

/* ---- reading a tree ---- */

bool symbol_file_has_id(int fd, const struct elf_image *image, const struct build_id *id)
{
	struct build_id hash;

	if (build_id_equal(&image->gnu, id))
		return true;
	return id->length == FILE_HASH_BYTES && file_hash(fd, &hash, NULL) &&
	       build_id_equal(&hash, id);
}

static void read_id(int at, const char *name, struct known_file *file)
{
	int fd = openat(at, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	struct elf_image *image = NULL;
	char magic[4];

	file->id.length = 0;
	if (fd < 0)
		return;
	if (pread(fd, magic, sizeof(magic), 0) == sizeof(magic) && !memcmp(magic, "\177ELF", 4))
		image = malloc(sizeof(*image));
	if (image && elf_image_read(fd, image, NULL)) {
		if (image->gnu.length)
			file->id = image->gnu;
		else if (!file_hash(fd, &file->id, NULL))
			file->id.length = 0;
	}
	free(image);
	close(fd);
}

static void scan_file(struct scan *scan, int at, const char *name, const char *path,
		      const struct stat *stat)
{
	const struct known_file *old = index_find_path(scan->old, scan->directory, path);
	struct known_file file = {
		.path = path,
		.directory = scan->directory,
		.device = stat->st_dev,
		.inode = stat->st_ino,
		.mtime_ns = stat->st_mtim.tv_sec * INT64_C(1000000000) + stat->st_mtim.tv_nsec,
		.size = stat->st_size,
	};

	if (old && old->device == file.device && old->inode == file.inode &&
	    old->mtime_ns == file.mtime_ns && old->size == file.size)
		file.id = old->id;
	else
		read_id(at, name, &file);
	if (!index_add(scan->index, &file))
		scan->index->is_cut = true;
}

static void scan_tree(struct scan *scan, int fd, const char *below);

static void scan_entry(struct scan *scan, int at, const char *name, const char *below)
{
	char path[PATH_MAX];
	struct stat stat;
	int fd;

	if (!strcmp(name, ".") || !strcmp(name, "..") ||
	    (size_t)snprintf(path, sizeof(path), "%s%s%s", below, *below ? "/" : "", name) >=
		    sizeof(path) ||
	    fstatat(at, name, &stat, AT_SYMLINK_NOFOLLOW))
		return;
	if (S_ISREG(stat.st_mode) && stat.st_size > 0) {
		scan_file(scan, at, name, path, &stat);
	} else if (S_ISDIR(stat.st_mode) && scan->depth < DEPTH_MAX) {
		fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0)
			return;
		scan->depth++;
		scan_tree(scan, fd, path);
		scan->depth--;
	}
}

/* Takes fd. */
static void scan_tree(struct scan *scan, int fd, const char *below)
{
	DIR *directory = fdopendir(fd);
	struct dirent *entry;

	if (!directory) {
		close(fd);
		return;
	}
	while (!scan->index->is_cut && !atomic_load(&scan->directories->stops) &&
	       (entry = readdir(directory)) != NULL)
		scan_entry(scan, fd, entry->d_name, below);
	closedir(directory);
}

static void scan_directories(struct scan *scan)
{
	struct symbol_directories *directories = scan->directories;

	for (uint32_t i = 0; i < directories->count; i++) {
		int fd = open(directories->paths[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		if (fd < 0) {
			log_warn("symbol directory cannot be read", "path=\"%s\" reason=\"%s\"",
				 directories->paths[i], strerror(errno));
			continue;
		}
		scan->directory = i;
		scan_tree(scan, fd, "");
	}
	if (scan->index->is_cut)
		log_warn("symbol directories have more files than are looked at", "limit=%d",
			 FILES_MAX);
}

static void report_new(struct symbol_directories *directories, const struct file_index *old,
		       const struct file_index *index)
{
	for (uint32_t i = 0; i < index->count; i++) {
		const struct known_file *file = &index->files[i];
		const struct known_file *before;

		if (!file->id.length)
			continue;
		before = index_find_path(old, file->directory, file->path);
		if (!before || before->mtime_ns != file->mtime_ns || before->size != file->size ||
		    before->inode != file->inode)
			directories->found(directories->context, &file->id);
	}
}

static void scan_all(struct symbol_directories *directories)
{
	struct file_index *old = directories->index, *index = index_new();
	struct scan scan = {.directories = directories, .old = old, .index = index};

	if (!index)
		return;
	scan_directories(&scan);
	pthread_mutex_lock(&directories->lock);
	directories->index = index;
	pthread_mutex_unlock(&directories->lock);
	report_new(directories, old, index);
	index_free(old); /* only this thread and those that hold the lock look at an index */
}

static void wait_until(struct symbol_directories *directories, int64_t early_ms, int64_t late_ms)
{
	while (!atomic_load(&directories->stops)) {
		int64_t until = directories->was_missed ? early_ms : late_ms;
		struct timespec when = {.tv_sec = until / 1000, .tv_nsec = until % 1000 * 1000000};

		if (now_ms() >= until)
			return;
		pthread_cond_timedwait(&directories->wake, &directories->lock, &when);
	}
}

static void *scan_thread(void *context)
{
	struct symbol_directories *directories = context;

	while (!atomic_load(&directories->stops)) {
		int64_t start = now_ms(), took, pause;

		scan_all(directories);
		took = now_ms() - start;
		pause = took * SCAN_SHARE > SCAN_PAUSE_MS ? took * SCAN_SHARE : SCAN_PAUSE_MS;
		log_debug("symbol directories read", "files=%u took_ms=%lld",
			  directories->index ? directories->index->count : 0, (long long)took);
		pthread_mutex_lock(&directories->lock);
		wait_until(directories, now_ms() + pause,
			   now_ms() + (pause > SCAN_EVERY_MS ? pause : SCAN_EVERY_MS));
		directories->was_missed = false;
		pthread_mutex_unlock(&directories->lock);
	}
	return NULL;
}

/* ---- for the symbolizer ---- */

static int open_below(const char *directory, const char *path)
{
	struct open_how how = {.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
			       .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};
	int at = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC), fd;

	if (at < 0)
		return -1;
	fd = (int)syscall(SYS_openat2, at, path, &how, sizeof(how));
	if (fd < 0 && errno == ENOSYS) /* before 5.6: links are then not followed at all */
		fd = openat(at, path, (int)how.flags | O_NOFOLLOW);
	close(at);
	return fd;
}

static bool is_regular_with_id(int fd, const struct build_id *id)
{
	struct elf_image *image = malloc(sizeof(*image));
	struct stat stat;
	bool ok = image && !fstat(fd, &stat) && S_ISREG(stat.st_mode) &&
		  elf_image_read(fd, image, NULL) && symbol_file_has_id(fd, image, id);

	free(image);
	return ok;
}

static bool is_open_already(int fd, const int *fds, size_t count)
{
	struct stat one, other;

	for (size_t i = 0; i < count; i++)
		if (!fstat(fd, &one) && !fstat(fds[i], &other) && one.st_dev == other.st_dev &&
		    one.st_ino == other.st_ino)
			return true;
	return false;
}

static size_t add_file(const char *directory, const char *path, const struct build_id *id, int *fds,
		       size_t count)
{
	int fd = open_below(directory, path);

	if (fd < 0)
		return count;
	if (is_open_already(fd, fds, count) || !is_regular_with_id(fd, id)) {
		close(fd);
		return count;
	}
	fds[count] = fd;
	return count + 1;
}

/* Paths a .build-id tree would have it at; works before the first scan has ended. */
static size_t open_from_tree(const char *directory, const struct build_id *id, int *fds,
			     size_t count, size_t room)
{
	static const char *const suffixes[] = {".debug", ""};
	char hex[BUILD_ID_HEX], path[BUILD_ID_HEX + 32];

	build_id_format(id, hex);
	for (size_t i = 0; i < 2 && count < room; i++) {
		snprintf(path, sizeof(path), ".build-id/%.2s/%s%s", hex, hex + 2, suffixes[i]);
		count = add_file(directory, path, id, fds, count);
	}
	return count;
}

struct found_path {
	uint32_t directory;
	char path[PATH_MAX];
};

static size_t copy_paths(struct symbol_directories *directories, const struct build_id *id,
			 struct found_path *paths, size_t room)
{
	const struct file_index *index;
	size_t count = 0;

	pthread_mutex_lock(&directories->lock);
	index = directories->index;
	if (index)
		for (uint32_t i = index_find_id(index, id); i != HASH_TABLE_NONE && count < room;
		     i = index->files[i].next) {
			paths[count].directory = index->files[i].directory;
			snprintf(paths[count++].path, PATH_MAX, "%s", index->files[i].path);
		}
	pthread_mutex_unlock(&directories->lock);
	return count;
}

size_t symbol_directories_open(struct symbol_directories *directories, const struct build_id *id,
			       int *fds, struct symbol_place *places, size_t room)
{
	struct found_path *paths = calloc(room, sizeof(*paths));
	size_t found = paths ? copy_paths(directories, id, paths, room) : 0, count = 0;

	for (size_t i = 0; i < found && count < room; i++)
		count = add_file(directories->paths[paths[i].directory], paths[i].path, id, fds,
				 count);
	for (size_t i = 0; i < directories->count && count < room; i++)
		count = open_from_tree(directories->paths[i], id, fds, count, room);
	free(paths);
	for (size_t i = 0; places && i < count; i++)
		*places[i].file = *places[i].archive = '\0';
	return count;
}

bool symbol_directories_has(struct symbol_directories *directories, const struct build_id *id)
{
	bool has;

	pthread_mutex_lock(&directories->lock);
	has = directories->index && index_find_id(directories->index, id) != HASH_TABLE_NONE;
	pthread_mutex_unlock(&directories->lock);
	return has;
}

size_t symbol_directories_open_dwp(struct symbol_directories *directories,
				   const struct build_id *module, int *fds, size_t room)
{
	(void)directories, (void)module, (void)fds, (void)room;
	return 0;
}

size_t symbol_directories_open_dwo(struct symbol_directories *directories,
				   const struct build_id *module, const char *path, int *fds,
				   size_t room)
{
	(void)directories, (void)module, (void)path, (void)fds, (void)room;
	return 0;
}

size_t symbol_directories_open_link(struct symbol_directories *directories,
				    const struct build_id *module, const char *name, uint32_t crc,
				    int *fds, size_t room)
{
	(void)directories, (void)module, (void)name, (void)crc, (void)fds, (void)room;
	return 0;
}

void symbol_directories_progress(struct symbol_directories *directories,
				 struct symbol_directories_progress *progress)
{
	*progress = (struct symbol_directories_progress){
		.first_pass_done = symbol_directories_are_read(directories)};
}


void symbol_directories_missed(struct symbol_directories *directories)
{
	pthread_mutex_lock(&directories->lock);
	directories->was_missed = true;
	pthread_cond_signal(&directories->wake);
	pthread_mutex_unlock(&directories->lock);
}

bool symbol_directories_are_read(struct symbol_directories *directories)
{
	bool are_read;

	pthread_mutex_lock(&directories->lock);
	are_read = !directories->count || directories->index;
	pthread_mutex_unlock(&directories->lock);
	return are_read;
}

struct symbol_directories *
symbol_directories_start(const struct symbol_directories_options *options, struct error *err)
{
	size_t count = options->count;
	struct symbol_directories *directories = calloc(1, sizeof(*directories));
	pthread_condattr_t clock;
	int rc = 0;

	if (!directories) {
		error_set(err, ERROR_MEMORY, "no memory for symbol directories");
		return NULL;
	}
	directories->found = options->found;
	directories->context = options->context;
	pthread_mutex_init(&directories->lock, NULL);
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&directories->wake, &clock);
	pthread_condattr_destroy(&clock);
	directories->paths = calloc(count + 1, sizeof(*directories->paths));
	for (; directories->paths && directories->count < count; directories->count++)
		if (!(directories->paths[directories->count] = strdup(options->paths[directories->count])))
			break;
	if (directories->count < count)
		rc = ENOMEM;
	else if (count)
		rc = pthread_create(&directories->thread, NULL, scan_thread, directories);
	directories->is_running = count && !rc;
	if (!rc)
		return directories;
	error_set_system(err, rc, "start the thread for symbol directories");
	symbol_directories_stop(directories);
	return NULL;
}

void symbol_directories_stop(struct symbol_directories *directories)
{
	if (!directories)
		return;
	atomic_store(&directories->stops, true);
	if (directories->is_running) {
		symbol_directories_missed(directories);
		pthread_join(directories->thread, NULL);
	}
	index_free(directories->index);
	for (size_t i = 0; i < directories->count; i++)
		free(directories->paths[i]);
	free(directories->paths);
	pthread_cond_destroy(&directories->wake);
	pthread_mutex_destroy(&directories->lock);
	free(directories);
}
