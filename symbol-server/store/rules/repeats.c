/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/store/rules/repeats.h"

#include <string.h>

bool profile_has_id(const struct batch_profile *profile)
{
	static const uint8_t none[16];

	return memcmp(profile->id, none, sizeof none);
}

void repeats_init(struct repeats *repeats, const struct sample_batch *batch, bool *is_repeated)
{
	*repeats = (struct repeats){.batch = batch, .is_repeated = is_repeated};
	hash_table_init(&repeats->ids, UINT32_MAX >> 1);
}

/* Whether an earlier profile of the same batch has the same id. */
static bool is_twice(struct repeats *repeats, uint32_t number)
{
	const struct batch_profile *profiles = repeats->batch->profiles;
	uint64_t hash = hash_bytes(profiles[number].id, 16, 0);

	HASH_TABLE_EACH(i, &repeats->ids, hash)
		if (!memcmp(profiles[i].id, profiles[number].id, 16))
			return true;
	hash_table_add(&repeats->ids, hash, number);
	return false;
}

static uint64_t samples_of(const struct sample_batch *batch, const struct batch_profile *profile)
{
	uint64_t samples = 0;

	for (uint32_t i = 0; profile->is_counted && i < profile->sample_count; i++)
		samples += batch->samples[profile->first_sample + i].samples;
	return samples;
}

bool repeats_find(struct repeats *repeats, const struct report_window *window, uint64_t committed,
		  struct error *err)
{
	const struct sample_batch *batch = repeats->batch;

	for (uint32_t i = 0; i < batch->profile_count; i++) {
		const struct batch_profile *profile = &batch->profiles[i];
		enum report_seen seen = REPORT_NEW;
		bool is_copy = profile_has_id(profile) && is_twice(repeats, i);
		uint64_t samples = samples_of(batch, profile);

		if (profile_has_id(profile))
			seen = report_window_find(window, batch->tenant, profile->id, committed);
		if (seen == REPORT_PENDING)
			return error_set(err, ERROR_BUSY,
					 "the same report is being written by another request");
		repeats->is_repeated[i] = seen == REPORT_SEEN || is_copy;
		repeats->count += repeats->is_repeated[i];
		repeats->new_samples += repeats->is_repeated[i] ? 0 : samples;
		repeats->sent_samples += is_copy ? 0 : samples;
	}
	return true;
}

struct report_run repeats_run(const struct repeats *repeats, uint32_t first)
{
	const struct sample_batch *batch = repeats->batch;
	const struct batch_profile *profiles = batch->profiles;
	uint32_t number = report_number(profiles[first].id);
	struct report_run run = {.tenant = batch->tenant, .first = number};

	memcpy(run.prefix, profiles[first].id, sizeof run.prefix);
	for (uint32_t i = first; i < batch->profile_count && !repeats->is_repeated[i]; i++) {
		if (memcmp(profiles[i].id, run.prefix, sizeof run.prefix) ||
		    report_number(profiles[i].id) != number + run.count)
			break;
		run.count++;
	}
	return run;
}

bool report_run_has(const struct report_run *run, const struct batch_profile *profile)
{
	return run->count && !memcmp(profile->id, run->prefix, sizeof run->prefix) &&
	       report_number(profile->id) - run->first < run->count;
}

bool repeats_remember(const struct repeats *repeats, struct report_window *window, uint64_t group)
{
	const struct sample_batch *batch = repeats->batch;
	struct report_run run = {.count = 0};

	for (uint32_t i = 0; i < batch->profile_count; i++) {
		if (repeats->is_repeated[i] || !profile_has_id(&batch->profiles[i]) ||
		    report_run_has(&run, &batch->profiles[i]))
			continue;
		run = repeats_run(repeats, i);
		run.group = group;
		if (!report_window_add(window, &run))
			return false;
	}
	return true;
}

void repeats_release(struct repeats *repeats)
{
	hash_table_release(&repeats->ids);
}
