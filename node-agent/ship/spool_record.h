/* SPDX-License-Identifier: Apache-2.0 */
/* One report as the spool keeps it on disk, and the file it stands in. Pure but for pread(2).
 *
 * A segment, <number, 16 hex digits>.spool, begins with 32 bytes, little-endian as everything here:
 *	char magic[8] "FFSPOOL", u32 version 1, u32 zero, u64 number, u32 zero, u32 CRC-32C of these
 * and goes on with records, each on a multiple of 8 bytes: a frame of 64 bytes
 *	u32 magic, u32 crc of the rest of the frame, u32 crc of what follows it,
 *	u32 bytes of facts, u32 bytes of body, u32 flags,
 *	u64 samples, u64 before (samples that this run had spooled before), u8 run[16], u64 zero
 * then facts (LEB128 numbers, texts with their length and a NUL), then the body: the report's gzip
 * member with the samples. A record that is torn or damaged is passed over; reading goes on at the
 * next intact frame. A version is only raised when older agents could not read what is written. */
#ifndef NODE_AGENT_SHIP_SPOOL_RECORD_H
#define NODE_AGENT_SHIP_SPOOL_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buffer.h"
#include "common/profile.h"

enum {
	SPOOL_VERSION = 1,
	SPOOL_HEADER_BYTES = 32,
	SPOOL_FRAME_BYTES = 64,
	SPOOL_FACTS_MAX = 256 << 10,
	SPOOL_BODY_MAX = 16 << 20,
	SPOOL_COUNTERS_MAX = 96,
	SPOOL_LABELS_MAX = 32,
};

enum {
	SPOOL_REMAINDER = 1, /* all that is left of a run: its counters, no samples */
};

struct spool_frame {
	uint32_t crc, facts_length, body_length, flags;
	uint64_t samples, before;
	uint8_t run[16]; /* the agent's id of that run */
};

/* A report with everything its host part says; texts are borrowed. */
struct spool_report {
	uint8_t run[16];
	uint64_t samples, before;
	bool is_remainder;
	struct profile_host host; /* its counters are the ones below */
	struct profile_counter counters[SPOOL_COUNTERS_MAX];
	const char *label_names[SPOOL_LABELS_MAX], *label_values[SPOOL_LABELS_MAX];
	struct bytes body;
};

/* The counter of that name, made with 0 where there is none; NULL: no room. */
uint64_t *spool_report_counter(struct spool_report *report, const char *name);
void spool_report_set_host(struct spool_report *report, const struct profile_host *host);

/* Appends frame and facts; the body and spool_padding() zeros follow them in the file. */
bool spool_record_encode(const struct spool_report *report, struct buffer *out);
size_t spool_padding(uint64_t length);
/* Of a whole record, padding included. */
uint64_t spool_record_bytes(const struct spool_frame *frame);

/* False: not an intact frame. */
bool spool_frame_decode(const uint8_t bytes[SPOOL_FRAME_BYTES], struct spool_frame *frame);
/* content: the frame's facts and body, which report then points into. False: damaged. */
bool spool_record_decode(const struct spool_frame *frame, const uint8_t *content,
			 struct spool_report *report);

void spool_header_encode(uint64_t number, uint8_t bytes[SPOOL_HEADER_BYTES]);
/* 0: damaged or not a segment. */
uint32_t spool_header_version(const uint8_t bytes[SPOOL_HEADER_BYTES]);

enum spool_found { SPOOL_FOUND, SPOOL_END, SPOOL_UNREADABLE };

/* The first intact frame at *at or behind it whose record ends by end; *at becomes its place, and
 * *skipped grows by the bytes passed over. SPOOL_UNREADABLE: errno says why. */
enum spool_found spool_frame_find(int fd, uint64_t *at, uint64_t end, struct spool_frame *frame,
				  uint64_t *skipped);

#endif
