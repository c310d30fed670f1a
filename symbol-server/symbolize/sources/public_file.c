/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/symbolize/sources/public_file.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Where it lies, links followed. */
static bool find_path(int fd, char path[PATH_MAX])
{
	char link[32];
	ssize_t length;

	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	length = readlink(link, path, PATH_MAX - 1);
	if (length <= 0 || path[0] != '/')
		return false;
	path[length] = '\0';
	return true;
}

/* The folder of that name in the one at hand, which is closed. -1: there is none. */
static int step_into(int at, const char *name)
{
	int next = openat(at, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	close(at);
	return next;
}

bool public_file_is(int fd, const char *directory)
{
	struct stat top, file, folder, found;
	char path[PATH_MAX], *rest = path, *name;
	int at = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	bool is_below = false, is_public;

	is_public = at >= 0 && !stat(directory, &top) && !fstat(fd, &file) &&
		    (file.st_mode & S_IROTH) && find_path(fd, path);
	while (is_public) {
		is_public = !fstat(at, &folder) && (!is_below || (folder.st_mode & S_IXOTH));
		is_below |= is_public && is_same(&folder, &top);
		name = rest + 1;
		rest = strchr(name, '/');
		if (!rest)
			break;
		*rest = '\0';
		at = step_into(at, name);
		is_public &= at >= 0;
	}
	is_public = is_public && is_below && !fstatat(at, name, &found, AT_SYMLINK_NOFOLLOW) &&
		    is_same(&found, &file);
	if (at >= 0)
		close(at);
	return is_public;
}
