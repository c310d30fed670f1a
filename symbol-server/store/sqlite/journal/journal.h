/* SPDX-License-Identifier: Apache-2.0 */
/* What has been acknowledged, on disk, until it is folded into the databases: preallocated segment
 * files that are written once in order, aligned and past the page cache, and used again when
 * released.
 *
 * DIR/<segment number, 16 hex digits>.journal, 4 MiB each (16 MiB where a record needs that); one
 * 4 KiB header block, then groups that start on a 4 KiB block. A group is records, each {magic,
 * length, position, CRC-32C} and its bytes, padded to 8. position = segment number × 16 MiB +
 * offset, so a reused file's old records are known as old. A record that is torn or damaged is left
 * out; what is intact after it is still read. A group that could not be written wholly and is on
 * disk nevertheless is left out when anything was written after it: that segment's header says
 * where such groups begin. */
#ifndef SYMBOL_SERVER_STORE_SQLITE_JOURNAL_JOURNAL_H
#define SYMBOL_SERVER_STORE_SQLITE_JOURNAL_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buffer.h"
#include "common/error.h"

enum {
	JOURNAL_SEGMENT_BYTES = 16 << 20, /* positions of a segment; its file may end before */
	JOURNAL_FILE_BYTES = 4 << 20,     /* of most files */
	JOURNAL_BLOCK = 4096,
	JOURNAL_FRAME_BYTES = 24, /* in front of each record */
	JOURNAL_RECORD_MAX = 12 << 20,
};

struct journal;

/* limit_bytes: of all segments together. ERROR_CONFLICT: another process has it open. */
struct journal *journal_open(const char *directory, uint64_t limit_bytes, struct error *err);

/* Calls fn for every intact record, oldest first, with the position of its end. False from fn
 * stops. Before the first write only. */
typedef bool journal_record_fn(void *context, uint64_t end, const uint8_t *bytes, size_t length);
bool journal_replay(struct journal *journal, journal_record_fn *fn, void *context,
		    struct error *err);
/* Damaged records that replay has passed over so far, runs of them as one. */
unsigned journal_gaps(const struct journal *journal);
/* The same for one segment's bytes (fuzzing); number: the one the file name says. Returns records.
 */
uint64_t journal_read_segment(const uint8_t *bytes, size_t length, uint64_t number,
			      journal_record_fn *fn, void *context, bool *is_stopped);

/* Gaps in a segment's bytes with intact records behind them, which no crash leaves; *torn: whether
 * it ends with a record that is not whole, which one does. */
unsigned journal_count_gaps(const uint8_t *bytes, size_t length, uint64_t number, bool *torn);

/* What else no crash leaves: a single wrong bit anywhere in what was written, header included, or a
 * byte less. A sentence; NULL: nothing is wrong. Gaps are not looked for. */
const char *journal_find_damage(const uint8_t *bytes, size_t length, uint64_t number);

/* Writes the records as one group and waits until they are on disk; ends gets each one's end. One
 * thread only. False: nothing of it counts (though some may be read by a later replay, unless
 * another group was written). */
bool journal_write(struct journal *journal, const struct bytes *records, size_t count,
		   uint64_t *ends, struct error *err);

/* Positions to come are greater than this one, whatever files are there. */
void journal_start_after(struct journal *journal, uint64_t position);

/* Where the next record would begin or later; greater than every end so far. */
uint64_t journal_position(const struct journal *journal);

/* The writer's next segment would have to be made first, which takes a disk tens of milliseconds.
 */
bool journal_lacks_spare(struct journal *journal);
/* Makes that file ahead of time. Thread-safe with the writer; one thread only. */
bool journal_make_spare(struct journal *journal, struct error *err);

/* The disk is full: files made ahead are deleted, and no new ones are made; or there is room again.
 * Thread-safe. */
void journal_set_short(struct journal *journal, bool is_short);

/* Segments that end at or before position are free to be used again: as many of them as the time
 * since the last release needed, one less each time it needs less. Thread-safe with the writer. */
void journal_release(struct journal *journal, uint64_t position);

/* Ends the segment being written, so that it can be released too, and wants no more files than one
 * from now on. The writer's. */
void journal_end_segment(struct journal *journal);

struct journal_counters {
	uint64_t bytes, syncs; /* cumulative */
	uint64_t disk_bytes;   /* now */
	/* Why the last write failed, and when (CLOCK_MONOTONIC); ERROR_NONE: it did not. */
	struct error failed;
	int64_t failed_ms;
};
void journal_counters(struct journal *journal, struct journal_counters *out);

void journal_close(struct journal *journal); /* NULL is fine */

#endif
