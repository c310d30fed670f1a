/* SPDX-License-Identifier: Apache-2.0 */
#include "common/elf_image.h"

#include "tests/fuzz/fuzz.h"

static void fuzz_one(const uint8_t *bytes, size_t length)
{
	struct elf_image image;
	struct build_id id;
	uint64_t address;

	if (elf_image_read_bytes(bytes, length, &image, NULL)) {
		if (image.segment_count > ELF_IMAGE_SEGMENTS || image.gnu.length > BUILD_ID_MAX)
			abort();
		elf_image_address(&image, length, &address);
	}
	elf_notes_build_id(bytes, length, &id);
}
