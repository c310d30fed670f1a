/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* A stack as samples have it: words, leaf first, the kernel's part and then the program's. Whoever
 * looks into one, or makes one, does it by what stands here.
 *
 * The kernel's frames are addresses. A frame of the program begins with a word whose top byte is
 * its kind; a native one's other bytes are the address, and it has no more words. HotSpot's frames
 * stand among those. Frames that an interpreter keeps in lists of its own come behind them, leaf
 * first as well: bpf/runtime_frames.h says what their words are. */
#ifndef BPF_FRAMES_H
#define BPF_FRAMES_H

#include "bpf/events.h"

enum stack_frame_kind {
	STACK_FRAME_NATIVE,          /* one word */
	STACK_FRAME_PYTHON = 1,      /* two */
	STACK_FRAME_RUNTIME_END = 2, /* one: the list ends before its end */
	/* two, among the native ones: bpf/hotspot_frames.h */
	STACK_FRAME_JAVA_COMPILED = 3,
	STACK_FRAME_JAVA_INTERPRETED = 4,
	STACK_FRAME_JAVA_STUB = 5,
};

enum { STACK_FRAME_KIND_SHIFT = 56 }; /* x86-64's user addresses have 56 bits, arm64's fewer */

static inline __u8 stack_frame_kind(__u64 word)
{
	return word >> STACK_FRAME_KIND_SHIFT;
}

static inline __u64 stack_frame_address(__u64 word)
{
	return word & ((1ULL << STACK_FRAME_KIND_SHIFT) - 1);
}

static inline int stack_frame_is_java(__u64 word)
{
	return stack_frame_kind(word) >= STACK_FRAME_JAVA_COMPILED &&
	       stack_frame_kind(word) <= STACK_FRAME_JAVA_STUB;
}

/* Words of the frame that begins with this one. */
static inline __u32 stack_frame_words(__u64 word)
{
	return stack_frame_kind(word) == STACK_FRAME_PYTHON || stack_frame_is_java(word) ? 2 : 1;
}

/* The word of a native frame. What has more bits is no user address, whoever says it. */
static inline __u64 stack_frame_native(__u64 address)
{
	return stack_frame_address(address) | (__u64)STACK_FRAME_NATIVE << STACK_FRAME_KIND_SHIFT;
}

/* Of all three parts. */
static inline __u32 sample_event_words(const struct sample_event *sample)
{
	return (__u32)sample->kernel_count + sample->user_count + sample->runtime_count;
}

/* Bytes of a record with so many words. */
static inline __u64 sample_event_bytes(__u64 words)
{
	return sizeof(struct sample_event) + words * sizeof(__u64);
}

/* Bytes of the record and its frames, without what may follow them. */
static inline __u32 sample_event_frames_end(const struct sample_event *sample)
{
	return (__u32)sample_event_bytes(sample_event_words(sample));
}

#if !defined(__bpf__)
#include <stdint.h>
#include <string.h>

static inline const uint64_t *sample_kernel_frames(const struct sample_event *sample)
{
	return (const uint64_t *)sample->frames;
}

static inline const uint64_t *sample_user_frames(const struct sample_event *sample)
{
	return sample_kernel_frames(sample) + sample->kernel_count;
}

/* What the interpreter's own list has, runtime_count words. */
static inline const uint64_t *sample_runtime_frames(const struct sample_event *sample)
{
	return sample_user_frames(sample) + sample->user_count;
}

/* Where among count words the frame after the one at `at` begins; count: there is none. */
static inline uint32_t stack_frame_next(const uint64_t *frames, uint32_t count, uint32_t at)
{
	const uint32_t words = stack_frame_words(frames[at]);

	return count - at > words ? at + words : count;
}

/* How many frames so many words are. */
static inline uint32_t stack_frame_count(const uint64_t *frames, uint32_t count)
{
	uint32_t number = 0;

	for (uint32_t at = 0; at < count; at = stack_frame_next(frames, count, at))
		number++;
	return number;
}

/* Where the outermost of count words' frames begins. count: 1 and more. */
static inline uint32_t stack_frame_last(const uint64_t *frames, uint32_t count)
{
	uint32_t last = 0;

	for (uint32_t at = 0; at < count; at = stack_frame_next(frames, count, at))
		last = at;
	return last;
}

/* The record has room for it. The interpreter's frames stay behind it; what follows those is to be
 * added afterwards. */
static inline void sample_event_add_native(struct sample_event *sample, uint64_t address)
{
	uint64_t *to = (uint64_t *)sample_runtime_frames(sample);

	memmove(to + 1, to, sample->runtime_count * sizeof *to);
	*to = stack_frame_native(address);
	sample->user_count++;
	sample->size = sample_event_frames_end(sample);
}
#endif

#endif
