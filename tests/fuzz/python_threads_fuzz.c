/* SPDX-License-Identifier: Apache-2.0 */
/* A process that looks like CPython and has the bytes for memory: what it describes of itself
 * (3.13), its interpreters, its threads. Whatever an address, it leads to some of the bytes. */
#include "node-agent/runtimes/python_threads.h"

#include <string.h>

#include "tests/fuzz/fuzz.h"

struct memory {
	const uint8_t *bytes;
	size_t length;
	unsigned reads;
};

static bool read_bytes(void *context, uint64_t address, void *to, size_t bytes)
{
	struct memory *memory = context;

	memory->reads++;
	for (size_t i = 0; i < bytes; i++)
		((uint8_t *)to)[i] = memory->bytes[(address + i) % memory->length];
	return address % 11;
}

static void fuzz_one(const uint8_t *bytes, size_t length)
{
	static const uint32_t versions[] = {0x030d00f0, 0x030600f0, 0x030700f0, 0x030a0000,
					    0x030b02f0, 0x030c01f0, 0x030e00f0, 0x030f00f0};
	struct memory memory = {bytes + 1, length - 1, 0};
	const struct python_memory reader = {read_bytes, &memory};
	struct runtime_symbols symbols = {.language = RUNTIME_CPYTHON, .state = 0x100000};
	struct python_threads out;
	enum python_found found;

	if (length < 2)
		return;
	symbols.version = versions[bytes[0] % 8];
	symbols.state -= symbols.state % memory.length; /* the first byte */
	if (symbols.state < 0x10000)
		return;
	found = python_threads_find(&reader, &symbols, 0, &out);
	if (memory.reads > PYTHON_READS_MAX || out.reads != memory.reads ||
	    out.states > PYTHON_THREADS_MAX || !*python_found_text(found))
		abort();
	if (found == PYTHON_FOUND && (!out.place.thread_at || !out.placed || !out.states))
		abort();
}
