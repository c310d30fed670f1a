/* SPDX-License-Identifier: Apache-2.0 */
/* What lies in a folder of a data directory. */
#ifndef SYMBOL_SERVER_STORE_SQLITE_UPKEEP_FOLDER_NAMES_H
#define SYMBOL_SERVER_STORE_SQLITE_UPKEEP_FOLDER_NAMES_H

#include <stdbool.h>

#include "common/error.h"

bool name_has_ending(const char *name, const char *ending);

/* False ends it, and is what folder_names_each() returns; err is then set. */
typedef bool folder_name_fn(void *context, const char *path, const char *name, struct error *err);

/* Calls fn for each file of that ending, by name; changes of the folder meanwhile are not seen, nor
 * more names than a server ever writes. */
bool folder_names_each(const char *folder, const char *ending, folder_name_fn *fn, void *context,
		       struct error *err);

#endif
