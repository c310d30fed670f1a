/* SPDX-License-Identifier: Apache-2.0 */
/* Directories that options name: wrong uses that only the file system can tell. */
#ifndef SYMBOL_SERVER_DIRECTORIES_H
#define SYMBOL_SERVER_DIRECTORIES_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "common/options.h"

/* Is there, or is made: itself, not its parents. *is_new: it was made. */
bool directory_make(const char *path, bool *is_new, struct error *err);

/* Each one is a directory that can be read. A file system that does not answer for two seconds is
 * believed. */
bool directories_are_there(const struct option_list *paths, struct error *err);

/* percent of the file system that path is on; 0: not known. */
uint64_t directory_share(const char *path, unsigned percent);

#endif
