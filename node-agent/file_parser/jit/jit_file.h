/* SPDX-License-Identifier: Apache-2.0 */
/* One piece of a file in which a runtime tells of its code. */
#ifndef NODE_AGENT_FILE_PARSER_JIT_JIT_FILE_H
#define NODE_AGENT_FILE_PARSER_JIT_JIT_FILE_H

#include "node-agent/file_parser/jit/jit_chunk.h"

/* From offset on, not further than limit. head.next says where to go on; when that is offset
 * itself, nothing whole is left. */
void jit_file_read(int fd, enum jit_format format, uint64_t offset, uint64_t limit,
		   struct jit_chunk *chunk);

#endif
