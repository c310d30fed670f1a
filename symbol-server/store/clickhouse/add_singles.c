/* SPDX-License-Identifier: Apache-2.0 */
/* What is kept of single samples beside their sums: when they were taken, and the spans that they
 * came with. */
#include <stdlib.h>

#include "symbol-server/store/clickhouse/adder.h"
#include "symbol-server/store/rules/moment_times.h"

/* --- times of single samples --- */

struct adder_time {
	struct moment_time at;
	const struct batch_sample *sample;
};

static int compare_times(const void *left, const void *right)
{
	const struct adder_time *a = left, *b = right;

	return (a->at.time_ms > b->at.time_ms) - (a->at.time_ms < b->at.time_ms);
}

/* Those that can be the report's; how many. */
static size_t collect_times(struct adder *adder, const struct batch_profile *profile,
			    struct adder_time *times)
{
	int64_t from_ms = moments_from_ms(profile->time_ms);
	size_t count = 0;

	for (uint32_t i = 0; i < profile->sample_count; i++) {
		const struct batch_sample *sample =
			&adder->batch->samples[profile->first_sample + i];

		for (uint32_t k = 0; k < sample->time_count; k++) {
			times[count].sample = sample;
			if (moment_time_get(adder->batch, sample, k, from_ms, &times[count].at))
				count++;
			else
				adder->store->counters.times_refused++;
		}
	}
	return count;
}

static void put_times(struct adder *adder, const struct adder_time *times, size_t count,
		      struct buffer *out)
{
	buffer_append_varint(out, count);
	for (size_t i = 0; i < count; i++)
		row_put_u64(out, (uint64_t)times[i].at.time_ms);
	buffer_append_varint(out, count);
	for (size_t i = 0; i < count; i++)
		row_put_u64(out, adder->batch->stacks[times[i].sample->stack].hash[0]);
	buffer_append_varint(out, count);
	for (size_t i = 0; i < count; i++)
		row_put_text(out, adder_context(times[i].sample));
	buffer_append_varint(out, count);
	for (size_t i = 0; i < count; i++)
		row_put_u64(out, times[i].at.value);
}

/* key: what put_key() wrote of the profile. */
static void put_moments(struct adder *adder, const struct batch_profile *profile,
			const uint8_t *key, size_t key_length)
{
	struct buffer *out = &adder->group->tables[GROUP_MOMENTS];
	struct adder_time *times;
	size_t count = 0;

	for (uint32_t i = 0; i < profile->sample_count; i++)
		count += adder->batch->samples[profile->first_sample + i].time_count;
	if (!count)
		return;
	times = calloc(count, sizeof *times);
	if (!times) {
		out->failed = true;
		return;
	}
	count = collect_times(adder, profile, times);
	qsort(times, count, sizeof *times, compare_times);
	if (count) {
		buffer_append(out, key, key_length);
		put_times(adder, times, count, out);
		adder->store->counters.moments += count;
	}
	free(times);
}

/* --- spans --- */

typedef void put_linked(struct adder *adder, const struct batch_sample *sample, struct buffer *out);

static void put_link(struct adder *adder, const struct batch_sample *sample, struct buffer *out)
{
	(void)adder;
	buffer_append(out, sample->link, SPAN_IDS_BYTES);
}

static void put_stack(struct adder *adder, const struct batch_sample *sample, struct buffer *out)
{
	row_put_u64(out, adder_define_stack(adder, sample->stack));
}

static void put_context(struct adder *adder, const struct batch_sample *sample, struct buffer *out)
{
	(void)adder;
	row_put_text(out, adder_context(sample));
}

static void put_samples(struct adder *adder, const struct batch_sample *sample, struct buffer *out)
{
	(void)adder;
	row_put_u64(out, sample->samples);
}

static void put_value(struct adder *adder, const struct batch_sample *sample, struct buffer *out)
{
	(void)adder;
	row_put_u64(out, sample->value);
}

static void put_spans(struct adder *adder, const struct batch_profile *profile, const uint8_t *key,
		      size_t key_length)
{
	static put_linked *const columns[] = {put_link, put_stack, put_context, put_samples,
					      put_value};
	const struct batch_sample *samples = &adder->batch->samples[profile->first_sample];
	struct buffer *out = &adder->group->tables[GROUP_SPANS];
	uint32_t count = 0;

	for (uint32_t i = 0; i < profile->sample_count; i++)
		count += samples[i].link != NULL;
	if (!count)
		return;
	buffer_append(out, key, key_length);
	for (size_t column = 0; column < sizeof columns / sizeof *columns; column++) {
		buffer_append_varint(out, count);
		for (uint32_t i = 0; i < profile->sample_count; i++)
			if (samples[i].link)
				columns[column](adder, &samples[i], out);
	}
}

void adder_put_singles(struct adder *adder, const struct batch_profile *profile, const uint8_t *key,
		       size_t key_length)
{
	put_moments(adder, profile, key, key_length);
	if (adder->store->trace_keep_ms)
		put_spans(adder, profile, key, key_length);
}
