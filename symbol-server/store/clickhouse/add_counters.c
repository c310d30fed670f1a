/* SPDX-License-Identifier: Apache-2.0 */
/* Agents' counters of a batch → rows of reports, and what they add to this server's counters. */
#include "symbol-server/store/clickhouse/adding.h"

static void put_counts(struct buffer *out, const struct batch_count *counts, unsigned count)
{
	buffer_append_varint(out, count);
	for (unsigned i = 0; i < count; i++)
		row_put_text(out, counts[i].name);
	buffer_append_varint(out, count);
	for (unsigned i = 0; i < count; i++)
		row_put_u64(out, counts[i].count);
}

static void note_late(struct row_group *group, uint32_t tenant,
		      const struct batch_counters *counters)
{
	uint32_t minute = adder_minute(counters->time_ms);

	row_put_u32(&group->late, tenant);
	buffer_append(&group->late, counters->agent_id, sizeof counters->agent_id);
	row_put_u64(&group->late, counters->report_seq);
	row_put_u32(&group->late, minute);
	if (minute < group->first_late)
		group->first_late = minute;
}

void adder_put_counters(struct adder *adder, const struct batch_counters *counters)
{
	uint32_t minute = adder_minute(counters->time_ms);
	bool late = adder_is_late(adder, minute);
	struct buffer *out = &adder->group->tables[late ? GROUP_LATE_REPORTS : GROUP_REPORTS];

	if (!late)
		adder_note_bucket(adder, minute);
	if (counters->received_ms - counters->time_ms - counters->duration_ms > LATE_MS)
		note_late(adder->group, adder->batch->tenant, counters);

	row_put_u32(out, adder->batch->tenant);
	buffer_append(out, counters->agent_id, sizeof counters->agent_id);
	row_put_u32(out, minute);
	row_put_u64(out, counters->report_seq);
	row_put_text(out, counters->host);
	row_put_text(out, counters->agent_version);
	row_put_text(out, counters->kernel_release);
	row_put_u32(out, counters->rate_hz);
	row_put_u64(out, counters->acknowledged_seq);
	row_put_u64(out, counters->taken);
	row_put_u64(out, counters->idle);
	row_put_u64(out, adder->repeats.sent_samples);
	put_counts(out, counters->lost, counters->lost_count);
	put_counts(out, counters->stacks, counters->stacks_count);
	row_put_u64(out, (uint64_t)(counters->time_ms + counters->duration_ms));
	row_put_u64(out, (uint64_t)counters->received_ms);
	row_put_u64(out, (uint64_t)counters->sent_ms);
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
		.seq = counters->report_seq,
		.acknowledged = counters->acknowledged_seq,
		.stacks_count = counters->stacks_count,
		.lost_count = counters->lost_count,
		.received_ms = counters->received_ms,
	};
	struct agent_delta delta;

	for (unsigned i = 0; i < counters->stacks_count; i++) {
		report.stacks[i].name = terminated(&adder->arena, counters->stacks[i].name);
		report.stacks[i].count = counters->stacks[i].count;
	}
	for (unsigned i = 0; i < counters->lost_count; i++) {
		report.lost[i].reason = terminated(&adder->arena, counters->lost[i].name);
		report.lost[i].count = counters->lost[i].count;
	}
	if (!agent_table_apply(&adder->store->agents, &report, &delta))
		return;
	agent_report_count(&report, &delta, &adder->store->counters);
}
