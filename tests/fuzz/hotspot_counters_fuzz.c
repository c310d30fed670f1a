/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes are the memory in which a JVM has its counters. */
#include "node-agent/runtimes/hotspot_counters.h"

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/read_memory.h"

static bool read_image(void *context, uint64_t address, void *to, size_t bytes)
{
	(void)context;
	return !read_memory(to, bytes, address);
}

static void fuzz_one(const uint8_t *bytes, size_t length)
{
	const struct python_memory reader = {read_image, NULL};
	uint64_t found;

	memory = bytes;
	memory_bytes = length;
	found = hotspot_counter_find(&reader, MEMORY_AT, "java.cls.unloadedClasses");
	if (found && (found < MEMORY_AT || found - MEMORY_AT + sizeof found > length))
		abort();
}
