/* SPDX-License-Identifier: Apache-2.0 */
/* What of this machine's files is anybody's to read: not by its own mode alone, but by that of the
 * folders above it, too. */
#ifndef SYMBOL_SERVER_SYMBOLIZE_SOURCES_PUBLIC_FILE_H
#define SYMBOL_SERVER_SYMBOLIZE_SOURCES_PUBLIC_FILE_H

#include <stdbool.h>

/* Whether who is neither the owner nor of the group may read the open file, and search each folder
 * between it and the directory, which itself is not looked at: somebody has named it. Links were
 * followed: it is asked where the file lies. False, too, where it lies there no more. Needs
 * /proc. */
bool public_file_is(int fd, const char *directory);

#endif
