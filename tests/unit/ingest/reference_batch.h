/* SPDX-License-Identifier: Apache-2.0 */
/* What the batch of the in-place reader means, as text. */
#ifndef TESTS_UNIT_INGEST_REFERENCE_BATCH_H
#define TESTS_UNIT_INGEST_REFERENCE_BATCH_H

#include <stdlib.h>
#include <string.h>

#include "common/buffer.h"
#include "symbol-server/ingest/ingest.h"

static void put_text(struct buffer *out, const char *at, size_t length)
{
	buffer_append_char(out, '"');
	for (size_t i = 0; i < length; i++)
		buffer_append_char(out, at[i]);
	buffer_append_char(out, '"');
}

static void put_id(struct buffer *out, const struct build_id *id)
{
	char hex[BUILD_ID_HEX];

	buffer_append_text(out, build_id_format(id, hex));
}

/* --- the batch --- */

static void tell_location(const struct sample_batch *batch, uint32_t number, struct buffer *out)
{
	const struct batch_location *location = &batch->locations[number];

	buffer_printf(out, "    %d ", location->kind);
	if (location->kind == LOCATION_NATIVE || location->kind == LOCATION_KERNEL ||
	    location->kind == LOCATION_RUNTIME)
		buffer_printf(out, "%llx ", (unsigned long long)location->address);
	if (location->module != UINT32_MAX) {
		const struct batch_module *module = &batch->modules[location->module];

		put_id(out, &module->id);
		buffer_append_char(out, ' ');
		put_id(out, &module->htlhash);
		put_text(out, module->name.at, module->name.length);
		put_text(out, module->go_id.at, module->go_id.length);
		buffer_printf(out, "%d", module->base);
	}
	put_text(out, location->function.at, location->function.length);
	put_text(out, location->file.at, location->file.length);
	put_text(out, location->type.at, location->type.length);
	buffer_printf(out, "%u\n", location->line);
}

static void tell_sample(const struct sample_batch *batch, const struct batch_sample *sample,
			struct buffer *out)
{
	const struct batch_stack *stack = &batch->stacks[sample->stack];

	buffer_append_text(out, "  sample ");
	put_text(out, sample->thread.at, sample->thread.length);
	buffer_printf(out, " %llu %llu\n", (unsigned long long)sample->samples,
		      (unsigned long long)sample->value);
	for (uint32_t i = 0; i < stack->depth; i++)
		tell_location(batch, batch->location_indices[stack->first_index + i], out);
}

static void tell_counters(const struct batch_counters *counters, struct buffer *out)
{
	buffer_append_text(out, "counters ");
	for (int i = 0; i < 16; i++)
		buffer_printf(out, "%02x", counters->agent_id[i]);
	put_text(out, counters->host.at, counters->host.length);
	put_text(out, counters->agent_version.at, counters->agent_version.length);
	put_text(out, counters->kernel_release.at, counters->kernel_release.length);
	buffer_printf(out, "rate %u seq %llu ack %llu taken %llu idle %llu time %lld + %lld",
		      counters->numbers.rate_hz, (unsigned long long)counters->numbers.seq,
		      (unsigned long long)counters->numbers.acknowledged,
		      (unsigned long long)counters->numbers.taken,
		      (unsigned long long)counters->numbers.idle,
		      (long long)counters->numbers.time_ms,
		      (long long)counters->numbers.duration_ms);
	for (unsigned i = 0; i < counters->numbers.lost_count; i++) {
		put_text(out, counters->lost[i].at, counters->lost[i].length);
		buffer_printf(out, "%llu", (unsigned long long)counters->numbers.lost[i]);
	}
	for (unsigned i = 0; i < counters->numbers.stacks_count; i++) {
		put_text(out, counters->stacks[i].at, counters->stacks[i].length);
		buffer_printf(out, "%llu", (unsigned long long)counters->numbers.stacks[i]);
	}
	buffer_append_char(out, '\n');
}

static void tell_batch(const struct sample_batch *batch, struct buffer *out)
{
	for (uint32_t i = 0; i < batch->profile_count; i++) {
		const struct batch_profile *profile = &batch->profiles[i];
		const struct batch_series *series = &batch->series[profile->series];

		buffer_printf(out, "profile %s %lld %d ", profile->type,
			      (long long)profile->time_ms, profile->is_counted);
		for (int k = 0; k < 16; k++)
			buffer_printf(out, "%02x", profile->id[k]);
		for (uint32_t k = 0; k < series->label_count; k++) {
			put_text(out, series->labels[k].name.at, series->labels[k].name.length);
			put_text(out, series->labels[k].value.at, series->labels[k].value.length);
		}
		buffer_append_char(out, '\n');
		for (uint32_t k = 0; k < profile->sample_count; k++)
			tell_sample(batch, &batch->samples[profile->first_sample + k], out);
	}
	for (uint32_t i = 0; i < batch->counters_count; i++)
		tell_counters(&batch->counters[i], out);
}

#endif
