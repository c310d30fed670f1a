/* SPDX-License-Identifier: Apache-2.0 */
/* Which times a single sample may have: a sample is kept with the minute in which its report
 * begins, and its own time may lie outside of it, for a report covers ten minutes at most, and
 * a stack may be finished after its interval. Times further away do not count, the samples do. */
#ifndef SYMBOL_SERVER_STORE_RULES_MOMENT_TIMES_H
#define SYMBOL_SERVER_STORE_RULES_MOMENT_TIMES_H

enum {
	MOMENT_BEFORE_MS = 600 * 1000,
	MOMENT_SPAN_MS = MOMENT_BEFORE_MS + 60 * 1000 + 600 * 1000, /* from so long before it */
};

#endif
