/* SPDX-License-Identifier: Apache-2.0 */
/* Where a HotSpot's template interpreter has its code: what enters methods, and how far into each
 * of these ways there is no frame yet; what is behind them runs bytecodes. From its codelets, which
 * lie in a row and have descriptions (src/hotspot/share/interpreter/interpreter.hpp, stubs.hpp). */
#ifndef NODE_AGENT_RUNTIMES_HOTSPOT_INTERPRETER_H
#define NODE_AGENT_RUNTIMES_HOTSPOT_INTERPRETER_H

#include "bpf/hotspot_frames.h"
#include "node-agent/runtimes/hotspot_layout.h"

/* place->interpreter: low 0 where there is none, or one that is not known. place->low, high: around
 * the code heaps, in which it has to lie. */
void hotspot_interpreter_read(const struct python_memory *memory,
			      const struct hotspot_layout *layout, struct hotspot_place *place);

#endif
