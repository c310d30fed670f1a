/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a journal segment, as a record, as definitions, as packed samples and accounts: what
 * a damaged disk may give back. */
#include "symbol-server/store/sqlite/journal/journal.h"
#include "symbol-server/store/sqlite/cells/moments.h"
#include "symbol-server/store/sqlite/journal/record.h"
#include "tests/fuzz/fuzz.h"

static bool see_pair(void *context, const struct packed_pair *pair)
{
	*(uint64_t *)context += pair->stack;
	return true;
}

static bool see_account(void *context, const struct packed_account *account)
{
	*(uint64_t *)context += account->lost_count;
	return true;
}

static bool see_moment(void *context, const struct moment *moment)
{
	*(uint64_t *)context += moment->time_ms;
	return true;
}

static bool read_record(void *context, uint64_t end, const uint8_t *bytes, size_t length)
{
	struct catalog *catalog = catalog_new();
	const uint8_t *at = bytes;
	struct record_item item;
	uint64_t sum = end;

	(void)context;
	while (catalog && record_next(&at, bytes + length, &item) && item.kind != RECORD_END) {
		if (item.kind == RECORD_DEFINITIONS) {
			const uint8_t *from = item.definitions.bytes.at;

			catalog_decode(catalog, item.definitions.kind, item.definitions.first,
				       item.definitions.count, &from,
				       from + item.definitions.bytes.length, NULL);
		} else if (item.kind == RECORD_PACKED) {
			packed_each(item.profile.samples.at, item.profile.samples.length, see_pair,
				    &sum);
		}
	}
	catalog_release(catalog);
	return true;
}

static void fuzz_one(const uint8_t *bytes, size_t length)
{
	uint64_t sum = 0;
	bool is_stopped;

	journal_read_segment(bytes, length, 1, read_record, NULL, &is_stopped);
	read_record(NULL, 0, bytes, length);
	packed_each(bytes, length, see_pair, &sum);
	packed_each_run(bytes, length, see_pair, &sum);
	account_each(bytes, length, see_account, &sum);
	moments_each(bytes, length, see_moment, &sum);
	moments_each_raw(bytes, length, see_moment, &sum);
}
