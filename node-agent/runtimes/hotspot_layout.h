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

#include "common/error.h"
#include "node-agent/runtimes/hotspot_structs.h"

enum {
	HOTSPOT_NONE = 0xffff,      /* this version has no such member */
	HOTSPOT_OFFSET_MAX = 4096,  /* of a member */
	HOTSPOT_NMETHOD_MAX = 512,  /* nmethod_bytes */
	HOTSPOT_VERSION_TEXT = 64,
};

enum hotspot_layout_flags {
	/* The code heap is one (8), else a GrowableArray of them. */
	HOTSPOT_ONE_HEAP = 1 << 0,
	/* blob_code: an address (9 to 22), else an int from the blob's beginning. */
	HOTSPOT_CODE_IS_POINTER = 1 << 1,
	/* blob_frame_complete: 16 bits (25), else 32. */
	HOTSPOT_COMPLETE_IS_SHORT = 1 << 2,
	/* nmethod_deopt, nmethod_deopt_mh: addresses (9 to 22), else ints from its beginning. */
	HOTSPOT_DEOPT_IS_POINTER = 1 << 3,
	/* method_const_flags: 32 bits (21), else 16. Bit 0 is the table of lines in all. */
	HOTSPOT_FLAGS_ARE_LONG = 1 << 4,
	/* symbol_length is the higher half of what stands there (12 to 16). */
	HOTSPOT_LENGTH_IS_HIGH = 1 << 5,
	/* thread_object is an OopHandle, the address of the reference (14); else the reference. */
	HOTSPOT_OBJECT_IS_HANDLE = 1 << 6,
	/* The file's name is with the class' constants (15), else with the class. */
	HOTSPOT_SOURCE_IS_IN_POOL = 1 << 7,
	/* Streams of numbers do without bytes of 0 (UNSIGNED5 of 20 and newer: each byte is one
	 * more than it was). By the version. */
	HOTSPOT_BYTES_EXCLUDE_ZERO = 1 << 8,
	/* JavaThreads are a list by thread_next (8 to 13), else a ThreadsList. */
	HOTSPOT_THREADS_ARE_LINKED = 1 << 9,
};

struct hotspot_layout {
	uint16_t version; /* 8, 11, … */
	uint16_t flags;   /* enum hotspot_layout_flags */

	/* Addresses in the process, of variables. */
	uint64_t heaps;                        /* CodeCache::_heap, _heaps */
	uint64_t threads;                      /* the list's first thread; the ThreadsList */
	uint64_t call_stub_return;             /* StubRoutines::_call_stub_return_address */
	uint64_t narrow_oop_base, narrow_oop_shift;     /* 0: not told */
	uint64_t narrow_klass_base, narrow_klass_shift; /* 0: not told */
	uint64_t return_barrier; /* StubRoutines::_cont_returnBarrier (26); 0: not told */
	uint64_t continuation_return; /* ContinuationEntry::_return_pc (24); 0: not told */

	/* GrowableArray: int, and behind its head a pointer to the elements */
	uint16_t growable_length, growable_data;
	/* Array<T>: int; elements of 1, 2, 8 bytes */
	uint16_t array_length, array_bytes, array_shorts, array_words;
	/* CodeHeap, with its VirtualSpaces */
	uint16_t heap_low, heap_high;               /* of what is reserved */
	uint16_t heap_map, heap_map_high;           /* the segment map: committed from, to */
	uint16_t heap_segment_log2;                 /* int */
	uint16_t block_header;                      /* bytes of a HeapBlock, before its blob */
	uint16_t block_used;                        /* bool */

	/* CodeBlob; 32 bits each but for blob_name, and what flags say */
	uint16_t blob_name, blob_size, blob_frame_size, blob_frame_complete, blob_code, blob_data;
	uint16_t blob_kind; /* a byte (25) */
	/* nmethod: what of it is read, from its beginning */
	uint16_t nmethod_bytes;
	uint16_t nmethod_method, nmethod_compile_id, nmethod_comp_level, nmethod_entry_bci;
	uint16_t nmethod_orig_pc, nmethod_deopt, nmethod_deopt_mh, nmethod_state;
	/* hotspot_layout_part(). Ints from its beginning, but for: nmethod_scopes_data an address
	 * with HOTSPOT_CODE_IS_POINTER; from 23 on ints from the address at nmethod_immutable on,
	 * which ends with an int; from 25 on metadata is at the address at nmethod_mutable */
	uint16_t nmethod_metadata, nmethod_scopes_data, nmethod_scopes_pcs, nmethod_dependencies;
	uint16_t nmethod_immutable, nmethod_immutable_size, nmethod_immutable_end;
	uint16_t nmethod_mutable, nmethod_mutable_size, nmethod_relocation_size;
	/* PcDesc: ints; its bytes */
	uint16_t pc_offset, pc_scope, pc_flags, pc_bytes;

	/* Method, ConstMethod: what of them is read up to const_bytes, behind which bytecode begins
	 */
	uint16_t method_const, method_access; /* access flags: 32 bits; ACC_NATIVE 0x100 */
	uint16_t const_constants;
	uint16_t const_size;  /* int: words of 8 bytes, all of it with its tables */
	uint16_t const_flags; /* see flags; bit 0: it has a table of lines */
	uint16_t const_code_size, const_name, const_signature, const_bytes; /* 16 bits */
	/* ConstantPool: behind pool_bytes its entries, 8 bytes each */
	uint16_t pool_length, pool_holder, pool_source, pool_bytes; /* int; InstanceKlass *; 16 bits */
	/* Klass, InstanceKlass */
	uint16_t klass_name, klass_source; /* Symbol *; 16 bits */
	/* Symbol: 16 bits, see flags; its bytes, modified UTF-8 */
	uint16_t symbol_length, symbol_body;

	/* JavaThread, OSThread, ThreadsList, oopDesc */
	uint16_t thread_os, thread_object, thread_next;
	uint16_t os_thread_id; /* int */
	uint16_t list_length, list_threads;
	uint16_t object_klass; /* 32 or 64 bits */
	uint16_t thread_continuation; /* JavaThread::_cont_entry (24) */
	uint16_t continuation_bytes, continuation_parent;
	/* The interpreter's frame: words from rbp, by the version */
	int8_t frame_sender_sp, frame_method, frame_bytecode;
};

/* False: err names what is missing, or the version that is not known. */
bool hotspot_layout_fill(const struct hotspot_structs *structs, struct hotspot_layout *out,
			 struct error *err);

/* Where a compiled method has one of its parts. */
enum hotspot_part {
	HOTSPOT_CODE,        /* instructions, up to the data behind its stubs */
	HOTSPOT_METADATA,    /* Metadata *[]: index 1 of a scope is the first */
	HOTSPOT_SCOPES_DATA, /* of its scopes: streams of UNSIGNED5 */
	HOTSPOT_SCOPES_PCS,  /* PcDesc[] */
};

/* nmethod: nmethod_bytes of it, as they were read at that address. False: what it says makes no
 * sense; what is in *begin, *bytes (at most 16 MiB) may still be no memory. Pure. */
bool hotspot_layout_part(const struct hotspot_layout *layout, const void *nmethod,
			 uint64_t address, enum hotspot_part part, uint64_t *begin,
			 uint32_t *bytes);

#endif
