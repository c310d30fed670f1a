/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* One frame of HotSpot's, by what it says of its own code: compiled methods have frames of a known
 * size, interpreted ones a frame pointer. For the kernel and, as bpf/stack_walk.bpf.h, for user
 * space, which finishes copied stacks.
 *
 *	if (hotspot_has(java, walk->ip))
 *		hotspot_step(walk, java, place, frames);  // 0, 1, or HOTSPOT_UNTOLD
 *
 * x86-64. arm64's frames are laid out in another way, and stay code without unwind rows. */
#ifndef BPF_HOTSPOT_WALK_BPF_H
#define BPF_HOTSPOT_WALK_BPF_H

#include "bpf/hotspot_interpreted.bpf.h"

/* --- compiled --- */

/* The caller of a frame of so many words. */
static __always_inline int hotspot_pop(struct stack_walk *walk, const struct hotspot_walk *java,
				       __u64 *frames, enum hotspot_state state, __u32 words)
{
	__u64 cfa = walk->sp + 8ULL * words, fp = walk->fp, address;

	if (state == HOTSPOT_FRAMELESS)
		cfa = walk->sp + 8;
	else if (state == HOTSPOT_PUSHED)
		cfa = walk->sp + 16;
	else if (state == HOTSPOT_CALLED)
		cfa += 8;
	if (state != HOTSPOT_FRAMELESS && state != HOTSPOT_UNSAVED &&
	    STACK_WALK_WORD(walk, &fp, cfa - 16))
		return stack_walk_end(walk, WALK_read_fault);
	if (STACK_WALK_WORD(walk, &address, cfa - 8))
		return stack_walk_end(walk, WALK_read_fault);
	if (!hotspot_has(java, address)) /* all of HotSpot's code is called from there */
		return HOTSPOT_UNTOLD;
	return hotspot_caller(walk, frames, address, cfa, fp);
}

/* A caller that is being deoptimized is returned to at its handler; where it was then is kept in
 * its frame. */
static __always_inline int hotspot_deoptimized(struct stack_walk *walk,
					       const struct hotspot_walk *java,
					       const struct hotspot_walk_layout *layout)
{
	__s32 at = (__s32)hotspot_read_int(java, layout->nmethod_orig_pc);
	__u64 address;

	if (walk->ip != hotspot_handler(java, layout, layout->nmethod_deopt_handler) &&
	    walk->ip != hotspot_handler(java, layout, layout->nmethod_deopt_mh_handler))
		return 0;
	if (at < 0 || STACK_WALK_WORD(walk, &address, walk->sp + (__u32)at) ||
	    address - java->blob >= hotspot_read_int(java, layout->blob_size))
		return stack_walk_end(walk, WALK_bad_frame);
	walk->ip = address;
	return 0;
}

/* Some code pushes a word or some more for a moment: the return address is above. */
static __always_inline int hotspot_above(struct stack_walk *walk, const struct hotspot_walk *java,
					 const struct hotspot_place *place, __u64 *frames,
					 __u32 words)
{
	__u64 cfa = walk->sp + 8ULL * words, fp = 0, address = 0;

	walk->is_guessed = 1;
	HOTSPOT_UNROLL
	for (int i = 0; i < 4; i++) {
		cfa += 8;
		if (!STACK_WALK_WORD(walk, &fp, cfa - 16) &&
		    !STACK_WALK_WORD(walk, &address, cfa - 8) &&
		    hotspot_is_called(java, place, address))
			return hotspot_caller(walk, frames, address, cfa, fp);
	}
	return stack_walk_end(walk, WALK_java_state);
}

static __always_inline int hotspot_compiled(struct stack_walk *walk, struct hotspot_walk *java,
					    const struct hotspot_place *place, __u64 *frames)
{
	const struct hotspot_walk_layout *layout = &place->layout;
	const __u32 words = hotspot_read_int(java, layout->blob_frame_size);
	const __u32 id = hotspot_read_int(java, layout->nmethod_compile_id);
	enum hotspot_state state = HOTSPOT_FRAMED;
	__u64 word = hotspot_added(walk, frames);
	int ended;

	if (words > HOTSPOT_FRAME_WORDS_MAX || (words < 2 && !walk->is_interrupted))
		return stack_walk_end(walk, WALK_bad_frame);
	if (words < 2) { /* of method handles: none */
		state = HOTSPOT_FRAMELESS;
	} else if (walk->is_interrupted) {
		const __s64 complete = hotspot_frame_complete(java, layout);
		const __u64 begin = hotspot_code_begin(java, layout);

		if (hotspot_code_read(walk, java))
			return stack_walk_end(walk, WALK_read_fault);
		state = hotspot_state_of(&java->code, (__s64)(walk->ip - begin) < complete);
	} else {
		if (hotspot_deoptimized(walk, java, layout))
			return 1;
		word = walk->ip;
	}
	if (hotspot_add(walk, frames, STACK_FRAME_JAVA_COMPILED, word,
			hotspot_pointer_word(java->blob, (__u16)id)))
		return 1;
	ended = hotspot_pop(walk, java, frames, state, words);
	return ended == HOTSPOT_UNTOLD ? hotspot_above(walk, java, place, frames, words) : ended;
}

/* --- stubs --- */

/* `mov %rsp,%r13` in both encodings comes next. */
static __always_inline int hotspot_is_sender(const struct hotspot_code *code)
{
	return hotspot_next(code, 3) == 0xec8b4c || hotspot_next(code, 3) == 0xe58949;
}

/* Ways from one kind of code into another have no frame: the return address is on top but for a
 * moment, in which they make room for arguments below what they tell the callee is the caller's
 * stack pointer. */
static __always_inline int hotspot_frameless(struct stack_walk *walk,
					     const struct hotspot_walk *java,
					     const struct hotspot_place *place, __u64 *frames)
{
	const __u64 rax = walk->registers[HOTSPOT_RAX], r13 = walk->registers[HOTSPOT_R13];
	const int is_adapter = java->name == HOTSPOT_NAME_ADAPTERS;
	__u64 address = 0, sp = r13;

	if (STACK_WALK_WORD(walk, &address, walk->sp))
		return stack_walk_end(walk, WALK_read_fault);
	if (!is_adapter || address != rax || r13 & 7 || r13 <= walk->sp ||
	    r13 - walk->sp > STACK_FRAME_BYTES_MAX)
		sp = walk->sp + 8;
	if (hotspot_is_called(java, place, address))
		return hotspot_caller(walk, frames, address, sp, walk->fp);
	if (is_adapter && hotspot_is_called(java, place, rax))
		return hotspot_caller(walk, frames, rax,
				      hotspot_is_sender(&java->code) ? walk->sp : r13, walk->fp);
	return HOTSPOT_UNTOLD;
}

/* By the frame pointer, as the way into Java from native code has it, and all that goes out from
 * code without a frame of a known size. An interrupted stub may have none yet: sure is what its own
 * caller says. */
static __always_inline int hotspot_linked(struct stack_walk *walk, const struct hotspot_walk *java,
					  __u64 *frames)
{
	const __u64 fp = walk->fp;
	__u64 caller = 0, address = 0;

	if (!stack_walk_knows(walk, UNWIND_REGISTER_FP))
		return stack_walk_end(walk, WALK_register_unknown);
	if (fp & 7 || fp < walk->sp || fp - walk->sp > STACK_FRAME_BYTES_MAX)
		return HOTSPOT_UNTOLD;
	if (STACK_WALK_WORD(walk, &caller, fp) || STACK_WALK_WORD(walk, &address, fp + 8))
		return stack_walk_end(walk, WALK_read_fault);
	if (!stack_walk_is_code(address) || !stack_guess_follows_call(address) ||
	    (walk->is_interrupted && !hotspot_calls_it(walk, java, address)))
		return HOTSPOT_UNTOLD;
	return hotspot_caller(walk, frames, address, fp + 16, caller);
}

/* Above what an interrupted stub has pushed, or on top: sure is what its own caller says. */
static __always_inline int hotspot_called(struct stack_walk *walk, const struct hotspot_walk *java,
					  __u64 *frames)
{
	__u64 address = 0;

	HOTSPOT_UNROLL
	for (__u32 i = 0; i < 10; i++)
		if (!STACK_WALK_WORD(walk, &address, walk->sp + 8 * i) &&
		    hotspot_has(java, address) && hotspot_calls_it(walk, java, address))
			return hotspot_caller(walk, frames, address, walk->sp + 8 * i + 8,
					      walk->fp);
	return HOTSPOT_UNTOLD;
}

/* Interrupted, of a kind that says nothing of its frame. */
static __always_inline int hotspot_unsized(struct stack_walk *walk, struct hotspot_walk *java,
					   const struct hotspot_place *place, __u64 *frames)
{
	int ended;

	if (java->name == HOTSPOT_NAME_ADAPTERS || java->name == HOTSPOT_NAME_VTABLE ||
	    java->name == HOTSPOT_NAME_HANDLES)
		return hotspot_frameless(walk, java, place, frames);
	ended = hotspot_linked(walk, java, frames);
	return ended == HOTSPOT_UNTOLD ? hotspot_called(walk, java, frames) : ended;
}

/* Where a virtual thread's last frame on the stack returns to when there are more of them in the
 * heap: `mov entry(%r15),%rsp`, which follows no call. Only the newest tell its address. */
static __always_inline int hotspot_is_barrier(__u64 address)
{
	__u64 code = 0;

	return !STACK_WALK_READ(&code, sizeof(code), address) && (code & 0xffffff) == 0xa78b49 &&
	       !stack_guess_follows_call(address);
}

static __always_inline int hotspot_stub(struct stack_walk *walk, struct hotspot_walk *java,
					const struct hotspot_place *place, __u64 *frames)
{
	const __s32 words = (__s32)hotspot_read_int(java, place->layout.blob_frame_size);
	enum hotspot_state state = HOTSPOT_FRAMED;
	int ended = HOTSPOT_UNTOLD;

	if (hotspot_add(walk, frames, STACK_FRAME_JAVA_STUB, hotspot_added(walk, frames),
			hotspot_pointer_word(java->blob, 0)))
		return 1;
	if (walk->is_interrupted && hotspot_code_read(walk, java))
		return stack_walk_end(walk, WALK_read_fault);
	if (words < 2 && !walk->is_interrupted && hotspot_is_barrier(walk->ip))
		return stack_walk_end(walk, WALK_frozen);
	if (words < 2 && walk->is_interrupted)
		return hotspot_unsized(walk, java, place, frames);
	if (words >= 2 && words <= HOTSPOT_FRAME_WORDS_MAX) {
		if (walk->is_interrupted)
			state = hotspot_state_of(
				&java->code, walk->ip == hotspot_code_begin(java, &place->layout));
		ended = hotspot_pop(walk, java, frames, state, (__u32)words);
		walk->is_guessed |= state != HOTSPOT_FRAMED || ended == HOTSPOT_UNTOLD;
	}
	return ended == HOTSPOT_UNTOLD ? hotspot_linked(walk, java, frames) : ended;
}

/* --- all --- */

static __always_inline int hotspot_is_interpreter(const struct hotspot_place *place, __u64 address)
{
	return address - place->interpreter.low < place->interpreter.high - place->interpreter.low;
}

/* The frame at walk->ip, which lies in the code cache. 0: its caller is stored; 1: the walk has
 * ended; HOTSPOT_UNTOLD. */
static __always_inline int hotspot_step(struct stack_walk *walk, struct hotspot_walk *java,
					const struct hotspot_place *place, __u64 *frames)
{
	const __u64 address = walk->ip - !walk->is_interrupted;

	if (place->return_barrier && walk->ip == place->return_barrier)
		return stack_walk_end(walk, WALK_frozen);
	if (hotspot_is_interpreter(place, address))
		return hotspot_interpreted(walk, java, place, frames);
	if (hotspot_blob_read(java, place, address))
		return HOTSPOT_UNTOLD;
	if (java->name == HOTSPOT_NAME_NMETHOD || java->name == HOTSPOT_NAME_NATIVE)
		return hotspot_compiled(walk, java, place, frames);
	if (java->name == HOTSPOT_NAME_INTERPRETER)
		return hotspot_interpreted(walk, java, place, frames);
	return hotspot_stub(walk, java, place, frames);
}

#endif
