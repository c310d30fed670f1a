/* SPDX-License-Identifier: Apache-2.0 */
/* How long to wait before the next try: 0.5 s doubling to 30 s, each a random part shorter so that
 * a fleet does not come back in one instant; a server's Retry-After is obeyed up to five minutes.
 */
#ifndef NODE_AGENT_NETWORK_BACK_OFF_H
#define NODE_AGENT_NETWORK_BACK_OFF_H

#include <stdint.h>

enum { BACK_OFF_FIRST_MS = 500, BACK_OFF_MOST_MS = 30000, RETRY_AFTER_MOST_S = 300 };

struct back_off {
	unsigned failures; /* in a row; set to 0 after a success */
};

/* Counts one more failure. retry_after_s: what the server asked for, −1 when nothing. */
int64_t back_off_next_ms(struct back_off *back_off, int64_t retry_after_s);

/* Between reports that waited: a server that came back has a whole fleet's hours to take, so each
 * sender begins slowly, goes faster while answers are quick and slower while they are not. */
enum {
	PACE_FIRST_MS = 500,
	PACE_LEAST_MS = 10,
	PACE_MOST_MS = 5000,
	PACE_QUICK_MS = 150,
	PACE_SLOW_MS = 500,
};

struct pace {
	int64_t gap_ms; /* 0: nothing was sent yet, or the last try failed */
};

/* After an answer that took so long: how long to wait now, each time a random part different. */
int64_t pace_next_ms(struct pace *pace, int64_t took_ms);

#endif
