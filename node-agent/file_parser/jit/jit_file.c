/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/file_parser/jit/jit_file.h"

#include <unistd.h>

#include "node-agent/file_parser/jit/jitdump.h"
#include "node-agent/file_parser/jit/perf_map.h"

static void read_map(int fd, uint64_t offset, uint64_t limit, struct jit_chunk *chunk)
{
	static char text[PERF_MAP_STEP];
	uint64_t left = limit > offset ? limit - offset : 0;
	ssize_t got = offset <= INT64_MAX ? pread(fd, text, left < sizeof text ? left : sizeof text,
						  (off_t)offset)
					  : -1;

	chunk->head.next = offset;
	if (got > 0)
		chunk->head.next += perf_map_parse(text, (size_t)got, chunk);
}

void jit_file_read(int fd, enum jit_format format, uint64_t offset, uint64_t limit,
		   struct jit_chunk *chunk)
{
	jit_chunk_init(chunk);
	if (format == JIT_DUMP)
		jitdump_read(fd, offset, limit, chunk);
	else
		read_map(fd, offset, limit, chunk);
}
