/* SPDX-License-Identifier: Apache-2.0 */
/* What --data takes on disk, all of it, by kind, and what its file system has left. */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "symbol-server/api/metrics_text.h"

enum {
	KEPT_MS = 30000, /* a walk through the files is not made for each scrape */
	DEPTH_MAX = 6,
};

#define DISK_KINDS(KIND) \
	KIND(samples)    \
	KIND(hours) KIND(journal) KIND(symbols) KIND(uploads) KIND(damaged) KIND(other)
#define KIND_ENUM(name_) DISK_##name_,
#define KIND_NAME(name_) #name_,
enum disk_kind { DISK_KINDS(KIND_ENUM) DISK_KIND_COUNT };

static const struct {
	const char *prefix;
	enum disk_kind kind;
} beginnings[] = {
	{"samples-", DISK_samples},   {"hours-", DISK_hours},          {"journal", DISK_journal},
	{"symbols.db", DISK_symbols}, {"cache/uploads", DISK_uploads},
};

static enum disk_kind kind_of(const char *path)
{
	if (strstr(path, ".damaged"))
		return DISK_damaged;
	for (size_t i = 0; i < sizeof beginnings / sizeof *beginnings; i++)
		if (!strncmp(path, beginnings[i].prefix, strlen(beginnings[i].prefix)))
			return beginnings[i].kind;
	return DISK_other;
}

/* path: of the directory at fd below --data, with its slash; fd is closed. Symbolic links are not
 * followed. */
static void add_directory(int fd, const char *path, int depth, uint64_t bytes[DISK_KIND_COUNT])
{
	DIR *directory = fdopendir(fd);
	struct dirent *entry;

	if (!directory) {
		close(fd);
		return;
	}
	while ((entry = readdir(directory))) {
		char below[512];
		struct stat st;
		int inner;

		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..") ||
		    fstatat(dirfd(directory), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) ||
		    snprintf(below, sizeof below, "%s%s%s", path, entry->d_name,
			     S_ISDIR(st.st_mode) ? "/" : "") >= (int)sizeof below)
			continue;
		bytes[kind_of(below)] += (uint64_t)st.st_blocks * 512;
		if (!S_ISDIR(st.st_mode) || depth >= DEPTH_MAX)
			continue;
		inner = openat(dirfd(directory), entry->d_name,
			       O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (inner >= 0)
			add_directory(inner, below, depth + 1, bytes);
	}
	closedir(directory);
}

static int64_t monotonic_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* As of at most KEPT_MS ago. */
static void take_bytes(const char *data, uint64_t bytes[DISK_KIND_COUNT])
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static uint64_t kept[DISK_KIND_COUNT];
	static int64_t taken_ms;
	int fd;

	pthread_mutex_lock(&lock);
	if (!taken_ms || monotonic_ms() - taken_ms > KEPT_MS) {
		memset(kept, 0, sizeof kept);
		fd = open(data, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd >= 0)
			add_directory(fd, "", 0, kept);
		taken_ms = monotonic_ms();
	}
	memcpy(bytes, kept, sizeof kept);
	pthread_mutex_unlock(&lock);
}

void metrics_put_disk(struct buffer *out, const struct api *api)
{
	static const char *const kinds[] = {DISK_KINDS(KIND_NAME)};
	uint64_t bytes[DISK_KIND_COUNT];
	struct statvfs room;

	if (!api->data)
		return;
	take_bytes(api->data, bytes);
	metrics_describe(out, "data_bytes", "gauge",
			 "Bytes that files below --data take on disk, all of them, by kind.");
	for (int i = 0; i < DISK_KIND_COUNT; i++)
		metrics_put_labelled(out, "data_bytes", "kind", kinds[i], bytes[i]);
	if (statvfs(api->data, &room))
		return;
	GAUGE("data_filesystem_free_bytes", (uint64_t)room.f_bavail * room.f_frsize,
	      "What the file system of --data has left for this server.");
	GAUGE("data_filesystem_size_bytes", (uint64_t)room.f_blocks * room.f_frsize,
	      "How large that file system is.");
}
