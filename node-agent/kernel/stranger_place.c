/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/kernel/stranger_place.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "node-agent/kernel/stranger_file.h"

static bool same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

bool stranger_place_same(const struct stat *a, const struct stat *b, bool may_be_renamed)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_uid == b->st_uid && a->st_mode == b->st_mode &&
	       same_time(&a->st_mtim, &b->st_mtim) &&
	       (may_be_renamed || same_time(&a->st_ctim, &b->st_ctim));
}

/* Takes path_fd. */
static int reopen_same(const struct stranger_place *place, int path_fd, bool is_mapping)
{
	struct stat st;
	int fd = -1;

	if (path_fd < 0)
		return -1;
	if (stranger_file_stat(path_fd, &st) && stranger_place_same(&st, &place->st, is_mapping))
		fd = stranger_file_reopen(path_fd);
	close(path_fd);
	return fd;
}

static int find_mapping(const struct stranger_place *place)
{
	char path[80];

	snprintf(path, sizeof path, "/proc/%" PRIu32 "/map_files/%" PRIx64 "-%" PRIx64, place->tgid,
		 place->start, place->end);
	return open(path, O_PATH | O_CLOEXEC);
}

static int find_path(const struct stranger_place *place)
{
	const struct file_search search = {.reader = 0, .owner = OWNER_ANYBODY};
	int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC), found;

	if (root < 0)
		return -1;
	found = stranger_file_find(root, place->path, &search);
	close(root);
	return found;
}

int stranger_place_open(const struct stranger_place *place)
{
	int fd = place->tgid ? reopen_same(place, find_mapping(place), true) : -1;

	return fd < 0 && place->path[0] == '/' ? reopen_same(place, find_path(place), false) : fd;
}
