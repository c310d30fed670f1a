/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes are whether the native part is whole, how many native frames there are, their roles,
 * and an interpreter's list. */
#include "node-agent/runtimes/frame_merge.h"

#include <string.h>

#include "tests/fuzz/fuzz.h"

static void fuzz_one(const uint8_t *bytes, size_t length)
{
	size_t natives = 0, count, language = 0;

	if (length < 2 || length - 2 < bytes[1])
		return;
	const size_t words = (length - 2 - bytes[1]) / 8;
	uint64_t *list = malloc(words * 8 + 1);
	struct merged_frame *out = malloc((bytes[1] + words / 2) * sizeof *out + 1);
	memcpy(list, bytes + 2 + bytes[1], words * 8);
	const struct frame_merge stack = {
		.roles = bytes + 2,
		.native_count = bytes[1],
		.is_native_whole = bytes[0] & 1,
		.list = list,
		.list_words = words,
	};
	if (frame_merge(&stack, out, &count) >= MERGE_COUNT)
		abort();
	for (size_t i = 0; i < count; i++) {
		if (out[i].is_language ? out[i].at + 2 > words : out[i].at != natives++)
			abort();
		language += out[i].is_language;
	}
	if (natives > stack.native_count || language > words / 2)
		abort();
	if (natives < stack.native_count && (!natives || stack.roles[natives - 1] != NATIVE_MADE))
		abort();
	free(list);
	free(out);
}
