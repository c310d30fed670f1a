/* SPDX-License-Identifier: Apache-2.0 */
/* Where a HotSpot has what a profiler reads: its code heaps, the blobs and compiled methods in
 * them, methods, classes and threads. All of it is from the tables in which the virtual machine
 * describes itself to its own debugger (src/hotspot/share/runtime/vmStructs.cpp), so that each
 * vendor's build has its own numbers. What these do not tell, the version does: said where it is.
 * Tried with 8, 11, 17, 21, 25 and 28, and compared with the debug information of Debian's builds.
 * A layout is whole or there is none: what is missing is told by name, nothing is guessed. */
#ifndef NODE_AGENT_RUNTIMES_HOTSPOT_LAYOUT_H
#define NODE_AGENT_RUNTIMES_HOTSPOT_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/hotspot_frames.h"
#include "common/error.h"
#include "node-agent/runtimes/hotspot_structs.h"

enum {
	HOTSPOT_OFFSET_MAX = 4096, /* of a member; HOTSPOT_OFFSET_NONE: there is none */
	HOTSPOT_VERSION_FIRST = 8, /* but for 23 and 24, which lay out what belongs to a compiled
				    * method in a way of their own */
	HOTSPOT_VERSION_LAST = 28,
};

enum hotspot_layout_flags {
	/* The code heap is one (8), else a GrowableArray of them. */
	HOTSPOT_LAYOUT_ONE_HEAP = 1 << 0,
	/* blob_code: an address (9 to 22), else an int from the blob's beginning. */
	HOTSPOT_LAYOUT_CODE_POINTER = 1 << 1,
	/* blob_frame_complete: 16 bits (25), else 32. */
	HOTSPOT_LAYOUT_COMPLETE_SHORT = 1 << 2,
	/* nmethod_deopt, nmethod_deopt_mh: addresses (9 to 22), else ints from its beginning. */
	HOTSPOT_LAYOUT_DEOPT_POINTER = 1 << 3,
	/* const_flags: 32 bits (21), else 16. */
	HOTSPOT_LAYOUT_FLAGS_LONG = 1 << 4,
	/* symbol_length: 16 bits above others' 16 (12 to 16), else 16 bits of its own. */
	HOTSPOT_LAYOUT_LENGTH_HIGH = 1 << 5,
	/* thread_object is an OopHandle, the address of the reference (17); else the reference. */
	HOTSPOT_LAYOUT_OBJECT_HANDLE = 1 << 6,
	/* The file's name is with the class' constants (15), else with the class. */
	HOTSPOT_LAYOUT_SOURCE_IN_POOL = 1 << 7,
	/* Streams of UNSIGNED5 do without bytes of 0 (20). By the version. */
	HOTSPOT_LAYOUT_WITHOUT_ZERO = 1 << 8,
	/* JavaThreads are a list by thread_next (8 to 13), else a ThreadsList. */
	HOTSPOT_LAYOUT_THREADS_LINKED = 1 << 9,
	/* Parts of a compiled method lie in memory of their own (25). */
	HOTSPOT_LAYOUT_PARTS_APART = 1 << 10,
};

struct hotspot_layout {
	uint16_t version; /* 8, 11, … */
	uint16_t flags;   /* enum hotspot_layout_flags */

	/* Addresses of variables in the process; 0: this version does not tell. */
	uint64_t heaps;            /* CodeCache::_heap, _heaps */
	uint64_t interpreter;      /* AbstractInterpreter::_code, a StubQueue * */
	uint64_t call_stub_return; /* StubRoutines::_call_stub_return_address */
	uint64_t threads;          /* the first JavaThread; the ThreadsList */
	uint64_t narrow_oop_base, narrow_oop_shift;
	uint64_t narrow_klass_base, narrow_klass_shift;
	uint64_t return_barrier;      /* StubRoutines::_cont_returnBarrier (28) */
	uint64_t continuation_return; /* ContinuationEntry::_return_pc (25) */
	uint64_t counters;            /* PerfMemory::_start: where counters for jstat are */

	/* GrowableArray: int; a pointer to its elements */
	uint16_t growable_length, growable_data;
	/* Array<T>: int; its elements of 1, 2, 8 bytes */
	uint16_t array_length, array_bytes, array_shorts, array_words;
	/* CodeHeap: what is reserved for it, from and to; its segment map, as far as there is
	 * memory; int; HeapBlock: bytes of its header, before the blob; bool */
	uint16_t heap_low, heap_high, heap_map, heap_map_end, heap_segment_log2;
	uint16_t block_header, block_used;
	/* StubQueue: address; int; InterpreterCodelet: ints, a text, a Bytecodes::Code; its bytes,
	 * before its code */
	uint16_t queue_buffer, queue_end;
	uint16_t codelet_size, codelet_description, codelet_bytecode, codelet_bytes;

	/* CodeBlob: a text; ints, but for what flags say; a byte (25) */
	uint16_t blob_name, blob_size, blob_frame_size, blob_frame_complete, blob_code, blob_data;
	uint16_t blob_kind;
	/* nmethod: what is read of it, from its beginning, at most HOTSPOT_BLOB_BYTES */
	uint16_t nmethod_bytes;
	uint16_t nmethod_method, nmethod_compile_id; /* Method *; int */
	uint16_t nmethod_comp_level;                 /* a byte, signed: CompLevel */
	uint16_t nmethod_entry_bci, nmethod_orig_pc; /* ints */
	uint16_t nmethod_deopt, nmethod_deopt_mh;    /* see flags; the second may be none */
	/* Its parts, for hotspot_layout_part(). */
	uint16_t nmethod_stub, nmethod_metadata, nmethod_scopes_data, nmethod_scopes_pcs;
	uint16_t nmethod_dependencies, nmethod_immutable, nmethod_immutable_size;
	uint16_t nmethod_mutable, nmethod_mutable_size, nmethod_relocation_size;
	/* PcDesc: ints; its bytes */
	uint16_t pc_offset, pc_scope, pc_flags, pc_bytes;

	/* Method: ConstMethod *; 32 bits with ACC_NATIVE, 0x100. ConstMethod: ConstantPool *; int,
	 * words of 8 bytes with its tables; bit 0: it has a table of lines; 16 bits each. Behind
	 * const_bytes its bytecode begins. */
	uint16_t method_const, method_access;
	uint16_t const_constants, const_size, const_flags;
	uint16_t const_code_size, const_name, const_signature, const_bytes;
	/* ConstantPool: int; InstanceKlass *; 16 bits. Behind pool_bytes its entries, 8 bytes each
	 */
	uint16_t pool_length, pool_holder, pool_source, pool_bytes;
	/* Klass: Symbol *; ClassLoaderData *. InstanceKlass: 16 bits */
	uint16_t klass_name, klass_loader, klass_source;
	uint16_t symbol_length, symbol_body; /* see flags; modified UTF-8 */

	/* JavaThread, OSThread: int; ThreadsList: 32 bits, a pointer to pointers */
	uint16_t thread_os, thread_object, thread_next;
	uint16_t os_thread_id;
	uint16_t list_length, list_threads;
	uint16_t object_klass;
	uint16_t thread_continuation; /* JavaThread::_cont_entry (25) */
	uint16_t continuation_bytes, continuation_parent;
};

/* memory: of the process, for its version. False: err names what is missing, or the version that is
 * not known. */
bool hotspot_layout_fill(const struct hotspot_structs *structs, const struct python_memory *memory,
			 struct hotspot_layout *out, struct error *err);

/* The same of a process with that file where so much more is added to its addresses. */
void hotspot_layout_move(struct hotspot_layout *layout, uint64_t by);

/* What of it the kernel side walks by. */
void hotspot_layout_walk(const struct hotspot_layout *layout, struct hotspot_walk_layout *walk);

/* Where a compiled method has one of its parts. */
enum hotspot_part {
	HOTSPOT_PART_CODE,        /* instructions; from its begin on PcDescs and stubs count */
	HOTSPOT_PART_METADATA,    /* Metadata *[]; scopes count them from 1 */
	HOTSPOT_PART_SCOPES_DATA, /* streams of UNSIGNED5 */
	HOTSPOT_PART_SCOPES_PCS,  /* PcDesc[] */
};

enum { HOTSPOT_PART_BYTES_MAX = 16 << 20 };

/* nmethod: nmethod_bytes of it, as they were read at that address. False: what it says makes no
 * sense; what is in *begin, *bytes may still be no memory. Pure. */
bool hotspot_layout_part(const struct hotspot_layout *layout, const void *nmethod, uint64_t address,
			 enum hotspot_part part, uint64_t *begin, uint32_t *bytes);

#endif
