/* SPDX-License-Identifier: Apache-2.0 */
/* How long to wait before the next try: 0.5 s doubling to 30 s, each a random part shorter so that
 * a fleet does not come back in one instant; a server's Retry-After is obeyed up to five minutes.
 */
#ifndef NODE_AGENT_SHIP_BACK_OFF_H
#define NODE_AGENT_SHIP_BACK_OFF_H

#include <stdint.h>

enum { BACK_OFF_FIRST_MS = 500, BACK_OFF_MOST_MS = 30000, RETRY_AFTER_MOST_S = 300 };

struct back_off {
	unsigned failures; /* in a row; set to 0 after a success */
};

/* Counts one more failure. retry_after_s: what the server asked for, −1 when nothing. */
int64_t back_off_next_ms(struct back_off *back_off, int64_t retry_after_s);

#endif
