/* SPDX-License-Identifier: Apache-2.0 */
/* A counter that HotSpot keeps for jstat, in memory that it shares with whoever may read it:
 * src/hotspot/share/runtime/perfMemory.hpp, the same from 8 to 28. */
#ifndef NODE_AGENT_RUNTIMES_HOTSPOT_COUNTERS_H
#define NODE_AGENT_RUNTIMES_HOTSPOT_COUNTERS_H

#include <stdint.h>

#include "node-agent/runtimes/python_memory.h"

enum { HOTSPOT_COUNTERS_BYTES = 128 << 10 }; /* 32 or 64 KiB as a rule; the rest is not looked at */

/* start: of that memory; 0: there is none (-XX:-UsePerfData). Returns the address of the counter of
 * that name, of 8 bytes; 0: there is none yet, or what stands there makes no sense. */
uint64_t hotspot_counter_find(const struct python_memory *memory, uint64_t start, const char *name);

#endif
