/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* CPython's own list of frames, innermost first, from its process' memory, which may say anything.
 * The programs in the kernel read that of the thread that they run in; user space, which reads that
 * of one that waits, or made-up memory, defines how before it includes this.
 *
 *	RUNTIME_READ(to, bytes, from)  0, or it is not there
 *	RUNTIME_WORDS_ROOM             of words, if not SAMPLE_WORDS_MAX
 *
 *	struct runtime_walk walk = { .first = …, .limit = RUNTIME_FRAMES_MAX };
 *	if (!python_walk_begin(&walk, words, place, thread_pointer))
 *		while (!python_walk_step(&walk, words))
 *			;
 *	// words[first] and on, walk.count of them, as bpf/runtime_frames.h has them
 */
#ifndef BPF_PYTHON_WALK_BPF_H
#define BPF_PYTHON_WALK_BPF_H

#include "bpf/runtime_frames.h"

#if defined(__bpf__)
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#define RUNTIME_READ(to, bytes, from) bpf_probe_read_user(to, bytes, (const void *)(from))
#elif !defined(RUNTIME_READ)
#error "define RUNTIME_READ(to, bytes, from): 0, or it is not there"
#endif
#ifndef RUNTIME_WORDS_ROOM
#define RUNTIME_WORDS_ROOM SAMPLE_WORDS_MAX
#endif
#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

/* A list may have an entry of its own for each frame. */
enum { RUNTIME_STEPS_A_FRAME = 2 };

struct runtime_walk {
	struct runtime_layout layout;
	__u64 frame;              /* whose turn it is; 0: the list is at its end */
	__u64 seen;               /* one that came before, */
	__u32 steps, seen_until;  /* which is another one from that step on */
	__u32 first, count;       /* words: where they begin and how many there are */
	__u32 frames, limit;      /* how many, and most; 1 to RUNTIME_FRAMES_MAX */
	__u32 is_other, reserved; /* the state is of an interpreter that is not the first */
	__u64 read[RUNTIME_STATE_MAX / sizeof(__u64)]; /* of one object */
};

/* --- what was read: offsets that do not fit in give some of its other bytes --- */

static __always_inline __u64 runtime_read_word(const struct runtime_walk *walk, __u32 at)
{
	return *(const __u64 *)((const __u8 *)walk->read + (at & RUNTIME_READ_MAX & ~7U));
}

static __always_inline __u32 runtime_read_int(const struct runtime_walk *walk, __u32 at)
{
	return *(const __u32 *)((const __u8 *)walk->read + (at & RUNTIME_READ_MAX & ~3U));
}

static __always_inline __u8 runtime_read_byte(const struct runtime_walk *walk, __u32 at)
{
	return *((const __u8 *)walk->read + (at & RUNTIME_READ_MAX));
}

static __always_inline __u64 runtime_read_state(const struct runtime_walk *walk, __u32 at)
{
	return *(const __u64 *)((const __u8 *)walk->read + (at & (RUNTIME_STATE_MAX - 8)));
}

/* --- words --- */

static __always_inline void runtime_walk_add(struct runtime_walk *walk, __u64 *words, __u64 word)
{
	__u64 at = (__u64)walk->first + walk->count; /* 64 bits: as in stack_walk_add() */

	if (at >= RUNTIME_WORDS_ROOM)
		return;
	words[at] = word;
	walk->count++;
}

static __always_inline int runtime_walk_end(struct runtime_walk *walk, __u64 *words,
					    enum runtime_end why)
{
	runtime_walk_add(walk, words, runtime_frame_end(why));
	return 1;
}

/* The last frame was entered from C; where it is said to be already, or there is none, the loop was
 * entered for one that has returned. Returns why the list ends, or 0. */
static __always_inline int runtime_walk_entry(struct runtime_walk *walk, __u64 *words)
{
	__u64 at = (__u64)walk->first + walk->count - 1;

	if (walk->frames && at < RUNTIME_WORDS_ROOM && !(words[at] & RUNTIME_FRAME_ENTRY)) {
		words[at] |= RUNTIME_FRAME_ENTRY;
		return 0;
	}
	if (walk->frames >= walk->limit)
		return RUNTIME_END_CUT;
	walk->frames++;
	runtime_walk_add(walk, words, runtime_frame_code(0));
	runtime_walk_add(walk, words, runtime_frame_place(RUNTIME_POSITION_NONE, 0, 1));
	return 0;
}

static __always_inline int runtime_is_address(__u64 address)
{
	return address >= 4096 && !(address >> STACK_FRAME_KIND_SHIFT);
}

/* --- the thread's state --- */

enum { PYTHON_NONE = 0, PYTHON_FOUND = 1, PYTHON_UNREAD = 2 };

/* Is the one that is told of there this thread's? Then walk->read has it. in: as thread_in. */
static __always_inline int python_state_at(struct runtime_walk *walk,
					   const struct runtime_place *place, __u64 pointer,
					   __u64 at, __s32 in)
{
	__u64 state;

	if (RUNTIME_READ(&state, sizeof(state), at))
		return PYTHON_UNREAD;
	if (state && in >= 0 && RUNTIME_READ(&state, sizeof(state), state + (__u32)in))
		return PYTHON_UNREAD;
	if (!state)
		return PYTHON_NONE;
	if (RUNTIME_READ(walk->read, walk->layout.state_read & (RUNTIME_STATE_MAX - 1), state))
		return PYTHON_UNREAD;
	return runtime_read_state(walk, walk->layout.tstate_thread_id) ==
			       pointer + place->thread_id_minus_tp
		       ? PYTHON_FOUND
		       : PYTHON_NONE;
}

/* UNREAD: some place was not there, and no other one has it. */
static __always_inline int python_state_find(struct runtime_walk *walk,
					     const struct runtime_place *place, __u64 pointer)
{
	int missed = PYTHON_NONE, found;

	for (int i = 0; i < 3; i++) {
		const __s64 offset = i == 1 ? place->thread_at : place->other_at;
		const __u64 at = i ? pointer + offset : place->current_at;

		if (i ? !offset : !at)
			continue;
		found = python_state_at(walk, place, pointer, at,
					!i       ? -1
					: i == 1 ? place->thread_in
						 : place->other_in);
		if (found == PYTHON_FOUND)
			return found;
		missed |= found;
	}
	return missed;
}

/* --- the list --- */

/* To the innermost frame. 1: there is none, or the walk has ended. pointer: the thread's. */
static __always_inline int python_walk_begin(struct runtime_walk *walk, __u64 *words,
					     const struct runtime_place *place, __u64 pointer)
{
	int found;

	walk->layout = place->layout;
	walk->count = walk->frames = walk->steps = 0;
	walk->seen = 0;
	walk->seen_until = 2;
	if (!pointer || place->language != RUNTIME_CPYTHON || !walk->layout.frame_read)
		return 1;
	found = python_state_find(walk, place, pointer);
	if (found != PYTHON_FOUND)
		return found == PYTHON_UNREAD ? runtime_walk_end(walk, words, RUNTIME_END_UNREAD)
					      : 1;
	walk->is_other = place->first_interpreter &&
			 runtime_read_state(walk, walk->layout.tstate_interp) !=
				 place->first_interpreter;
	walk->frame = runtime_read_state(walk, walk->layout.tstate_frame);
	if (walk->frame && walk->layout.cframe_frame != RUNTIME_OFFSET_NONE &&
	    RUNTIME_READ(&walk->frame, sizeof(walk->frame),
			 walk->frame + walk->layout.cframe_frame))
		return runtime_walk_end(walk, words, RUNTIME_END_UNREAD);
	return 0;
}

/* Of the frame that was read. Where it stands at the instruction before the first one, it has not
 * begun. */
static __always_inline __u32 python_position(const struct runtime_walk *walk, __u64 code)
{
	const struct runtime_layout *layout = &walk->layout;
	__s64 position;

	if (layout->flags & RUNTIME_INSTR_IS_POINTER) {
		position = runtime_read_word(walk, layout->frame_instr) - code - layout->code_bytes;
	} else {
		position = (__s32)runtime_read_int(walk, layout->frame_instr);
		if (layout->flags & RUNTIME_INSTR_IS_UNITS)
			position *= 2;
	}
	return position >= 0 && position < RUNTIME_POSITION_NONE ? (__u32)position
								 : RUNTIME_POSITION_NONE;
}

/* What a frame's word has of its code, which is read in place of the frame. */
static __always_inline __u64 python_marks(struct runtime_walk *walk, __u64 code)
{
	const struct runtime_layout *layout = &walk->layout;
	const __u32 from = layout->code_from;
	__u32 flags;
	__u16 cookie;

	if (RUNTIME_READ(walk->read, layout->code_read, code + from))
		return 0;
	flags = runtime_read_int(walk, layout->code_flags - from);
	cookie = runtime_cookie(runtime_read_int(walk, layout->code_argcount - from),
				runtime_read_int(walk, layout->code_kwonly - from), flags,
				runtime_read_int(walk, layout->code_firstline - from),
				runtime_texts(runtime_read_word(walk, layout->code_name - from),
					      runtime_read_word(walk, layout->code_filename - from),
					      runtime_read_word(walk, layout->code_lines - from)));
	return (__u64)cookie << 32 |
	       (runtime_code_is_generator(flags) ? RUNTIME_FRAME_GENERATOR : 0);
}

/* Of the frame that was read and is to be shown. Returns why the list ends, or 0. */
static __always_inline int python_walk_frame(struct runtime_walk *walk, __u64 *words, int is_entry)
{
	/* 3.14 has tags in its lowest bits. */
	const __u64 code = runtime_read_word(walk, walk->layout.frame_code) & ~7ULL;
	__u32 position;

	if (walk->frames >= walk->limit)
		return RUNTIME_END_CUT;
	if (!runtime_is_address(code))
		return RUNTIME_END_WRONG;
	position = python_position(walk, code);
	walk->frames++;
	runtime_walk_add(walk, words, runtime_frame_code(code));
	runtime_walk_add(walk, words,
			 runtime_frame_place(position, 0, is_entry) | python_marks(walk, code));
	return 0;
}

/* A list that leads back into itself comes by at the frame that is remembered, which is twice as
 * far each time (Brent's algorithm). */
static __always_inline int python_walk_is_loop(struct runtime_walk *walk)
{
	if (walk->frame == walk->seen)
		return 1;
	if (walk->steps == walk->seen_until) {
		walk->seen = walk->frame;
		walk->seen_until *= 2;
	}
	return 0;
}

/* One frame, or one that stands for an entry. Returns why the list ends, or 0. */
static __always_inline int python_walk_next(struct runtime_walk *walk, __u64 *words)
{
	const struct runtime_layout *layout = &walk->layout;
	const __u64 frame = walk->frame;
	int is_entry;
	__u8 entry;

	if (!runtime_is_address(frame))
		return RUNTIME_END_WRONG;
	if (walk->steps++ >= walk->limit * RUNTIME_STEPS_A_FRAME)
		return RUNTIME_END_CUT;
	if (python_walk_is_loop(walk))
		return RUNTIME_END_LOOP;
	if (RUNTIME_READ(walk->read, layout->frame_read, frame))
		return RUNTIME_END_UNREAD;
	walk->frame = runtime_read_word(walk, layout->frame_previous);
	entry = runtime_read_byte(walk, layout->frame_entry);
	if (layout->flags & RUNTIME_ENTRY_IS_SHIM) {
		if (entry >= layout->entry_value)
			return runtime_walk_entry(walk, words);
		is_entry = 0;
	} else {
		is_entry = layout->frame_entry == RUNTIME_OFFSET_NONE ||
			   entry == layout->entry_value;
	}
	return python_walk_frame(walk, words, is_entry);
}

/* 1: the walk has ended. */
static __always_inline int python_walk_step(struct runtime_walk *walk, __u64 *words)
{
	const int why = walk->frame      ? python_walk_next(walk, words)
			: walk->is_other ? RUNTIME_END_OTHER
					 : 0;

	if (why)
		return runtime_walk_end(walk, words, why);
	return !walk->frame && !walk->is_other;
}

#endif
