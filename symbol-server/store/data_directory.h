/* SPDX-License-Identifier: Apache-2.0 */
/* Looking after a data directory from outside: by a process of its own, beside a running server or
 * without one. Nothing in the directory is changed, but by data_repair(). */
#ifndef SYMBOL_SERVER_STORE_DATA_DIRECTORY_H
#define SYMBOL_SERVER_STORE_DATA_DIRECTORY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "common/error.h"

struct backup_report {
	unsigned databases, journal_segments, files; /* files: debug files that were uploaded */
	unsigned linked;  /* of databases and files: as in the base, not copied */
	unsigned damaged; /* databases that could not be read and are not in the copy */
	uint64_t bytes;
	int64_t locked_ms; /* how long a running server could not fold */
};

/* Copies what `farflame-server --data to` can be started on: the databases as of one moment between
 * two folds (SQLite's online backup), the journal as of that moment, so everything that was
 * acknowledged before the call, and uploaded files; what can be made again is left out. Written to
 * TO.partial and renamed when all of it is on disk: a directory of the name TO is whole. On failure
 * nothing is left. ERROR_CONFLICT: TO is there and not empty, or TO.partial is somebody else's.
 * base: an earlier backup of the same directory on the same disk; files that did not change since
 * are hard links to its own. NULL: everything is copied. */
bool data_backup(const char *data, const char *to, const char *base, struct backup_report *report,
		 struct error *err);

/* Why a server must not be started there: it is what a backup left that was killed, or shares files
 * with another backup. ERROR_CONFLICT. */
bool data_is_whole(const char *data, struct error *err);

struct verify_report {
	unsigned files, damaged, newer; /* newer: written by a later version, not read */
	uint64_t rows, samples, journal_records;
};

/* Reads everything: each database by SQLite's own check, each packed row, its sums and what it
 * refers to, each record of the journal. One line per file on out. False only when the directory
 * cannot be read; damage is counted. */
bool data_verify(const char *data, FILE *out, struct verify_report *report, struct error *err);

struct repair_report {
	unsigned damaged; /* files */
	uint64_t samples_kept, samples_lost;
};

/* Of each damaged file what can be kept of it and what will be lost, a line on out; with drops it
 * is done: the file is renamed to *.damaged, what was saved takes its place, and what is lost is in
 * the accounts. The journal is folded into the days first, and its damaged segments are deleted.
 * Without drops nothing is changed. ERROR_CONFLICT: a server runs there. */
bool data_repair(const char *data, bool drops, FILE *out, struct repair_report *report,
		 struct error *err);

#endif
