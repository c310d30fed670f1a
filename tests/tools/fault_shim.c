/* SPDX-License-Identifier: Apache-2.0 */
/* LD_PRELOAD=fault_shim.so FAULTS=DIR: while DIR/errno has a number in it, writes to files and
 * syncs fail with that; DIR/clock has seconds by which the wall clock is wrong. Both may change at
 * any moment. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long number_in(const char *name)
{
	const char *directory = getenv("FAULTS");
	char path[4096], text[32] = "";
	int fd;

	if (!directory || snprintf(path, sizeof path, "%s/%s", directory, name) >= (int)sizeof path)
		return 0;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	if (read(fd, text, sizeof text - 1) < 0)
		text[0] = 0;
	close(fd);
	return strtol(text, NULL, 10);
}

static int fails(int fd)
{
	struct stat status;
	int error;

	if (fstat(fd, &status) || !S_ISREG(status.st_mode))
		return 0;
	error = (int)number_in("errno");
	errno = error;
	return error;
}

#define REAL(name_) ((__typeof__(&name_))dlsym(RTLD_NEXT, #name_))

ssize_t pwrite(int fd, const void *bytes, size_t length, off_t at)
{
	return fails(fd) ? -1 : REAL(pwrite)(fd, bytes, length, at);
}

ssize_t pwrite64(int fd, const void *bytes, size_t length, off64_t at)
{
	return fails(fd) ? -1 : REAL(pwrite64)(fd, bytes, length, at);
}

int fdatasync(int fd)
{
	return fails(fd) ? -1 : REAL(fdatasync)(fd);
}

int fsync(int fd)
{
	return fails(fd) ? -1 : REAL(fsync)(fd);
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
	int result = REAL(clock_gettime)(clock, now);

	if (clock == CLOCK_REALTIME)
		now->tv_sec += number_in("clock");
	return result;
}

time_t time(time_t *at)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	if (at)
		*at = now.tv_sec;
	return now.tv_sec;
}

int gettimeofday(struct timeval *now, void *zone)
{
	struct timespec precise;

	(void)zone;
	clock_gettime(CLOCK_REALTIME, &precise);
	now->tv_sec = precise.tv_sec;
	now->tv_usec = precise.tv_nsec / 1000;
	return 0;
}
