/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <string.h>

#include "symbol-server/api/metrics_text.h"

/* No value before an agent reported one. */
static void put_walks(struct buffer *out, const struct samples_counters *samples)
{
	metrics_describe(
		out, "agent_stacks_total", "counter",
		"Stacks that agents reported since this server's start, by how the walk ended.");
	for (unsigned i = 0; i < samples->walk_count; i++)
		metrics_put_labelled(out, "agent_stacks_total", "result", samples->walks[i].name,
				     samples->walks[i].count);
}

static void put_loss(struct buffer *out, const char *reason, uint64_t count)
{
	metrics_put_labelled(out, "agent_lost_samples_total", "reason", reason, count);
}

/* The reasons that schema/README.md names are there before anything was lost: increase() does not
 * see the first value of a series that is born with it. */
static void put_losses(struct buffer *out, const struct samples_counters *samples)
{
	static const char *const known[] = {"ring_full", "no_scratch", "aggregate_full",
					    "malformed", "queue",      "refused",
					    "spool"};
	bool is_told[BATCH_LOST_REASONS] = {false};

	metrics_describe(
		out, "agent_lost_samples_total", "counter",
		"Samples that agents reported as lost since this server's start, by reason.");
	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		uint64_t count = 0;

		for (unsigned at = 0; at < samples->lost_count; at++)
			if (!strcmp(samples->lost[at].name, known[i])) {
				count = samples->lost[at].count;
				is_told[at] = true;
			}
		put_loss(out, known[i], count);
	}
	for (unsigned at = 0; at < samples->lost_count; at++)
		if (!is_told[at])
			put_loss(out, samples->lost[at].name, samples->lost[at].count);
}

static void put_retention(struct buffer *out, const struct samples_counters *samples)
{
	static const char *const levels[] = {"raw", "10m", "1h"};

	metrics_describe(
		out, "store_level_bytes", "gauge",
		"Bytes of files on disk: with minutes, with 10-minute roll-ups only, with hours.");
	for (int i = 0; i < SAMPLES_RESOLUTIONS; i++)
		buffer_printf(out, "farflame_server_store_level_bytes{level=\"%s\"} %" PRIu64 "\n",
			      levels[i], samples->level_bytes[i]);
	COUNTER("day_files_reduced_total", samples->days_reduced,
		"Days whose minutes were deleted and whose roll-ups are kept.");
	COUNTER("day_files_deleted_total", samples->days_deleted, "Files of days deleted.");
	COUNTER("month_files_deleted_total", samples->months_deleted,
		"Files of hours of a month deleted.");
	GAUGE("rollup_lag_seconds", samples->rollup_lag_ms / 1000,
	      "Since when the oldest roll-up that is missing is due.");
	COUNTER("rollup_pairs_total", samples->rollup_pairs, "Counted stacks rolled up.");
	metrics_describe(out, "rollup_cpu_seconds_total", "counter",
			 "CPU time of making roll-ups.");
	buffer_printf(out, "farflame_server_rollup_cpu_seconds_total %.3f\n",
		      (double)samples->rollup_cpu_us / 1e6);
	if (samples->forecast_bytes)
		GAUGE("store_forecast_bytes", samples->forecast_bytes,
		      "Where disk use of samples ends under --retention at the present rate.");
	if (samples->disk_full_seconds)
		GAUGE("store_disk_full_seconds", samples->disk_full_seconds,
		      "When --max-disk is reached at the present rate, before --retention does "
		      "it.");
}

void metrics_put_samples(struct buffer *out, struct samples_store *store)
{
	struct samples_counters samples;

	samples_counters(store, &samples);
	COUNTER("reports_total", samples.reports, "Requests with profiles stored.");
	COUNTER("profiles_total", samples.profiles, "Profiles stored.");
	COUNTER("profiles_duplicate_total", samples.duplicates,
		"Profiles left out because their profile_id was seen before.");
	COUNTER("samples_total", samples.samples, "Samples stored.");
	COUNTER("reports_refused_busy_total", samples.refused_busy,
		"Requests with profiles refused because of load.");
	COUNTER("journal_bytes_total", samples.journal_bytes, "Bytes written to the journal.");
	COUNTER("journal_syncs_total", samples.journal_syncs, "Journal writes made durable.");
	COUNTER("folds_total", samples.folds, "Times the journal was folded into day files.");
	GAUGE("fold_lag_seconds", samples.unfolded_ms / 1000,
	      "Since when samples wait in the journal for their day's file.");
	COUNTER("fold_errors_total", samples.fold_errors, "Folds that failed and are tried again.");
	COUNTER("journal_replayed_total", samples.replayed, "Records replayed at start.");
	GAUGE("disk_bytes", samples.disk_bytes, "Bytes of samples on disk.");
	GAUGE("day_files", samples.days, "Days of samples on disk.");
	put_retention(out, &samples);
	GAUGE("series", samples.series, "Series in memory.");
	COUNTER("series_refused_profiles_total", samples.series_refused_profiles,
		"Profiles refused because --series-limit is reached, and has no room for "
		"\"other\".");
	COUNTER("series_refused_samples_total", samples.series_refused_samples,
		"Samples of those profiles; accounting shows them as lost by series_limit.");
	COUNTER("series_folded_profiles_total", samples.series_folded_profiles,
		"Profiles stored under their host's series \"other\", as it has its share of "
		"--series-limit.");
	COUNTER("series_folded_samples_total", samples.series_folded_samples,
		"Samples of those profiles; accounting shows them as folded_series.");
	COUNTER("stacks_overflowed_total", samples.stacks_overflowed,
		"Samples whose stack found no room in the day's dictionary; accounting shows them "
		"as folded_stacks.");
	GAUGE("dictionary_bytes", samples.dictionary_bytes,
	      "Memory of all days' dictionaries of stacks and names.");
	COUNTER("dictionaries_dropped_total", samples.dictionaries_dropped,
		"Days' dictionaries that left memory early because of --dictionary-memory.");
	COUNTER("samples_damaged_total", samples.samples_damaged,
		"Samples that damaged files of days had and that are lost; accounted for as such.");
	COUNTER("day_files_damaged_total", samples.days_damaged,
		"Damaged files of days set aside as *.damaged since the start.");
	COUNTER("journal_damaged_total", samples.journal_damaged,
		"Records of the journal that could not be used at the start.");
	GAUGE("stacks", samples.stacks, "Distinct stacks in memory.");
	GAUGE("store_recent_bytes", samples.recent_bytes,
	      "Memory of the newest minutes by the second.");
	GAUGE("store_memory_bytes", samples.memory_bytes, "Memory of samples not yet folded.");
	put_walks(out, &samples);
	put_losses(out, &samples);
}
