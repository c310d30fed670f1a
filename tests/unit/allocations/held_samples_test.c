/* SPDX-License-Identifier: Apache-2.0 */
/* Samples held back: copies, in the order they came, within their two limits; thinned, those that
 * are left stand for all; what they hold is given back to the byte; and a thread's context is
 * theirs. */
#include "tests/check.h"

#include <string.h>

#include "bpf/thread_context.h"
#include "node-agent/allocations/held_samples.h"

enum { FRAMES = 3, ROOM = 1 << 20 };

static const struct sample_event *sample_of(uint64_t value)
{
	static uint64_t room[64];
	struct sample_event *sample = (struct sample_event *)room;

	memset(room, 0, sizeof room);
	sample->alloc.bytes = value;
	sample->user_count = FRAMES;
	sample->size = sample_event_frames_end(sample);
	sample->frames[FRAMES - 1] = value + 1;
	return sample;
}

static void fill(struct held_samples *held, unsigned count, uint64_t *bytes)
{
	bool is_held = true;

	for (unsigned i = 0; i < count; i++)
		is_held &= held_add(held, sample_of(i), i % FRAMES, bytes, ROOM);
	CHECK(is_held);
}

static void test_copies(void)
{
	struct held_samples held = {0};
	uint64_t bytes = 0;

	fill(&held, 5, &bytes);
	CHECK(held.count == 5 && held.part == 1);
	for (unsigned i = 0; i < 5; i++)
		CHECK(held.items[i]->alloc.bytes == i && held.items[i]->frames[FRAMES - 1] == i + 1 &&
		      held.walked[i] == i % FRAMES);
	held_free(&held, &bytes);
	CHECK(bytes == 0 && held.count == 0 && !held.items && !held.walked);
}

/* What a copy says to have behind its frames it has: nobody reads on behind it. */
static void test_context(void)
{
	enum { CONTEXT = THREAD_CONTEXT_HEADER + 12 };
	struct held_samples held = {0};
	uint64_t room[512] = {0}, bytes = 0;
	struct sample_event *sample = (struct sample_event *)room;
	struct thread_context *context = (void *)&sample->frames[FRAMES];
	const struct thread_context *kept;
	uint32_t length;

	sample->user_count = FRAMES;
	sample->flags = SAMPLE_HAS_CONTEXT;
	sample->size = sample_event_frames_end(sample) + CONTEXT;
	context->valid = THREAD_CONTEXT_LABELS;
	memset(context->attributes, 'a', CONTEXT - THREAD_CONTEXT_HEADER);
	CHECK(held_add(&held, sample, 0, &bytes, ROOM));
	kept = sample_event_context(held.items[0], &length);
	CHECK_NUMBER(length, CONTEXT);
	CHECK(kept && !memcmp(kept, context, length));

	sample->size += THREAD_CONTEXT_MAX; /* of no kernel side that there is */
	CHECK(held_add(&held, sample, 0, &bytes, ROOM));
	CHECK(!sample_event_context(held.items[1], &length));
	CHECK_NUMBER(held.items[1]->size, sample_event_frames_end(sample));
	held_free(&held, &bytes);
	CHECK(bytes == 0);
}

static void test_limits(void)
{
	struct held_samples held = {0}, other = {0};
	uint64_t bytes = 0;

	fill(&held, HELD_MAX, &bytes);
	CHECK(!held_add(&held, sample_of(1), 0, &bytes, ROOM));
	CHECK(!held_add(&other, sample_of(1), 0, &bytes, bytes));
	CHECK(held_add(&other, sample_of(1), 0, &bytes, ROOM) && other.count == 1);
	held_free(&held, &bytes);
	held_free(&other, &bytes);
	CHECK(bytes == 0);
}

static void test_thinned(void)
{
	for (unsigned count = 0; count <= HELD_MAX; count += 73)
		for (unsigned kept = 0; kept < 40; kept += 13) {
			struct held_samples held = {0};
			uint64_t bytes = 0;
			bool is_in_order = true;
			double all;

			fill(&held, count, &bytes);
			held_thin(&held, kept, &bytes);
			CHECK(held.count <= kept && (held.count > 0) == (kept && count));
			all = held.part * (double)held.count;
			CHECK(!held.count || (all > count - 0.001 && all < count + 0.001));
			for (size_t i = 1; i < held.count; i++)
				is_in_order &= held.items[i]->alloc.bytes > held.items[i - 1]->alloc.bytes;
			CHECK(is_in_order);
			held_free(&held, &bytes);
			CHECK(bytes == 0);
		}
}

int main(void)
{
	test_copies();
	test_context();
	test_limits();
	test_thinned();
	return checks_done();
}
