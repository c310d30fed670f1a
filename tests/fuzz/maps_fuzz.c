/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes are a /proc/PID/maps text; the same bytes as a cgroup text, as a stat line, as a
 * command line and as an environment. */
#include <string.h>

#include "node-agent/processes/command_line.h"
#include "node-agent/processes/container.h"
#include "node-agent/processes/memory_map.h"
#include "node-agent/processes/process_files.h"
#include "tests/fuzz/fuzz.h"

static void check_arguments(const char *bytes, size_t length)
{
	char line[COMMAND_LINE_ROOM], name[COMMAND_NAME_ROOM], value[8];
	char comm[16] = "";

	command_line_write(bytes, length, COMMAND_LINES_FULL, line);
	if (strlen(line) >= sizeof line)
		abort();
	command_line_write(bytes, length, COMMAND_LINES_NAME, line);
	memcpy(comm, bytes, length < 15 ? length : 15);
	if (command_line_name(bytes, length, comm, name) && strlen(name) >= sizeof name)
		abort();
	if (environment_value(bytes, length, "A", value, sizeof value) &&
	    strlen(value) >= sizeof value)
		abort();
}

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
	check_arguments((const char *)bytes, length);
}
