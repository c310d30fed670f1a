/* SPDX-License-Identifier: Apache-2.0 */
/* Source files of this machine, for who debugs on another one: by the path that debug information
 * has. That it has it is the caller's to know; here is looked at where the file lies. */
#ifndef SYMBOL_SERVER_SYMBOLIZE_SOURCES_SOURCE_FILES_H
#define SYMBOL_SERVER_SYMBOLIZE_SOURCES_SOURCE_FILES_H

#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"

/* --sources: none; those below given directories; those anywhere. */
enum source_files_mode { SOURCES_OFF, SOURCES_LOCAL, SOURCES_ALL };

enum { SOURCE_PATH_MAX = 4096, SOURCE_BYTES_MAX = 64 << 20 };

struct source_files;

/* Directories that are there, or ERROR_NOT_FOUND. With SOURCES_OFF and SOURCES_ALL they are not
 * looked at. */
struct source_files *source_files_start(enum source_files_mode mode, const char *const *directories,
					size_t count, struct error *err);
void source_files_stop(struct source_files *files); /* NULL is fine */

/* "/a/./b//c/../d" → "/a/b/d". False: it is not absolute, too long, or leads above the root. */
bool source_path_tidy(const char *path, char tidy[SOURCE_PATH_MAX]);

/* ERROR_NOT_FOUND: with SOURCES_OFF. */
bool source_files_are_served(const struct source_files *files, struct error *err);
/* The file at a tidy path: a regular one that everybody may read, by its mode and that of the
 * folders between it and its directory (of /, with SOURCES_ALL); links followed inside of its
 * directory only. -1: ERROR_NOT_FOUND with a sentence, ERROR_LIMIT: it is larger than
 * SOURCE_BYTES_MAX. */
int source_files_open(struct source_files *files, const char *path, struct error *err);

#endif
