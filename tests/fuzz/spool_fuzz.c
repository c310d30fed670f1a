/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a segment of the agent's spool: what a damaged disk may give back. Every record that
 * is found is decoded and encoded again, which gives the same frame. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/crc32c.h"
#include "node-agent/ship/spool_record.h"
#include "tests/fuzz/fuzz.h"

static void read_record(const uint8_t *at, const struct spool_frame *frame)
{
	struct spool_report report;
	struct spool_frame again;
	struct buffer out;

	if (!spool_record_decode(frame, at + SPOOL_FRAME_BYTES, &report))
		return;
	buffer_init(&out, 1 << 20);
	if (spool_record_encode(&report, &out) && !spool_frame_decode(out.bytes, &again))
		abort();
	buffer_release(&out);
}

static void fuzz_one(const uint8_t *bytes, size_t length)
{
	int fd = memfd_create("segment", MFD_CLOEXEC);
	uint64_t at = SPOOL_HEADER_BYTES, skipped = 0;
	struct spool_frame frame;

	if (fd < 0 || write(fd, bytes, length) != (ssize_t)length)
		abort();
	if (length >= SPOOL_HEADER_BYTES)
		spool_header_version(bytes);
	while (spool_frame_find(fd, &at, length, &frame, &skipped) == SPOOL_FOUND) {
		uint64_t size = spool_record_bytes(&frame);

		if (at + size > length)
			abort();
		read_record(bytes + at, &frame);
		at += size;
	}
	close(fd);
	/* Facts alone, past the checksums. */
	frame = (struct spool_frame){.facts_length = (uint32_t)(length < 4096 ? length : 4096)};
	frame.crc = crc32c(0, bytes, frame.facts_length);
	{
		uint8_t *facts = malloc(SPOOL_FRAME_BYTES + frame.facts_length);

		memcpy(facts + SPOOL_FRAME_BYTES, bytes, frame.facts_length);
		read_record(facts, &frame);
		free(facts);
	}
}
