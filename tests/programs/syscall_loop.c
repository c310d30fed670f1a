/* SPDX-License-Identifier: Apache-2.0 */
/* syscall_loop DIRECTORY SECONDS: lists the directory and reads /dev/zero in turn, in system calls
 * made in place; nearly all of its time is kernel frames below list_directory or read_zeros. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tests/programs/inline_syscall.h"

static char bytes[1 << 16];

static __attribute__((noinline)) long list_directory(int fd)
{
	volatile long all = 0; /* on the stack, so that gcc gives this leaf function a frame */
	long got;

	while ((got = inline_syscall(SYS_getdents64, fd, (long)bytes, sizeof(bytes))) > 0)
		all = all + got;
	inline_syscall(SYS_lseek, fd, 0, SEEK_SET);
	return all;
}

static __attribute__((noinline)) long read_zeros(int fd)
{
	volatile long all = 0;

	for (int i = 0; i < 20; i++)
		all = all + inline_syscall(SYS_read, fd, (long)bytes, sizeof(bytes));
	return all;
}

int main(int argc, char **argv)
{
	int directory = open(argc > 1 ? argv[1] : "/", O_RDONLY | O_DIRECTORY);
	int zeros = open("/dev/zero", O_RDONLY);
	time_t end = time(NULL) + (argc > 2 ? atol(argv[2]) : 1);
	volatile long all = 0;

	if (directory < 0 || zeros < 0)
		return 1;
	while (time(NULL) < end)
		all = all + list_directory(directory) + read_zeros(zeros);
	return 0;
}
