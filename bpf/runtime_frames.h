/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What an interpreter's own list of frames looks like where it is read, and in samples. The kernel
 * side takes the list at the sample, since it lies in memory that changes; the agent says where it
 * begins, names what it has and joins it with the native frames.
 *
 * CPython: Include/cpython/pystate.h, Include/internal/pycore_{frame,runtime}.h and code.h of 3.6
 * to 3.14; the offsets are of a version, and come from user space. */
#ifndef BPF_RUNTIME_FRAMES_H
#define BPF_RUNTIME_FRAMES_H

#include <linux/types.h>

#include "bpf/frames.h"

enum {
	RUNTIME_FRAMES_MAX = 256, /* of one list, the innermost ones; behind deep stacks fewer */
	RUNTIME_WORDS_MAX = 2 * RUNTIME_FRAMES_MAX + 1, /* the last one may say that it is cut */
	RUNTIME_PROCESSES = 1024,
	SAMPLE_WORDS_MAX = KERNEL_FRAMES_MAX + USER_FRAMES_MAX + RUNTIME_WORDS_MAX,
};

enum runtime_language {
	RUNTIME_CPYTHON = 1,
	RUNTIME_HOTSPOT = 2, /* its frames are native ones' places: bpf/hotspot_frames.h */
};

/* --- in samples --- */

/* A frame of Python's: its kind with the address of the code object, then
 *
 *	bits 0–31   bytes of the bytecode before the current instruction; RUNTIME_POSITION_NONE:
 *	            it has not begun, or it is somewhere else
 *	bits 32–47  runtime_cookie() of the code object; 0: its memory was not there
 *	bit 48      RUNTIME_FRAME_ENTRY: the interpreter's loop was entered from C for it. The
 *	            frames inside of it, up to the next entry, run in the same loop. With a code
 *	            object at 0: the loop has no frames any more
 *	bit 49      RUNTIME_FRAME_GENERATOR: of a generator or a coroutine of any kind
 *
 * Instead of the frames that are missing at the root end, where any are: STACK_FRAME_RUNTIME_END
 * with enum runtime_end. */
#define RUNTIME_POSITION_NONE   0xffffffffU
#define RUNTIME_FRAME_ENTRY     (1ULL << 48)
#define RUNTIME_FRAME_GENERATOR (1ULL << 49)

enum runtime_end {
	RUNTIME_END_CUT = 1, /* more than RUNTIME_FRAMES_MAX, or than there is time for */
	RUNTIME_END_UNREAD,  /* its memory was not there */
	RUNTIME_END_LOOP,    /* it leads back to itself */
	RUNTIME_END_WRONG,   /* what stands there is no address */
	/* It was read to its end, and is that of an interpreter that is not the process' first:
	 * who has started it may be in the same thread, and has its frames elsewhere */
	RUNTIME_END_OTHER,
};

static inline __u64 runtime_frame_code(__u64 address)
{
	return stack_frame_address(address) | (__u64)STACK_FRAME_PYTHON << STACK_FRAME_KIND_SHIFT;
}

static inline __u64 runtime_frame_place(__u32 position, __u16 cookie, int is_entry)
{
	return position | (__u64)cookie << 32 | (is_entry ? RUNTIME_FRAME_ENTRY : 0);
}

static inline __u64 runtime_frame_end(enum runtime_end why)
{
	return (__u64)why | (__u64)STACK_FRAME_RUNTIME_END << STACK_FRAME_KIND_SHIFT;
}

/* Of co_flags: CO_GENERATOR, CO_COROUTINE, CO_ASYNC_GENERATOR. */
static inline int runtime_code_is_generator(__u32 flags)
{
	return (flags & (0x20 | 0x80 | 0x200)) != 0;
}

static inline __u32 runtime_frame_position(__u64 place)
{
	return (__u32)place;
}

static inline __u16 runtime_frame_cookie(__u64 place)
{
	return (__u16)(place >> 32);
}

static inline int runtime_frame_is_entry(__u64 place)
{
	return (place & RUNTIME_FRAME_ENTRY) != 0;
}

/* What tells a code object from another one that has its address later: of its members
 * co_argcount, co_kwonlyargcount, co_flags and co_firstlineno, and, since those of modules and of
 * exec() are all alike, where its name, file and lines are, by runtime_texts(). Never 0. */
static inline __u16 runtime_cookie(__u32 argcount, __u32 kwonly, __u32 flags, __u32 firstline,
				   __u32 texts)
{
	__u32 mixed = ((firstline * 31 + flags) * 31 + argcount) * 31 + kwonly;
	__u16 cookie;

	mixed = mixed * 0x85ebca6bU ^ texts;
	cookie = (__u16)((mixed ^ mixed >> 15) * 0x9e3779b1U >> 16);
	return cookie ? cookie : 1;
}

/* Addresses: of 16 bytes each, or 8. */
static inline __u32 runtime_texts(__u64 name, __u64 file, __u64 lines)
{
	return (((__u32)(name >> 3) * 0x9e3779b1U ^ (__u32)(file >> 3)) * 0x85ebca6bU ^
		(__u32)(lines >> 3)) *
	       0xc2b2ae35U;
}

/* --- where it begins --- */

enum { RUNTIME_OFFSET_NONE = 0xffff };

enum runtime_layout_flags {
	/* frame_instr is a pointer into the bytecode (3.11+), else an int: bytes of it (≤ 3.9), or
	 */
	RUNTIME_INSTR_IS_POINTER = 1 << 0,
	RUNTIME_INSTR_IS_UNITS = 1 << 1, /* … two bytes each (3.10) */
	/* Entries are frames of their own, which are not shown, outside of the outermost one of
	 * their run (3.12+); else a flag in that one (3.11) */
	RUNTIME_ENTRY_IS_SHIM = 1 << 2,
};

/* Offsets in bytes. What is read of one object lies within so many of them: of a state and a frame
 * from its beginning on, of a code object from the first of its members on. */
enum { RUNTIME_READ_MAX = 255, RUNTIME_STATE_MAX = 512 };

struct runtime_layout {
	__u16 tstate_thread_id;
	__u16 tstate_frame; /* to the innermost frame or, with cframe_frame, to what has that */
	__u16 cframe_frame; /* 3.11, 3.12; else RUNTIME_OFFSET_NONE */
	__u16 frame_code, frame_previous, frame_instr;
	/* A byte: 3.11's is_entry, 3.12's owner; RUNTIME_OFFSET_NONE: each frame is an entry */
	__u16 frame_entry;
	__u16 code_argcount, code_kwonly, code_flags, code_firstline; /* ints */
	__u16 code_bytes; /* where the bytecode begins, of RUNTIME_INSTR_IS_POINTER */
	__u16 tstate_interp;
	__u8 entry_value; /* the byte's, of an entry; of shims: this and more */
	__u8 flags;       /* enum runtime_layout_flags */
	__u16 code_name, code_filename, code_lines; /* addresses; the name: qualified since 3.11 */
	/* Of a str and a bytes: how many, as a word; of a str: an int whose 3 bits from text_kind
	 * on are the bytes of each; where these begin at the latest. What is said to be elsewhere
	 * than in the first RUNTIME_CODE_CHUNK has as many as there is room for. */
	__u8 text_length, text_state, text_kind, text_data;
	/* What is read of each object has all of these: see runtime_layout_spans() */
	__u8 frame_read, code_read;
	__u16 code_from, state_read;
	__u32 reserved;
};

static inline __u32 runtime_most(__u32 one, __u32 other)
{
	return one > other ? one : other;
}

static inline __u32 runtime_least(__u32 one, __u32 other)
{
	return one < other ? one : other;
}

/* How much of each object is read: not a byte more than what is asked for, behind which a page may
 * end. 0: that is more than there is room for, and no list is read. */
static inline int runtime_layout_spans(struct runtime_layout *layout)
{
	const __u32 instr = layout->flags & RUNTIME_INSTR_IS_POINTER ? 8 : 4;
	const __u32 ints = runtime_most(runtime_most(layout->code_argcount, layout->code_kwonly),
					runtime_most(layout->code_flags, layout->code_firstline));
	const __u32 from_ints =
		runtime_least(runtime_least(layout->code_argcount, layout->code_kwonly),
			      runtime_least(layout->code_flags, layout->code_firstline));
	__u32 frame = runtime_most(layout->frame_code, layout->frame_previous) + 8, state, from,
	      code;

	frame = runtime_most(frame, layout->frame_instr + instr);
	if (layout->frame_entry != RUNTIME_OFFSET_NONE)
		frame = runtime_most(frame, layout->frame_entry + 1);
	from = runtime_least(runtime_least(from_ints, layout->code_lines),
			     runtime_least(layout->code_name, layout->code_filename)) &
	       ~7U;
	code = runtime_most(layout->code_name, layout->code_filename);
	code = runtime_most(ints + 4, runtime_most(code, layout->code_lines) + 8) - from;
	state = runtime_most(layout->tstate_thread_id,
			     runtime_most(layout->tstate_interp, layout->tstate_frame)) +
		8;
	layout->frame_read = layout->code_read = 0;
	if (frame > RUNTIME_READ_MAX || code > RUNTIME_READ_MAX || state >= RUNTIME_STATE_MAX)
		return 0;
	layout->frame_read = (__u8)frame;
	layout->code_read = (__u8)code;
	layout->code_from = (__u16)from;
	layout->state_read = (__u16)state;
	return 1;
}

/* One per process that has an interpreter; identity as in samples, start_time_ns 0: whoever has the
 * number, since no sample has told yet who that is. The state of the sampled thread
 * is at one of three places, the first of them that has one whose thread_id is the thread's. */
struct runtime_place {
	__u64 start_time_ns;
	__u32 exec_id;
	__u32 language;   /* enum runtime_language */
	__u64 current_at; /* an address: of the thread that runs Python now (≤ 3.11); 0: none */
	/* Of each thread, from its thread pointer on: *(tp + thread_at) or, where thread_in is 0
	 * and more, *(*(tp + thread_at) + thread_in). thread_at 0: none */
	__s64 thread_at, other_at;
	__s32 thread_in, other_in;
	__s64 thread_id_minus_tp; /* thread_id is pthread_self(), which is not tp everywhere */
	__u64 first_interpreter;  /* an address; 0: not known */
	struct runtime_layout layout;
};

/* Which process has which place: a cache line for each group of pids. Places are in tables of less
 * than 32 KiB, as the pids are, which the kernel has in large pages: others cost more to look at.
 */
enum {
	RUNTIME_PIDS_GROUPS = 480,
	RUNTIME_PIDS_GROUP = 10,
	RUNTIME_TABLES = 4,
	RUNTIME_TABLE = RUNTIME_PROCESSES / RUNTIME_TABLES,
};
struct runtime_pids {
	__u32 tgids[RUNTIME_PIDS_GROUP]; /* 0: nobody */
	__u16 places[RUNTIME_PIDS_GROUP];
	__u32 reserved;
};

static inline __u32 runtime_pids_of(__u32 tgid)
{
	return (tgid * 0x9e3779b1U >> 16) * RUNTIME_PIDS_GROUPS >> 16;
}

/* --- code objects --- */

/* One that a sample has for the first time, as it was then, since it may be gone before anybody
 * else looks: EVENT_RUNTIME_CODE, in front of the sample. The object up to its last member that
 * is asked for, and what its members lead to, whole or as much as there is room for; of what was
 * not there a chunk, or nothing. */
enum {
	RUNTIME_CODE_CHUNK = 64,
	RUNTIME_CODE_HEAD = 192,
	RUNTIME_CODE_NAME = 128,
	RUNTIME_CODE_FILE = 256,
	RUNTIME_CODE_LINES = 512,
};

struct runtime_code_event {
	__u16 type; /* EVENT_RUNTIME_CODE */
	__u16 cookie;
	__u32 size; /* of this record */
	__u64 time_ns;
	__u64 start_time_ns; /* whose it is, with tgid and exec_id */
	__u32 tgid, exec_id;
	__u64 address;
	__u64 name_at, file_at, lines_at;
	__u16 head_bytes, name_bytes, file_bytes, lines_bytes;
	__u8 head[RUNTIME_CODE_HEAD];
	__u8 name[RUNTIME_CODE_NAME];
	__u8 file[RUNTIME_CODE_FILE];
	__u8 lines[RUNTIME_CODE_LINES];
};

#endif
