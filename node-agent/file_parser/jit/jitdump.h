/* SPDX-License-Identifier: Apache-2.0 */
/* jitdump: jit-PID.dump, what a runtime says of the code that it makes: where, when, its name, its
 * bytes, and where its lines are. Format: the kernel's
 * tools/perf/Documentation/jitdump-specification.txt; in this machine's byte order. The bytes of
 * code, and what says how to unwind it, are passed over. */
#ifndef NODE_AGENT_FILE_PARSER_JIT_JITDUMP_H
#define NODE_AGENT_FILE_PARSER_JIT_JITDUMP_H

#include "node-agent/file_parser/jit/jit_chunk.h"

/* Reads whole records from offset on (0: the beginning), up to limit, until the chunk is full or
 * none is left. The chunk's head says where to go on; is_wrong: it is no such file, or nobody can
 * tell where its next record begins. */
void jitdump_read(int fd, uint64_t offset, uint64_t limit, struct jit_chunk *chunk);

#endif
