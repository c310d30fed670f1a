/* SPDX-License-Identifier: Apache-2.0 */
/* Whose clock is wrong when a report's times cannot be right. A single sender's is, as a rule, and
 * it is told so. But when most senders disagree with this server in the same direction, or the
 * server's clock is before what it has stored, or after that by days which no sender has seen
 * either, then it is the server's: the report is to come again, and nothing of it is lost. */
#ifndef SYMBOL_SERVER_API_SERVER_CLOCK_H
#define SYMBOL_SERVER_API_SERVER_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "common/log.h"
#include "symbol-server/ingest/ingest.h"
#include "symbol-server/store/samples.h"

enum {
	CLOCK_SENDERS = 256, /* places; of more senders those heard last */
	CLOCK_HEARD_S = 900, /* what a sender's clock said counts so long */
};

struct server_clock { /* zeroed to begin with; any thread */
	_Atomic uint64_t votes[CLOCK_SENDERS];
	_Atomic int64_t suspected_s; /* when last, monotonic; 0: never */
	struct log_fault wrong;
};

enum clock_vote { CLOCK_SILENT, CLOCK_AGREES, CLOCK_AHEAD, CLOCK_BEHIND };

/* What a report says of its sender's clock against now_ms; *says_ms: that clock. */
enum clock_vote server_clock_read(const struct sample_batch *batch,
				  const struct ingest_rejects *rejects, int64_t now_ms,
				  int64_t *says_ms);
/* The vote of that sender. elapsed_s: monotonic. */
void server_clock_hear(struct server_clock *clock, uint64_t sender, enum clock_vote vote,
		       int64_t elapsed_s);
/* After a vote other than CLOCK_AGREES: is it this server's clock? newest_ms: samples_counters. */
bool server_clock_is_wrong(const struct server_clock *clock, enum clock_vote vote, int64_t says_ms,
			   int64_t now_ms, int64_t newest_ms, int64_t elapsed_s);

/* All of it for a report that was read. True: it is to be refused as one that comes again, and
 * that was counted and said. */
bool server_clock_refuses(struct server_clock *clock, struct samples_store *samples,
			  const struct sample_batch *batch, const struct ingest_rejects *rejects,
			  int64_t now_ms);
/* Reports were refused for it in the last minutes. */
bool server_clock_is_suspected(const struct server_clock *clock);

#endif
