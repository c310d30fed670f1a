/* SPDX-License-Identifier: Apache-2.0 */
/* OTLP request bytes → sample_batch, read in place. Pure but for the arena it fills. */
#ifndef SYMBOL_SERVER_INGEST_INGEST_H
#define SYMBOL_SERVER_INGEST_INGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/arena.h"
#include "common/error.h"
#include "symbol-server/store/sample_batch.h"

struct ingest_rejects {    /* what a partial success reports */
	unsigned profiles; /* refused profiles */
	char message[200]; /* the first reason as a sentence; "" when none */
	/* It is an agent's own report, and all of its samples are too old or in the future. Refuse
	 * the whole: the agent counts that, and its next report tells what was taken and what was
	 * refused in one. */
	bool is_all_untimely;
	unsigned untimely; /* of the profiles, how many are too old or in the future */
	int64_t newest_ms; /* start of the latest profile of all, as the sender says; 0: none */
	/* What found no room: attributes of samples, and of resources as labels. */
	uint64_t attributes_left_out, labels_left_out;
};

/* Reads an ExportProfilesServiceRequest (opentelemetry-proto 1.10 and 1.11, ours and anyone's). The
 * batch borrows from bytes and arena. One bad profile is left out and counted in rejects; the rest
 * stays. ERROR_FORMAT: not protobuf, or not OTLP profiles 1.10+ (indices outside the tables, no
 * dictionary): a sentence says so. ERROR_LIMIT: the arena's limit (32 MiB) would be passed.
 * peer: the sender's address in text. now_ms clamps times: a profile more than 10 minutes ahead or
 * older than oldest_ms is refused as a bad profile. */
bool ingest_read(const void *bytes, size_t length, const char *peer, int64_t now_ms,
		 int64_t oldest_ms, struct arena *arena, struct sample_batch *batch,
		 struct ingest_rejects *rejects, struct error *err);

#endif
