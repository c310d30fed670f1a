/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/capture/thread_group.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	FIELD_FLAGS = 9,       /* proc_pid_stat(5) */
	FLAG_EXITING = 0x4,    /* PF_EXITING of linux/sched.h, the same since 2.6 */
	EXITING_LOOKED_AT = 64,
};

static bool is_exiting(int task_dir, const char *tid)
{
	char path[NAME_MAX + sizeof "/stat"], text[1024];
	const char *at;
	ssize_t length;
	int fd, field = 2;

	snprintf(path, sizeof path, "%s/stat", tid);
	fd = openat(task_dir, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return true;
	length = read(fd, text, sizeof text - 1);
	close(fd);
	text[length > 0 ? length : 0] = '\0';
	/* The name in parentheses may hold anything. */
	for (at = strrchr(text, ')'); at && *at && field < FIELD_FLAGS; at++)
		field += *at == ' ';
	return !at || (strtoul(at, NULL, 10) & FLAG_EXITING);
}

bool thread_group_lives(uint32_t tgid)
{
	int exiting = 0;
	bool lives = false;
	char path[32];
	const struct dirent *entry;
	DIR *tasks;

	snprintf(path, sizeof path, "/proc/%u/task", tgid);
	tasks = opendir(path);
	while (tasks && !lives && (entry = readdir(tasks)))
		if (entry->d_name[0] != '.')
			lives = !is_exiting(dirfd(tasks), entry->d_name) ||
				++exiting >= EXITING_LOOKED_AT;
	if (tasks)
		closedir(tasks);
	return lives;
}
