/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/store/sqlite/reserve.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "common/log.h"

enum {
	PART = 16, /* of the disk */
	BYTES_MIN = 4 << 20,
	BYTES_MAX = 64 << 20,
	HOLD_TIMES = 2, /* of it free: it can be held */
};

static void path_of(const char *directory, const char *name, char path[4200])
{
	snprintf(path, 4200, "%s/%s", directory, name);
}

/* Its blocks are there, not only its length. */
static bool make(const char *directory, uint64_t bytes)
{
	char made[4200], path[4200];
	int fd;
	bool ok;

	path_of(directory, "reserve.new", made);
	path_of(directory, "reserve", path);
	fd = open(made, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	ok = fd >= 0 && !posix_fallocate(fd, 0, (off_t)bytes) && !fsync(fd);
	if (fd >= 0)
		close(fd);
	ok = ok && !rename(made, path);
	if (!ok)
		unlink(made);
	return ok;
}

struct reserve_state reserve_hold(const char *directory)
{
	struct reserve_state state = {0};
	struct statvfs disk;
	struct stat status;
	char path[4200];
	uint64_t bytes;

	path_of(directory, "reserve", path);
	if (statvfs(directory, &disk))
		return state;
	bytes = (uint64_t)disk.f_blocks * disk.f_frsize / PART;
	bytes = bytes < BYTES_MIN ? BYTES_MIN : bytes > BYTES_MAX ? BYTES_MAX : bytes;
	state.free_bytes = (uint64_t)disk.f_bavail * disk.f_frsize;
	state.is_held = !stat(path, &status) && status.st_size >= BYTES_MIN;
	if (!state.is_held && state.free_bytes >= HOLD_TIMES * bytes)
		state.is_held = make(directory, bytes);
	state.is_short = !state.is_held && state.free_bytes < HOLD_TIMES * bytes;
	return state;
}

bool reserve_give_up(const char *directory)
{
	char path[4200];

	path_of(directory, "reserve", path);
	if (unlink(path))
		return false;
	log_warn("the disk is full: the room held in reserve is given up",
		 "path=\"%s\" until=\"there is room again; reports are refused meanwhile\"", path);
	return true;
}
