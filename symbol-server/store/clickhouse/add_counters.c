/* SPDX-License-Identifier: Apache-2.0 */
/* Agents' counters of a batch → rows of reports, and what they add to this server's counters. */
#include "symbol-server/store/clickhouse/adder.h"

static void put_counts(struct buffer *out, const struct text *names, const uint64_t *counts,
		       unsigned count)
{
	buffer_append_varint(out, count);
	for (unsigned i = 0; i < count; i++)
		row_put_text(out, names[i]);
	buffer_append_varint(out, count);
	for (unsigned i = 0; i < count; i++)
		row_put_u64(out, counts[i]);
}

static void note_late(struct row_group *group, uint32_t tenant,
		      const struct batch_counters *counters)
{
	uint32_t minute = adder_minute(counters->numbers.time_ms);

	row_put_u32(&group->late, tenant);
	buffer_append(&group->late, counters->agent_id, sizeof counters->agent_id);
	row_put_u64(&group->late, counters->numbers.seq);
	row_put_u32(&group->late, minute);
	if (minute < group->first_late)
		group->first_late = minute;
}

void adder_put_counters(struct adder *adder, const struct batch_counters *counters)
{
	const struct agent_numbers *numbers = &counters->numbers;
	uint32_t minute = adder_minute(numbers->time_ms);
	bool late = adder_is_late(adder, minute);
	struct buffer *out = &adder->group->tables[late ? GROUP_LATE_REPORTS : GROUP_REPORTS];

	if (!late)
		adder_note_bucket(adder, minute);
	if (numbers->received_ms - agent_numbers_end_ms(numbers) > LATE_MS)
		note_late(adder->group, adder->batch->tenant, counters);

	row_put_u32(out, adder->batch->tenant);
	buffer_append(out, counters->agent_id, sizeof counters->agent_id);
	row_put_u32(out, minute);
	row_put_u64(out, numbers->seq);
	row_put_text(out, counters->host);
	row_put_text(out, counters->agent_version);
	row_put_text(out, counters->kernel_release);
	row_put_u32(out, numbers->rate_hz);
	row_put_u64(out, numbers->acknowledged);
	row_put_u64(out, numbers->taken);
	row_put_u64(out, numbers->idle);
	row_put_u64(out, adder->repeats.sent_samples);
	put_counts(out, counters->lost, numbers->lost, numbers->lost_count);
	put_counts(out, counters->stacks, numbers->stacks, numbers->stacks_count);
	row_put_u64(out, (uint64_t)agent_numbers_end_ms(numbers));
	row_put_u64(out, (uint64_t)numbers->received_ms);
	row_put_u64(out, (uint64_t)numbers->sent_ms);
}

static const char *terminated(struct arena *arena, struct text text)
{
	const char *copy = arena_text(arena, text.at, text.length);

	return copy ? copy : "";
}

void adder_count_report(struct adder *adder, const struct batch_counters *counters)
{
	struct agent_report report = {
		.tenant = adder->batch->tenant,
		.id = counters->agent_id,
		.host = "",
		.version = "",
		.kernel = "",
		.numbers = &counters->numbers,
	};
	struct agent_delta delta;

	for (unsigned i = 0; i < counters->numbers.stacks_count; i++)
		report.stacks[i] = terminated(&adder->arena, counters->stacks[i]);
	for (unsigned i = 0; i < counters->numbers.lost_count; i++)
		report.lost[i] = terminated(&adder->arena, counters->lost[i]);
	if (!agent_table_apply(&adder->store->agents, &report, &delta))
		return;
	agent_report_count(&report, &delta, &adder->store->counters);
}
