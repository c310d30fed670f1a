/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes are a version, an instruction, and memory at BASE of hotspot_image.h, where that has a
 * compiled method. */
#include "node-agent/runtimes/hotspot_compiled.h"

#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "tests/unit/runtimes/hotspot_image.h"

static void fuzz_one(const uint8_t *bytes, size_t length)
{
	static const unsigned versions[] = {8, 17, 25};
	static struct image image;
	const struct python_memory memory = {read_image, &image};
	struct hotspot_compiled compiled;

	if (length < 2)
		return;
	const struct hotspot_layout layout = layout_of(versions[bytes[0] % 3]);
	const struct hotspot_place_in_code place = {.nmethod = BASE + NMETHOD,
						    .compile_id = (uint16_t)COMPILE_ID,
						    .pc = BASE + CODE + bytes[1]};
	image_fill(&image, &layout);
	image_compile(&image, &layout);
	for (size_t i = 2; i < length && i - 2 < MEMORY - NMETHOD; i++)
		image.bytes[NMETHOD + i - 2] ^= bytes[i];
	if (hotspot_compiled_read(&memory, &layout, &place, &compiled) == HOTSPOT_READ &&
	    (compiled.count < 1 || compiled.count > HOTSPOT_CALLS_MAX))
		abort();
}
