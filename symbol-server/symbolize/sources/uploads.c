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

#include "common/elf_image.h"
#include "symbol-server/symbolize/convert/kallsyms.h"
#include "symbol-server/symbolize/sources/symbol_directories.h"

enum { NAME_ROOM = BUILD_ID_HEX + 32, SNIFF_BYTES = 64 };

static const char *const kind_names[UPLOAD_KINDS] = {"executable", "debug", "kallsyms", "dwp",
						     "alt"};

struct uploads {
	int directory;
	uint64_t limit_bytes;
	pthread_mutex_t lock; /* of serial, and of comparing with and replacing what is there */
	uint64_t serial;
};

struct upload_file {
	struct uploads *uploads;
	char name[NAME_ROOM];
	int fd;
	uint64_t bytes;
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

struct uploads *uploads_open(const char *cache_directory, uint64_t limit_bytes, struct error *err)
{
	struct uploads *uploads = calloc(1, sizeof(*uploads));
	char path[PATH_MAX];

	if (!uploads) {
		error_set(err, ERROR_MEMORY, "no memory for uploads");
		return NULL;
	}
	pthread_mutex_init(&uploads->lock, NULL);
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
	return uploads;
}

void uploads_close(struct uploads *uploads)
{
	if (!uploads)
		return;
	if (uploads->directory >= 0)
		close(uploads->directory);
	pthread_mutex_destroy(&uploads->lock);
	free(uploads);
}

/* ---- receiving ---- */

struct upload_file *upload_file_open(struct uploads *uploads, struct error *err)
{
	struct upload_file *file = calloc(1, sizeof(*file));
	uint64_t serial;

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

bool upload_file_write(struct upload_file *file, const void *bytes, size_t length,
		       struct error *err)
{
	const uint8_t *at = bytes;

	if (length > file->uploads->limit_bytes - file->bytes)
		return error_set(err, ERROR_LIMIT, "the file is larger than the limit of %llu MB",
				 (unsigned long long)file->uploads->limit_bytes >> 20);
	file->bytes += length;
	while (length) {
		ssize_t done = write(file->fd, at, length);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return error_set_system(err, errno, "store the upload");
		at += done;
		length -= (size_t)done;
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

/* ---- keeping ---- */

static bool is_there_as_good(struct uploads *uploads, const char *name, const struct build_id *id,
			     unsigned worth)
{
	int fd = openat(uploads->directory, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	enum upload_kind kind;
	unsigned worth_there;
	bool as_good = fd >= 0 && upload_sniff(fd, id, &kind, &worth_there, NULL) &&
		       worth_there >= worth;

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
	if (!upload_sniff(file->fd, id, &kind, &worth, err))
		return false;
	snprintf(name, sizeof(name), "%s/%s", build_id_format(id, folder), kind_names[kind]);
	pthread_mutex_lock(&uploads->lock);
	if (replaces || !is_there_as_good(uploads, name, id, worth)) {
		ok = put_in_place(file, folder, name, err);
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
		count += fds[count] >= 0;
	}
	return count;
}
