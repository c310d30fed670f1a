/* SPDX-License-Identifier: Apache-2.0 */
/* A checksum on each page of a database, compared each time that SQLite reads the page from the
 * file.
 *
 * SQLite lets a file keep bytes at the end of each page for others (file format, 1.3.4: "reserved
 * bytes per page", byte 20 of the file); databases made here keep eight: CRC-32C of the page's
 * other bytes and of its number, and a mark, both little-endian. They are put there and compared
 * by a VFS between SQLite and the system, as SQLite's own cksumvfs does, whose checksum is another
 * one and which Debian's library lacks. A page that fails is SQLITE_IOERR_DATA, in database_error()
 * ERROR_FORMAT. The write-ahead log has checksums of its own.
 *
 * A file that an earlier version made keeps none and is read and written as it is. A program that
 * writes one with checksums without knowing of them leaves pages that fail here. */
#ifndef SYMBOL_SERVER_STORE_SQLITE_PAGE_CHECKSUMS_H
#define SYMBOL_SERVER_STORE_SQLITE_PAGE_CHECKSUMS_H

#include <stdbool.h>
#include <stdint.h>
#include <sqlite3.h>

#include "common/error.h"

/* For sqlite3_open_v2(): the VFS's name. NULL: there is no memory for it. */
const char *page_checksums_vfs(void);

/* Pages of this database get checksums when it has none yet, or by its next VACUUM. After the page
 * size was set, which forgets it. */
void page_checksums_wish(sqlite3 *db);
/* Whether its file has checksums; a file without any page has not. */
bool page_checksums_are(sqlite3 *db);
/* Pages that SQLite's backup copies come in any order: whether to's have checksums is known before
 * the first page, which says so, is written. */
void page_checksums_as(sqlite3 *to, sqlite3 *from);

/* In this thread the first page, which says where the others belong, is read as it is: who saves
 * what can be read of a damaged file compares what else it reads. */
void page_checksums_trust_first(bool trusts);

/* The page that failed last in this thread, from 1. */
uint32_t page_checksums_failed(void);

struct page_scan {
	bool has_checksums, has_part; /* part: the file ends within a page */
	uint32_t pages, damaged, first_damaged;
	uint32_t log_frames,
		log_damaged; /* of the write-ahead log: frames, with intact ones behind */
	bool is_log_torn;    /* the last one is not whole, as after a crash */
};

/* Reads all pages of the file, used or free, but those that the log beside it has anew, and the
 * log. The server may be running. False: it cannot be read, or is not a database. */
bool page_checksums_scan(const char *path, struct page_scan *scan, struct error *err);

/* Of one page: whether its checksum fits; for tests and fuzzing. number: from 1. */
bool page_checksums_fit(const uint8_t *page, uint32_t bytes, uint32_t number);

#endif
