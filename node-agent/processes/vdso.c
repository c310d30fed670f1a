/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/processes/vdso.h"

#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

enum { VDSO_MAX = 1 << 20 };

/* Up to the end of its section headers or segments, whichever is further: what the kernel built. */
static size_t image_length(const ElfW(Ehdr) * header)
{
	const ElfW(Phdr) *segments = (const void *)((const char *)header + header->e_phoff);
	uint64_t length = header->e_shoff + (uint64_t)header->e_shnum * header->e_shentsize;

	for (unsigned i = 0; i < header->e_phnum; i++)
		if (segments[i].p_type == PT_LOAD &&
		    segments[i].p_offset + segments[i].p_filesz > length)
			length = segments[i].p_offset + segments[i].p_filesz;
	return length <= VDSO_MAX ? (size_t)length : 0;
}

static bool write_all(int fd, const char *bytes, size_t length)
{
	while (length) {
		ssize_t done = write(fd, bytes, length);

		if (done <= 0)
			return false;
		bytes += done;
		length -= (size_t)done;
	}
	return true;
}

int vdso_open(void)
{
	const ElfW(Ehdr) *header = (const void *)(uintptr_t)getauxval(AT_SYSINFO_EHDR);
	int fd;

	if (!header || memcmp(header->e_ident, ELFMAG, SELFMAG) || !image_length(header))
		return -1;
	fd = memfd_create("vdso", MFD_CLOEXEC);
	if (fd >= 0 && write_all(fd, (const char *)header, image_length(header)))
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}
