/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes are a /proc/PID/maps text; the same bytes as a cgroup text and as a stat line. */
#include "node-agent/processes/container.h"
#include "node-agent/processes/memory_map.h"
#include "node-agent/processes/process_files.h"
#include "tests/fuzz/fuzz.h"

static void fuzz_one(const uint8_t *bytes, size_t length)
{
	const char *at = (const char *)bytes, *end = at + length;
	struct container container;
	struct memory_row row;
	enum memory_read result;
	uint64_t ticks;

	while ((result = memory_map_next(&at, end, &row)) != MEMORY_END)
		if (result == MEMORY_ROW && row.start >= row.end)
			abort();
	container_read((const char *)bytes, length, &container);
	process_stat_start_time((const char *)bytes, length, &ticks);
}
