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

#include "bpf/hotspot_blob.bpf.h"
#include "bpf/stack_guess.bpf.h"

/* Whoever can guess may go on: its frame is stored, and its caller is not known. */
enum { HOTSPOT_UNTOLD = 2 };

enum {
	HOTSPOT_RAX = 0,
	HOTSPOT_RBX = 3,
	HOTSPOT_R13 = 13,
	HOTSPOT_CODE_BEFORE = 16,
	HOTSPOT_BCI_MAX = 65535,
};

/* --- words --- */

/* The last frame, which was stored as a native one, is one of HotSpot's. */
static __always_inline int hotspot_add(struct stack_walk *walk, __u64 *frames,
				       enum stack_frame_kind kind, __u64 word, __u64 pointer)
{
	__u64 at = (__u64)walk->first + walk->count - 1; /* 64 bits: as in stack_walk_add() */

	__asm__ volatile("" : "+r"(at)); /* 5.10 has to see both words go by what is checked */
	if (walk->count >= walk->limit || at >= STACK_FRAMES_ROOM - 1)
		return stack_walk_end(walk, WALK_too_deep);
	frames += at;
	frames[0] = hotspot_word(kind, word);
	frames[1] = pointer;
	walk->count++;
	return 0;
}

/* The address that its last word has. */
static __always_inline __u64 hotspot_added(const struct stack_walk *walk, const __u64 *frames)
{
	__u64 at = (__u64)walk->first + walk->count - 1;

	return at < STACK_FRAMES_ROOM ? stack_frame_address(frames[at]) : 0;
}

static __always_inline int hotspot_caller(struct stack_walk *walk, __u64 *frames, __u64 address,
					  __u64 sp, __u64 fp)
{
	walk->fp = fp;
	walk->known |= 1ULL << UNWIND_REGISTER_FP;
	stack_walk_keep(walk, 0);
	return stack_walk_caller(walk, frames, address, sp, 0);
}

/* Is it a return address of HotSpot's code? What the interpreter calls is told to come back to ways
 * of their own, which follow no call. */
static __always_inline int hotspot_is_called(const struct hotspot_walk *java,
					     const struct hotspot_place *place, __u64 address)
{
	return hotspot_has(java, address) &&
	       (address - place->interpreter.low < place->interpreter.entries ||
		stack_guess_follows_call(address));
}

/* Does a call of the interrupted stub end there, `call rel32` into its blob? */
static __always_inline int hotspot_calls_it(const struct stack_walk *walk,
					    const struct hotspot_walk *java, __u64 address)
{
	const __u64 code = stack_guess_code_before(address);
	const __u64 into = address + (__u64)(__s64)(__s32)(code >> 32);

	return (code >> 24 & 0xff) == 0xe8 && into >= java->blob && into <= walk->ip;
}

static __always_inline int hotspot_code_read(const struct stack_walk *walk,
					     struct hotspot_walk *java)
{
	return STACK_WALK_READ(&java->code, sizeof(java->code), walk->ip - HOTSPOT_CODE_BEFORE) !=
	       0;
}

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
	if (words >= 2 && words <= HOTSPOT_FRAME_WORDS_MAX) {
		if (walk->is_interrupted)
			state = hotspot_state_of(
				&java->code, walk->ip == hotspot_code_begin(java, &place->layout));
		ended = hotspot_pop(walk, java, frames, state, (__u32)words);
		walk->is_guessed |= state != HOTSPOT_FRAMED || ended == HOTSPOT_UNTOLD;
	} else if (walk->is_interrupted) {
		ended = hotspot_frameless(walk, java, place, frames);
	}
	return ended == HOTSPOT_UNTOLD ? hotspot_linked(walk, java, frames) : ended;
}

/* --- interpreted --- */

struct hotspot_activation {
	__u64 method;          /* 0: not known */
	__u64 bcp, now;        /* its bytecode, of which `now` is the better one if it is one */
	__u64 sp, fp, address; /* the caller's */
};

/* Where a method and the bytecode it is at are in memory, as the two words. */
static __always_inline int hotspot_add_method(struct stack_walk *walk, struct hotspot_walk *java,
					      const struct hotspot_walk_layout *layout,
					      __u64 *frames, const struct hotspot_activation *in)
{
	enum { CONST_BYTES = 64 };
	__u16 cookie = 0, code_size;
	__u64 at = 0, bci;

	if (!stack_walk_is_code(in->method) || in->method & 7 ||
	    STACK_WALK_READ(&at, sizeof(at), in->method + layout->method_const))
		return stack_walk_end(walk, WALK_bad_frame);
	bci = in->now - at - layout->const_size;
	if (STACK_WALK_READ(java->read, CONST_BYTES, at)) {
		bci = 0;
	} else {
		code_size = hotspot_read_short(java, layout->const_code_size);
		if (bci >= code_size)
			bci = in->bcp - at - layout->const_size;
		cookie = hotspot_cookie(hotspot_read_word(java, layout->const_constants), code_size,
					hotspot_read_short(java, layout->const_name_index),
					hotspot_read_short(java, layout->const_signature_index));
		if (bci >= code_size)
			bci = 0;
	}
	return hotspot_add(walk, frames, STACK_FRAME_JAVA_INTERPRETED, cookie,
			   hotspot_pointer_word(in->method, (__u16)bci));
}

/* A word of the frame, if it is there already. */
static __always_inline int hotspot_slot(const struct stack_walk *walk, __s32 slot, __u64 *word)
{
	const __u64 at = walk->fp + (__u64)(8 * (__s64)slot);

	return at < walk->sp || STACK_WALK_WORD(walk, word, at);
}

/* The frame that the frame pointer leads to. What is not in it yet is in registers. 1: the walk has
 * ended. */
static __always_inline int hotspot_framed(struct stack_walk *walk,
					  const struct hotspot_walk_layout *layout,
					  struct hotspot_activation *out)
{
	if (!stack_walk_knows(walk, UNWIND_REGISTER_FP))
		return stack_walk_end(walk, WALK_register_unknown);
	if (walk->fp & 7 || walk->fp < walk->sp || walk->fp - walk->sp > STACK_FRAME_BYTES_MAX)
		return stack_walk_end(walk, WALK_bad_frame);
	out->bcp = 0;
	if (hotspot_slot(walk, layout->slot_bcp, &out->bcp))
		out->bcp = 0;
	if (hotspot_slot(walk, layout->slot_method, &out->method))
		out->method = walk->known >> HOTSPOT_RBX & 1 ? walk->registers[HOTSPOT_RBX] : 0;
	if (hotspot_slot(walk, layout->slot_sender_sp, &out->sp))
		out->sp = walk->known >> HOTSPOT_R13 & 1 ? walk->registers[HOTSPOT_R13] : 0;
	if (STACK_WALK_WORD(walk, &out->fp, walk->fp) ||
	    STACK_WALK_WORD(walk, &out->address, walk->fp + 8))
		return stack_walk_end(walk, WALK_read_fault);
	return 0;
}

/* The way in that the instruction is in. */
static __always_inline __u32 hotspot_way(const struct hotspot_interpreter *interpreter, __u32 at)
{
	__u32 way = 0;

	for (__u32 step = HOTSPOT_ENTRIES_MAX / 2; step; step /= 2) {
		__u32 next = (way + step) & (HOTSPOT_ENTRIES_MAX - 1);

		if (way + step < interpreter->entry_count && interpreter->ways[next].begin <= at)
			way = next;
	}
	return way & (HOTSPOT_ENTRIES_MAX - 1);
}

/* Is it in a way in, before the frame is made? */
static __always_inline int hotspot_is_entering(const struct stack_walk *walk,
					       const struct hotspot_interpreter *interpreter)
{
	const __u32 at = (__u32)(walk->ip - interpreter->low);

	return interpreter->low && walk->ip - interpreter->low < interpreter->templates &&
	       at >= interpreter->entries &&
	       at <= interpreter->ways[hotspot_way(interpreter, at)].framed;
}

/* The frame is gone, or has not been there. 0: that is so; HOTSPOT_UNTOLD: it is not. */
static __always_inline int hotspot_left(const struct stack_walk *walk,
					const struct hotspot_walk *java,
					const struct hotspot_walk_layout *layout, int is_framed,
					struct hotspot_activation *out)
{
	struct hotspot_leaving leaving;

	if (!hotspot_leaving_of(&java->code, is_framed, &leaving))
		return HOTSPOT_UNTOLD;
	out->sp = leaving.sp < 0 ? walk->sp : walk->registers[leaving.sp & 15];
	out->fp = walk->fp;
	if (leaving.address >= 0)
		out->address = walk->registers[leaving.address & 15];
	else if (STACK_WALK_WORD(walk, &out->address, walk->sp))
		return HOTSPOT_UNTOLD;
	if (is_framed && leaving.popped &&
	    STACK_WALK_WORD(walk, &out->method,
			    walk->sp - (__u32)leaving.popped +
				    (__u64)(8 * (__s64)layout->slot_method)))
		out->method = 0;
	return 0;
}

/* In a way in: the method is in a register, so is the caller's stack pointer, and the return
 * address, when it is not on top. */
static __always_inline int hotspot_entering(const struct stack_walk *walk,
					    const struct hotspot_walk *java,
					    const struct hotspot_place *place,
					    struct hotspot_activation *out)
{
	out->method = walk->registers[HOTSPOT_RBX];
	if (!hotspot_left(walk, java, &place->layout, 0, out))
		return 0;
	out->fp = walk->fp;
	out->sp = walk->registers[HOTSPOT_R13];
	out->address = walk->registers[HOTSPOT_RAX];
	if (hotspot_is_called(java, place, out->address))
		return 0;
	return STACK_WALK_WORD(walk, &out->address, walk->sp) != 0;
}

/* Of the interrupted thread's own frame. 1: the walk has ended. */
static __always_inline int hotspot_innermost(struct stack_walk *walk, struct hotspot_walk *java,
					     const struct hotspot_place *place,
					     struct hotspot_activation *out)
{
	if (hotspot_code_read(walk, java))
		return stack_walk_end(walk, WALK_read_fault);
	if (hotspot_is_entering(walk, &place->interpreter))
		return hotspot_entering(walk, java, place, out)
			       ? stack_walk_end(walk, WALK_read_fault)
			       : 0;
	if (!hotspot_left(walk, java, &place->layout, 1, out))
		return 0;
	if (hotspot_framed(walk, &place->layout, out))
		return 1;
	/* A bytecode's code has in the register where it is; the frame, where the last call was. */
	if (walk->known >> HOTSPOT_R13 & 1)
		out->now = walk->registers[HOTSPOT_R13];
	return 0;
}

/* What a way in calls before its frame is made, as mathematics: the return address is near. */
static __always_inline int hotspot_called_entering(struct stack_walk *walk,
						   const struct hotspot_walk *java,
						   const struct hotspot_place *place, __u64 *frames)
{
	__u64 address = 0;

	walk->is_guessed = 1;
	HOTSPOT_UNROLL
	for (__u32 i = 0; i < 3; i++)
		if (!STACK_WALK_WORD(walk, &address, walk->sp + 8 * i) &&
		    hotspot_is_called(java, place, address))
			return hotspot_caller(walk, frames, address, walk->sp + 8 * i + 8,
					      walk->fp);
	return stack_walk_end(walk, WALK_java_state);
}

static __always_inline int hotspot_interpreted(struct stack_walk *walk, struct hotspot_walk *java,
					       const struct hotspot_place *place, __u64 *frames)
{
	struct hotspot_activation in = {};

	if (!walk->is_interrupted && hotspot_is_entering(walk, &place->interpreter))
		return hotspot_called_entering(walk, java, place, frames);
	if (walk->is_interrupted ? hotspot_innermost(walk, java, place, &in)
				 : hotspot_framed(walk, &place->layout, &in))
		return 1;
	if (in.method && hotspot_add_method(walk, java, &place->layout, frames, &in))
		return 1;
	if (!hotspot_has(java, in.address) || in.sp <= walk->sp - 8 ||
	    in.sp - walk->sp > STACK_FRAME_BYTES_MAX)
		return stack_walk_end(walk, WALK_bad_frame);
	return hotspot_caller(walk, frames, in.address, in.sp, in.fp);
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
