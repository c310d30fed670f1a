/* SPDX-License-Identifier: Apache-2.0 */
/* LD_PRELOAD=slow_disk.so SLOW_DISK_MS=15: a disk that takes that much longer for each write that
 * somebody waits for, where the kernel has no dm-delay: a direct write and the sync after it, each;
 * a sync of a buffered file twice that, for its pages and for the flush. Reads, and pages that the
 * kernel writes by itself, are as fast as they are. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define REAL(name_) ((__typeof__(&name_))dlsym(RTLD_NEXT, #name_))

static int is_direct(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags >= 0 && (flags & O_DIRECT);
}

static void be_slow(int times)
{
	const char *text = getenv("SLOW_DISK_MS");
	long ms = text ? times * atol(text) : 0;
	struct timespec time = {ms / 1000, ms % 1000 * 1000000};

	nanosleep(&time, NULL);
}

ssize_t pwrite(int fd, const void *bytes, size_t length, off_t at)
{
	if (is_direct(fd))
		be_slow(1);
	return REAL(pwrite)(fd, bytes, length, at);
}

ssize_t pwrite64(int fd, const void *bytes, size_t length, off64_t at)
{
	if (is_direct(fd))
		be_slow(1);
	return REAL(pwrite64)(fd, bytes, length, at);
}

int fdatasync(int fd)
{
	be_slow(is_direct(fd) ? 1 : 2);
	return REAL(fdatasync)(fd);
}

int fsync(int fd)
{
	be_slow(is_direct(fd) ? 1 : 2);
	return REAL(fsync)(fd);
}
