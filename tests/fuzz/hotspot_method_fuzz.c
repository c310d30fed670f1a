/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes are a layout's flags and memory at BASE, where a Method is. */
#include "node-agent/runtimes/hotspot_method.h"

#include <string.h>

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

static void fuzz_one(const uint8_t *bytes, size_t length)
{
	struct hotspot_method *method;
	uint16_t cookie;

	if (length < 1)
		return;
	struct image image = {bytes + 1, length - 1};
	const struct python_memory memory = {read_image, &image};
	const struct hotspot_layout layout = {
		.flags = (bytes[0] & 1 ? HOTSPOT_LAYOUT_LENGTH_HIGH : 0) |
			 (bytes[0] & 2 ? HOTSPOT_LAYOUT_SOURCE_IN_POOL : 0) |
			 (bytes[0] & 4 ? HOTSPOT_LAYOUT_WITHOUT_ZERO : 0),
		.method_const = 0,
		.const_constants = 8,
		.const_size = 16,
		.const_flags = 20,
		.const_code_size = 22,
		.const_name = 24,
		.const_signature = 26,
		.const_bytes = 28,
		.pool_length = 0,
		.pool_holder = 8,
		.pool_source = 4,
		.pool_bytes = 16,
		.klass_name = 0,
		.klass_source = 8,
		.symbol_length = 0,
		.symbol_body = 4,
	};
	if (!hotspot_method_cookie(&memory, &layout, BASE, &cookie) ||
	    hotspot_method_read(&memory, &layout, BASE, cookie, &method) != HOTSPOT_READ)
		return;
	if (strlen(method->name) > HOTSPOT_NAME_BYTES ||
	    strlen(method->file) > HOTSPOT_NAME_BYTES ||
	    method->lines_bytes > HOTSPOT_LINES_BYTES ||
	    hotspot_method_line(method, 3) > UINT16_MAX)
		abort();
	free(method);
}
