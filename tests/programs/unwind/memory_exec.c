/* SPDX-License-Identifier: Apache-2.0 */
/* memory_exec SECONDS: copies itself to a file that is only in memory and executes that; with
 * -DEXEC_AGAIN it executes itself again and again, and works between. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/programs/unwind/until.h"

extern char **environ;

static NOINLINE uint64_t leaf(uint64_t x)
{
	return work(x, 300);
}

static NOINLINE uint64_t down(uint64_t x, int depth)
{
	return work(depth > 0 ? down(x + 1, depth - 1) : leaf(x), 8);
}

static int from_memory(char **argv)
{
	int self = open("/proc/self/exe", O_RDONLY), file = memfd_create("in_memory", MFD_CLOEXEC);
	struct stat about;
	char *arguments[] = {argv[0], argv[1], "again", NULL};

	if (self < 0 || file < 0 || fstat(self, &about) ||
	    sendfile(file, self, NULL, (size_t)about.st_size) != about.st_size)
		return 1;
	fexecve(file, arguments, environ);
	return 1;
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
#ifdef EXEC_AGAIN
	char left[32];
	double end_s = now_s() + 0.1;

	until_start(argc, argv);
	while (now_s() < end_s)
		sink += down(sink, 9);
	snprintf(left, sizeof(left), "%f", until_end_s - now_s());
	if (until_goes_on())
		execl("/proc/self/exe", argv[0], left, (char *)NULL);
	(void)from_memory;
#else
	if (argc < 3)
		return from_memory(argv);
	until_start(argc, argv);
	while (until_goes_on())
		sink += down(sink, 9);
#endif
	return 0;
}
