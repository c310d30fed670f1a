/* SPDX-License-Identifier: Apache-2.0 */
/* Small ELF files made of assembly while the test runs: what their call frame information says was
 * written by the assembler and the linker, not by us. */
#ifndef TESTS_UNIT_UNWIND_ASSEMBLED_H
#define TESTS_UNIT_UNWIND_ASSEMBLED_H

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Where .text is: code is one page of its own. */
enum { CODE_PAGE = 2, CODE_AT = CODE_PAGE << 16 };

/* The file's descriptor, or −1: no assembler here. flags: more for the compiler driver. after: a
 * command on the file, "%s" twice at most, or NULL. */
__attribute__((unused)) static int assemble(const char *source, const char *flags,
					    const char *after)
{
	char directory[] = "/tmp/unwind_test_XXXXXX", path[64], other[64], command[512],
	     second[512];
	FILE *file;
	int fd = -1;

	if (!mkdtemp(directory))
		return -1;
	snprintf(path, sizeof path, "%s/code.s", directory);
	snprintf(other, sizeof other, "%s/code", directory);
	snprintf(command, sizeof command,
		 "cc -nostdlib -static -no-pie -Wl,--section-start=.text=0x%x -Wl,--build-id=none "
		 "-Wl,-e,0 "
		 "%s -o %s %s 2>/dev/null",
		 CODE_AT, flags, other, path);
	file = fopen(path, "w");
	if (file && fputs(source, file) >= 0 && fclose(file) == 0 && system(command) == 0) {
		if (after) {
			snprintf(second, sizeof second, "%s %s 2>/dev/null", after, other);
			fd = system(second) == 0 ? 0 : -1;
		}
		if (!after || fd == 0)
			fd = open(other, O_RDWR | O_CLOEXEC);
	}
	unlink(path);
	unlink(other);
	rmdir(directory);
	return fd;
}

#endif
