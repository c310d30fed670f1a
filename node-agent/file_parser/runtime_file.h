/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a file is a language's runtime, by what it defines and never by its name: CPython 3.6 and
 * later, HotSpot, a program or a library, stripped or not. Runs in the parser of strangers' files.
 * A file that is none costs a look into the hash table of its dynamic symbols, and into its other
 * symbols where it has a table of those. Names: CPython's Python/ceval.c, Python/pylifecycle.c,
 * Include/patchlevel.h, Doc/data/stable_abi.dat. */
#ifndef NODE_AGENT_FILE_PARSER_RUNTIME_FILE_H
#define NODE_AGENT_FILE_PARSER_RUNTIME_FILE_H

#include "node-agent/file_parser/code/code_file.h"
#include "node-agent/file_parser/frames/call_frames.h"
#include "node-agent/file_parser/runtime_symbols.h"

/* All of it is in out, which says so when the file is none. The loop's parts are not. A file with
 * both is HotSpot's. */
void runtime_file_read(const struct code_file *file, struct runtime_symbols *out);

/* Adds the loop's parts: those that have names; of a stripped file those that the loop jumps into,
 * and that are no functions by their frame information (frames; NULL: it has none). */
void runtime_file_loop(const struct code_file *file, struct call_frames *frames,
		       struct runtime_symbols *out);

#endif
