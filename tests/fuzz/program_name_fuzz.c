/* SPDX-License-Identifier: Apache-2.0 */
/* An executable's path up to a NUL, then a cmdline. */
#include <string.h>

#include "node-agent/processes/program_name.h"
#include "tests/fuzz/fuzz.h"

static void fuzz_one(const uint8_t *bytes, size_t length)
{
	const uint8_t *end = memchr(bytes, '\0', length);
	char out[PROGRAM_NAME_ROOM];

	if (!end)
		return;
	program_name_write((const char *)bytes, (const char *)end + 1,
			   length - (size_t)(end + 1 - bytes), out);
	if (!memchr(out, '\0', sizeof out) || strpbrk(out, "\n\x1e\x1f\x7f") || strstr(out, "://"))
		abort();
}
