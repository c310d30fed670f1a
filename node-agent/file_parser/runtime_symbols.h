/* SPDX-License-Identifier: Apache-2.0 */
/* What the parser of strangers' files says of a file with a language's runtime. Said by a process
 * without privileges: what comes of it is which words of a process that runs the file are read. */
#ifndef NODE_AGENT_FILE_PARSER_RUNTIME_SYMBOLS_H
#define NODE_AGENT_FILE_PARSER_RUNTIME_SYMBOLS_H

#include <stdint.h>

#include "bpf/runtime_frames.h"

enum runtime_symbols_flags {
	/* Built with Py_TRACE_REFS, which before 3.13 gives objects two more words. */
	RUNTIME_TRACES_REFERENCES = 1 << 0,
	/* No interpreter: Python's extension that runs functions on stacks of their own, greenlet.
	 */
	RUNTIME_HAS_GREENLETS = 1 << 1,
	/* None that is known: a Java virtual machine other than HotSpot. */
	RUNTIME_IS_OTHER_JVM = 1 << 2,
};

enum { RUNTIME_LOOP_PARTS_MAX = 16 };

/* X(number, name): the variables by which HotSpot's tables are found and read, from
 * src/hotspot/share/runtime/vmStructs.cpp; all but the first four have 64 bits, those addresses. */
#define HOTSPOT_SYMBOLS(X)                                         \
	X(STRUCTS, "gHotSpotVMStructs")                            \
	X(TYPES, "gHotSpotVMTypes")                                \
	X(INTS, "gHotSpotVMIntConstants")                          \
	X(LONGS, "gHotSpotVMLongConstants")                        \
	X(STRUCT_STRIDE, "gHotSpotVMStructEntryArrayStride")       \
	X(STRUCT_TYPE, "gHotSpotVMStructEntryTypeNameOffset")      \
	X(STRUCT_FIELD, "gHotSpotVMStructEntryFieldNameOffset")    \
	X(STRUCT_OF, "gHotSpotVMStructEntryTypeStringOffset")      \
	X(STRUCT_IS_STATIC, "gHotSpotVMStructEntryIsStaticOffset") \
	X(STRUCT_OFFSET, "gHotSpotVMStructEntryOffsetOffset")      \
	X(STRUCT_ADDRESS, "gHotSpotVMStructEntryAddressOffset")    \
	X(TYPE_STRIDE, "gHotSpotVMTypeEntryArrayStride")           \
	X(TYPE_NAME, "gHotSpotVMTypeEntryTypeNameOffset")          \
	X(TYPE_SIZE, "gHotSpotVMTypeEntrySizeOffset")              \
	X(INT_STRIDE, "gHotSpotVMIntConstantEntryArrayStride")     \
	X(INT_NAME, "gHotSpotVMIntConstantEntryNameOffset")        \
	X(INT_VALUE, "gHotSpotVMIntConstantEntryValueOffset")      \
	X(LONG_STRIDE, "gHotSpotVMLongConstantEntryArrayStride")   \
	X(LONG_NAME, "gHotSpotVMLongConstantEntryNameOffset")      \
	X(LONG_VALUE, "gHotSpotVMLongConstantEntryValueOffset")

enum hotspot_symbol {
#define HOTSPOT_SYMBOL(number, name) HOTSPOT_SYMBOL_##number,
	HOTSPOT_SYMBOLS(HOTSPOT_SYMBOL)
#undef HOTSPOT_SYMBOL
		HOTSPOT_SYMBOL_COUNT
};

struct runtime_symbols {
	/* enum runtime_language; 0: it is none, the rest but thread_bytes and flags is 0 */
	uint32_t language;
	/* CPython's PY_VERSION_HEX; before 3.11 no file says more than 0x03MM0000; 0: not told */
	uint32_t version;
	uint32_t flags;
	uint32_t loop_count;
	/* Of arm64's C library: how far behind pthread_self() the thread pointer is, which is
	 * sizeof(struct pthread); glibc says that to debuggers. Of an interpreter: what its
	 * process' C library says. 0: not told. */
	uint32_t thread_bytes, reserved;
	/* ELF address of _PyRuntime; before 3.7 of _PyThreadState_Current */
	uint64_t state, state_bytes;
	/* ELF address of what has the interpreter's lock (the GIL) and nothing else that threads
	 * wait at; 0: not told */
	uint64_t lock, lock_bytes;
	/* ELF addresses of _PyEval_EvalFrameDefault and of what the compiler put elsewhere of it */
	struct {
		uint64_t start, end;
	} loop[RUNTIME_LOOP_PARTS_MAX];
	/* HotSpot's: ELF addresses of HOTSPOT_SYMBOLS. It has no state and no loop. */
	uint64_t hotspot[HOTSPOT_SYMBOL_COUNT];
};

#endif
