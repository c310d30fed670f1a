/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a question is answered of roll-ups (sums of ten minutes and of hours, which have no
 * threads, and of fleets no labels of instances), and what of each kind is still kept. Times are
 * unix milliseconds. Pure. */
#ifndef SYMBOL_SERVER_STORE_RULES_ROLLUP_CHOICE_H
#define SYMBOL_SERVER_STORE_RULES_ROLLUP_CHOICE_H

#include "symbol-server/store/rules/aging.h"
#include "symbol-server/store/samples.h"

enum {
	ROLLUP_BUCKET_MS = 10 * SAMPLES_BUCKET_MS, /* of the finer ones; the others are of hours */
	ROLLUP_CLOSED_MS = 60000, /* it is over so long after its end: what comes then is late */
	ROLLUP_LATE_PAUSE_MS =
		300000, /* late samples are collected so long, then it is made anew */
	/* Shorter ranges are not asked of hours: their days' dictionaries are fewer without the
	 * months'. */
	ROLLUP_HOURS_FROM_MS = 3 * 86400000,
};

struct rollup_wants {
	bool sums;        /* nothing that they lack is asked */
	bool hours;       /* nor what those of ten minutes tell apart */
	bool by_instance; /* labels that a fleet's sums are without */
};
struct rollup_wants rollup_wants_of(const struct samples_query *query);

struct rollup_kept { /* from when on; 0: all */
	int64_t from_ms[SAMPLES_RESOLUTIONS];
};
/* By a clock that is believed. Roll-ups without a time of their own are kept as long as what they
 * were made of. */
struct rollup_kept rollup_kept_at(const int64_t keep_ms[SAMPLES_RESOLUTIONS],
				  const struct aging *aging, int64_t now_ms);
/* Roll-ups are kept longer than minutes. */
bool rollup_outlives_minutes(const int64_t keep_ms[SAMPLES_RESOLUTIONS]);
/* Of a day that ends then there are hours, and nothing finer. */
bool rollup_has_hours_only(const struct rollup_kept *kept, int64_t day_end_ms);

struct rollup_bucket {
	int64_t start_ms;
	bool is_whole;    /* all of it is asked for */
	bool is_made;     /* there is a sum */
	bool has_minutes; /* where what is asked for begins */
};
/* It is read as a sum, not as minutes. */
bool rollup_is_taken(const struct rollup_wants *wants, const struct rollup_kept *kept,
		     const struct rollup_bucket *bucket);

/* The time, or the first whole unit that is kept, at most until_ms. */
int64_t rollup_first_kept_ms(int64_t from_ms, int64_t until_ms, int64_t kept_ms, int64_t unit_ms);

#endif
