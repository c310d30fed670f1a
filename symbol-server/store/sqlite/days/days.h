/* SPDX-License-Identifier: Apache-2.0 */
/* The days and months that there are, who uses them, and their files.
 *
 * Two locks: the store's guards what dictionaries have in them, which reports add to, beside the
 * open group and the tables in memory; the set's guards everything here. Who needs both takes the
 * store's first. Under neither is a file touched, read or closed, nor a dictionary freed: a day is
 * used (users), or what goes is taken out of it, and the work is done outside. Who uses a day keeps
 * it, its dictionary and its numbers. */
#ifndef SYMBOL_SERVER_STORE_SQLITE_DAYS_DAYS_H
#define SYMBOL_SERVER_STORE_SQLITE_DAYS_DAYS_H

#include <pthread.h>

#include "common/log.h"
#include "symbol-server/store/rules/aging.h"
#include "symbol-server/store/sqlite/days/day_file.h"

enum {
	IDLE_READERS = 4,
	CATALOG_IDLE_MS = 600000,   /* a day's dictionary nobody used for so long leaves memory */
	CATALOG_PRESSED_MS = 60000, /* likewise, that ingest added to, when room is short */
	WRITTEN_LATELY_MS = 60000,  /* such a day's file is not written anew */
	DAYS_MAX = 4096,
	MONTHS_MAX = 256,
};

struct sqlite_samples;

struct day {
	uint32_t day;
	bool has_file, is_gone; /* gone: deleted, freed when its last user leaves */
	bool is_detached;       /* its file has no name for a moment: nobody opens it */
	bool is_loading;        /* somebody reads its dictionary */
	uint64_t folded_through;
	struct catalog *catalog;     /* NULL: not in memory. Stays while the day is used */
	int64_t used_ms, written_ms; /* by anyone; by ingest */
	unsigned users;              /* queries reading it, reports on their way to memory */
	size_t dictionary_bytes;     /* counted in the set's sums; is_written: in both */
	bool is_written;             /* ingest added to it since it was read */
	struct day_reader *idle[IDLE_READERS];
	unsigned idle_count;
	struct day *next_gone; /* retention.c's */
	/* The fold thread's: folds that have their roll-ups; when it should look again. */
	uint64_t rolled_through;
	unsigned set_asides; /* of damaged files */
	bool is_being_saved; /* one of them, just now */
	bool is_month;       /* of the set's months: the file has hours, day is its first */
	bool is_reduced;     /* its minutes are gone, its roll-ups are kept */
	bool names_due;      /* samples were deleted from the file: it is to be written anew */
	int64_t erase_retry_ms;
	struct log_fault not_rolled_up;
	int64_t rollup_due_ms, rollup_retry_ms, rolled_late_ms;
	int64_t behind_ms; /* when its oldest bucket without a roll-up was due; 0: none */
	/* Folds that all hours of the month's file go through; that were looked at; when to look.
	 */
	uint64_t hours_through, hours_seen;
	int64_t hours_due_ms;
};

struct day_set {
	pthread_mutex_t lock;
	pthread_cond_t changed; /* a file has its name again, a dictionary was read */
	struct day **at;        /* sorted */
	unsigned count;
	struct day *months[MONTHS_MAX]; /* sorted */
	unsigned month_count;
	uint32_t month_begun; /* the day on which --max-disk took the hours of all days before */
	/* Of all dictionaries, and of those that ingest adds to, which are the ones it is held to:
	 * the others are read again when they are asked for. */
	uint64_t dictionary_bytes, written_bytes;
	unsigned deletions; /* days being deleted from: numbers of dictionaries stay till then */
	struct aging aging;
};

/* False: no memory. */
bool days_init(struct day_set *days);
void days_release(struct day_set *days);

void store_lock_days(struct sqlite_samples *store);
void store_unlock_days(struct sqlite_samples *store);
/* The store's and the set's. */
void store_lock_all(struct sqlite_samples *store);
void store_unlock_all(struct sqlite_samples *store);

/* ---- which there are (days.c); under the set's lock but for the first two ---- */

/* Path of the day's or the month's file. */
void store_day_path(const struct sqlite_samples *store, const struct day *day, char *path,
		    size_t room);
/* Finds the files in the directory, when the store is opened. */
bool store_find_days(struct sqlite_samples *store, struct error *err);
struct day *store_find_day(struct sqlite_samples *store, uint32_t day);
/* Days, then months: NULL from the end on. */
struct day *store_day_at(const struct sqlite_samples *store, unsigned number);
/* The day or month leaves the list, and memory with its last user, of whom the caller is one: its
 * file is the caller's to delete before it leaves. Under both locks. */
void store_drop_day(struct sqlite_samples *store, struct day *day);

/* ---- who uses them; no lock is held ---- */

/* The day, made if it is new, with its dictionary in memory and ready to be added to; a damaged
 * file is set aside, for which has_files_locked says whether file_lock is held. A use, until
 * store_leave_day(). NULL: err says why. */
struct day *store_open_day(struct sqlite_samples *store, uint32_t day, bool has_files_locked,
			   struct error *err);
/* Frees it when it is gone and nobody else uses it. */
void store_leave_day(struct sqlite_samples *store, struct day *day);
/* The day's dictionary, read when it is not in memory; is_added_to: ready for that. A reference.
 * ERROR_FORMAT: the file is damaged. */
struct catalog *store_load_day(struct sqlite_samples *store, struct day *day, bool is_added_to,
			       struct error *err);
/* Nobody uses it and, if given, may() says so, under both locks: its file is about to be replaced,
 * and nobody opens it before store_attach_day(). False: it is used, or may() says no. */
bool store_detach_day(struct sqlite_samples *store, struct day *day,
		      bool (*may)(struct sqlite_samples *, struct day *));
/* took(), if given, is called under both locks; the dictionary that it returns is released. */
void store_attach_day(struct sqlite_samples *store, struct day *day,
		      struct catalog *(*took)(struct sqlite_samples *, struct day *));

/* ---- connections that rest ---- */

/* One that was kept, or NULL. Under the set's lock. */
struct day_reader *day_take_reader(struct day *day);
/* It is kept or closed; seen: store_set_asides() of when it was opened. No lock held, as below. */
void store_give_reader(struct sqlite_samples *store, struct day *day, struct day_reader *reader,
		       unsigned seen);
void store_close_readers(struct sqlite_samples *store, struct day *day);

/* ---- memory of dictionaries; under the set's lock, and the store's where others may add ---- */

/* After the day's dictionary grew, came or went. */
void store_count_dictionary(struct sqlite_samples *store, struct day *day);
/* A report adds to it. */
void store_count_written(struct sqlite_samples *store, struct day *day);
/* It leaves the day: the caller releases it, without the locks. */
struct catalog *store_take_dictionary(struct sqlite_samples *store, struct day *day);

/* ---- damage (dictionaries.c); no lock held ---- */

/* At opening: a crash came between setting a file aside and putting what was saved in its place. */
void store_put_saved(const struct sqlite_samples *store);
/* How often a file of the day was damaged; before looking at the file. */
unsigned store_set_asides(struct sqlite_samples *store, const struct day *day);
/* Renames a damaged file to *.damaged; what can be read of it takes its place, what is lost is in
 * its accounts. seen: store_set_asides() of when it was looked at. file_lock is held. */
void store_set_aside(struct sqlite_samples *store, struct day *day, unsigned seen, const char *why);

#endif
