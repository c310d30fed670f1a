/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes are a version of CPython and memory at BASE, where its state is, and a dict of threads.
 */
#include "node-agent/runtimes/python_thread_name.h"

#include <string.h>

#include "tests/fuzz/fuzz.h"

enum { BASE = 0x10000, READS_MAX = 4 * PYTHON_KEYS_MAX };

struct image {
	const uint8_t *bytes;
	size_t length, reads;
};

/* Beyond its end it begins anew, so that addresses lead somewhere. */
static bool read_image(void *context, uint64_t address, void *to, size_t bytes)
{
	struct image *image = context;

	if (++image->reads > READS_MAX)
		abort();
	if (address >> 40 || bytes > image->length)
		return false;
	for (size_t i = 0; i < bytes; i++)
		((uint8_t *)to)[i] = image->bytes[(address - BASE + i) % image->length];
	return true;
}

static void fuzz_one(const uint8_t *bytes, size_t length)
{
	struct python_thread_table table;
	struct python_layout layout;
	char name[PYTHON_THREAD_NAME_BYTES];

	if (length < 2)
		return;
	struct image image = {bytes + 1, length - 1, 0};
	const struct python_memory memory = {read_image, &image};
	if (!python_layout_find((0x0306U + bytes[0] % 8) << 16, &layout) &&
	    !python_layout_decode(image.bytes, image.length, &layout))
		return;
	if (!python_thread_table_find(&memory, &layout, BASE, &table))
		table = (struct python_thread_table){BASE, 0};
	image.reads = 0;
	if (python_thread_name_read(&memory, &layout, &table, bytes[1], name) &&
	    (!*name || strlen(name) >= PYTHON_THREAD_NAME_BYTES))
		abort();
}
