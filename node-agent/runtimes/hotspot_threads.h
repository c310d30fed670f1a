/* SPDX-License-Identifier: Apache-2.0 */
/* What the threads of a HotSpot machine that run no Java are there for, by the names that it gives
 * them: collectors (Serial has none of its own), compilers, the machine itself. */
#ifndef NODE_AGENT_RUNTIMES_HOTSPOT_THREADS_H
#define NODE_AGENT_RUNTIMES_HOTSPOT_THREADS_H

#include <stddef.h>

/* name: as the kernel has it, 15 characters at most, `room` bytes with or without an end; what was
 * longer is cut, from 28 on in its middle. "[GC]", "[JIT]", "[VM]"; NULL: none of them. A program
 * may call a thread of its own so: that has frames of Java. */
const char *hotspot_thread_group(const char *name, size_t room);

#endif
