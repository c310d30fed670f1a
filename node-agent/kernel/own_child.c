/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/kernel/own_child.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "common/own_program.h"

void own_child_goes_first(pid_t child)
{
	char path[40];
	int fd;

	snprintf(path, sizeof path, "/proc/%d/oom_score_adj", (int)child);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	if (write(fd, "1000", 4) != 4)
		errno = 0; /* then the larger one is ended, as without this */
	close(fd);
}

int own_child_start(const char *name, int socket, char **environment, pid_t *child)
{
	char own_name[32];
	char *arguments[] = {own_name, NULL}, *none_of_it[] = {NULL};
	posix_spawn_file_actions_t actions;
	int failure;

	snprintf(own_name, sizeof own_name, "%s", name);
	posix_spawn_file_actions_init(&actions);
	failure = posix_spawn_file_actions_adddup2(&actions, socket, OWN_CHILD_SOCKET);
	for (int fd = 0; fd < OWN_CHILD_SOCKET && !failure; fd++)
		failure = posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDWR, 0);
	if (!failure)
		failure = own_program_start(arguments, environment ? environment : none_of_it,
					    &actions, child);
	posix_spawn_file_actions_destroy(&actions);
	if (!failure)
		own_child_goes_first(*child);
	return failure;
}

/* The state behind the name in /proc/PID/stat (proc(5)). */
bool own_child_sleeps(pid_t child)
{
	char path[40], text[128];
	const char *name_end;
	ssize_t length;
	int fd;

	snprintf(path, sizeof path, "/proc/%d/stat", (int)child);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return true;
	length = read(fd, text, sizeof text - 1);
	close(fd);
	text[length > 0 ? length : 0] = '\0';
	name_end = strrchr(text, ')');
	return !name_end || name_end[1] != ' ' || name_end[2] != 'R';
}

/* --- messages --- */

union one_descriptor {
	struct cmsghdr header;
	char room[CMSG_SPACE(sizeof(int))];
};

bool own_child_send(int socket, int fd)
{
	char byte = 0;
	struct iovec data = {&byte, sizeof byte};
	union one_descriptor control = {0};
	struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1};
	ssize_t sent;

	if (fd >= 0) {
		message.msg_control = &control;
		message.msg_controllen = sizeof control;
		control.header = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof fd),
						  .cmsg_level = SOL_SOCKET,
						  .cmsg_type = SCM_RIGHTS};
		memcpy(CMSG_DATA(&control.header), &fd, sizeof fd);
	}
	do
		sent = sendmsg(socket, &message, MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	return sent == sizeof byte;
}

int own_child_receive(int socket, int *fd)
{
	char byte;
	struct iovec data = {&byte, sizeof byte};
	union one_descriptor control = {0};
	struct msghdr message = {.msg_iov = &data,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof control};
	ssize_t got;

	*fd = -1;
	do
		got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
	while (got < 0 && errno == EINTR);
	if (got > 0 && CMSG_FIRSTHDR(&message) && control.header.cmsg_type == SCM_RIGHTS &&
	    control.header.cmsg_len == CMSG_LEN(sizeof *fd))
		memcpy(fd, CMSG_DATA(&control.header), sizeof *fd);
	return got > 0 ? 1 : (int)got;
}
