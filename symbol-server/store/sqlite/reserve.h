/* SPDX-License-Identifier: Apache-2.0 */
/* DIR/reserve: room that is held while there is plenty and given up when the disk is full, for what
 * makes room needs some itself: to open databases, to fold, to delete. While it is given up and
 * nothing came in its place, reports are refused, so that they do not take it. */
#ifndef SYMBOL_SERVER_STORE_SQLITE_RESERVE_H
#define SYMBOL_SERVER_STORE_SQLITE_RESERVE_H

#include <stdbool.h>
#include <stdint.h>

struct reserve_state {
	bool is_held, is_short; /* short: not held, and less is free than twice what it takes */
	uint64_t free_bytes;    /* for this process */
};

/* Holds it where that is possible: 1/16 of the disk, 4 to 64 MiB. */
struct reserve_state reserve_hold(const char *directory);
/* True: there was one. */
bool reserve_give_up(const char *directory);

#endif
