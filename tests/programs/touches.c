/* SPDX-License-Identifier: Apache-2.0 */
/* touches PAGES FILE: reads a line, then takes memory and touches it page by page in functions of known
 * names, so many times PAGES in each; prints for each function: name, pages touched for the first time, and
 * the kernel's own count of this process' minor and major faults meanwhile. Memory is given back in between. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

enum { PAGE = 4096, CHUNK = 4096 /* pages at a time */ };

static char *take(size_t pages, int flags, int fd)
{
	char *memory = mmap(NULL, pages * PAGE, PROT_READ | (fd < 0 ? PROT_WRITE : 0), MAP_PRIVATE | flags, fd, 0);

	if (memory == MAP_FAILED) {
		perror("mmap");
		exit(1);
	}
	return memory;
}

#define TOUCHES(name_, step_)                                          \
	__attribute__((noinline)) void name_(volatile char *memory, size_t pages) \
	{                                                              \
		for (size_t i = 0; i < pages; i += (step_))            \
			memory[i * PAGE] = 1;                          \
		__asm__ volatile("" ::: "memory");                     \
	}

TOUCHES(touch_once, 1)
TOUCHES(touch_twice, 1)
TOUCHES(touch_four_times, 1)
TOUCHES(touch_every_other, 2)
TOUCHES(touch_populated, 1)

__attribute__((noinline)) void touch_by_kernel(char *memory, size_t pages, int fd)
{
	for (size_t i = 0; i < pages; i++)
		if (pread(fd, memory + i * PAGE, 1, 0) != 1)
			exit(1);
	__asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) unsigned touch_file(const volatile char *memory, size_t pages)
{
	unsigned sum = 0;

	for (size_t i = 0; i < pages; i++)
		sum += (unsigned char)memory[i * PAGE];
	return sum;
}

struct faults {
	long minor, major;
};

static struct faults faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (struct faults){usage.ru_minflt, usage.ru_majflt};
}

static void told(const char *name, size_t pages, struct faults before)
{
	struct faults now = faults();

	printf("%s %zu %ld %ld\n", name, pages, now.minor - before.minor, now.major - before.major);
}

static void run(const char *name, void (*touch)(volatile char *, size_t), size_t pages, int flags)
{
	struct faults before = faults();

	for (size_t done = 0; done < pages; done += CHUNK) {
		char *memory = take(CHUNK, MAP_ANONYMOUS | flags, -1);

		touch(memory, CHUNK);
		munmap(memory, CHUNK * PAGE);
	}
	told(name, pages, before);
}

static void run_by_kernel(size_t pages)
{
	struct faults before = faults();
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	for (size_t done = 0; done < pages; done += CHUNK) {
		char *memory = take(CHUNK, MAP_ANONYMOUS, -1);

		touch_by_kernel(memory, CHUNK, fd);
		munmap(memory, CHUNK * PAGE);
	}
	close(fd);
	told("touch_by_kernel", pages, before);
}

/* Not in the page cache and without readahead: each page comes from the disk. */
static void run_file(const char *path, size_t pages)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	static const char page[PAGE] = "x";
	struct faults before;
	char *memory;

	for (size_t i = 0; i < pages; i++)
		if (write(fd, page, PAGE) != PAGE)
			exit(1);
	fsync(fd);
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	memory = take(pages, 0, fd);
	madvise(memory, pages * PAGE, MADV_RANDOM);
	before = faults();
	touch_file(memory, pages);
	told("touch_file", pages, before);
	munmap(memory, pages * PAGE);
	close(fd);
	unlink(path);
}

int main(int argc, char **argv)
{
	size_t pages = argc > 1 ? strtoul(argv[1], NULL, 10) / CHUNK * CHUNK : CHUNK;

	if (prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) != 0)
		perror("prctl");
	if (getchar() == EOF)
		return 0;
	run("touch_once", touch_once, pages, 0);
	run("touch_twice", touch_twice, 2 * pages, 0);
	run("touch_four_times", touch_four_times, 4 * pages, 0);
	run("touch_every_other", touch_every_other, 2 * pages, 0);
	run("touch_populated", touch_populated, pages, MAP_POPULATE);
	run_by_kernel(2 * pages);
	if (argc > 2)
		run_file(argv[2], 2048);
	fflush(stdout);
	getchar();
	return 0;
}
