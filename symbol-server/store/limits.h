/* SPDX-License-Identifier: Apache-2.0 */
/* What a question may take, watched while it is answered; the same for all engines and for what is
 * made of their answers. Time is of the monotonic clock: setting the time of day neither ends a
 * question nor lets it go on for ever. */
#ifndef SYMBOL_SERVER_STORE_LIMITS_H
#define SYMBOL_SERVER_STORE_LIMITS_H

#include "symbol-server/store/samples_query.h"

struct limit_watch { /* of one call */
	struct samples_limits limits;
	int64_t started_ms;
	bool (*is_cancelled)(void *context);
	void *context;
	uint64_t rows; /* read by this call */
	unsigned steps;
	struct error why; /* kind is set: a limit was met, or nobody waits any more */
};

/* Borrows what the query's is_cancelled() is given. */
void limit_watch_start(struct limit_watch *watch, const struct samples_query *query);

/* Whether somebody waits for the answer and time, rows and bytes allow so much; else ERROR_LIMIT,
 * ERROR_BUSY, which why keeps. */
bool limit_watch_allows(struct limit_watch *watch, uint64_t bytes, struct error *err);

/* The same, asked at each step of a loop and cheap there: it looks once in some hundred steps. */
bool limit_watch_goes_on(struct limit_watch *watch, struct error *err);

/* One row more was read. Their limit is exact, and looked at here. */
bool limit_watch_row(struct limit_watch *watch, struct error *err);

#endif
