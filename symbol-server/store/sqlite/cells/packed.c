/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/store/sqlite/cells/packed.h"

#include <stdlib.h>
#include <string.h>

static int compare_pairs(const void *a, const void *b)
{
	const struct packed_pair *x = a, *y = b;

	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	return (x->stack > y->stack) - (x->stack < y->stack);
}

size_t packed_merge(struct packed_pair *pairs, size_t count)
{
	size_t kept = 0;

	if (!count)
		return 0;
	qsort(pairs, count, sizeof *pairs, compare_pairs);
	for (size_t i = 0; i < count; i++) {
		if (kept && !compare_pairs(&pairs[kept - 1], &pairs[i])) {
			pairs[kept - 1].samples += pairs[i].samples;
			pairs[kept - 1].value += pairs[i].value;
		} else {
			pairs[kept++] = pairs[i];
		}
	}
	return kept;
}

static void encode_pair(const struct packed_pair *pair, uint32_t previous, uint64_t one,
			struct buffer *out)
{
	int64_t rest = (int64_t)(pair->value - pair->samples * one);

	buffer_append_varint(out, pair->stack - previous);
	buffer_append_varint(out, pair->samples << 1 | (rest != 0));
	if (rest)
		buffer_append_varint(out, zigzag_encode(rest));
}

void packed_encode(const struct packed_pair *pairs, size_t count, struct buffer *out)
{
	uint64_t one = count && pairs[0].samples ? pairs[0].value / pairs[0].samples : 0;
	uint32_t thread = 0;

	buffer_append_varint(out, one);
	for (size_t i = 0; i < count;) {
		uint32_t previous = 0;
		size_t end = i;

		while (end < count && pairs[end].thread == pairs[i].thread)
			end++;
		buffer_append_varint(out, pairs[i].thread - thread);
		buffer_append_varint(out, end - i);
		thread = pairs[i].thread;
		for (; i < end; i++) {
			encode_pair(&pairs[i], previous, one, out);
			previous = pairs[i].stack;
		}
	}
}

/* One stack of a thread; pair->stack holds the previous one's number. */
static bool decode_pair(const uint8_t **at, const uint8_t *end, uint64_t one,
			struct packed_pair *pair)
{
	uint64_t delta, counted, rest = 0;

	if (!varint_read(at, end, &delta) || !varint_read(at, end, &counted) ||
	    delta > UINT32_MAX - pair->stack)
		return false;
	if (counted & 1 && !varint_read(at, end, &rest))
		return false;
	pair->stack += (uint32_t)delta;
	pair->samples = counted >> 1;
	pair->value = pair->samples * one + (uint64_t)zigzag_decode(rest);
	return true;
}

bool packed_each(const uint8_t *at, size_t length, packed_pair_fn *fn, void *context)
{
	const uint8_t *end = length ? at + length : at;
	struct packed_pair pair = {0};
	uint64_t one, delta, count;

	if (!varint_read(&at, end, &one))
		return false;
	while (at < end) {
		if (!varint_read(&at, end, &delta) || !varint_read(&at, end, &count) ||
		    delta > UINT32_MAX - pair.thread)
			return false;
		pair.thread += (uint32_t)delta;
		pair.stack = 0;
		while (count--)
			if (!decode_pair(&at, end, one, &pair) || !fn(context, &pair))
				return false;
	}
	return true;
}

bool packed_each_run(const uint8_t *at, size_t length, packed_pair_fn *fn, void *context)
{
	const uint8_t *end = length ? at + length : at;
	uint64_t run;

	while (at < end) {
		if (!varint_read(&at, end, &run) || run > (size_t)(end - at) ||
		    !packed_each(at, (size_t)run, fn, context))
			return false;
		at += run;
	}
	return true;
}

/* --- accounting --- */

void account_encode(const struct packed_account *account, struct buffer *out)
{
	buffer_append_varint(out, account->host);
	buffer_append_varint(out, account->taken);
	buffer_append_varint(out, account->idle);
	buffer_append_varint(out, account->samples);
	buffer_append_varint(out, account->lost_count);
	for (unsigned i = 0; i < account->lost_count; i++) {
		buffer_append_varint(out, account->lost[i].reason);
		buffer_append_varint(out, account->lost[i].count);
	}
}

static void add_reason(struct packed_account *to, uint32_t reason, uint64_t count)
{
	unsigned i = 0;

	while (i < to->lost_count && to->lost[i].reason != reason)
		i++;
	if (i == BATCH_LOST_REASONS)
		i--;
	if (i == to->lost_count) {
		to->lost[i].reason = reason;
		to->lost[i].count = 0;
		to->lost_count++;
	}
	to->lost[i].count += count;
}

void account_add(struct packed_account *to, const struct packed_account *from)
{
	to->taken += from->taken;
	to->idle += from->idle;
	to->samples += from->samples;
	for (unsigned i = 0; i < from->lost_count; i++)
		add_reason(to, from->lost[i].reason, from->lost[i].count);
}

static int compare_accounts(const void *a, const void *b)
{
	const struct packed_account *x = a, *y = b;

	return (x->host > y->host) - (x->host < y->host);
}

void accounts_encode(struct packed_account *accounts, size_t count, struct buffer *out)
{
	if (count)
		qsort(accounts, count, sizeof *accounts, compare_accounts);
	for (size_t i = 0; i < count;) {
		struct packed_account sum = accounts[i];

		for (i++; i < count && accounts[i].host == sum.host; i++)
			account_add(&sum, &accounts[i]);
		account_encode(&sum, out);
	}
}

bool account_each(const uint8_t *at, size_t length, packed_account_fn *fn, void *context)
{
	const uint8_t *end = length ? at + length : at;

	while (at < end) {
		struct packed_account account = {0};
		uint64_t host, reasons, reason;

		if (!varint_read(&at, end, &host) || !varint_read(&at, end, &account.taken) ||
		    !varint_read(&at, end, &account.idle) ||
		    !varint_read(&at, end, &account.samples) || !varint_read(&at, end, &reasons) ||
		    reasons > BATCH_LOST_REASONS)
			return false;
		account.host = (uint32_t)host;
		account.lost_count = (unsigned)reasons;
		for (unsigned i = 0; i < account.lost_count; i++) {
			if (!varint_read(&at, end, &reason) ||
			    !varint_read(&at, end, &account.lost[i].count))
				return false;
			account.lost[i].reason = (uint32_t)reason;
		}
		if (!fn(context, &account))
			return false;
	}
	return true;
}
