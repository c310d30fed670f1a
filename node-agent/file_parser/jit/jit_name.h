/* SPDX-License-Identifier: Apache-2.0 */
/* A name as a runtime writes it for its code, taken apart: function, file, line, and whose it is.
 *
 *	V8	JS:*f /a/b.js:12:3, LazyCompile:~f …, Script:, Eval:, RegExp:, Builtin:, …
 *		(src/logging/log.cc; the sign is the compiler's, and goes: one function, one name)
 *	CPython	py::qualified.name:/a/b.py (Python/perf_trampoline.c)
 *	.NET	void [assembly] Class::Method(int)[OptimizedTier1] (coreclr, vm/perfmap.cpp)
 *	BEAM	$module:function/arity (erts, jit/beam_asm_perf.cpp)
 *	LuaJIT	TRACE_12::file.lua:34 (lj_trace.c, perftools_addtrace())
 *
 * Whatever looks like none of these is a function's name as it is. */
#ifndef NODE_AGENT_FILE_PARSER_JIT_JIT_NAME_H
#define NODE_AGENT_FILE_PARSER_JIT_JIT_NAME_H

#include "node-agent/file_parser/jit/jit_chunk.h"

/* Fills name, file, line and language of the entry, which is the chunk's. False: there is no room.
 */
bool jit_name_set(struct jit_chunk *chunk, struct jit_entry *entry, const char *name,
		  uint64_t length);

#endif
