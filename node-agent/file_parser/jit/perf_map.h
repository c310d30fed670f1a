/* SPDX-License-Identifier: Apache-2.0 */
/* perf maps: /tmp/perf-PID.map, a line for each piece of code that a runtime has made,
 *	START SIZE NAME
 * in hexadecimal, with or without 0x; a name may have spaces. Lines are appended as code is made,
 * and are never taken back: code that lies where other code lay has taken its place. Format: the
 * kernel's tools/perf/Documentation/jit-interface.txt. */
#ifndef NODE_AGENT_FILE_PARSER_JIT_PERF_MAP_H
#define NODE_AGENT_FILE_PARSER_JIT_PERF_MAP_H

#include <stddef.h>

#include "node-agent/file_parser/jit/jit_chunk.h"

enum { PERF_MAP_STEP = 64 << 10 }; /* of text at a time; a longer line is refused */

/* Reads lines until the chunk is full or no whole line is left; returns how much was read. What
 * has no newline is being written, unless it is a whole step long. */
size_t perf_map_parse(const char *text, size_t length, struct jit_chunk *chunk);

#endif
