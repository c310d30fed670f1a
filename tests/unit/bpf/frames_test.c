/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of one word and, as no walk makes them yet, of two: how a record is gone through. */
#include <stdint.h>

#include "tests/check.h"

#include "bpf/frames.h"

enum { OTHER = 1 };

#define WORD(kind, rest) ((uint64_t)(kind) << STACK_FRAME_KIND_SHIFT | (rest))

static union {
	struct sample_event event;
	uint64_t room[sizeof(struct sample_event) / sizeof(uint64_t) + 8];
} sample;

static void test_words(void)
{
	const uint64_t highest = (UINT64_C(1) << STACK_FRAME_KIND_SHIFT) - 1;

	CHECK_NUMBER(stack_frame_native(highest), highest);
	CHECK_NUMBER(stack_frame_kind(stack_frame_native(UINT64_MAX)), STACK_FRAME_NATIVE);
	CHECK_NUMBER(stack_frame_kind(WORD(OTHER, 7)), OTHER);
	CHECK_NUMBER(stack_frame_address(WORD(OTHER, 7)), 7);
}

static void test_order(void)
{
	const uint64_t frames[] = {0x1000, WORD(OTHER, 1), 0x2000, WORD(OTHER, 2), 0x3000, 0x4000};

	CHECK_NUMBER(stack_frame_next(frames, 6, 0), 1);
	CHECK_NUMBER(stack_frame_next(frames, 6, 1), 3);
	CHECK_NUMBER(stack_frame_next(frames, 6, 5), 6);
	CHECK_NUMBER(stack_frame_last(frames, 6), 5);
	CHECK_NUMBER(stack_frame_last(frames, 5), 3);
	CHECK_NUMBER(stack_frame_last(frames, 4), 3); /* cut within: it ends with the record */
	CHECK_NUMBER(stack_frame_next(frames, 4, 3), 4);
	CHECK_NUMBER(stack_frame_last(frames, 1), 0);
}

static void test_record(void)
{
	sample.event.kernel_count = 1;
	sample_event_add_native(&sample.event, 0x5000);
	sample_event_add_native(&sample.event, UINT64_MAX);
	CHECK_NUMBER(sample.event.user_count, 2);
	CHECK_NUMBER(sample.event.size, sizeof sample.event + 3 * sizeof(uint64_t));
	CHECK(sample_kernel_frames(&sample.event) + 1 == sample_user_frames(&sample.event));
	CHECK_NUMBER(sample_user_frames(&sample.event)[0], 0x5000);
	CHECK_NUMBER(stack_frame_last(sample_user_frames(&sample.event), 2), 1);
}

int main(void)
{
	test_words();
	test_order();
	test_record();
	return checks_done();
}
