/* SPDX-License-Identifier: Apache-2.0 */
/* Files out of packages, kept for a while in cache_directory/unpacked, least used first to go when
 * they pass a limit: whoever asked once asks again. They can always be unpacked anew. */
#ifndef SYMBOL_SERVER_SYMBOLIZE_SOURCES_UNPACKED_FILES_H
#define SYMBOL_SERVER_SYMBOLIZE_SOURCES_UNPACKED_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"

enum { UNPACKED_NAME_MAX = 64 };

struct unpacked_files;

/* What an earlier run left half written is removed. */
struct unpacked_files *unpacked_files_open(const char *cache_directory, uint64_t limit_bytes,
					   struct error *err);
void unpacked_files_close(struct unpacked_files *files); /* NULL is fine */

/* The file of that key, read-only, or -1. */
int unpacked_files_find(struct unpacked_files *files, uint64_t key);

/* A new file to write to; name: for the two below. -1: err. */
int unpacked_files_begin(struct unpacked_files *files, char name[UNPACKED_NAME_MAX],
			 struct error *err);
/* It is whole: found under that key from now on. Returns it, opened read-only and without a name if
 * it is larger than all that may be kept; -1: err. fd is closed. */
int unpacked_files_keep(struct unpacked_files *files, int fd, const char *name, uint64_t key,
			struct error *err);
void unpacked_files_drop(struct unpacked_files *files, int fd, const char *name);

uint64_t unpacked_files_bytes(struct unpacked_files *files);

#endif
