/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of struct journal, shared by what opens, reads and writes it: journal*.c only. */
#ifndef SYMBOL_SERVER_STORE_SQLITE_JOURNAL_JOURNAL_FILES_H
#define SYMBOL_SERVER_STORE_SQLITE_JOURNAL_JOURNAL_FILES_H

#include <pthread.h>

#include "symbol-server/store/sqlite/journal/journal.h"

enum {
	JOURNAL_SPARES_MAX = 32,
	JOURNAL_SEGMENTS_MAX = 4096,
	JOURNAL_VERSION = 1,
	JOURNAL_FRAME_MAGIC = 0x314a4646, /* "FFJ1" */
};

struct journal_frame {
	uint32_t magic, length;
	uint64_t position;
	uint32_t crc, zero;
};
_Static_assert(sizeof(struct journal_frame) == JOURNAL_FRAME_BYTES, "frame");

struct journal_header {
	char magic[16];
	uint32_t version, crc; /* of what follows */
	uint64_t number;
	uint64_t failed_from; /* groups from there to this segment failed; 0: none did */
};

struct journal {
	char *directory;
	int directory_fd;
	uint64_t limit_bytes;
	pthread_mutex_t lock; /* segments, spares, counters; the rest is the writer's */
	uint64_t *segments;   /* numbers in rising order; the last is being written */
	unsigned segment_count;
	uint32_t *file_bytes; /* of each */
	uint64_t disk_bytes;  /* of all */
	unsigned spares;      /* files spare-0 …, JOURNAL_FILE_BYTES each */
	unsigned wanted;      /* spares to keep */
	bool is_short;        /* no new files */
	unsigned started;     /* segments since the last release */
	struct journal_counters counters;
	int fd;                  /* of the last segment; -1: none yet */
	uint32_t room;           /* bytes of its file */
	uint64_t number, offset; /* next write */
	uint64_t failed_from;    /* first group that failed since one did not; 0: none */
	uint8_t *group;          /* aligned */
	size_t group_capacity;
	unsigned gaps; /* met by replay */
};

extern const char journal_header_magic[16];

void journal_segment_path(const struct journal *journal, uint64_t number, char *path, size_t room);
void journal_spare_path(const struct journal *journal, unsigned n, char *path, size_t room);
/* Of a record's frame and bytes; of a segment's header. */
uint32_t journal_frame_crc(const struct journal_frame *frame, const uint8_t *bytes);
uint32_t journal_header_crc(const struct journal_header *header);

#endif
