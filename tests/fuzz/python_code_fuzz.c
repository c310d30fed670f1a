/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes are a version of CPython, or a description of its own, and memory at BASE, where a code
 * object is. */
#include "node-agent/runtimes/python_code.h"
#include "node-agent/runtimes/python_told.h"

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

static uint64_t pointer(const struct image *image, uint16_t at)
{
	uint64_t value = 0;

	if (at + sizeof value <= image->length)
		memcpy(&value, image->bytes + at, sizeof value);
	return value;
}

/* The same bytes as a copy of the kernel side's, without and with the process. */
static void fuzz_told(const struct image *image, const struct python_memory *memory,
		      const struct python_layout *layout)
{
	struct runtime_code_event told;
	struct python_code *code;

	if (image->length < sizeof told)
		return;
	memcpy(&told, image->bytes, sizeof told);
	told.head_bytes %= sizeof told.head + 1;
	told.name_bytes %= sizeof told.name + 1;
	told.file_bytes %= sizeof told.file + 1;
	told.lines_bytes %= sizeof told.lines + 1;
	if (python_told_read(&told, memory, layout, &code) == PYTHON_CODE_READ &&
	    (strlen(code->name) > PYTHON_NAME_BYTES || code->lines_bytes > PYTHON_LINES_BYTES))
		abort();
	free(code);
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
	fuzz_told(&image, &memory, &layout);
	const uint16_t cookie = runtime_cookie(
		member(&image, layout.code_argcount), member(&image, layout.code_kwonly),
		member(&image, layout.code_flags), member(&image, layout.code_firstline),
		runtime_texts(pointer(&image, python_layout_name(&layout)),
			      pointer(&image, layout.code_filename),
			      pointer(&image, layout.code_lines)));
	if (python_code_read(&memory, &layout, BASE, cookie, &code) != PYTHON_CODE_READ)
		return;
	if (strlen(code->name) > PYTHON_NAME_BYTES || strlen(code->file) > PYTHON_NAME_BYTES ||
	    code->lines_bytes > PYTHON_LINES_BYTES || python_code_line(code, 8) > INT32_MAX)
		abort();
	free(code);
}
