/* SPDX-License-Identifier: Apache-2.0 */
/* One report as the spool keeps it on disk. Pure.
 *
 * A file begins with 32 bytes, always the same, and goes on with a record, all little-endian: a
 * frame of 64 bytes
 *	u32 magic, u32 crc of the rest of the frame, u32 crc of what follows it,
 *	u32 bytes of facts, u32 bytes of body, u32 flags,
 *	u64 samples, u64 before (samples that this run had spooled before), u8 run[16], u64 zero
 * then facts (LEB128 numbers, texts with their length and a NUL, zeros up to a multiple of 8 bytes
 * of all), then the body: the report's gzip member with the samples. In files of agents that put
 * many reports into one, a record follows the other, each on a multiple of 8 bytes. What older
 * agents could not read gets another ending. */
#ifndef NODE_AGENT_SHIP_SPOOL_RECORD_H
#define NODE_AGENT_SHIP_SPOOL_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "common/buffer.h"
#include "common/profile.h"

enum {
	SPOOL_HEADER_BYTES = 32,
	SPOOL_FACTS_MAX = 256 << 10,
	SPOOL_HEAD_MAX = SPOOL_HEADER_BYTES + 64 + SPOOL_FACTS_MAX,
	SPOOL_BODY_MAX = 16 << 20,
	SPOOL_COUNTERS_MAX = 176,
	SPOOL_LABELS_MAX = 32,
};

/* A report with everything its host part says; texts are borrowed. */
struct spool_report {
	uint8_t run[16];
	uint64_t samples, before;
	bool is_remainder;        /* all that is left of a run: its counters, no samples */
	struct profile_host host; /* its counters are the ones below */
	struct profile_counter counters[SPOOL_COUNTERS_MAX];
	const char *label_names[SPOOL_LABELS_MAX], *label_values[SPOOL_LABELS_MAX];
	struct bytes body;
};

/* The counter of that name, made with 0 where there is none; NULL: no room. */
uint64_t *spool_report_counter(struct spool_report *report, const char *name);

/* Header, frame and facts, instead of what out has; the body follows them in the file. out's limit:
 * SPOOL_HEAD_MAX. False: too long, or no memory. */
bool spool_record_encode(const struct spool_report *report, struct buffer *out);

/* The record at the begin of these bytes, which report then points into. *length: its own; 0: there
 * is none. False: it is damaged. */
bool spool_record_decode(struct bytes bytes, struct spool_report *report, uint64_t *length);

#endif
