/* SPDX-License-Identifier: Apache-2.0 */
#include "common/self_path.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static const char always[] = "/proc/self/exe";

const char *self_path(char *path, size_t room)
{
	struct stat running, named;
	ssize_t length = readlink(always, path, room - 1);

	if (length <= 0 || (size_t)length >= room - 1)
		goto fall_back;
	path[length] = '\0';
	if (stat(always, &running) < 0 || stat(path, &named) < 0 ||
	    running.st_dev != named.st_dev || running.st_ino != named.st_ino)
		goto fall_back;
	return path;
fall_back:
	snprintf(path, room, "%s", always);
	return path;
}
