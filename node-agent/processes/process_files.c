/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/processes/process_files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "node-agent/kernel/stranger_reader.h"
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

	return stranger_open_at(directory, mapping_name(name, start, end));
}

bool process_stat_mapping(int directory, uint64_t start, uint64_t end, struct stat *st)
{
	char name[MAPPING_NAME];

	return stranger_stat_at(directory, mapping_name(name, start, end), st);
}

bool process_mapping_has_path(int directory, uint64_t start, uint64_t end, const char *path)
{
	char name[MAPPING_NAME], link[PATH_MAX];

	if (!stranger_link_at(directory, mapping_name(name, start, end), link, sizeof(link)))
		return false;
	memory_path_cut_deleted(link);
	return !strcmp(link, path);
}

/* What follows in "status" behind a line's key, "\nKey:\t"; proc_pid_status(5). NULL: nothing. */
static const char *read_status(int directory, const char *key, char *text, size_t room)
{
	int fd = openat(directory, "status", O_RDONLY | O_CLOEXEC);
	ssize_t length;
	char *at;

	if (fd < 0)
		return NULL;
	length = read(fd, text, room - 1);
	close(fd);
	text[length > 0 ? length : 0] = '\0';
	at = strstr(text, key);
	return at ? at + strlen(key) : NULL;
}

static bool status_number(int directory, const char *key, uint32_t *number)
{
	char text[1024];
	const char *at = read_status(directory, key, text, sizeof text);

	return at && sscanf(at, "%" SCNu32, number) == 1;
}

/* The line has the numbers from the outermost to the innermost; many groups may stand before it. */
bool process_inner_pid(int directory, uint32_t *pid)
{
	char text[8192];
	const char *at = read_status(directory, "\nNStgid:\t", text, sizeof text), *end;

	end = at ? strchr(at, '\n') : NULL;
	if (!end)
		return false;
	while (end > at && end[-1] >= '0' && end[-1] <= '9')
		end--;
	return sscanf(end, "%" SCNu32, pid) == 1 && *pid;
}

/* The user that the process began as: what it may do by a set-user-ID program is not its own. */
bool process_user(int directory, uid_t *uid)
{
	return status_number(directory, "\nUid:\t", uid);
}

bool process_parent(int directory, uint32_t *tgid)
{
	return status_number(directory, "\nPPid:\t", tgid);
}

int process_open_path(int directory, const char *path)
{
	struct file_search search = {.owner = OWNER_ANYBODY};
	int root, fd;

	if (path[0] != '/' || !process_user(directory, &search.reader))
		return -1;
	root = stranger_open_at(directory, "root");
	if (root < 0)
		return -1;
	fd = stranger_find(root, path, &search);
	close(root);
	return fd;
}

int process_open_own_path(const char *path, bool *is_public)
{
	struct file_search search = {.reader = READER_ANYBODY, .owner = OWNER_ANYBODY};
	int root = path[0] == '/' ? open("/", O_PATH | O_DIRECTORY | O_CLOEXEC) : -1, fd;

	if (root < 0)
		return -1;
	fd = stranger_find(root, path, &search);
	*is_public = fd >= 0;
	search.reader = 0;
	if (fd < 0 && errno == EACCES)
		fd = stranger_find(root, path, &search);
	close(root);
	return fd;
}
