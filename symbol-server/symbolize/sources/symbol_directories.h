/* SPDX-License-Identifier: Apache-2.0 */
/* --symbol-dir: which files below these directories have a build-id (or htlhash). A thread of its
 * own reads the trees, again when something was missed and at least every minute; what did not
 * change is not opened again. Symbolic links are not followed while reading; the links of a
 * `.build-id` tree are, inside of their directory.
 *
 * Whoever opens a file never waits long for a file system that does not answer: its directory is
 * left out until it answers again, and then what was missed is found (the callback). */
#ifndef SYMBOL_SERVER_SYMBOLIZE_SOURCES_SYMBOL_DIRECTORIES_H
#define SYMBOL_SERVER_SYMBOLIZE_SOURCES_SYMBOL_DIRECTORIES_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/build_id.h"
#include "common/elf_image.h"
#include "common/error.h"

struct symbol_directories;

struct symbol_directories_options {
	const char *const *paths;
	size_t count;
	/* Called from the thread for every id that is new since the scan before. */
	void (*found)(void *context, const struct build_id *id);
	void *context;
};

struct symbol_directories *
symbol_directories_start(const struct symbol_directories_options *options, struct error *err);
void symbol_directories_stop(struct symbol_directories *directories); /* NULL is fine */

/* Where a file lies. */
struct symbol_place {
	char file[PATH_MAX];
};

/* Opens up to room files with that id, each checked again: those with debug information first.
 * Returns how many; the descriptors are the caller's. places: as many as room, or NULL. Never waits
 * for a scan. Ids of dwz files are ids like any other. */
size_t symbol_directories_open(struct symbol_directories *directories, const struct build_id *id,
			       int *fds, struct symbol_place *places, size_t room);

/* Is there one? From memory: opens nothing, never waits. */
bool symbol_directories_has(struct symbol_directories *directories, const struct build_id *id);
/* The id of one that begins with those 16 bytes, as easily. */
bool symbol_directories_find_guid(struct symbol_directories *directories, const uint8_t first[16],
				  struct build_id *id);

/* Files without a build-id of their own are found by name.
 *
 * _dwp: NAME.dwp beside any file NAME of the module; NAME without ".debug"
 * counts as well.
 * _dwo: path is DW_AT_dwo_name, behind DW_AT_comp_dir and a slash when it is relative. Those whose
 * paths end alike for longer come first; beside the module's files counts as the longest.
 * What these two open is an ELF file with split debug information; whether it is this program's,
 * the reader of the DWARF sees by its dwo ids.
 *
 * _link: name and crc as in .gnu_debuglink. Files of that name without a build-id or with the same
 * one, whose bytes have that checksum. */
size_t symbol_directories_open_dwp(struct symbol_directories *directories,
				   const struct build_id *module, int *fds, size_t room);
size_t symbol_directories_open_dwo(struct symbol_directories *directories,
				   const struct build_id *module, const char *path, int *fds,
				   size_t room);
size_t symbol_directories_open_link(struct symbol_directories *directories,
				    const struct build_id *module, const char *name, uint32_t crc,
				    int *fds, size_t room);

/* Something was not there: look again soon. */
void symbol_directories_missed(struct symbol_directories *directories);

/* Has everything been read at least once? */
bool symbol_directories_are_read(struct symbol_directories *directories);

struct symbol_directories_progress {
	bool first_pass_done, is_reading;
	uint64_t passes;
	int64_t pass_ms;     /* the last whole one */
	uint64_t read_at_ms; /* its end, unix time; 0: none yet */
	/* As of the last whole pass; during the first one, so far. */
	uint64_t folders, files, elf_files;
	uint64_t links;      /* symbolic links, which are not followed */
	uint64_t packages;   /* .deb, .ddeb, .rpm, which are not read: a debuginfod does that */
	uint64_t unreadable; /* folders and files that could not be read */
	uint64_t damaged;    /* ELF files that could not be read as such */
	uint64_t left_out;   /* beyond the limits of files and depth */
	uint64_t bytes;      /* of the index in memory */
	/* Since the start. */
	uint64_t wrong_checksums, not_answering;
	char last_refusal[300]; /* path and reason; "": none */
};

void symbol_directories_progress(struct symbol_directories *directories,
				 struct symbol_directories_progress *progress);

/* Is this open file the one of that id: by its GNU build-id, or by its htlhash? image: as read. */
bool symbol_file_has_id(int fd, const struct elf_image *image, const struct build_id *id);

#endif
