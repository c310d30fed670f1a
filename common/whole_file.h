/* SPDX-License-Identifier: Apache-2.0 */
/* A file that appears whole or not at all. */
#ifndef COMMON_WHOLE_FILE_H
#define COMMON_WHOLE_FILE_H

#include <stdbool.h>

#include "common/buffer.h"
#include "common/error.h"

/* Written beside path as PATH.PID.part, then renamed; what was there is replaced. Mode 0666 less
 * the umask. is_synced: it is on the disk when this returns. On failure nothing is left. */
bool whole_file_write(const char *path, const struct buffer *bytes, bool is_synced,
		      struct error *err);

/* What lies at path, a file or a directory, is on the disk when this returns. */
bool path_sync(const char *path, struct error *err);

#endif
