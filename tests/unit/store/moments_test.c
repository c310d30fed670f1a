/* SPDX-License-Identifier: Apache-2.0 */
/* Times of single samples as bytes: what goes in comes out, in order of time, and bytes that are
 * something else are refused. */
#include "symbol-server/store/sqlite/cells/moments.h"

#include <stdlib.h>
#include <string.h>

#include "tests/check.h"

enum { COUNT = 2000 };

struct kept {
	struct moment moments[COUNT + 1];
	size_t count, stop_after;
};

static bool keep(void *context, const struct moment *moment)
{
	struct kept *kept = context;

	kept->moments[kept->count++] = *moment;
	return kept->count != kept->stop_after && kept->count <= COUNT;
}

static int by_all(const void *a, const void *b)
{
	const struct moment *x = a, *y = b;

	if (x->time_ms != y->time_ms)
		return x->time_ms < y->time_ms ? -1 : 1;
	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	if (x->stack != y->stack)
		return x->stack < y->stack ? -1 : 1;
	return (x->value > y->value) - (x->value < y->value);
}

static bool are_equal(const struct moment *a, const struct moment *b)
{
	for (int i = 0; i < COUNT; i++)
		if (by_all(&a[i], &b[i]))
			return false;
	return true;
}

static uint32_t any(uint32_t below)
{
	return (uint32_t)((uint64_t)lrand48() * below >> 31);
}

static void test_round_trip(void)
{
	static struct moment in[COUNT];
	static struct kept raw, packed;
	struct buffer bytes;

	raw.count = packed.count = 0;
	buffer_init(&bytes, 1 << 20);
	for (int i = 0; i < COUNT; i++) {
		in[i] = (struct moment){any(MOMENT_SPAN_MS), any(30), any(100000), 52631578};
		if (i % 17 == 0)
			in[i].value = (uint64_t)lrand48() << 20;
		if (i % 19 == 0)
			in[i].stack = in[i].thread = UINT32_MAX - any(2);
		moment_encode_raw(&in[i], &bytes);
	}
	CHECK(moments_each_raw(bytes.bytes, bytes.length, keep, &raw));
	CHECK_NUMBER(raw.count, COUNT);
	CHECK(are_equal(raw.moments, in));
	buffer_clear(&bytes);
	moments_encode(in, COUNT, &bytes);
	CHECK(moments_each(bytes.bytes, bytes.length, keep, &packed));
	CHECK_NUMBER(packed.count, COUNT);
	for (int i = 1; i < COUNT; i++)
		if (packed.moments[i - 1].time_ms > packed.moments[i].time_ms)
			CHECK(!"in order of time");
	qsort(raw.moments, COUNT, sizeof *in, by_all);
	qsort(packed.moments, COUNT, sizeof *in, by_all);
	CHECK(are_equal(raw.moments, packed.moments));
	buffer_release(&bytes);
}

static void test_refusals(void)
{
	struct moment pair[2] = {{5, 1, 2, 10}, {9, 1, 3, 11}};
	static struct kept kept;
	struct buffer bytes;

	buffer_init(&bytes, 4096);
	moments_encode(pair, 2, &bytes);
	for (size_t length = 0; length < bytes.length; length++) {
		kept = (struct kept){0};
		if (moments_each(bytes.bytes, length, keep, &kept))
			CHECK(kept.count < 2); /* whole ones of a cut run, never more */
	}
	kept = (struct kept){.stop_after = 1};
	CHECK(!moments_each(bytes.bytes, bytes.length, keep, &kept));
	CHECK_NUMBER(kept.count, 1);
	/* the second one before the first one's thread 0; beyond the longest report */
	kept = (struct kept){0};
	CHECK(!moments_each((const uint8_t *)"\x01\x05\x01\x02", 4, keep, &kept));
	CHECK(!moments_each((const uint8_t *)"\x01\xff\xff\xff\x01\x00\x00", 7, keep, &kept));
	CHECK(!moments_each_raw((const uint8_t *)"\xff\xff\xff\x01\x00\x01\x01", 7, keep, &kept));
	CHECK_NUMBER(kept.count, 0);
	buffer_release(&bytes);
}

int main(void)
{
	srand48(7);
	for (int i = 0; i < 20; i++)
		test_round_trip();
	test_refusals();
	return checks_done();
}
