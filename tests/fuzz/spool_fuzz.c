/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a file of the agent's spool: what a damaged disk may give back. Every record that is
 * found is written again, which gives the same report. */
#include <stdlib.h>
#include <string.h>

#include "common/crc32c.h"
#include "node-agent/ship/spool_record.h"
#include "tests/fuzz/fuzz.h"

static void write_again(const struct spool_report *report)
{
	struct spool_report again;
	struct buffer out;
	uint64_t length;

	buffer_init(&out, SPOOL_HEAD_MAX + SPOOL_BODY_MAX);
	if (spool_record_encode(report, &out)) {
		struct bytes record;

		buffer_append(&out, report->body.at, report->body.length);
		record = (struct bytes){out.bytes + SPOOL_HEADER_BYTES,
					out.length - SPOOL_HEADER_BYTES};
		if (!spool_record_decode(record, &again, &length) || length != record.length ||
		    again.samples != report->samples || again.before != report->before ||
		    again.host.counter_count != report->host.counter_count ||
		    again.body.length != report->body.length ||
		    memcmp(again.body.at, report->body.at, report->body.length) != 0)
			abort();
	}
	buffer_release(&out);
}

static void read_records(struct bytes rest)
{
	struct spool_report report;
	uint64_t length;

	do {
		if (spool_record_decode(rest, &report, &length))
			write_again(&report);
		if (length > rest.length)
			return;
		rest = (struct bytes){rest.at + length, rest.length - length};
	} while (length);
}

/* A record whose facts these are, with right checksums. */
static void read_facts(const uint8_t *bytes, uint32_t length)
{
	const struct spool_report empty = {.samples = 1};
	uint32_t body = 0, crc = crc32c(0, bytes, length);
	struct buffer out;
	uint8_t *frame;

	buffer_init(&out, 1 << 20);
	if (!spool_record_encode(&empty, &out))
		abort();
	out.length = SPOOL_HEADER_BYTES + 64;
	buffer_append(&out, bytes, length);
	frame = out.bytes + SPOOL_HEADER_BYTES;
	memcpy(frame + 8, &crc, 4);
	memcpy(frame + 12, &length, 4);
	memcpy(frame + 16, &body, 4);
	crc = crc32c(0, frame + 8, 56);
	memcpy(frame + 4, &crc, 4);
	read_records((struct bytes){frame, out.length - SPOOL_HEADER_BYTES});
	buffer_release(&out);
}

static void fuzz_one(const uint8_t *bytes, size_t length)
{
	if (length > SPOOL_HEADER_BYTES)
		read_records(
			(struct bytes){bytes + SPOOL_HEADER_BYTES, length - SPOOL_HEADER_BYTES});
	read_facts(bytes, (uint32_t)(length < 4096 ? length : 4096));
}
