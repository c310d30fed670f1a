/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes are an ELF file that may be an interpreter. */
#include "node-agent/file_parser/runtime_file.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "node-agent/file_parser/unwind_file.h"
#include "tests/fuzz/fuzz.h"

static void fuzz_one(const uint8_t *bytes, size_t length)
{
	int fd = memfd_create("runtime_file", MFD_CLOEXEC);
	struct unwind_file *file;
	struct runtime_symbols found;

	if (fd < 0 || write(fd, bytes, length) != (ssize_t)length)
		abort();
	memset(&found, 0xff, sizeof found);
	file = unwind_file_open(fd);
	if (!file)
		abort();
	unwind_file_runtime(file, &found);
	unwind_file_close(file);
	if ((found.language == RUNTIME_CPYTHON) != !!found.loop_count ||
	    (found.language == RUNTIME_HOTSPOT && !found.hotspot[HOTSPOT_SYMBOL_STRUCTS]) ||
	    found.loop_count > RUNTIME_LOOP_PARTS_MAX ||
	    found.state + found.state_bytes < found.state)
		abort();
	for (uint32_t i = 0; i < found.loop_count; i++)
		if (found.loop[i].start >= found.loop[i].end)
			abort();
}
