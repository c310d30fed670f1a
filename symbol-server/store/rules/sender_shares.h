/* SPDX-License-Identifier: Apache-2.0 */
/* What each sender has of room that all share. A sender may have more for as long as it has less
 * than SENDER_SHARE times what is left: alone it gets three quarters, and there always is room for
 * one that has little, however much others want. */
#ifndef SYMBOL_SERVER_STORE_RULES_SENDER_SHARES_H
#define SYMBOL_SERVER_STORE_RULES_SENDER_SHARES_H

#include <stdbool.h>
#include <stdint.h>

#include "common/hash_table.h"

enum {
	SENDER_SHARE = 3,
	SENDERS_MAX = 64 << 10, /* further ones share a place */
};

struct sender_shares { /* zeroed to begin with */
	struct hash_table index;
	struct sender_share {
		uint64_t sender, used;
	} * rows;
	uint32_t count, room;
};

uint64_t sender_shares_used(const struct sender_shares *shares, uint64_t sender);
/* Without memory it is not counted. */
void sender_shares_add(struct sender_shares *shares, uint64_t sender, uint64_t amount);
void sender_shares_release(struct sender_shares *shares);

/* So much is left that nobody can have too much. */
static inline bool shares_are_free(uint64_t all, uint64_t limit)
{
	return all < limit / (SENDER_SHARE + 1) * SENDER_SHARE;
}

static inline bool share_allows(uint64_t used, uint64_t all, uint64_t limit)
{
	return all < limit && used / SENDER_SHARE < limit - all;
}

#endif
