/* SPDX-License-Identifier: Apache-2.0 */
/* samples-YYYYMMDD.db: writing what a fold brings, reading what a query wants. */
#ifndef SYMBOL_SERVER_STORE_SQLITE_DAYS_DAY_FILE_H
#define SYMBOL_SERVER_STORE_SQLITE_DAYS_DAY_FILE_H

#include "symbol-server/store/sqlite/dictionary/catalog.h"
#include "symbol-server/store/sqlite/cells/packed.h"
#include "symbol-server/store/sqlite/database.h"

enum {
	MINUTES_PER_DAY = 1440,
	ROLLUP_MINUTES = 10,
	ROLLUPS_PER_DAY = MINUTES_PER_DAY / ROLLUP_MINUTES,
};
static const int64_t day_ms = 86400000;

/* Numbers on disk (samples_0002.sql): stay. */
enum day_level {
	DAY_RAW,       /* samples and accounts as folded */
	DAY_10M,       /* ten minutes of each series, threads as one */
	DAY_10M_FLEET, /* the same of series without the labels that name one instance */
	DAY_1H,
	DAY_1H_FLEET,
	DAY_1D, /* accounts only */
};

/* DIR/samples-YYYYMMDD.db; path has room for it. */
void day_file_path(const char *directory, uint32_t day, char *path, size_t room);
/* "samples-YYYYMMDD.db" → day. */
bool day_file_parse(const char *name, uint32_t *day);

/* Opens for writing, made or migrated; for what has nothing to do with folding. */
sqlite3 *day_file_create(const char *path, struct error *err);

/* ---- writing: one at a time, the fold thread's ---- */

struct day_writer {
	sqlite3 *db;
	sqlite3_stmt *put_definitions, *put_samples, *put_accounts;
	struct buffer data;
	int64_t fold;
	bool is_touched[ROLLUPS_PER_DAY]; /* got rows: roll-ups of these have to follow */
};

/* Opens the file, begins a transaction. *folded_through: what the file had before; when that is
 * fold or more, there is nothing to write and the writer is to be closed without commit. */
bool day_writer_begin(struct day_writer *writer, const char *path, uint64_t fold,
		      uint64_t *folded_through, struct error *err);
/* Numbers from … below to, of all kinds. */
bool day_writer_definitions(struct day_writer *writer, const struct catalog *catalog,
			    const struct catalog_mark *from, const struct catalog_mark *to,
			    struct error *err);
struct day_row {
	uint32_t tenant, type, bucket, series;
	uint64_t samples, value;
};
/* pairs sorted and merged. */
bool day_writer_samples(struct day_writer *writer, const struct day_row *row,
			const struct packed_pair *pairs, size_t count, struct error *err);
/* data: account_encode()d, one per host. */
bool day_writer_accounts(struct day_writer *writer, const struct day_row *row,
			 const struct buffer *data, struct error *err);
bool day_writer_commit(struct day_writer *writer, uint32_t day, struct error *err);
/* Rolls back what is not committed. */
void day_writer_close(struct day_writer *writer);

/* ---- reading ---- */

struct day_reader { /* one connection; between begin and end it sees one state of the file */
	sqlite3 *db;
	bool is_reduced;  /* its minutes were deleted, its roll-ups were kept */
	bool has_rollups; /* the tables of roll-ups: a file as an earlier version left it has none
			   */
	bool has_moments; /* likewise, of the table of single samples' times */
	bool has_spans;   /* and of that of samples with a trace */
	sqlite3_stmt *scan, *scan_series, *accounts;
	sqlite3_stmt *rollups, *rollups_series, *rollup_accounts, *marks;
};

struct day_reader *day_reader_open(const char *path, struct error *err);
/* The same of a damaged file, in a transaction: what its facts do not say any more is 0. */
struct day_reader *day_reader_open_damaged(const char *path, uint64_t *folded_through,
					   struct error *err);
void day_reader_close(struct day_reader *reader); /* NULL is fine */
bool day_reader_begin(struct day_reader *reader, uint64_t *folded_through, struct error *err);
void day_reader_end(struct day_reader *reader);

/* Adds every definition to the catalog; its marks say then that all is logged and persisted. */
bool day_reader_catalog(struct day_reader *reader, struct catalog *catalog, struct error *err);

/* What the roll-ups of a bucket have: everything with folds up to through. newest: the last fold
 * with something of that bucket. */
struct day_mark {
	uint32_t bucket; /* minute */
	uint64_t through, newest;
};
typedef bool day_mark_fn(void *context, const struct day_mark *mark);
bool day_reader_marks(struct day_reader *reader, day_mark_fn *fn, void *context, struct error *err);

struct day_range {
	uint32_t tenant, type;
	uint32_t from, until; /* minutes of the day, until excluded */
	enum day_level level;
	uint64_t above; /* only rows with later folds */
};
struct day_data { /* of one row; valid during the call */
	const void *data, *hosts;
	size_t length, hosts_length;
};
/* Called per row; data without the hosts is empty unless with_data. False stops with success. */
typedef bool day_row_fn(void *context, const struct day_row *row, const struct day_data *data);
/* series: sorted numbers that are wanted, count of them; NULL: all. is_wanted is asked before data
 * is touched. */
bool day_reader_samples(struct day_reader *reader, const struct day_range *range,
			const uint32_t *series, uint32_t series_count, bool with_data,
			bool (*is_wanted)(void *context, uint32_t series), day_row_fn *fn,
			void *context, struct error *err);
bool day_reader_accounts(struct day_reader *reader, const struct day_range *range, day_row_fn *fn,
			 void *context, struct error *err);

#endif
