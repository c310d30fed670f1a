/* SPDX-License-Identifier: Apache-2.0 */
/* remap SECONDS FILE FILE: maps now one, now the other file over the same addresses and calls what
 * lies at its entry point. Every fourth time the code is made unreadable and readable again in
 * place. */
#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/programs/unwind/until.h"

enum { ROOM = 1 << 20 };

typedef uint64_t (*function)(uint64_t (*back)(uint64_t), uint64_t x, int rounds);

static NOINLINE uint64_t back(uint64_t x)
{
	return work(x, 100);
}

static function map_over(char *at, const char *path)
{
	int fd = open(path, O_RDONLY);
	struct stat about;
	bool ok = fd >= 0 && !fstat(fd, &about) && about.st_size < ROOM &&
		  mmap(at, (size_t)about.st_size, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED,
		       fd, 0) == at;

	close(fd);
	return ok ? (function)(uintptr_t)(at + ((const Elf64_Ehdr *)at)->e_entry) : NULL;
}

int main(int argc, char **argv)
{
	char *at = mmap(NULL, ROOM, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (argc < 4 || at == MAP_FAILED)
		return 2;
	until_start(argc, argv);
	for (unsigned turn = 0; until_goes_on(); turn++) {
		function call = map_over(at, argv[2 + turn % 2]);
		double until_s = now_s() + 0.05;

		if (!call)
			return 1;
		if (turn % 4 == 3 &&
		    (mprotect(at, 4096, PROT_NONE) || mprotect(at, 4096, PROT_READ | PROT_EXEC)))
			return 1;
		while (now_s() < until_s)
			sink += call(back, sink, 30);
	}
	return 0;
}
