/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* HotSpot's frames as samples have them, and what a walk through them goes by. They stand among the
 * native ones, since they lie on the same stack: whoever names them reads what they point to.
 *
 * HotSpot 8 to 25: share/code/{codeBlob,nmethod,codeCache}.hpp, share/memory/heap.hpp,
 * share/oops/{method,constMethod}.hpp, cpu/x86/frame_x86.hpp; the offsets are of a build, and come
 * from user space, which has them from the tables in libjvm that debuggers read. */
#ifndef BPF_HOTSPOT_FRAMES_H
#define BPF_HOTSPOT_FRAMES_H

#include <linux/types.h>

#include "bpf/frames.h"

enum {
	HOTSPOT_PROCESSES = 256,
	HOTSPOT_HEAPS_MAX = 4,    /* parts of one code cache */
	HOTSPOT_ENTRIES_MAX = 64, /* ways into the interpreter; a power of two */
	HOTSPOT_BLOB_BYTES = 512, /* what is read of a CodeBlob, all offsets lie in there */
};

/* --- in samples: two words each --- */

/* STACK_FRAME_JAVA_COMPILED  kind | address, as native frames have it (bpf/events.h)
 *                            the nmethod | the lower half of its compile id << 48
 * STACK_FRAME_JAVA_INTERPRETED  kind | hotspot_cookie() of the method; 0: it could not be read
 *                            the Method | bci << 48: the bytecode it is at, of callers the call
 * STACK_FRAME_JAVA_STUB      kind | address
 *                            the CodeBlob, whose _name is its name
 *
 * What lies in a code heap and could not be told stays a native frame. */
enum { HOTSPOT_ADDRESS_BITS = 48 };

static inline __u64 hotspot_word(enum stack_frame_kind kind, __u64 word)
{
	return stack_frame_address(word) | (__u64)kind << STACK_FRAME_KIND_SHIFT;
}

static inline __u64 hotspot_pointer_word(__u64 address, __u16 with)
{
	return (address & ((1ULL << HOTSPOT_ADDRESS_BITS) - 1)) | (__u64)with
									  << HOTSPOT_ADDRESS_BITS;
}

/* Of the second word: the nmethod, the Method, the CodeBlob. */
static inline __u64 hotspot_frame_pointer(__u64 word)
{
	return word & ((1ULL << HOTSPOT_ADDRESS_BITS) - 1);
}

/* The lower half of an nmethod's compile id, or a bci. */
static inline __u16 hotspot_frame_with(__u64 word)
{
	return (__u16)(word >> HOTSPOT_ADDRESS_BITS);
}

/* What tells a Method from another one that has its address later: its ConstMethod's members
 * _constants, _code_size, _name_index and _signature_index. Never 0. */
static inline __u16 hotspot_cookie(__u64 constants, __u16 code_size, __u16 name_index,
				   __u16 signature_index)
{
	__u32 mixed = (__u32)(constants >> 3) * 0x9e3779b1U ^ (__u32)(constants >> 35);
	__u16 cookie;

	mixed = ((mixed ^ code_size) * 31 + name_index) * 0x85ebca6bU + signature_index;
	cookie = (__u16)((mixed ^ mixed >> 15) * 0x9e3779b1U >> 16);
	return cookie ? cookie : 1;
}

/* --- what the walk goes by --- */

enum hotspot_walk_flags {
	/* blob_code_begin is a pointer, else an int: bytes from the blob's address on */
	HOTSPOT_CODE_BEGIN_IS_POINTER = 1 << 0,
	/* nmethod_deopt_handler and …_mh_handler are pointers, else ints as above */
	HOTSPOT_DEOPT_IS_POINTER = 1 << 1,
	HOTSPOT_COMPLETE_IS_SHORT = 1 << 2, /* blob_frame_complete has 16 bits, else 32 */
};

enum { HOTSPOT_OFFSET_NONE = 0xffff };

/* Offsets in bytes, less than HOTSPOT_BLOB_BYTES. */
struct hotspot_walk_layout {
	__u16 blob_name;                /* CodeBlob::_name, a pointer */
	__u16 blob_size;                /* _size, an int: all of it, from its header on */
	__u16 blob_frame_size;          /* _frame_size, an int: words, with the return address */
	__u16 blob_frame_complete;      /* _frame_complete_offset, from the code's begin on */
	__u16 blob_code_begin;          /* _code_begin or _code_offset */
	__u16 nmethod_compile_id;       /* an int */
	__u16 nmethod_orig_pc;          /* _orig_pc_offset, an int: from the stack pointer on */
	__u16 nmethod_deopt_handler;    /* _deopt_handler_begin, _deopt_handler_offset,
					   _deopt_handler_entry_offset, 8's _deoptimize_offset */
	__u16 nmethod_deopt_mh_handler; /* the same of method handles; HOTSPOT_OFFSET_NONE */
	__u16 method_const;             /* Method::_constMethod */
	/* of ConstMethod; the u2 within 64 bytes */
	__u16 const_constants, const_code_size, const_name_index, const_signature_index;
	__u16 const_size; /* its sizeof: where its bytecodes begin */
	/* An interpreted frame's words, from its frame pointer on: frame::interpreter_frame_… */
	__s8 slot_sender_sp, slot_method, slot_bcp; /* x86-64: -1; -3; -7 (8), -8 (9 and newer) */
	__u8 flags;                                 /* enum hotspot_walk_flags */
	__u16 java_version;                         /* 8, 11, 17, … */
	__u8 reserved[10];
};

/* A part of the code cache: all of what is reserved for it, which never changes. */
struct hotspot_heap {
	__u64 low, high;    /* CodeHeap::_memory's _low_boundary, _high_boundary */
	__u64 segment_map;  /* _segmap's _low: a byte for each segment from `low` on */
	__u32 segment_log2; /* _log2_segment_size, 6 to 16 */
	__u32 block_header; /* sizeof HeapBlock: from a segment to its CodeBlob */
};

/* Where the interpreter's code is (AbstractInterpreter::_code, its StubQueue and the codelets in
 * it); low 0: not known, its frames are told by their blob's name alone. Offsets are from low on.
 */
struct hotspot_interpreter {
	__u64 low, high;
	__u32 entries;     /* methods are entered from here on, */
	__u32 templates;   /* bytecodes have their code from here on; both 0: not known */
	__u32 entry_count; /* of the ways in; they are sorted */
	__u32 reserved;
	struct {
		__u32 begin;
		__u32 framed; /* where its `push %rbp` is; its end where it makes no frame */
	} ways[HOTSPOT_ENTRIES_MAX];
};

/* One per process that has a JVM; identity as in samples, start_time_ns 0: whoever has the number,
 * since no sample has told yet who that is. */
struct hotspot_place {
	__u64 start_time_ns;
	__u32 exec_id;
	__u32 heap_count;
	__u64 low, high; /* around all heaps */
	/* StubRoutines::_cont_returnBarrier, ContinuationEntry::_return_pc; 0: not known, or none
	 */
	__u64 return_barrier, entry_return;
	__u64 unloads_at; /* its count of classes unloaded, 8 bytes; 0: it has none */
	struct hotspot_heap heaps[HOTSPOT_HEAPS_MAX];
	struct hotspot_walk_layout layout;
	struct hotspot_interpreter interpreter;
};

#endif
