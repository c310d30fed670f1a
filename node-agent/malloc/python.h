/* SPDX-License-Identifier: Apache-2.0 */
/* CPython in the program. Its functions' frames are in a list of its own, which is read when a
 * sample is told: none may wait then (batch.h). Memory for its small objects, of up to 512 bytes,
 * comes as arenas of 256 KiB or 1 MiB from mmap(2), which does not come by malloc(): the hook for
 * them is that of the Python/C API (Memory Management, "Customize pymalloc Arena Allocator", 3.4
 * and newer).
 *
 * One that the program loads by dlopen(3) is met when it takes memory; its arenas are not seen,
 * since nothing may be looked up then. */
#ifndef NODE_AGENT_MALLOC_PYTHON_H
#define NODE_AGENT_MALLOC_PYTHON_H

#include <stdbool.h>
#include <stddef.h>

bool python_is_there(void);
/* Of one that was not there at the start: from, into whom an entry point returns, is in a
 * libpython. Async-signal-safe, some 30 ns; never where glibc is older than 2.35. */
bool python_calls(const void *from);

/* Before it takes its first one. taken: an arena (NULL: none) of so many bytes, which it returns;
 * from: into whom the hook returns; given: one is about to be given back. Nothing where there is no
 * Python. */
void python_watch_arenas(void *(*taken)(void *arena, size_t bytes, const void *from),
			 void (*given)(void *arena));

#endif
