/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/symbolize/sources/upload_room.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/log.h"
#include "symbol-server/symbolize/sources/disk_room.h"
#include "symbol-server/symbolize/least_used.h"
#include "symbol-server/symbolize/sources/upload_sums.h"

enum {
	KEPT_SIXTEENTHS = 15, /* of the limit, after making room: not every file looks at all */
};

/* ---- folders ---- */

static DIR *open_folder(int directory, const char *folder)
{
	int fd = openat(directory, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	DIR *entries = fd >= 0 ? fdopendir(fd) : NULL;

	if (!entries && fd >= 0)
		close(fd);
	return entries;
}

struct upload_usage upload_room_usage(int directory, const char *folder)
{
	DIR *entries = open_folder(directory, folder);
	struct upload_usage usage = {0};
	struct dirent *entry;
	struct stat file;

	while (entries && (entry = readdir(entries))) {
		int64_t used_ms;

		if (fstatat(dirfd(entries), entry->d_name, &file, AT_SYMLINK_NOFOLLOW) ||
		    !S_ISREG(file.st_mode))
			continue;
		used_ms = file.st_atim.tv_sec * INT64_C(1000) + file.st_atim.tv_nsec / 1000000;
		usage.bytes += (uint64_t)file.st_blocks * 512;
		if (strstr(entry->d_name, UPLOAD_SUM))
			continue;
		usage.files++;
		if (used_ms > usage.used_ms)
			usage.used_ms = used_ms;
	}
	if (entries)
		closedir(entries);
	return usage;
}

static bool is_folder(const struct dirent *entry, struct build_id *id)
{
	return build_id_parse(id, entry->d_name, strlen(entry->d_name));
}

void upload_room_each(struct upload_room *room, upload_gone_fn *fn, void *context)
{
	DIR *entries = open_folder(room->directory, ".");
	struct dirent *entry;
	struct build_id id;

	while (entries && (entry = readdir(entries)))
		if (is_folder(entry, &id) &&
		    upload_room_usage(room->directory, entry->d_name).files)
			fn(context, &id);
	if (entries)
		closedir(entries);
}

void upload_room_init(struct upload_room *room, int directory, uint64_t limit_bytes)
{
	DIR *entries = open_folder(directory, ".");
	struct dirent *entry;
	struct build_id id;

	room->directory = directory;
	room->limit_bytes = limit_bytes;
	pthread_mutex_init(&room->lock, NULL);
	while (entries && (entry = readdir(entries))) {
		struct upload_usage usage;

		if (!is_folder(entry, &id))
			continue;
		usage = upload_room_usage(directory, entry->d_name);
		room->bytes += usage.bytes;
		room->files += usage.files;
		room->folders += usage.files > 0;
	}
	if (entries)
		closedir(entries);
}

void upload_room_release(struct upload_room *room)
{
	pthread_mutex_destroy(&room->lock);
}

/* ---- changes ---- */

struct upload_usage upload_room_lock(struct upload_room *room, const char *folder)
{
	pthread_mutex_lock(&room->lock);
	return upload_room_usage(room->directory, folder);
}

static void count_change(struct upload_room *room, const struct upload_usage *before,
			 const struct upload_usage *after)
{
	room->bytes += after->bytes - before->bytes;
	room->files += after->files - before->files;
	room->folders += (uint32_t)(after->files > 0) - (uint32_t)(before->files > 0);
}

void upload_room_unlock(struct upload_room *room, const char *folder,
			const struct upload_usage *before)
{
	struct upload_usage after = upload_room_usage(room->directory, folder);

	count_change(room, before, &after);
	pthread_mutex_unlock(&room->lock);
}

static struct upload_usage remove_folder(struct upload_room *room, const char *folder)
{
	struct upload_usage before = upload_room_usage(room->directory, folder), after;
	DIR *entries = open_folder(room->directory, folder);
	struct dirent *entry;
	struct build_id id;

	while (entries && (entry = readdir(entries)))
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
			unlinkat(dirfd(entries), entry->d_name, 0);
	if (entries)
		closedir(entries);
	unlinkat(room->directory, folder, AT_REMOVEDIR);
	after = upload_room_usage(room->directory, folder);
	count_change(room, &before, &after);
	if (before.files && !after.files && room->gone &&
	    build_id_parse(&id, folder, strlen(folder)))
		room->gone(room->context, &id);
	before.bytes -= after.bytes;
	before.files -= after.files;
	return before;
}

struct upload_usage upload_room_remove(struct upload_room *room, const char *folder)
{
	struct upload_usage removed;

	pthread_mutex_lock(&room->lock);
	removed = remove_folder(room, folder);
	pthread_mutex_unlock(&room->lock);
	return removed;
}

void upload_room_use(struct upload_room *room, const char *folder)
{
	const struct timespec times[2] = {{.tv_nsec = UTIME_NOW}, {.tv_nsec = UTIME_OMIT}};
	DIR *entries = open_folder(room->directory, folder);
	struct dirent *entry;
	struct stat file;

	while (entries && (entry = readdir(entries)))
		if (!strstr(entry->d_name, UPLOAD_SUM) &&
		    !fstatat(dirfd(entries), entry->d_name, &file, AT_SYMLINK_NOFOLLOW) &&
		    S_ISREG(file.st_mode))
			utimensat(dirfd(entries), entry->d_name, times, AT_SYMLINK_NOFOLLOW);
	if (entries)
		closedir(entries);
}

/* ---- making room ---- */

static struct victim *list_victims(const struct upload_room *room, size_t *count)
{
	size_t space = room->folders + 1;
	struct victim *victims = malloc(space * sizeof(*victims));
	DIR *entries = victims ? open_folder(room->directory, ".") : NULL;
	struct dirent *entry;
	struct build_id id;

	*count = 0;
	while (entries && *count < space && (entry = readdir(entries))) {
		struct upload_usage usage;

		if (!is_folder(entry, &id))
			continue;
		usage = upload_room_usage(room->directory, entry->d_name);
		if (usage.files)
			victims[(*count)++] = (struct victim){id, usage.used_ms};
	}
	if (entries)
		closedir(entries);
	if (*count)
		qsort(victims, *count, sizeof(*victims), victim_compare);
	return victims;
}

/* What is over the limit with bytes more, and what the disk lacks for them. */
static uint64_t excess(const struct upload_room *room, uint64_t bytes)
{
	uint64_t all = room->bytes + room->receiving_bytes + bytes;

	return room->limit_bytes && all > room->limit_bytes ? all - room->limit_bytes : 0;
}

static void evict(struct upload_room *room, uint64_t bytes)
{
	uint64_t left, lacks = disk_room_lacks(room->directory, bytes, &left);
	uint64_t over = excess(room, bytes), wanted, freed = 0, files = 0;
	struct victim *victims;
	char hex[BUILD_ID_HEX];
	size_t count;

	if (!lacks && !over && room->folders < UPLOAD_FOLDERS_MAX)
		return;
	if (over)
		over += room->limit_bytes / 16 * (16 - KEPT_SIXTEENTHS);
	wanted = over > lacks ? over : lacks;
	victims = list_victims(room, &count);
	for (size_t i = 0; i < count && (freed < wanted || room->folders >= UPLOAD_FOLDERS_MAX);
	     i++) {
		struct upload_usage removed = remove_folder(room,
							    build_id_format(&victims[i].id, hex));

		freed += removed.bytes;
		files += removed.files;
	}
	free(victims);
	room->evicted_files += files;
	room->evicted_bytes += freed;
	if (files)
		log_info("uploaded files made room", "files=%llu bytes=%llu why=%s",
			 (unsigned long long)files, (unsigned long long)freed,
			 lacks ? "disk" : "upload-disk");
}

static bool has_no_room(uint64_t left, struct error *err)
{
	return error_set_system(
		err, ENOSPC, "the disk of --data has %llu MB left, of which %llu are kept free",
		(unsigned long long)MB(left), (unsigned long long)MB(DISK_ROOM_LEFT));
}

static bool fits(struct upload_room *room, uint64_t bytes, struct error *err)
{
	uint64_t limit = room->limit_bytes, left;

	if (limit && bytes > limit)
		return error_set(err, ERROR_LIMIT,
				 "the file is larger than all uploads together may be: %llu MB "
				 "(--upload-disk)",
				 (unsigned long long)limit >> 20);
	if (disk_room_lacks(room->directory, bytes, &left) > room->bytes)
		return has_no_room(left, err);
	return true;
}

bool upload_room_fits(struct upload_room *room, uint64_t bytes, struct error *err)
{
	bool ok;

	pthread_mutex_lock(&room->lock);
	ok = fits(room, bytes, err);
	pthread_mutex_unlock(&room->lock);
	return ok;
}

static bool make_room(struct upload_room *room, uint64_t bytes, struct error *err)
{
	uint64_t left = 0;

	if (!fits(room, bytes, err))
		return false;
	if (room->limit_bytes && room->receiving_bytes + bytes > room->limit_bytes)
		return error_set(err, ERROR_BUSY,
				 "files that are being received take all of --upload-disk; try "
				 "again later");
	evict(room, bytes);
	if (excess(room, bytes) || disk_room_lacks(room->directory, bytes, &left))
		return has_no_room(left, err);
	return true;
}

bool upload_room_reserve(struct upload_room *room, uint64_t bytes, struct error *err)
{
	bool ok;

	pthread_mutex_lock(&room->lock);
	ok = make_room(room, bytes, err);
	if (ok)
		room->receiving_bytes += bytes;
	pthread_mutex_unlock(&room->lock);
	return ok;
}

void upload_room_unreserve(struct upload_room *room, uint64_t bytes)
{
	pthread_mutex_lock(&room->lock);
	room->receiving_bytes -= bytes;
	pthread_mutex_unlock(&room->lock);
}
