/* SPDX-License-Identifier: Apache-2.0 */
/* How old samples are held to be, for whatever deletes by age. One wrong reading of the clock must
 * not delete what is kept for a year: at start the clock is believed up to AGING_BELIEVED_MS after
 * the newest day. A later moment, also one that the clock jumps to, is approached at some times the
 * speed of time. What is deleted too late meanwhile, because a server really was away for long, is
 * bounded by --max-disk. */
#ifndef SYMBOL_SERVER_STORE_RULES_AGING_H
#define SYMBOL_SERVER_STORE_RULES_AGING_H

#include <stdbool.h>
#include <stdint.h>

enum {
	AGING_BELIEVED_MS = 5 * 86400000,
	AGING_DAYS = 8, /* of the newest days as many as are looked at */
};

struct aging {                       /* zeroed to begin with */
	int64_t then_ms, elapsed_ms; /* the moment that age counts from; when it was set */
	int64_t behind_ms;           /* the clock; written atomically */
	bool is_told;
};

/* Start of the newest day that a right clock can have made: a few days far after those before them
 * are not. days: at most AGING_DAYS, the newest ones, rising, since 1970. 0: there is none. */
int64_t aging_newest_ms(const uint32_t *days, unsigned count);
/* Moves it on. newest_ms: as above. Says it in the log when the clock is not believed. */
void aging_turn(struct aging *aging, int64_t newest_ms, int64_t now_ms);
/* The same at a moment of the clock that nobody sets, and in silence. */
void aging_step(struct aging *aging, int64_t newest_ms, int64_t now_ms, int64_t elapsed_ms);

/* How far what age counts from is behind the clock. Under any lock or none. */
static inline int64_t aging_behind_ms(const struct aging *aging)
{
	return __atomic_load_n(&aging->behind_ms, __ATOMIC_RELAXED);
}

#endif
