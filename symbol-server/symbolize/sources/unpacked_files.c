/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/symbolize/sources/unpacked_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { FILES_MAX = 4096 };

#define HALF_WRITTEN "new-"

struct unpacked_files {
	int directory;
	uint64_t limit_bytes;
	pthread_mutex_t lock; /* of what follows, and of removing */
	uint64_t serial, bytes;
};

struct kept_file {
	char name[UNPACKED_NAME_MAX];
	uint64_t bytes;
	int64_t used_ns;
};

static DIR *open_entries(int directory)
{
	int fd = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *entries = fd >= 0 ? fdopendir(fd) : NULL;

	if (!entries && fd >= 0)
		close(fd);
	return entries;
}

static void remove_half_written(int directory)
{
	DIR *entries = open_entries(directory);
	struct dirent *entry;

	while (entries && (entry = readdir(entries)) != NULL)
		if (!strncmp(entry->d_name, HALF_WRITTEN, strlen(HALF_WRITTEN)))
			unlinkat(directory, entry->d_name, 0);
	if (entries)
		closedir(entries);
}

/* ---- least used first ---- */

static int least_used_first(const void *one, const void *other)
{
	const struct kept_file *a = one, *b = other;

	return a->used_ns < b->used_ns ? -1 : a->used_ns > b->used_ns;
}

static size_t list_files(const struct unpacked_files *files, struct kept_file *kept)
{
	DIR *entries = open_entries(files->directory);
	struct dirent *entry;
	struct stat stat;
	size_t count = 0;

	while (entries && count < FILES_MAX && (entry = readdir(entries)) != NULL) {
		if (entry->d_name[0] == '.' || strlen(entry->d_name) >= UNPACKED_NAME_MAX ||
		    !strncmp(entry->d_name, HALF_WRITTEN, strlen(HALF_WRITTEN)) ||
		    fstatat(files->directory, entry->d_name, &stat, AT_SYMLINK_NOFOLLOW))
			continue;
		memcpy(kept[count].name, entry->d_name, strlen(entry->d_name) + 1);
		kept[count].bytes = (uint64_t)stat.st_blocks * 512;
		kept[count++].used_ns = stat.st_mtim.tv_sec * INT64_C(1000000000) +
					stat.st_mtim.tv_nsec;
	}
	if (entries)
		closedir(entries);
	return count;
}

/* Lock held. Whoever has a removed file open keeps it until it is closed. */
static void remove_least_used(struct unpacked_files *files)
{
	struct kept_file *kept = calloc(FILES_MAX, sizeof(*kept));
	size_t count = kept ? list_files(files, kept) : 0;
	uint64_t bytes = 0;

	for (size_t i = 0; i < count; i++)
		bytes += kept[i].bytes;
	qsort(kept, count, sizeof(*kept), least_used_first);
	for (size_t i = 0; i < count && (bytes > files->limit_bytes || count - i > FILES_MAX / 2);
	     i++)
		if (!unlinkat(files->directory, kept[i].name, 0))
			bytes -= kept[i].bytes;
	files->bytes = bytes;
	free(kept);
}

struct unpacked_files *unpacked_files_open(const char *cache_directory, uint64_t limit_bytes,
					   struct error *err)
{
	struct unpacked_files *files = calloc(1, sizeof(*files));
	char path[PATH_MAX];

	if (!files) {
		error_set(err, ERROR_MEMORY, "no memory for files from packages");
		return NULL;
	}
	pthread_mutex_init(&files->lock, NULL);
	files->limit_bytes = limit_bytes;
	snprintf(path, sizeof(path), "%s/unpacked", cache_directory);
	files->directory = mkdir(path, 0700) && errno != EEXIST
				   ? -1
				   : open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (files->directory < 0) {
		error_set_system(err, errno, "directory '%s'", path);
		unpacked_files_close(files);
		return NULL;
	}
	remove_half_written(files->directory);
	remove_least_used(files);
	return files;
}

void unpacked_files_close(struct unpacked_files *files)
{
	if (!files)
		return;
	if (files->directory >= 0)
		close(files->directory);
	pthread_mutex_destroy(&files->lock);
	free(files);
}

/* ---- one file ---- */

static void name_of(uint64_t key, char name[UNPACKED_NAME_MAX])
{
	snprintf(name, UNPACKED_NAME_MAX, "%016" PRIx64, key);
}

int unpacked_files_find(struct unpacked_files *files, uint64_t key)
{
	char name[UNPACKED_NAME_MAX];
	int fd;

	name_of(key, name);
	fd = openat(files->directory, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd >= 0)
		futimens(fd, NULL); /* used now */
	return fd;
}

int unpacked_files_begin(struct unpacked_files *files, char name[UNPACKED_NAME_MAX],
			 struct error *err)
{
	uint64_t serial;
	int fd;

	pthread_mutex_lock(&files->lock);
	serial = ++files->serial;
	pthread_mutex_unlock(&files->lock);
	snprintf(name, UNPACKED_NAME_MAX, HALF_WRITTEN "%" PRIu64, serial);
	fd = openat(files->directory, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		error_set_system(err, errno, "create a file for what a package holds");
	return fd;
}

int unpacked_files_keep(struct unpacked_files *files, int fd, const char *name, uint64_t key,
			struct error *err)
{
	int opened = openat(files->directory, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	char kept[UNPACKED_NAME_MAX];
	struct stat stat;

	if (opened < 0 || fstat(opened, &stat)) {
		error_set_system(err, errno, "open what a package holds");
		unpacked_files_drop(files, fd, name);
		return opened;
	}
	if ((uint64_t)stat.st_blocks * 512 > files->limit_bytes) {
		unpacked_files_drop(files, fd, name);
		return opened;
	}
	close(fd);
	name_of(key, kept);
	pthread_mutex_lock(&files->lock);
	if (renameat(files->directory, name, files->directory, kept))
		unlinkat(files->directory, name, 0);
	remove_least_used(files);
	pthread_mutex_unlock(&files->lock);
	return opened;
}

void unpacked_files_drop(struct unpacked_files *files, int fd, const char *name)
{
	close(fd);
	unlinkat(files->directory, name, 0);
}

uint64_t unpacked_files_bytes(struct unpacked_files *files)
{
	uint64_t bytes;

	pthread_mutex_lock(&files->lock);
	bytes = files->bytes;
	pthread_mutex_unlock(&files->lock);
	return bytes;
}
