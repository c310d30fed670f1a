/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/store/rules/sender_shares.h"

#include <stdlib.h>

#include "common/array.h"
#include <string.h>

#include "common/array.h"

static struct sender_share *find(const struct sender_shares *shares, uint64_t sender)
{
	uint64_t hash = hash_word(0, sender);

	HASH_TABLE_EACH(i, &shares->index, hash)
		if (shares->rows[i].sender == sender)
			return &shares->rows[i];
	return shares->count == SENDERS_MAX ? &shares->rows[SENDERS_MAX - 1] : NULL;
}

static struct sender_share *add(struct sender_shares *shares, uint64_t sender)
{
	if (!ARRAY_GROW(shares->rows, shares->count, shares->room))
		return NULL;
	if (!shares->count)
		hash_table_init(&shares->index, SENDERS_MAX);
	if (!hash_table_add(&shares->index, hash_word(0, sender), shares->count))
		return NULL;
	shares->rows[shares->count] = (struct sender_share){.sender = sender};
	return &shares->rows[shares->count++];
}

uint64_t sender_shares_used(const struct sender_shares *shares, uint64_t sender)
{
	const struct sender_share *share = shares->count ? find(shares, sender) : NULL;

	return share ? share->used : 0;
}

void sender_shares_add(struct sender_shares *shares, uint64_t sender, uint64_t amount)
{
	struct sender_share *share = shares->count ? find(shares, sender) : NULL;

	if (!share)
		share = add(shares, sender);
	if (share)
		share->used += amount;
}

void sender_shares_release(struct sender_shares *shares)
{
	if (shares->count)
		hash_table_release(&shares->index);
	free(shares->rows);
	memset(shares, 0, sizeof *shares);
}
