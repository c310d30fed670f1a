/* SPDX-License-Identifier: Apache-2.0 */
/* OpenTelemetry's process.executable.build_id.htlhash: the first 16 bytes of SHA-256 over the first
 * 4096 bytes, the last 4096 bytes and the file length as a big-endian u64 (semantic conventions,
 * model/process/registry.yaml). Door to nettle. */
#ifndef COMMON_FILE_HASH_H
#define COMMON_FILE_HASH_H

#include <stdbool.h>

#include "common/build_id.h"
#include "common/error.h"

/* Reads at most 8 KiB of the file by pread; the descriptor's offset stays. id: 16 bytes. */
bool file_hash(int fd, struct build_id *id, struct error *err);

#endif
