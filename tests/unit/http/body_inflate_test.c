/* SPDX-License-Identifier: Apache-2.0 */
/* Truth: what was compressed by zlib, and zlib's own verdict about damaged bytes. */
#include "symbol-server/http/body_inflate.h"

#include <string.h>

#include "common/gzip.h"
#include "tests/check.h"

enum { LENGTH = 100000 };

static uint8_t plain[LENGTH];
static unsigned disagreements;

static void fill(void)
{
	uint32_t state = 1;

	for (size_t i = 0; i < LENGTH; i++) {
		state = state * 1664525 + 1013904223;
		plain[i] = (uint8_t)(i % 3 ? state >> 28 : i >> 8);
	}
}

static struct buffer packed(size_t length)
{
	struct buffer out;

	buffer_init(&out, 1 << 20);
	CHECK(gzip_compress(plain, length, 6, &out, NULL));
	return out;
}

/* The verdict and the bytes are zlib's, whatever the input. */
static void agree(const uint8_t *bytes, size_t length, size_t limit)
{
	struct buffer ours, zlib;
	struct error our_error = {0}, zlib_error = {0};
	bool ok, wanted;

	buffer_init(&ours, limit);
	buffer_init(&zlib, limit);
	ok = body_inflate((struct bytes){bytes, length}, &ours, &our_error);
	wanted = gzip_inflate(bytes, length, &zlib, &zlib_error);
	disagreements += ok != wanted || our_error.kind != zlib_error.kind;
	disagreements += ok && (ours.length != zlib.length ||
				memcmp(ours.bytes, zlib.bytes, ours.length));
	buffer_release(&ours);
	buffer_release(&zlib);
}

static void test_whole(void)
{
	static const size_t lengths[] = {1, 100, 4096, 70000, LENGTH};

	for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
		struct buffer bytes = packed(lengths[i]), out;

		buffer_init(&out, lengths[i]); /* exactly at the limit */
		CHECK(body_inflate((struct bytes){bytes.bytes, bytes.length}, &out, NULL));
		CHECK(out.length == lengths[i] && !memcmp(out.bytes, plain, out.length));
		buffer_release(&out);
		agree(bytes.bytes, bytes.length, lengths[i] - 1);
		buffer_release(&bytes);
	}
}

static void test_members(void)
{
	struct buffer bytes = packed(70000), second = packed(11), out;

	buffer_append(&bytes, second.bytes, second.length);
	buffer_init(&out, 1 << 20);
	CHECK(body_inflate((struct bytes){bytes.bytes, bytes.length}, &out, NULL));
	CHECK(out.length == 70011 && !memcmp(out.bytes + 70000, plain, 11));
	agree(bytes.bytes, bytes.length, 70005);
	buffer_append(&bytes, "tail", 4);
	agree(bytes.bytes, bytes.length, 1 << 20);
	buffer_release(&bytes);
	buffer_release(&second);
	buffer_release(&out);
}

static void test_damaged(void)
{
	struct buffer bytes = packed(5000);

	agree(NULL, 0, 1 << 20);
	for (size_t i = 0; i < bytes.length; i++)
		agree(bytes.bytes, i, 1 << 20);
	for (size_t i = 0; i < bytes.length; i++) {
		/* zlib does not look at these: time, extra flags, system. */
		if (i >= 4 && i < 10)
			continue;
		bytes.bytes[i] ^= 0x10;
		agree(bytes.bytes, bytes.length, 1 << 20);
		bytes.bytes[i] ^= 0x10;
	}
	memset(bytes.bytes + bytes.length - 4, 0xff, 4); /* 4 GiB announced */
	agree(bytes.bytes, bytes.length, 1 << 20);
	buffer_release(&bytes);
}

int main(void)
{
	fill();
	test_whole();
	test_members();
	test_damaged();
	CHECK(!disagreements);
	return checks_done();
}
