/* SPDX-License-Identifier: Apache-2.0 */
#include "common/whole_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

static bool write_all(int fd, const uint8_t *at, size_t length, struct error *err)
{
	while (length) {
		ssize_t written = write(fd, at, length);

		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return error_set_system(err, errno, "write");
		at += written;
		length -= (size_t)written;
	}
	return true;
}

bool whole_file_write(const char *path, const struct buffer *bytes, bool is_synced,
		      struct error *err)
{
	char beside[PATH_MAX];
	bool ok = false;
	int fd;

	if (snprintf(beside, sizeof beside, "%s.%d.part", path, (int)getpid()) >=
	    (int)sizeof beside)
		return error_set(err, ERROR_OPTION, "the file name is too long");
	unlink(beside); /* left by one of that number that was killed */
	fd = open(beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
	if (fd < 0)
		return error_set_system(err, errno, "create '%s'", beside);
	if (!write_all(fd, bytes->bytes, bytes->length, err))
		goto out;
	if ((is_synced && fsync(fd) < 0) || rename(beside, path) < 0) {
		error_set_system(err, errno, "write '%s'", path);
		goto out;
	}
	ok = true;
out:
	close(fd);
	if (!ok)
		unlink(beside);
	return ok;
}

bool path_sync(const char *path, struct error *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool ok = fd >= 0 && !fsync(fd);

	if (!ok)
		error_set_system(err, errno, "sync '%s'", path);
	if (fd >= 0)
		close(fd);
	return ok;
}
