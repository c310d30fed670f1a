/* SPDX-License-Identifier: Apache-2.0 */
/* One acknowledged request as a journal record: entries of {kind, length, body}, LEB128 throughout.
 * Numbers are those of the day's catalog, whose new definitions come first. Pure.
 *
 *	day          day since 1970; the following entries are of that day
 *	definitions  catalog kind, first number, count, catalog_encode()'s bytes
 *	ids          tenant, 12 bytes, first, count: profile ids that follow count up from there
 *	packed       tenant, type, bucket, series, flags (1: counted by its sender; 2: has an id,
 *		     then its number), then a profile's samples as packed.h has them
 *	spans        as a profile, which comes before it: raw ones as spans.h has them
 *	moments      as a profile, which comes before it: raw times of its samples as moments.h has
 *		     them
 *	counters     an agent's own resource
 *	refused      tenant, type, bucket, host, reason, samples, flags (as of a profile): one that
 *		     was not taken, so that its samples are known as lost
 *	second       of its minute, in which the reports of the entries that follow began; earlier
 *		     servers write none and pass over it */
#ifndef SYMBOL_SERVER_STORE_SQLITE_JOURNAL_RECORD_H
#define SYMBOL_SERVER_STORE_SQLITE_JOURNAL_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "common/buffer.h"
#include "symbol-server/store/sqlite/dictionary/catalog.h"
#include "symbol-server/store/sqlite/cells/packed.h"
#include "symbol-server/store/rules/report_window.h"

enum record_kind {
	RECORD_END,
	RECORD_DAY,
	RECORD_DEFINITIONS,
	RECORD_IDS,
	RECORD_UNPACKED, /* a profile as none is written any more: damage */
	RECORD_COUNTERS,
	RECORD_REFUSED,
	RECORD_MOMENTS,
	RECORD_PACKED,
	RECORD_SPANS,
	RECORD_SECOND,
};

struct record_profile {
	uint32_t tenant, type, bucket, series;
	bool is_counted, has_id;
	uint32_t id_number; /* last four bytes of its id; the rest is in the ids before it */
	struct bytes samples;
};

struct record_refused { /* texts are string numbers of the day's catalog */
	uint32_t tenant, type, bucket, host, reason;
	bool is_counted, has_id;
	uint32_t id_number;
	uint64_t samples;
};

struct record_counters { /* texts are string numbers of the day's catalog */
	uint32_t tenant;
	uint8_t agent_id[16];
	uint32_t host, version, kernel;
	uint32_t bucket;
	uint64_t own_samples; /* that this report brings and were not there before */
	/* Records of earlier servers have no stacks, when it was sent, its duration. */
	struct agent_numbers numbers;
	uint32_t lost[BATCH_LOST_REASONS], stacks[BATCH_STACK_RESULTS]; /* names */
	uint32_t reported_reason;                                       /* of the time's tally */
};

/* Each appends one entry. scratch is emptied and used. */
void record_add_day(struct buffer *out, uint32_t day);
void record_add_second(struct buffer *out, uint32_t second);
void record_add_definitions(struct buffer *out, struct buffer *scratch,
			    const struct catalog *catalog, enum catalog_kind kind, uint32_t first,
			    uint32_t count);
void record_add_ids(struct buffer *out, struct buffer *scratch, const struct report_run *run);
/* samples: packed. */
void record_add_profile(struct buffer *out, struct buffer *scratch,
			const struct record_profile *profile);
/* samples: raw moments. */
void record_add_moments(struct buffer *out, struct buffer *scratch,
			const struct record_profile *profile);
/* samples: raw spans. */
void record_add_spans(struct buffer *out, struct buffer *scratch,
		      const struct record_profile *profile);
void record_add_counters(struct buffer *out, struct buffer *scratch,
			 const struct record_counters *counters);

void record_add_refused(struct buffer *out, struct buffer *scratch,
			const struct record_refused *refused);

struct record_item {
	enum record_kind kind;
	uint32_t day;    /* DAY */
	uint32_t second; /* SECOND: below 60 */
	struct {
		enum catalog_kind kind;
		uint32_t first, count;
		struct bytes bytes;
	} definitions;
	struct report_run ids;
	struct record_profile profile; /* PACKED, MOMENTS, SPANS */
	struct record_counters counters;
	struct record_refused refused;
};

/* The next entry; entries of kinds not known here are passed over. RECORD_END at the end. False:
 * the bytes are not a record. */
bool record_next(const uint8_t **at, const uint8_t *end, struct record_item *item);

#endif
