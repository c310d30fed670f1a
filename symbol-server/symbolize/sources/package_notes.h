/* SPDX-License-Identifier: Apache-2.0 */
/* What packages hold, noted down in the cache directory, so that a restart does not read them all
 * again. A note that is not whole is none. */
#ifndef SYMBOL_SERVER_SYMBOLIZE_SOURCES_PACKAGE_NOTES_H
#define SYMBOL_SERVER_SYMBOLIZE_SOURCES_PACKAGE_NOTES_H

#include <stdbool.h>

#include "common/error.h"
#include "symbol-server/symbolize/sources/file_index.h"

/* Replaces the note at path by all packages of the index. */
bool package_notes_save(const char *path, const struct file_index *index, struct error *err);

/* An index of the packages noted down there, sealed; NULL when there is no such note. */
struct file_index *package_notes_load(const char *path);

#endif
