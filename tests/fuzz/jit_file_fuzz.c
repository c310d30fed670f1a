/* SPDX-License-Identifier: Apache-2.0 */
/* The first byte chooses a perf map or a jitdump; the rest is the file, read to its end, and what
 * it says is asked for. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "node-agent/file_parser/jit/jit_file.h"
#include "node-agent/runtimes/jit_code.h"
#include "tests/fuzz/fuzz.h"

static struct jit_chunk chunk;

static void ask(const struct jit_code *code, uint64_t address)
{
	for (uint64_t time = 0; time < 4; time++) {
		struct jit_name name;

		if (jit_code_find(code, address, time, &name) == JIT_FOUND &&
		    (strlen(name.function) > JIT_NAME_MAX || strlen(name.file) > JIT_NAME_MAX))
			abort();
	}
}

static void fuzz_one(const uint8_t *bytes, size_t length)
{
	struct jit_code *code = jit_code_new(256 << 10);
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	uint64_t at = 0, before = UINT64_MAX;

	if (length > 1 && code && write(fd, bytes + 1, length - 1) == (ssize_t)length - 1)
		while (at != before) {
			jit_file_read(fd, bytes[0] & 1 ? JIT_DUMP : JIT_PERF_MAP, at, length - 1,
				      &chunk);
			if (!jit_chunk_is_sound(&chunk) ||
			    (!chunk.head.is_wrong &&
			     (chunk.head.next < at || chunk.head.next > length - 1 + 4096)))
				abort();
			jit_code_add(code, &chunk, 1, 3);
			for (uint32_t i = 0; i < chunk.head.count; i++) {
				ask(code, chunk.entries[i].start);
				ask(code, chunk.entries[i].start + chunk.entries[i].size - 1);
			}
			before = at;
			at = chunk.head.next > at ? chunk.head.next : at;
		}
	close(fd);
	jit_code_free(code);
}
