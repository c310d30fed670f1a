/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* An address in a JVM's code cache → the CodeBlob that it lies in, through the heap's segment map,
 * whose bytes say how far back a block begins; all of it is the process' memory, which may say
 * anything. */
#ifndef BPF_HOTSPOT_BLOB_BPF_H
#define BPF_HOTSPOT_BLOB_BPF_H

#include "bpf/hotspot_code.bpf.h"
#include "bpf/stack_registers.bpf.h"

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
#define HOTSPOT_NAME_ADAPTERS    0x204932432f433249ULL

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

#endif
