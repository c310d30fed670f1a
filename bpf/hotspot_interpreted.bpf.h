/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Frames of HotSpot's interpreter: linked by the frame pointer once they are made; an interrupted
 * thread may be on its way into one or out of it. Where things are: cpu/x86/frame_x86.hpp,
 * templateInterpreterGenerator_x86.cpp. */
#ifndef BPF_HOTSPOT_INTERPRETED_BPF_H
#define BPF_HOTSPOT_INTERPRETED_BPF_H

#include "bpf/hotspot_blob.bpf.h"

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

#endif
