/* SPDX-License-Identifier: Apache-2.0 */
/* One request being read; and its profiles → samples of the batch. Of this folder only. */
#ifndef SYMBOL_SERVER_INGEST_READER_H
#define SYMBOL_SERVER_INGEST_READER_H

#include "symbol-server/ingest/contexts.h"
#include "symbol-server/ingest/dictionary.h"
#include "symbol-server/ingest/ingest.h"

enum { AHEAD_MAX_MS = 10 * 60000 }; /* a sender's clock may be this much ahead */

struct reader {
	struct arena *arena;
	struct sample_batch *batch;
	struct dictionary dictionary;
	struct ingest_rejects *rejects;
	int64_t now_ms, oldest_ms;
	bool has_dictionary;
	struct contexts contexts;
	struct wire body;    /* the whole request */
	uint8_t body_id[12]; /* made from it when first asked for */
	bool has_body_id;
	unsigned good, bad_indices, untimely; /* profiles with samples */
	uint32_t sample_capacity, profile_capacity, series_capacity, counters_capacity;
	uint32_t time_capacity, untimely_capacity;
};

struct value_type {
	uint64_t type, unit; /* strings */
};

struct profile_facts { /* the scalars of one Profile */
	struct value_type sample_type, period_type;
	uint64_t time_ns, duration_ns, first_timestamp_ns;
	int64_t period;
	uint8_t id[16];
	unsigned sample_count;
};

/* The scalars of one Profile message. False: not protobuf. */
bool profile_read_facts(struct wire wire, struct profile_facts *facts);
/* Start of its interval: its time, else its first timestamp, else now. */
int64_t profile_start_ms(const struct reader *reader, const struct profile_facts *facts);

/* Adds one Profile message to the batch, or leaves it out and counts it in rejects. */
enum dictionary_result profile_read(struct reader *reader, struct wire wire, bool is_ours,
				    uint32_t series);

#endif
