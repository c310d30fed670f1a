/* SPDX-License-Identifier: Apache-2.0 */
/* Counted stacks of one (type, series, 60 s) as bytes, and host accounting likewise. Pure.
 *
 * Packed samples: LEB128 u = value of one sample, then per thread in rising order: difference of
 * the thread's string number, number of stacks, and for each stack in rising order the difference
 * of its number, samples × 2 + (1 if the value is not samples × u), and then value − samples × u as
 * zigzag. Runs, as they are collected: packed samples, each with its length before it. Raw samples,
 * in journals of servers before those: thread, stack, samples, value, again and again. */
#ifndef SYMBOL_SERVER_STORE_SQLITE_CELLS_PACKED_H
#define SYMBOL_SERVER_STORE_SQLITE_CELLS_PACKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buffer.h"
#include "symbol-server/store/samples_query.h"

struct packed_pair {
	uint32_t thread, stack; /* string and stack numbers of the day's catalog */
	uint64_t samples, value;
};

/* Sorts by thread and stack and adds up equal ones; returns how many are left. */
size_t packed_merge(struct packed_pair *pairs, size_t count);
/* pairs sorted and merged. */
void packed_encode(const struct packed_pair *pairs, size_t count, struct buffer *out);

/* Called for each pair. False stops the reading. */
typedef bool packed_pair_fn(void *context, const struct packed_pair *pair);
/* False: the bytes are not that format, or fn said so. */
bool packed_each(const uint8_t *at, size_t length, packed_pair_fn *fn, void *context);
bool packed_each_run(const uint8_t *at, size_t length, packed_pair_fn *fn, void *context);

/* What one report adds to a host's account in one bucket; reasons are string numbers. */
struct packed_account {
	uint32_t host;
	uint64_t taken, idle, samples;
	struct {
		uint32_t reason;
		uint64_t count;
	} lost[BATCH_LOST_REASONS];
	unsigned lost_count;
};

void account_encode(const struct packed_account *account, struct buffer *out);
/* Adds from to to; reasons without room are added to the last one. */
void account_add(struct packed_account *to, const struct packed_account *from);
/* Sorts them; of each host one goes out. */
void accounts_encode(struct packed_account *accounts, size_t count, struct buffer *out);
typedef bool packed_account_fn(void *context, const struct packed_account *account);
bool account_each(const uint8_t *at, size_t length, packed_account_fn *fn, void *context);

#endif
