/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of one word and of two, and an interpreter's behind the native ones: how a record is gone
 * through. */
#include <stdint.h>

#include "tests/check.h"

#include "bpf/hotspot_frames.h"
#include "bpf/runtime_frames.h"

enum { OTHER = STACK_FRAME_PYTHON };

#define WORD(kind, rest) ((uint64_t)(kind) << STACK_FRAME_KIND_SHIFT | (rest))

static union {
	struct sample_event event;
	uint64_t room[sizeof(struct sample_event) / sizeof(uint64_t) + 8];
} sample;

enum { POSITION = 0x30, COOKIE = 0xfedc };

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

/* Among native ones. */
static void test_java(void)
{
	const uint64_t frames[] = {
		0x1000,
		hotspot_word(STACK_FRAME_JAVA_COMPILED, 0x7fff12345678),
		hotspot_pointer_word(0x7fffabcdef00, 0xfedc),
		hotspot_word(STACK_FRAME_JAVA_STUB, 0x7fff12340000),
		hotspot_pointer_word(0x7fff12340000, 0),
		hotspot_word(STACK_FRAME_JAVA_INTERPRETED, hotspot_cookie(0x7fff00001000, 7, 3, 4)),
		hotspot_pointer_word(0x7fff00002000, 65534),
		0x2000,
	};

	CHECK_NUMBER(stack_frame_next(frames, 8, 0), 1);
	CHECK_NUMBER(stack_frame_next(frames, 8, 1), 3);
	CHECK_NUMBER(stack_frame_next(frames, 8, 3), 5);
	CHECK_NUMBER(stack_frame_next(frames, 8, 5), 7);
	CHECK_NUMBER(stack_frame_last(frames, 8), 7);
	CHECK_NUMBER(stack_frame_last(frames, 7), 5);
	CHECK_NUMBER(stack_frame_address(frames[1]), 0x7fff12345678);
	CHECK_NUMBER(hotspot_frame_pointer(frames[2]), 0x7fffabcdef00);
	CHECK_NUMBER(hotspot_frame_with(frames[2]), 0xfedc);
	CHECK_NUMBER(hotspot_frame_with(frames[6]), 65534);
	CHECK(stack_frame_is_java(frames[5]) && !stack_frame_is_java(frames[7]));
	CHECK(hotspot_cookie(0x1000, 7, 3, 4) != hotspot_cookie(0x1000, 7, 4, 3));
	CHECK(hotspot_cookie(0x1000, 7, 3, 4) != hotspot_cookie(0x2000, 7, 3, 4));
	CHECK(hotspot_cookie(0, 0, 0, 0));
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

static void test_interpreter(void)
{
	const uint64_t frames[] = {runtime_frame_code(0x7000),
				   runtime_frame_place(POSITION, COOKIE, 0),
				   runtime_frame_code(UINT64_MAX),
				   runtime_frame_place(RUNTIME_POSITION_NONE, UINT16_MAX, 1),
				   runtime_frame_end(RUNTIME_END_CUT)};

	CHECK_NUMBER(stack_frame_kind(frames[0]), STACK_FRAME_PYTHON);
	CHECK_NUMBER(stack_frame_address(frames[0]), 0x7000);
	CHECK_NUMBER(runtime_frame_position(frames[1]), POSITION);
	CHECK_NUMBER(runtime_frame_cookie(frames[1]), COOKIE);
	CHECK(!runtime_frame_is_entry(frames[1]));
	CHECK_NUMBER(stack_frame_kind(frames[2]), STACK_FRAME_PYTHON);
	CHECK(runtime_frame_is_entry(frames[3]));
	CHECK_NUMBER(runtime_frame_position(frames[3]), RUNTIME_POSITION_NONE);
	CHECK_NUMBER(runtime_frame_cookie(frames[3]), UINT16_MAX);
	CHECK_NUMBER(stack_frame_next(frames, 5, 2), 4);
	CHECK_NUMBER(stack_frame_next(frames, 5, 4), 5);
	CHECK_NUMBER(stack_frame_kind(frames[4]), STACK_FRAME_RUNTIME_END);
	CHECK_NUMBER(stack_frame_address(frames[4]), RUNTIME_END_CUT);
}

static void test_cookie(void)
{
	static uint32_t seen[65536];
	uint32_t most = 0;

	CHECK(runtime_cookie(1, 0, 3, 10, 0) != runtime_cookie(0, 1, 3, 10, 0));
	CHECK(runtime_cookie(1, 0, 3, 10, 0) != runtime_cookie(1, 0, 3, 11, 0));
	CHECK(runtime_cookie(1, 0, 3, 10, 0) != runtime_cookie(1, 0, 67, 10, 0));
	CHECK(runtime_cookie(1, 0, 3, 10, 0) != runtime_cookie(1, 0, 3, 10, 1));
	CHECK(runtime_cookie(0, 0, 0, 0, 0));
	/* Texts that lie side by side, as those of one object do, take all marks alike. */
	for (uint64_t i = 0; i < 64 * 64 * 16; i++) {
		const uint64_t at = 0x7f1234560000 + i % 64 * 16;
		const uint64_t file = at + (i / 64 % 64) * 16 + 48, lines = file + i / 4096 * 32;
		const uint16_t cookie = runtime_cookie(i % 2, 0, 64 + 3 * (i % 2), 1,
						       runtime_texts(at, file, lines));

		seen[cookie]++;
		most = seen[cookie] > most ? seen[cookie] : most;
	}
	CHECK(most <= 12);
}

/* What is found later of the native part comes before the interpreter's. */
static void test_native_added(void)
{
	uint64_t *frames = (uint64_t *)sample.event.frames;

	memset(&sample, 0, sizeof sample);
	sample.event.kernel_count = 1;
	sample_event_add_native(&sample.event, 0x5000);
	frames[2] = runtime_frame_code(0x7000);
	frames[3] = runtime_frame_place(POSITION, COOKIE, 1);
	sample.event.runtime_count = 2;
	CHECK_NUMBER(sample_event_words(&sample.event), 4);
	sample_event_add_native(&sample.event, 0x6000);
	CHECK_NUMBER(sample_user_frames(&sample.event)[1], 0x6000);
	CHECK(sample_runtime_frames(&sample.event) == frames + 3);
	CHECK_NUMBER(frames[3], runtime_frame_code(0x7000));
	CHECK_NUMBER(frames[4], runtime_frame_place(POSITION, COOKIE, 1));
	CHECK_NUMBER(sample.event.size, sizeof sample.event + 5 * sizeof(uint64_t));
}

int main(void)
{
	test_words();
	test_order();
	test_java();
	test_record();
	test_interpreter();
	test_cookie();
	test_native_added();
	return checks_done();
}
