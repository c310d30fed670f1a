/* SPDX-License-Identifier: Apache-2.0 */
/* ELF files inside of package archives: .deb, .ddeb and .rpm. A child of this program without
 * privileges reads them (libarchive, whose door this is), with limits by the package's size; what
 * it says is checked here. Damaged and exploding packages are a sentence. */
#ifndef SYMBOL_SERVER_SYMBOLIZE_SOURCES_PACKAGE_FILES_H
#define SYMBOL_SERVER_SYMBOLIZE_SOURCES_PACKAGE_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/build_id.h"
#include "common/error.h"

/* By its name's ending. */
bool package_files_is_one(const char *name);

struct package_member {
	const char *path;   /* inside of the package, without a leading "./" or slash */
	struct build_id id; /* GNU build-id or htlhash; length 0: found by name only */
	unsigned content;   /* FILE_HAS_* of file_index.h */
};

/* Calls each for every ELF file. ERROR_BUSY: stop_fd became readable; ERROR_SYSTEM: no child could
 * be started; else why this package cannot be used, and what each was told is to be forgotten. */
bool package_files_list(int package, int stop_fd,
			bool (*each)(void *context, const struct package_member *member),
			void *context, struct error *err);

/* Writes that member's bytes to output, a file of no bytes. */
bool package_files_unpack(int package, const char *member, int output, uint64_t limit_bytes,
			  int stop_fd, struct error *err);

/* One line of a list as children and notes have it, without its newline: "ID CONTENT PATH", id as
 * hexadecimal digits or "-". line is changed; the member's texts point into it. False: not one. */
bool package_member_parse(char *line, struct package_member *member);
/* What that line is, with a newline; its length, 0 when it does not fit or cannot be written so. */
size_t package_member_format(const struct package_member *member, char *line, size_t room);

/* The child's main(); returns when argv is not for it. */
void package_files_main(int argc, char **argv);

/* For the child, fuzzing and tests: the same without a child. package is read from its start. */
struct package_reading {
	int package;
	const char *wanted;   /* a member to unpack; NULL: list all */
	int output;           /* what write() gets: lines or the member's bytes */
	uint64_t limit_bytes; /* unpacked, of everything together */
};
bool package_read(const struct package_reading *reading, struct error *err);

#endif
