/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a request: the reader refuses or fills a batch whose every reference is inside it.
 */
#include "symbol-server/ingest/ingest.h"
#include "tests/fuzz/fuzz.h"

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void check_batch(const struct sample_batch *batch)
{
	for (uint32_t i = 0; i < batch->profile_count; i++) {
		const struct batch_profile *profile = &batch->profiles[i];

		must(profile->series < batch->series_count);
		must(profile->first_sample + (uint64_t)profile->sample_count <=
		     batch->sample_count);
	}
	for (uint32_t i = 0; i < batch->sample_count; i++)
		must(batch->samples[i].stack < batch->stack_count);
	for (uint32_t i = 0; i < batch->stack_count; i++)
		must(batch->stacks[i].depth <= SAMPLES_DEPTH_MAX &&
		     batch->stacks[i].first_index + (uint64_t)batch->stacks[i].depth <=
			     batch->location_index_count);
	for (uint32_t i = 0; i < batch->location_index_count; i++)
		must(batch->location_indices[i] < batch->location_count);
	for (uint32_t i = 0; i < batch->location_count; i++)
		must(batch->locations[i].module == UINT32_MAX ||
		     batch->locations[i].module < batch->module_count);
	for (uint32_t i = 0; i < batch->series_count; i++)
		must(batch->series[i].label_count <= SAMPLES_LABELS_MAX);
}

static void fuzz_one(const uint8_t *bytes, size_t length)
{
	struct ingest_rejects rejects;
	struct sample_batch batch;
	struct error err = {0};
	struct arena arena;

	arena_init(&arena, 32 << 20);
	if (ingest_read(bytes, length, "192.0.2.1", 1795222560000, 0, &arena, &batch, &rejects,
			&err))
		check_batch(&batch);
	else
		must(err.kind == ERROR_FORMAT || err.kind == ERROR_LIMIT);
	arena_release(&arena);
}
