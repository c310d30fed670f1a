/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/store/sqlite/intake/record_run.h"

#include <stdlib.h>

#include "symbol-server/store/sqlite/journal/journal.h"

static bool see_pair(void *context, const struct packed_pair *pair)
{
	struct pair_sums *sums = context;

	if (pair->thread >= sums->strings || !pair->stack || pair->stack >= sums->stacks)
		return false;
	if (sums->kept)
		sums->kept[sums->pairs] = *pair;
	sums->pairs++;
	sums->samples += pair->samples;
	sums->value += pair->value;
	return true;
}

bool record_run(struct buffer *scratch, const struct record_profile *profile,
		struct pair_sums *sums)
{
	buffer_clear(scratch);
	if (!packed_each(profile->samples.at, profile->samples.length, see_pair, sums))
		return false;
	buffer_append_varint(scratch, profile->samples.length);
	buffer_append(scratch, profile->samples.at, profile->samples.length);
	return !scratch->failed;
}

/* Entries have four bytes at least. */
bool record_run_of_raw(struct buffer *scratch, const struct record_profile *profile,
		       struct pair_sums *sums)
{
	const struct bytes *raw = &profile->samples;
	struct buffer packed;
	bool ok;

	buffer_init(&packed, JOURNAL_RECORD_MAX);
	buffer_clear(scratch);
	sums->kept = calloc(raw->length / 4 + 1, sizeof *sums->kept);
	ok = sums->kept && packed_each_raw(raw->at, raw->length, see_pair, sums);
	if (ok) {
		packed_encode(sums->kept, packed_merge(sums->kept, sums->pairs), &packed);
		buffer_append_varint(scratch, packed.length);
		buffer_append(scratch, packed.bytes, packed.length);
	}
	ok = ok && !packed.failed && !scratch->failed;
	buffer_release(&packed);
	free(sums->kept);
	return ok;
}
