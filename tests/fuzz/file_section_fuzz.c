/* SPDX-License-Identifier: Apache-2.0 */
/* Section headers of uploaded files, as the server itself reads them to serve a section. */
#include "symbol-server/symbolize/file_section.h"

#include <sys/mman.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"

static void fuzz_one(const uint8_t *bytes, size_t length)
{
	static const char *const names[] = {".text", ".debug_info", ".shstrtab", ".symtab"};
	int fd = memfd_create("file", MFD_CLOEXEC);
	struct file_section section;

	if (fd >= 0 && write(fd, bytes, length) == (ssize_t)length) {
		file_has_code(fd);
		for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
			if (file_section_find(fd, names[i], &section) &&
			    (section.offset > length || section.length > length - section.offset))
				abort();
	}
	if (fd >= 0)
		close(fd);
}
