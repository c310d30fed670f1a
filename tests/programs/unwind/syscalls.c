/* SPDX-License-Identifier: Apache-2.0 */
/* Most of its time in system calls and page faults, made from several depths. */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/programs/unwind/until.h"

static int zero, null;

static NOINLINE void faults(void)
{
	enum { BYTES = 1 << 20 };
	char *at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memset(at, 1, BYTES);
	munmap(at, BYTES);
}

static NOINLINE uint64_t calls(uint64_t x)
{
	static char room[65536];

	for (int i = 0; i < 20; i++) {
		if (read(zero, room, sizeof(room)) < 0 || write(null, room, sizeof(room)) < 0)
			return 0;
		x += (uint64_t)syscall(SYS_getppid);
	}
	return x;
}

static NOINLINE uint64_t down(uint64_t x, int depth)
{
	volatile char room[30];

	room[0] = (char)x;
	if (depth > 0)
		x = down(x, depth - 1);
	else if (x & 1)
		faults();
	else
		x += calls(x);
	return work(x + (uint64_t)room[0], 3);
}

int main(int argc, char **argv)
{
	zero = open("/dev/zero", O_RDONLY);
	null = open("/dev/null", O_WRONLY);
	until_start(argc, argv);
	for (int i = 0; until_goes_on(); i++)
		sink += down((uint64_t)i, i % 20);
	return 0;
}
