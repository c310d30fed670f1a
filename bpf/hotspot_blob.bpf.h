/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* An address in a JVM's code cache → the CodeBlob that it lies in, through the heap's segment map,
 * whose bytes say how far back a block begins; all of it is the process' memory, which may say
 * anything. And the words that a step stores. */
#ifndef BPF_HOTSPOT_BLOB_BPF_H
#define BPF_HOTSPOT_BLOB_BPF_H

#include "bpf/hotspot_code.bpf.h"
#include "bpf/stack_guess.bpf.h"

enum {
	/* 254 segments each: blocks of 256 KiB with segments of 64 bytes; the interpreter's, which
	 * is the one that may be larger, is found without */
	HOTSPOT_HOPS_MAX = 16,
	HOTSPOT_SEGMENT_FREE = 0xff,
	HOTSPOT_BLOB_BYTES_MAX = 64 << 20,
	HOTSPOT_FRAME_WORDS_MAX = 1 << 16,
};

/* 5.10 wants no loop whose last instruction is a call, and that is what compilers make of those
 * that begin with a read. */
#if defined(__bpf__)
#define HOTSPOT_UNROLL _Pragma("unroll")
#else
#define HOTSPOT_UNROLL
#endif

/* The first eight bytes of a blob's name. */
#define HOTSPOT_NAME_NMETHOD     0x00646f6874656d6eULL
#define HOTSPOT_NAME_NATIVE      0x6e2065766974616eULL
#define HOTSPOT_NAME_INTERPRETER 0x6572707265746e49ULL
#define HOTSPOT_NAME_ADAPTERS    0x204932432f433249ULL /* I2C/C2I adapters */
#define HOTSPOT_NAME_VTABLE      0x6320656c62617476ULL /* vtable chunks */
#define HOTSPOT_NAME_HANDLES     0x6148646f6874654dULL /* MethodHandles adapters */

static __always_inline int hotspot_has(const struct hotspot_walk *java, __u64 address)
{
	return address - java->low < java->bytes;
}

/* Offsets that do not fit in give some of the other bytes that were read. */
static __always_inline __u64 hotspot_read_word(const struct hotspot_walk *java, __u32 at)
{
	return *(const __u64 *)((const __u8 *)java->read + (at & (HOTSPOT_BLOB_BYTES - 8)));
}

static __always_inline __u32 hotspot_read_int(const struct hotspot_walk *java, __u32 at)
{
	return *(const __u32 *)((const __u8 *)java->read + (at & (HOTSPOT_BLOB_BYTES - 4)));
}

static __always_inline __u16 hotspot_read_short(const struct hotspot_walk *java, __u32 at)
{
	return *(const __u16 *)((const __u8 *)java->read + (at & (HOTSPOT_BLOB_BYTES - 2)));
}

static __always_inline const struct hotspot_heap *hotspot_heap_of(const struct hotspot_place *place,
								  __u64 address)
{
	for (__u32 i = 0; i < HOTSPOT_HEAPS_MAX; i++) {
		const struct hotspot_heap *heap = &place->heaps[i];

		if (address - heap->low < heap->high - heap->low)
			return heap;
	}
	return 0;
}

/* 0: found, as its address. */
static __always_inline int hotspot_blob_find(const struct hotspot_place *place, __u64 address,
					     __u64 *blob)
{
	const struct hotspot_heap *heap = hotspot_heap_of(place, address);
	__u64 segment;
	__u8 back = 0;

	if (!heap)
		return 1;
	segment = (address - heap->low) >> (heap->segment_log2 & 31);
	HOTSPOT_UNROLL
	for (int i = 0; i < HOTSPOT_HOPS_MAX; i++) {
		if (STACK_WALK_READ(&back, sizeof(back), heap->segment_map + segment))
			return 1;
		if (back == 0) {
			*blob = heap->low + (segment << (heap->segment_log2 & 31)) +
				heap->block_header;
			return 0;
		}
		if (back == HOTSPOT_SEGMENT_FREE || back > segment)
			return 1;
		segment -= back;
	}
	return 1;
}

/* Memory may end behind the blob, with a page. */
static __always_inline int hotspot_blob_fetch(struct hotspot_walk *java)
{
	__u64 rest = -java->blob % STACK_PAGE_BYTES;

	if (!STACK_WALK_READ(java->read, HOTSPOT_BLOB_BYTES, java->blob))
		return 0;
	if (rest >= HOTSPOT_BLOB_BYTES)
		return 1;
	__asm__ volatile("" : "+r"(rest)); /* the mask is for the verifier, and stays */
	return STACK_WALK_READ(java->read, rest & (HOTSPOT_BLOB_BYTES - 1), java->blob) != 0;
}

static __always_inline __u64 hotspot_code_begin(const struct hotspot_walk *java,
						const struct hotspot_walk_layout *layout)
{
	if (layout->flags & HOTSPOT_CODE_BEGIN_IS_POINTER)
		return hotspot_read_word(java, layout->blob_code_begin);
	return java->blob + hotspot_read_int(java, layout->blob_code_begin);
}

/* Where in the code the frame is there, or below 0: that is not said. */
static __always_inline __s32 hotspot_frame_complete(const struct hotspot_walk *java,
						    const struct hotspot_walk_layout *layout)
{
	if (layout->flags & HOTSPOT_COMPLETE_IS_SHORT)
		return (__s16)hotspot_read_short(java, layout->blob_frame_complete);
	return (__s32)hotspot_read_int(java, layout->blob_frame_complete);
}

/* A place of the nmethod's code: of its deoptimization handlers. */
static __always_inline __u64 hotspot_handler(const struct hotspot_walk *java,
					     const struct hotspot_walk_layout *layout, __u16 at)
{
	if (at == HOTSPOT_OFFSET_NONE)
		return 0;
	if (layout->flags & HOTSPOT_DEOPT_IS_POINTER)
		return hotspot_read_word(java, at);
	return java->blob + hotspot_read_int(java, at);
}

/* The blob around the address and its beginning, in *java. 0: it is one. */
static __always_inline int hotspot_blob_read(struct hotspot_walk *java,
					     const struct hotspot_place *place, __u64 address)
{
	const struct hotspot_walk_layout *layout = &place->layout;
	__u64 bytes;

	if (hotspot_blob_find(place, address, &java->blob) || hotspot_blob_fetch(java))
		return 1;
	bytes = hotspot_read_int(java, layout->blob_size);
	if (bytes > HOTSPOT_BLOB_BYTES_MAX || address - java->blob >= bytes)
		return 1;
	return STACK_WALK_READ(&java->name, sizeof(java->name),
			       hotspot_read_word(java, layout->blob_name)) != 0;
}

/* --- what a step stores --- */

/* Whoever can guess may go on: its frame is stored, and its caller is not known. */
enum { HOTSPOT_UNTOLD = 2 };

enum {
	HOTSPOT_RAX = 0,
	HOTSPOT_RBX = 3,
	HOTSPOT_R13 = 13,
	HOTSPOT_CODE_BEFORE = 16,
	HOTSPOT_BCI_MAX = 65535,
};

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

#endif
