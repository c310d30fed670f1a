/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/symbolize/sources/uploads.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/crc32c.h"
#include "common/elf_image.h"
#include "common/log.h"
#include "symbol-server/symbolize/convert/kallsyms.h"
#include "symbol-server/symbolize/sources/symbol_directories.h"
#include "symbol-server/symbolize/sources/upload_sums.h"

enum {
	NAME_ROOM = BUILD_ID_HEX + 32,
	SNIFF_BYTES = 64,
	COMPARED_MAX = 1024, /* files */
	PAGE_BYTES = 4096,
	RESERVE_BYTES = 1 << 20,
};

static const char *const kind_names[UPLOAD_KINDS] = {"executable", "debug", "kallsyms", "dwp",
						     "alt"};

/* A file whose bytes were compared with their checksum. */
struct compared {
	ino_t inode;
	off_t bytes;
	struct timespec changed;
};

struct uploads {
	int directory;
	uint64_t limit_bytes;
	pthread_mutex_t lock; /* of serial, and of comparing with and replacing what is there */
	uint64_t serial;
	struct upload_room room; /* its lock is taken after the one above */
	pthread_mutex_t compared_lock;
	struct compared compared[COMPARED_MAX]; /* by inode */
	uint64_t damaged;
};

struct upload_file {
	struct uploads *uploads;
	char name[NAME_ROOM];
	int fd;
	struct upload_sum sum;                  /* of what came so far */
	uint64_t written_bytes, reserved_bytes; /* of the disk */
	bool is_kept;
};

/* ---- the folder ---- */

static void remove_half_received(int directory)
{
	int fd = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *entries = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *entry;

	if (!entries && fd >= 0)
		close(fd);
	while (entries && (entry = readdir(entries)) != NULL)
		if (!strncmp(entry->d_name, "receiving-", 10))
			unlinkat(directory, entry->d_name, 0);
	if (entries)
		closedir(entries);
}

struct uploads *uploads_open(const char *cache_directory, uint64_t limit_bytes, uint64_t disk_bytes,
			     struct error *err)
{
	struct uploads *uploads = calloc(1, sizeof(*uploads));
	char path[PATH_MAX];

	if (!uploads) {
		error_set(err, ERROR_MEMORY, "no memory for uploads");
		return NULL;
	}
	pthread_mutex_init(&uploads->lock, NULL);
	pthread_mutex_init(&uploads->compared_lock, NULL);
	uploads->limit_bytes = limit_bytes;
	snprintf(path, sizeof(path), "%s/uploads", cache_directory);
	if (mkdir(path, 0700) && errno != EEXIST)
		uploads->directory = -1;
	else
		uploads->directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (uploads->directory < 0) {
		error_set_system(err, errno, "directory '%s'", path);
		uploads_close(uploads);
		return NULL;
	}
	remove_half_received(uploads->directory);
	upload_room_init(&uploads->room, uploads->directory, disk_bytes);
	return uploads;
}

void uploads_watch(struct uploads *uploads, upload_gone_fn *gone, void *context)
{
	uploads->room.gone = gone;
	uploads->room.context = context;
}

void uploads_close(struct uploads *uploads)
{
	if (!uploads)
		return;
	if (uploads->directory >= 0) {
		upload_room_release(&uploads->room);
		close(uploads->directory);
	}
	pthread_mutex_destroy(&uploads->lock);
	pthread_mutex_destroy(&uploads->compared_lock);
	free(uploads);
}

/* ---- receiving ---- */

static bool is_small_enough(struct uploads *uploads, uint64_t bytes, struct error *err)
{
	if (bytes > uploads->limit_bytes)
		return error_set(err, ERROR_LIMIT, "the file is larger than the limit of %llu MB",
				 (unsigned long long)uploads->limit_bytes >> 20);
	return upload_room_fits(&uploads->room, bytes, err);
}

struct upload_file *upload_file_open(struct uploads *uploads, uint64_t expected, struct error *err)
{
	struct upload_file *file;
	uint64_t serial;

	if (!is_small_enough(uploads, expected, err))
		return NULL;
	file = calloc(1, sizeof(*file));
	if (!file) {
		error_set(err, ERROR_MEMORY, "no memory for an upload");
		return NULL;
	}
	pthread_mutex_lock(&uploads->lock);
	serial = ++uploads->serial;
	pthread_mutex_unlock(&uploads->lock);
	file->uploads = uploads;
	snprintf(file->name, sizeof(file->name), "receiving-%llu", (unsigned long long)serial);
	file->fd = openat(uploads->directory, file->name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC,
			  0600);
	if (file->fd >= 0)
		return file;
	error_set_system(err, errno, "create a file for the upload");
	free(file);
	return NULL;
}

static bool write_all(struct upload_file *file, const uint8_t *at, size_t length, uint64_t offset,
		      struct error *err)
{
	file->written_bytes += length;
	if (file->written_bytes > file->reserved_bytes) {
		uint64_t more = file->written_bytes - file->reserved_bytes + RESERVE_BYTES - 1;

		more = more / RESERVE_BYTES * RESERVE_BYTES;
		if (!upload_room_reserve(&file->uploads->room, more, err))
			return false;
		file->reserved_bytes += more;
	}
	while (length) {
		ssize_t done = pwrite(file->fd, at, length, (off_t)offset);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return error_set_system(err, errno, "store the upload");
		at += done;
		length -= (size_t)done;
		offset += (uint64_t)done;
	}
	return true;
}

static bool is_zero(const uint8_t *at, size_t length)
{
	return !*at && !memcmp(at, at + 1, length - 1);
}

/* Others do not go for what can be seen to be neither. */
static bool may_be_one(const uint8_t *start, size_t length)
{
	return length < SNIFF_BYTES || !memcmp(start, ELFMAG, SELFMAG) ||
	       kallsyms_is_one(start, SNIFF_BYTES);
}

bool upload_file_write(struct upload_file *file, const void *bytes, size_t length,
		       struct error *err)
{
	uint64_t limit = file->uploads->limit_bytes;
	const uint8_t *at = bytes;

	if (length > limit - file->sum.bytes)
		return is_small_enough(file->uploads, limit + 1, err);
	if (!file->sum.bytes && !may_be_one(at, length))
		return error_set(err, ERROR_FORMAT,
				 "the file is neither an ELF file nor a kernel's symbol table");
	file->sum.crc = crc32c(file->sum.crc, bytes, length);
	while (length) {
		size_t part = PAGE_BYTES - file->sum.bytes % PAGE_BYTES;

		part = part < length ? part : length;
		if (!is_zero(at, part) && !write_all(file, at, part, file->sum.bytes, err))
			return false;
		file->sum.bytes += part;
		at += part;
		length -= part;
	}
	return true;
}

void upload_file_close(struct upload_file *file)
{
	if (!file)
		return;
	close(file->fd);
	if (!file->is_kept)
		unlinkat(file->uploads->directory, file->name, 0);
	upload_room_unreserve(&file->uploads->room, file->reserved_bytes);
	free(file);
}

/* ---- what it is ---- */

enum {
	WORTH_DEBUG_INFO = 32,
	WORTH_ALL_OF_IT = 16, /* nothing of it is in a dwz file */
	WORTH_SYMTAB = 8,
	WORTH_PCLNTAB = 4,
	WORTH_DYNSYM = 2,
	WORTH_CODE = 1,
};

static unsigned worth_of(const struct elf_image *image)
{
	return (image->has_debug_info ? WORTH_DEBUG_INFO : 0) +
	       (image->has_debug_info && !image->has_alt_link ? WORTH_ALL_OF_IT : 0) +
	       (image->has_symtab ? WORTH_SYMTAB : 0) +
	       (image->has_go_pclntab ? WORTH_PCLNTAB : 0) +
	       (image->has_dynsym ? WORTH_DYNSYM : 0) + (image->has_code ? WORTH_CODE : 0);
}

/* Files without section headers have their segments only. */
static bool has_code(const struct elf_image *image)
{
	for (unsigned i = 0; i < image->segment_count; i++)
		if (image->segments[i].is_executable)
			return true;
	return image->has_code;
}

static enum upload_kind kind_of(const struct elf_image *image)
{
	if (image->has_unit_index)
		return UPLOAD_DWP;
	if (image->has_debug_info && image->type == ET_REL && !image->segment_count &&
	    !image->has_code && !image->has_symtab)
		return UPLOAD_ALT;
	if (image->has_debug_info || (image->has_symtab && !image->has_code))
		return UPLOAD_DEBUG;
	return UPLOAD_EXECUTABLE;
}

/* A .dwp says nothing of the program it belongs to: whoever sends it knows, and its units carry the
 * ids that the program's debug information asks for. */
static bool check_elf(int fd, const struct elf_image *image, const struct build_id *id,
		      struct error *err)
{
	char hex[BUILD_ID_HEX];

	if (image->has_unit_index && !image->has_split_info)
		return error_set(err, ERROR_FORMAT, "the .dwp file has no debug information");
	if (image->has_unit_index && (!image->gnu.length || build_id_equal(&image->gnu, id)))
		return true;
	if (image->has_split_info && !image->has_debug_info && !has_code(image))
		return error_set(err, ERROR_FORMAT,
				 "a single .dwo file: send the .dwp file made of all of them");
	if (!image->has_unit_index && !worth_of(image) && !has_code(image))
		return error_set(err, ERROR_FORMAT, "the file has neither code nor symbols");
	if (symbol_file_has_id(fd, image, id))
		return true;
	if (image->gnu.length)
		return error_set(err, ERROR_CONFLICT, "the file's build-id is %s",
				 build_id_format(&image->gnu, hex));
	return error_set(err, ERROR_CONFLICT, "the file has no build-id and another htlhash");
}

/* What says how many units a .dwp has without reading them. */
static unsigned kilobytes_of(int fd)
{
	struct stat stat;

	return fstat(fd, &stat) ? 0 : (unsigned)(stat.st_size >> 10);
}

bool upload_sniff(int fd, const struct build_id *id, enum upload_kind *kind, unsigned *worth,
		  struct error *err)
{
	struct elf_image *image;
	uint8_t start[SNIFF_BYTES];
	ssize_t length = pread(fd, start, sizeof(start), 0);
	bool ok;

	if (length < 0)
		return error_set_system(err, errno, "read the upload");
	if (kallsyms_is_one(start, (size_t)length)) {
		*kind = UPLOAD_KALLSYMS;
		*worth = 1;
		return true;
	}
	image = malloc(sizeof(*image));
	if (!image)
		return error_set(err, ERROR_MEMORY, "no memory to check the upload");
	ok = elf_image_read(fd, image, err) && check_elf(fd, image, id, err);
	if (ok) {
		*kind = kind_of(image);
		*worth = *kind == UPLOAD_DWP ? kilobytes_of(fd) : worth_of(image);
	}
	free(image);
	return ok;
}

/* ---- what came of it ---- */

static bool was_compared(struct uploads *uploads, const struct stat *file)
{
	const struct compared *compared = &uploads->compared[file->st_ino % COMPARED_MAX];
	bool was;

	pthread_mutex_lock(&uploads->compared_lock);
	was = compared->inode == file->st_ino && compared->bytes == file->st_size &&
	      compared->changed.tv_sec == file->st_mtim.tv_sec &&
	      compared->changed.tv_nsec == file->st_mtim.tv_nsec;
	pthread_mutex_unlock(&uploads->compared_lock);
	return was;
}

static void note_compared(struct uploads *uploads, const struct stat *file, bool is_damaged)
{
	pthread_mutex_lock(&uploads->compared_lock);
	uploads->damaged += is_damaged;
	if (!is_damaged)
		uploads->compared[file->st_ino % COMPARED_MAX] =
			(struct compared){file->st_ino, file->st_size, file->st_mtim};
	pthread_mutex_unlock(&uploads->compared_lock);
}

static void remove_file(struct uploads *uploads, const char *name)
{
	char folder[BUILD_ID_HEX];
	struct upload_usage before;

	snprintf(folder, sizeof(folder), "%.*s", (int)strcspn(name, "/"), name);
	before = upload_room_lock(&uploads->room, folder);
	unlinkat(uploads->directory, name, 0);
	upload_sum_remove(uploads->directory, name);
	upload_room_unlock(&uploads->room, folder, &before);
}

/* Whether it is what was sent, read through once. What is damaged goes: it can be sent again. */
static bool is_intact(struct uploads *uploads, const char *name, int fd)
{
	struct stat file, there;
	bool is_damaged;

	if (fstat(fd, &file))
		return false;
	if (was_compared(uploads, &file))
		return true;
	is_damaged = upload_sum_compare(uploads->directory, name, fd) == UPLOAD_DAMAGED;
	/* Another one took its place, and its checksum: this one is whole. */
	if (is_damaged && !fstatat(uploads->directory, name, &there, AT_SYMLINK_NOFOLLOW) &&
	    there.st_ino != file.st_ino)
		return true;
	note_compared(uploads, &file, is_damaged);
	if (!is_damaged)
		return true;
	log_error("uploaded file is damaged and was deleted: it is asked for again",
		  "file=\"%s\" bytes=%llu", name, (unsigned long long)file.st_size);
	remove_file(uploads, name);
	return false;
}

/* ---- keeping ---- */

static bool is_there_as_good(struct uploads *uploads, const char *name, const struct build_id *id,
			     unsigned worth)
{
	int fd = openat(uploads->directory, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	enum upload_kind kind;
	unsigned worth_there;
	bool as_good = fd >= 0 && upload_sniff(fd, id, &kind, &worth_there, NULL) &&
		       worth_there >= worth && is_intact(uploads, name, fd);

	if (fd >= 0)
		close(fd);
	return as_good;
}

static bool sync_directory(int at, const char *name)
{
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool ok = fd >= 0 && !fsync(fd);

	if (fd >= 0)
		close(fd);
	return ok;
}

static bool put_in_place(struct upload_file *file, const char *folder, const char *name,
			 struct error *err)
{
	int at = file->uploads->directory;

	if (fsync(file->fd))
		return error_set_system(err, errno, "store the upload");
	if (mkdirat(at, folder, 0700) && errno != EEXIST)
		return error_set_system(err, errno, "create a folder for the upload");
	if (!upload_sum_write(at, name, &file->sum, err))
		return false;
	if (renameat(at, file->name, at, name))
		return error_set_system(err, errno, "put the upload in place");
	file->is_kept = true;
	if (!sync_directory(at, folder) || fsync(at))
		return error_set_system(err, errno, "store the upload's folder");
	return true;
}

bool upload_file_keep(struct upload_file *file, const struct build_id *id, bool replaces,
		      bool *is_new, struct error *err)
{
	struct uploads *uploads = file->uploads;
	char folder[BUILD_ID_HEX], name[NAME_ROOM];
	enum upload_kind kind;
	unsigned worth;
	bool ok = true;

	*is_new = false;
	if (ftruncate(file->fd, (off_t)file->sum.bytes)) /* zeros at the end were not written */
		return error_set_system(err, errno, "store the upload");
	if (!upload_sniff(file->fd, id, &kind, &worth, err))
		return false;
	snprintf(name, sizeof(name), "%s/%s", build_id_format(id, folder), kind_names[kind]);
	pthread_mutex_lock(&uploads->lock);
	if (replaces || !is_there_as_good(uploads, name, id, worth)) {
		struct upload_usage before = upload_room_lock(&uploads->room, folder);

		ok = put_in_place(file, folder, name, err);
		upload_room_unlock(&uploads->room, folder, &before);
		*is_new = ok;
	}
	pthread_mutex_unlock(&uploads->lock);
	return ok;
}

size_t uploads_open_files(struct uploads *uploads, const struct build_id *id, int *fds)
{
	char folder[BUILD_ID_HEX], name[NAME_ROOM];
	size_t count = 0;

	build_id_format(id, folder);
	for (int kind = 0; kind < UPLOAD_KINDS; kind++) {
		snprintf(name, sizeof(name), "%s/%s", folder, kind_names[kind]);
		fds[count] = openat(uploads->directory, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
		if (fds[count] < 0)
			continue;
		if (is_intact(uploads, name, fds[count]))
			count++;
		else
			close(fds[count]);
	}
	if (count)
		upload_room_use(&uploads->room, folder);
	return count;
}

bool uploads_have(struct uploads *uploads, const struct build_id *id)
{
	char folder[BUILD_ID_HEX], name[NAME_ROOM];
	bool have = false;

	build_id_format(id, folder);
	for (int kind = 0; kind < UPLOAD_KINDS && !have; kind++) {
		snprintf(name, sizeof(name), "%s/%s", folder, kind_names[kind]);
		have = !faccessat(uploads->directory, name, F_OK, AT_SYMLINK_NOFOLLOW);
	}
	return have;
}

void uploads_use(struct uploads *uploads, const struct build_id *id)
{
	char folder[BUILD_ID_HEX];

	upload_room_use(&uploads->room, build_id_format(id, folder));
}

struct upload_usage uploads_usage(struct uploads *uploads, const struct build_id *id)
{
	char folder[BUILD_ID_HEX];

	return upload_room_usage(uploads->directory, build_id_format(id, folder));
}

struct upload_usage uploads_remove(struct uploads *uploads, const struct build_id *id)
{
	char folder[BUILD_ID_HEX];

	return upload_room_remove(&uploads->room, build_id_format(id, folder));
}

void uploads_each(struct uploads *uploads, upload_gone_fn *fn, void *context)
{
	upload_room_each(&uploads->room, fn, context);
}

void uploads_count(struct uploads *uploads, struct uploads_counts *out)
{
	struct upload_room *room = &uploads->room;

	pthread_mutex_lock(&room->lock);
	*out = (struct uploads_counts){.bytes = room->bytes + room->receiving_bytes,
				       .files = room->files,
				       .limit_bytes = room->limit_bytes,
				       .evicted_files = room->evicted_files,
				       .evicted_bytes = room->evicted_bytes};
	pthread_mutex_unlock(&room->lock);
	pthread_mutex_lock(&uploads->compared_lock);
	out->damaged = uploads->damaged;
	pthread_mutex_unlock(&uploads->compared_lock);
}
