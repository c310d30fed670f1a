/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/processes/process_files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "node-agent/processes/memory_map.h"

enum { READ_STEP = 32768, STAT_FIELD_START_TIME = 22 };

bool process_stat_start_time(const char *stat, size_t length, uint64_t *ticks)
{
	const char *at = memrchr(stat, ')', length), *end = stat + length;
	uint64_t value = 0;
	int field = 2; /* the name in parentheses, which may hold anything */

	if (!at)
		return false;
	for (at++; at < end && field < STAT_FIELD_START_TIME; at++)
		field += *at == ' ';
	if (at >= end || *at < '0' || *at > '9')
		return false;
	for (; at < end && *at >= '0' && *at <= '9'; at++)
		value = value * 10 + (uint64_t)(*at - '0');
	*ticks = value;
	return true;
}

static bool started_at(int directory, uint64_t start_time_ns)
{
	long ticks_per_second = sysconf(_SC_CLK_TCK);
	char stat[1024];
	uint64_t shown, expected;
	ssize_t length;
	int fd = openat(directory, "stat", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return false;
	length = read(fd, stat, sizeof(stat));
	close(fd);
	if (length <= 0 || !process_stat_start_time(stat, (size_t)length, &shown))
		return false;
	expected = start_time_ns /
		   (1000000000 / (uint64_t)(ticks_per_second > 0 ? ticks_per_second : 100));
	return shown + 1 >= expected && shown <= expected + 1;
}

uint64_t process_start_ns(uint32_t tgid)
{
	const long per_second = sysconf(_SC_CLK_TCK);
	char path[40], stat[1024];
	uint64_t ticks = 0;
	ssize_t length;
	int fd;

	snprintf(path, sizeof path, "/proc/%u/stat", tgid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	length = fd >= 0 ? read(fd, stat, sizeof stat) : -1;
	if (fd >= 0)
		close(fd);
	if (length <= 0 || !process_stat_start_time(stat, (size_t)length, &ticks))
		return 0;
	return ticks * (1000000000 / (uint64_t)(per_second > 0 ? per_second : 100));
}

int process_directory_open(const char *proc_root, uint32_t tgid, uint64_t start_time_ns)
{
	char path[PATH_MAX];
	int directory;

	if (snprintf(path, sizeof(path), "%s/%" PRIu32, proc_root, tgid) >= (int)sizeof(path))
		return -1;
	directory = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (directory >= 0 && start_time_ns && !started_at(directory, start_time_ns)) {
		close(directory);
		return -1;
	}
	return directory;
}

void process_directory_init(struct process_directory *last, const char *proc_root)
{
	*last = (struct process_directory){.proc_root = proc_root, .fd = -1};
}

void process_directory_close(struct process_directory *last)
{
	if (last->fd >= 0)
		close(last->fd);
	process_directory_init(last, last->proc_root);
}

int process_directory_of(struct process_directory *last, uint32_t tgid, uint64_t start_time_ns)
{
	if (last->fd >= 0 && start_time_ns && last->tgid == tgid &&
	    last->start_time_ns == start_time_ns)
		return last->fd;
	process_directory_close(last);
	last->fd = process_directory_open(last->proc_root, tgid, start_time_ns);
	last->tgid = tgid;
	last->start_time_ns = start_time_ns;
	return last->fd;
}

bool process_file_read(int directory, const char *name, struct buffer *out, struct error *err)
{
	int fd = openat(directory, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	bool ok = false;

	if (fd < 0)
		return error_set_system(err, errno, "open %s", name);
	for (;;) {
		uint8_t *at = buffer_reserve(out, READ_STEP);
		ssize_t got;

		if (!at) {
			error_set(err, ERROR_LIMIT, "%s is longer than %zu bytes", name,
				  out->limit);
			break;
		}
		got = read(fd, at, READ_STEP);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			error_set_system(err, errno, "read %s", name);
		if (got <= 0) {
			ok = !got;
			break;
		}
		out->length += (size_t)got;
	}
	close(fd);
	return ok;
}

bool process_link_read(int directory, const char *name, char *text, size_t room)
{
	ssize_t length = readlinkat(directory, name, text, room);

	if (length <= 0 || (size_t)length >= room)
		return false;
	text[length] = '\0';
	return true;
}

enum { MAPPING_NAME = 64 };

static const char *mapping_name(char name[MAPPING_NAME], uint64_t start, uint64_t end)
{
	snprintf(name, MAPPING_NAME, "map_files/%" PRIx64 "-%" PRIx64, start, end);
	return name;
}

int process_open_mapping(int directory, uint64_t start, uint64_t end)
{
	char name[MAPPING_NAME];

	return openat(directory, mapping_name(name, start, end), O_PATH | O_CLOEXEC);
}

/* The fields that tell files apart; the others are 0. */
static bool stat_here(int directory, const char *name, int flags, struct stat *st)
{
	struct statx found;

	memset(st, 0, sizeof(*st));
	if (statx(directory, name, flags | AT_STATX_DONT_SYNC, STATX_BASIC_STATS, &found))
		return false;
	st->st_dev = makedev(found.stx_dev_major, found.stx_dev_minor);
	st->st_ino = found.stx_ino;
	st->st_mode = found.stx_mode;
	st->st_uid = found.stx_uid;
	st->st_size = (off_t)found.stx_size;
	st->st_mtim = (struct timespec){found.stx_mtime.tv_sec, found.stx_mtime.tv_nsec};
	st->st_ctim = (struct timespec){found.stx_ctime.tv_sec, found.stx_ctime.tv_nsec};
	return true;
}

bool process_stat_file(int fd, struct stat *st)
{
	return stat_here(fd, "", AT_EMPTY_PATH, st);
}

bool process_stat_mapping(int directory, uint64_t start, uint64_t end, struct stat *st)
{
	char name[MAPPING_NAME];

	return stat_here(directory, mapping_name(name, start, end), 0, st);
}

bool process_mapping_has_path(int directory, uint64_t start, uint64_t end, const char *path)
{
	char name[MAPPING_NAME], link[PATH_MAX];

	if (!process_link_read(directory, mapping_name(name, start, end), link, sizeof(link)))
		return false;
	memory_path_cut_deleted(link);
	return !strcmp(link, path);
}

/* RESOLVE_IN_ROOT: links a container made cannot lead out of it. */
static int open_below(int root, const char *path)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};

	if (path[0] != '/')
		return -1;
	return (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
}

static int open_below_root(int directory, const char *root_name, const char *path)
{
	int root = openat(directory, root_name, O_PATH | O_DIRECTORY | O_CLOEXEC), fd;

	if (root < 0)
		return -1;
	fd = open_below(root, path);
	close(root);
	return fd;
}

int process_open_path(int directory, const char *path)
{
	return open_below_root(directory, "root", path);
}

int process_open_for_reading(int path_fd)
{
	char link[64];

	snprintf(link, sizeof(link), "/proc/self/fd/%d", path_fd);
	return open(link, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

int process_open_own_path(const char *path)
{
	return open_below_root(AT_FDCWD, "/", path);
}
