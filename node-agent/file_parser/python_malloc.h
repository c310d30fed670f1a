/* SPDX-License-Identifier: Apache-2.0 */
/* Where CPython takes memory for its small objects. What is up to 512 bytes comes out of pools of 4
 * or 16 KiB, which lie in arenas that the kernel gives: no allocator of C's sees it. What is larger
 * it asks the C library for, where it is seen as anybody's. So nothing is counted twice.
 *
 * A piece of a few bytes is made every few tens of nanoseconds, and mostly given back at once: a
 * probe there would cost twenty times what it sees, and compilers that know the whole program put
 * PyObject_Malloc() into its callers. Seen is where a pool is taken, which is worth the whole pool:
 * what objects grow by, at the piece that needed it. A pool that is taken again soon after it was
 * given back counts once: one piece that comes and goes may do that. What is given back and taken
 * again within pools that stay in use is not seen; nor are free lists of single types.
 * Free-threaded builds have another allocator: nothing is found in them. x86-64 only.
 *
 * Objects/obmalloc.c, Include/internal/pycore_obmalloc.h of CPython 3.6 to 3.14. */
#ifndef NODE_AGENT_FILE_PARSER_PYTHON_MALLOC_H
#define NODE_AGENT_FILE_PARSER_PYTHON_MALLOC_H

#include "node-agent/file_parser/code/code_file.h"
#include "node-agent/file_parser/frames/call_frames.h"
#include "node-agent/file_parser/memory_places.h"

enum { PYTHON_POOL_PLACES_MAX = 4 };

/* Adds these places to those of a file that is CPython of that version, as PY_VERSION_HEX; none
 * where they cannot be told. frames: NULL is none. */
void python_malloc_find(const struct code_file *file, struct call_frames *frames, uint32_t version,
			struct memory_places *places);

#endif
