/* SPDX-License-Identifier: Apache-2.0 */
/* Which file of this host says most about a build-id: the running file itself, or the debug file
 * that was split off it and lies here too (elfutils' and gdb's search: .build-id tree,
 * .gnu_debuglink). */
#ifndef NODE_AGENT_SHIP_DEBUG_FILE_H
#define NODE_AGENT_SHIP_DEBUG_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/build_id.h"

#define DEBUG_FILE_ROOT "/usr/lib/debug"

/* True: the bytes begin as an ELF file does. */
bool debug_file_is_elf(int fd);

/* id: the running file's GNU build-id; fd: that file, or −1. Returns a descriptor, the caller's to
 * close, of a file with the same build-id that has debug information when the running one has none;
 * −1: the running file is the best there is. A file is taken for what its build-id note says: that
 * is stricter than .gnu_debuglink's CRC-32 and does not read the whole of it.
 *
 * Build-id and link are the running file's, a stranger's: kernel/stranger_file.h says what is
 * opened for them. Beside the file and in .debug/ its owner's own files and root's, where that
 * owner could read them; below root what only root could have put there, and everybody may read.
 * refused counts what lay there and was not taken for that; NULL: nobody wants to know. */
int debug_file_open(const char *root, const struct build_id *id, int fd, uint32_t *refused);

#endif
