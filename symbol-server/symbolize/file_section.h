/* SPDX-License-Identifier: Apache-2.0 */
/* Where a section's bytes lie in an ELF file, for whoever sends them on as they are. Reads headers
 * only, by pread, any class and byte order; every offset is checked against the file's size. */
#ifndef SYMBOL_SERVER_SYMBOLIZE_FILE_SECTION_H
#define SYMBOL_SERVER_SYMBOLIZE_FILE_SECTION_H

#include <stdbool.h>
#include <stdint.h>

struct file_section {
	uint64_t offset, length; /* in the file; compressed sections as they are */
};

/* The first section of that name that has bytes in the file (not SHT_NOBITS). */
bool file_section_find(int fd, const char *name, struct file_section *out);

/* Is there code in it? Not in what `objcopy --only-keep-debug` leaves. */
bool file_has_code(int fd);

#endif
