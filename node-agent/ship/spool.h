/* SPDX-License-Identifier: Apache-2.0 */
/* Reports that the server did not take, on disk until it does: in order, over restarts of the
 * agent, bounded in bytes and files. A report is a file. One thread at a time. Formats:
 * spool_record.h, spool_directory.h.
 *
 * What is lost here is told to the server as farflame.lost.spool of the run it belongs to: each
 * says how many samples its run had spooled before, so that whatever goes missing between two of
 * them (dropped, damaged, deleted by somebody) is known to the sample. When the last report of a
 * run is dropped, its counters stay as a small report of their own, the remainder.
 *
 * A report is in the kernel's hands when spool_add() returns, so the end of the process costs
 * nothing; it and its name are on the disk sync_ms later at most, so that is what the end of the
 * power may cost. How far was sent is noted after each report, and is on the disk before a file
 * goes: were a file gone and the note not, what was sent would count as lost. After a loss of power
 * some reports may be sent twice, which the server counts once by profile_id. */
#ifndef NODE_AGENT_SHIP_SPOOL_H
#define NODE_AGENT_SHIP_SPOOL_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "node-agent/ship/spool_record.h"

struct spool_options {
	const char *directory; /* borrowed */
	uint64_t limit_bytes;  /* of all files together, in whole blocks; the oldest go first */
	int64_t sync_ms;       /* 0: each report is synced */
	uint8_t run[16];       /* the agent's id of this run */
};

struct spool_counters {          /* cumulative since the start of this process, but for bytes */
	uint64_t bytes;          /* now */
	uint64_t added, removed; /* reports */
	uint64_t lost;           /* samples: dropped, damaged or deleted; of all runs */
	uint64_t untold;         /* of these, samples no report can tell the server of any more */
	uint64_t damaged;        /* reports that could not be read */
};

struct spool;

/* NULL: ERROR_OPTION or ERROR_CONFLICT, which trying again does not help (spool_directory_open()),
 * or ERROR_MEMORY. A disk that is full or read-only now is tried again by spool_add(). */
struct spool *spool_open(const struct spool_options *options, struct error *err);

/* Puts a report of this run behind all others; sets what the frame needs. The oldest are dropped to
 * make room; one that is larger than the limit is dropped itself, counted, and that is true. False:
 * the disk does not take it now. */
bool spool_add(struct spool *spool, struct spool_report *report, int64_t now_ms, struct error *err);

/* The oldest, its counters as they have to be told now; borrowed until the next spool_add() or
 * spool_remove_first(). NULL: none. */
const struct spool_report *spool_first(struct spool *spool);

enum spool_outcome { SPOOL_SENT, SPOOL_REFUSED };
void spool_remove_first(struct spool *spool, enum spool_outcome outcome);

/* What spool_first() lent stays as it is for ever: somebody who cannot be asked still reads it. */
void spool_leave_first(struct spool *spool);

/* Of this run, for reports that do not go through the spool: farflame.lost.spool. */
uint64_t spool_lost(const struct spool *spool);

/* When spool_sync() is due on the clock of now_ms; INT64_MAX: nothing waits for it. */
int64_t spool_sync_due_ms(const struct spool *spool);
void spool_sync(struct spool *spool);

void spool_counters(const struct spool *spool, struct spool_counters *out);

/* Syncs and lets go of the directory. NULL is fine. */
void spool_close(struct spool *spool);

#endif
