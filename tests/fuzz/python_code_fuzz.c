/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes are a version of CPython, or a description of its own, and memory at BASE, where a code
 * object is. */
#include "node-agent/runtimes/python_code.h"

#include <string.h>

#include "bpf/runtime_frames.h"
#include "tests/fuzz/fuzz.h"

enum { BASE = 0x10000 };

struct image {
	const uint8_t *bytes;
	size_t length;
};

static bool read_image(void *context, uint64_t address, void *to, size_t bytes)
{
	const struct image *image = context;

	if (address < BASE || address - BASE > image->length ||
	    bytes > image->length - (address - BASE))
		return false;
	memcpy(to, image->bytes + (address - BASE), bytes);
	return true;
}

static uint32_t member(const struct image *image, uint16_t at)
{
	uint32_t value = 0;

	if (at + sizeof value <= image->length)
		memcpy(&value, image->bytes + at, sizeof value);
	return value;
}

static void fuzz_one(const uint8_t *bytes, size_t length)
{
	struct python_layout layout;
	struct python_code *code;

	if (length < 1)
		return;
	struct image image = {bytes + 1, length - 1};
	const struct python_memory memory = {read_image, &image};
	if (!python_layout_find((0x0306U + bytes[0]) << 16, &layout) &&
	    !python_layout_decode(image.bytes, image.length, &layout))
		return;
	const uint16_t cookie = runtime_cookie(
		member(&image, layout.code_argcount), member(&image, layout.code_kwonly),
		member(&image, layout.code_flags), member(&image, layout.code_firstline));
	if (python_code_read(&memory, &layout, BASE, cookie, &code) != PYTHON_CODE_READ)
		return;
	if (strlen(code->name) > PYTHON_NAME_BYTES || strlen(code->file) > PYTHON_NAME_BYTES ||
	    code->lines_bytes > PYTHON_LINES_BYTES || python_code_line(code, 8) > INT32_MAX)
		abort();
	free(code);
}
