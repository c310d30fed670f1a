/* SPDX-License-Identifier: Apache-2.0 */
/* GET /healthz, /readyz and /metrics (Prometheus text format 0.0.4). */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "symbol-server/api/answer.h"
#include "symbol-server/api/api.h"
#include "symbol-server/api/query_life.h"
#include "symbol-server/symbolize/sources/symbol_directories.h"
#include "symbol-server/symbolize/sources/symbol_sources.h"

int64_t api_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void api_healthz_get(struct http_request *request, struct http_response *response, void *context)
{
	(void)request, (void)context;
	answer_text(response, "ok\n");
}

void api_readyz_get(struct http_request *request, struct http_response *response, void *context)
{
	struct api *api = context;
	struct samples_counters samples;
	char text[500];

	(void)request;
	if (!api->is_ready || api->is_stopping) {
		answer_error(response, 503,
			     api->is_stopping ? "the server is stopping"
					      : "the server is still starting");
		return;
	}
	samples_counters(api->samples, &samples);
	if (samples.refusing.kind) {
		snprintf(text, sizeof text, "reports are refused: %s", samples.refusing.message);
		answer_error(response, 503, text);
	} else if (samples.waiting.kind) {
		snprintf(text, sizeof text, "ready, but samples stay in the journal: %s\n",
			 samples.waiting.message);
		answer_text(response, text);
	} else {
		answer_text(response, "ready\n");
	}
}

static void describe(struct buffer *out, const char *name, const char *type, const char *help)
{
	buffer_printf(out, "# HELP farflame_server_%s %s\n# TYPE farflame_server_%s %s\n", name,
		      help, name, type);
}

static void metric(struct buffer *out, const char *name, const char *type, uint64_t value,
		   const char *help)
{
	describe(out, name, type, help);
	buffer_printf(out, "farflame_server_%s %" PRIu64 "\n", name, value);
}

#define COUNTER(name_, value_, help_) metric(out, name_, "counter", value_, help_)
#define GAUGE(name_, value_, help_)   metric(out, name_, "gauge", value_, help_)

static void put_http(struct buffer *out, struct http_server *server)
{
	struct http_counters http;

	if (!server)
		return;
	http_server_counters(server, &http);
	COUNTER("http_requests_total", http.requests, "Requests whose first line was read.");
	describe(out, "http_responses_total", "counter", "Responses by class of status.");
	for (int i = 1; i < 6; i++)
		buffer_printf(out,
			      "farflame_server_http_responses_total{class=\"%dxx\"} %" PRIu64 "\n",
			      i, http.responses_by_class[i]);
	GAUGE("http_connections", http.connections_now, "Connections open now.");
	COUNTER("http_connections_total", http.connections_total, "Connections accepted.");
	COUNTER("http_slow_bodies_total", http.slow_bodies,
		"Connections closed because their request body came too slowly.");
	COUNTER("http_too_large_total", http.too_large, "Requests refused as too large.");
	COUNTER("http_streams_total", http.streams,
		"Answers that were sent while they were written.");
	COUNTER("http_streams_broken_total", http.broken_streams,
		"Of these, those that ended early, their client still there.");
	GAUGE("http_streams_spilled_bytes", http.spilled_bytes,
	      "Of answers whose clients read slowly, in files now.");
	COUNTER("http_refused_busy_total", http.refused_busy,
		"Requests refused because of load before they reached a resource.");
	COUNTER("http_received_bytes_total", http.bytes_in, "Bytes of request bodies.");
	COUNTER("http_sent_bytes_total", http.bytes_out, "Bytes of response bodies.");
}

static void put_queries(struct buffer *out)
{
	struct query_counters queries;

	query_life_counters(&queries);
	COUNTER("queries_gone_total", queries.gone,
		"Queries given up because their client left before the answer.");
	COUNTER("queries_limited_total", queries.limited,
		"Queries answered with 422 because they went over a limit.");
}

/* No value before an agent reported one. */
static void put_walks(struct buffer *out, const struct samples_counters *samples)
{
	describe(out, "agent_stacks_total", "counter",
		 "Stacks that agents reported since this server's start, by how the walk ended.");
	for (unsigned i = 0; i < samples->walk_count; i++)
		buffer_printf(out,
			      "farflame_server_agent_stacks_total{result=\"%s\"} %" PRIu64 "\n",
			      samples->walks[i].name, samples->walks[i].count);
}

static void put_losses(struct buffer *out, const struct samples_counters *samples)
{
	describe(out, "agent_lost_samples_total", "counter",
		 "Samples that agents reported as lost since this server's start, by reason.");
	for (unsigned i = 0; i < samples->lost_count; i++)
		buffer_printf(out,
			      "farflame_server_agent_lost_samples_total{reason=\"%s\"} %" PRIu64
			      "\n",
			      samples->lost[i].name, samples->lost[i].count);
}

static void put_retention(struct buffer *out, const struct samples_counters *samples)
{
	static const char *const levels[] = {"raw", "10m", "1h"};

	describe(out, "store_level_bytes", "gauge",
		 "Bytes of files on disk: with minutes, with 10-minute roll-ups only, with hours.");
	for (int i = 0; i < SAMPLES_RESOLUTIONS; i++)
		buffer_printf(out, "farflame_server_store_level_bytes{level=\"%s\"} %" PRIu64 "\n",
			      levels[i], samples->level_bytes[i]);
	COUNTER("days_reduced_total", samples->days_reduced,
		"Days whose minutes were deleted and whose roll-ups are kept.");
	COUNTER("days_deleted_total", samples->days_deleted, "Files of days deleted.");
	COUNTER("months_deleted_total", samples->months_deleted,
		"Files of hours of a month deleted.");
	GAUGE("rollup_lag_seconds", samples->rollup_lag_ms / 1000,
	      "Since when the oldest roll-up that is missing is due.");
	COUNTER("rollup_pairs_total", samples->rollup_pairs, "Counted stacks rolled up.");
	COUNTER("rollup_cpu_milliseconds_total", samples->rollup_cpu_us / 1000,
		"CPU time of making roll-ups.");
	if (samples->forecast_bytes)
		GAUGE("store_forecast_bytes", samples->forecast_bytes,
		      "Where disk use of samples ends under --retention at the present rate.");
	if (samples->disk_full_seconds)
		GAUGE("store_disk_full_seconds", samples->disk_full_seconds,
		      "When --max-disk is reached at the present rate, before --retention does "
		      "it.");
}

static void put_samples(struct buffer *out, struct samples_store *store)
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
	COUNTER("fold_errors_total", samples.fold_errors, "Folds that failed and are tried again.");
	COUNTER("journal_replayed_total", samples.replayed, "Records replayed at start.");
	GAUGE("disk_bytes", samples.disk_bytes, "Bytes of samples on disk.");
	GAUGE("days", samples.days, "Days of samples on disk.");
	put_retention(out, &samples);
	GAUGE("series", samples.series, "Series in memory.");
	COUNTER("series_refused_profiles_total", samples.series_refused_profiles,
		"Profiles refused because their series is new and --series-limit is reached.");
	COUNTER("series_refused_samples_total", samples.series_refused_samples,
		"Samples of those profiles; accounting shows them as lost by series_limit.");
	COUNTER("stacks_overflowed_total", samples.stacks_overflowed,
		"Samples whose stack found no room in the day's dictionary.");
	COUNTER("days_damaged_total", samples.days_damaged,
		"Damaged files of days set aside as *.damaged since the start.");
	COUNTER("journal_damaged_total", samples.journal_damaged,
		"Records of the journal that could not be used at the start.");
	GAUGE("stacks", samples.stacks, "Distinct stacks in memory.");
	GAUGE("store_memory_bytes", samples.memory_bytes, "Memory of samples not yet folded.");
	put_walks(out, &samples);
	put_losses(out, &samples);
}

static void put_symbols(struct buffer *out, struct symbolizer *symbolizer)
{
#define STATE_TEXT(name_, meaning_) #name_,
	static const char *const states[] = {MODULE_STATES(STATE_TEXT)};
#undef STATE_TEXT
	struct symbolizer_counters symbols;

	symbolizer_counters(symbolizer, &symbols);
	describe(out, "modules", "gauge", "Modules by state.");
	for (size_t i = 0; i < MODULE_STATE_COUNT; i++)
		buffer_printf(out, "farflame_server_modules{state=\"%s\"} %" PRIu64 "\n", states[i],
			      symbols.modules_by_state[i]);
	COUNTER("conversions_total", symbols.conversions, "Debug files converted.");
	COUNTER("conversions_failed_total", symbols.conversions_failed,
		"Debug files that could not be converted.");
	COUNTER("fetches_total", symbols.fetches, "Questions to debuginfod servers.");
	COUNTER("fetches_failed_total", symbols.fetches_failed,
		"Questions to debuginfod servers without a file as answer.");
	COUNTER("uploads_total", symbols.uploads, "Uploads accepted.");
	COUNTER("uploads_refused_total", symbols.uploads_refused, "Uploads refused.");
	GAUGE("symbol_tables", symbols.tables_in_memory, "Symbol tables in memory.");
	GAUGE("symbol_table_bytes", symbols.table_bytes, "Bytes of symbol tables in memory.");
	GAUGE("symbol_tables_on_disk", symbols.tables_on_disk,
	      "Packed symbol tables in symbols.db.");
	GAUGE("symbol_disk_bytes", symbols.disk_bytes, "Bytes of packed symbol tables.");
	COUNTER("symbol_tables_dropped_total", symbols.tables_dropped,
		"Packed symbol tables that made room for others.");
	GAUGE("symbol_queue", symbols.queue, "Modules that wait for a source or conversion.");
}

static void put_source_count(struct buffer *out, const struct source_state *state,
			     const char *answer, uint64_t count)
{
	buffer_printf(out,
		      "farflame_server_source_questions_total{source=\"%s\",answer=\"%s\"} %" PRIu64
		      "\n",
		      state->url, answer, count);
}

/* Their URLs have nothing in them that a label may not have. */
static void put_sources(struct buffer *out, struct symbol_sources *sources)
{
	struct source_state states[SOURCES_MAX];
	size_t count = symbol_sources_states(sources, states, SOURCES_MAX);

	if (!count)
		return;
	describe(out, "source_up", "gauge",
		 "1: the debuginfod server is asked; 0: it did not answer and has a pause.");
	for (size_t i = 0; i < count; i++)
		buffer_printf(out, "farflame_server_source_up{source=\"%s\"} %d\n", states[i].url,
			      !states[i].is_closed);
	describe(out, "source_questions_total", "counter",
		 "Questions to debuginfod servers by answer; not_asked: turned away in a pause.");
	for (size_t i = 0; i < count; i++) {
		put_source_count(out, &states[i], "found", states[i].found);
		put_source_count(out, &states[i], "not_found", states[i].not_found);
		put_source_count(out, &states[i], "failed", states[i].failed);
		put_source_count(out, &states[i], "not_asked", states[i].turned_away);
	}
	describe(out, "source_received_bytes_total", "counter",
		 "Bytes of files that debuginfod servers sent.");
	for (size_t i = 0; i < count; i++)
		buffer_printf(out,
			      "farflame_server_source_received_bytes_total{source=\"%s\"} %" PRIu64
			      "\n",
			      states[i].url, states[i].bytes);
}

static void put_directories(struct buffer *out, struct symbol_directories *directories)
{
	struct symbol_directories_progress now;

	symbol_directories_progress(directories, &now);
	GAUGE("symbol_dir_read", now.first_pass_done,
	      "1: all symbol directories and the packages there were read once.");
	GAUGE("symbol_dir_files", now.files, "Files in symbol directories.");
	GAUGE("symbol_dir_elf_files", now.elf_files, "ELF files among them.");
	GAUGE("symbol_dir_packages", now.packages, "Packages among them.");
	GAUGE("symbol_dir_packages_left", now.packages_left, "Packages that are yet to be read.");
	GAUGE("symbol_dir_packages_refused", now.packages_refused,
	      "Packages that could not be read.");
	GAUGE("symbol_dir_members", now.members, "ELF files in packages.");
	GAUGE("symbol_dir_unreadable", now.unreadable + now.damaged,
	      "Files and folders of symbol directories that could not be read.");
	GAUGE("symbol_dir_left_out", now.left_out,
	      "Files of symbol directories beyond the limits.");
	GAUGE("symbol_dir_not_answering", now.not_answering,
	      "Symbol directories whose file system does not answer.");
	GAUGE("symbol_dir_index_bytes", now.bytes, "Memory of the index of symbol directories.");
	GAUGE("unpacked_bytes", now.unpacked_bytes_kept, "Bytes of files kept out of packages.");
	COUNTER("package_bytes_read_total", now.package_bytes_read, "Bytes of packages indexed.");
	COUNTER("unpacked_total", now.unpacked, "Files unpacked from packages.");
	COUNTER("unpacked_reused_total", now.unpacked_reused,
		"Files from packages that were still there.");
	COUNTER("unpacked_failed_total", now.unpacked_failed,
		"Files that could not be unpacked from their packages.");
	COUNTER("debuglinks_refused_total", now.wrong_checksums,
		"Files of the name in .gnu_debuglink with another checksum.");
}

static void put_process(struct buffer *out, const struct api *api)
{
	struct rusage usage;
	unsigned long resident = 0;
	FILE *file = fopen("/proc/self/statm", "r");

	if (file && fscanf(file, "%*u %lu", &resident) != 1)
		resident = 0;
	if (file)
		fclose(file);
	getrusage(RUSAGE_SELF, &usage);
	buffer_printf(out,
		      "# HELP process_cpu_seconds_total CPU time of the server process.\n"
		      "# TYPE process_cpu_seconds_total counter\n"
		      "process_cpu_seconds_total %.3f\n"
		      "# HELP process_resident_memory_bytes Resident memory.\n"
		      "# TYPE process_resident_memory_bytes gauge\n"
		      "process_resident_memory_bytes %llu\n"
		      "# HELP process_start_time_seconds Start, unix time.\n"
		      "# TYPE process_start_time_seconds gauge\n"
		      "process_start_time_seconds %.3f\n",
		      (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
			      (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6,
		      (unsigned long long)resident * (unsigned long long)sysconf(_SC_PAGESIZE),
		      (double)api->started_ms / 1e3);
}

void api_metrics_get(struct http_request *request, struct http_response *response, void *context)
{
	struct api *api = context;
	struct buffer *out = &response->body;

	(void)request;
	response->content_type = "text/plain; version=0.0.4; charset=utf-8";
	describe(out, "build_info", "gauge", "1; the version is in the label.");
	buffer_printf(out, "farflame_server_build_info{version=\"%s\"} 1\n", FARFLAME_VERSION);
	put_http(out, api->server);
	put_queries(out);
	put_samples(out, api->samples);
	COUNTER("sample_attributes_left_out_total", api->attributes_left_out,
		"Attributes of samples left out: more than a sample keeps, or without a name.");
	COUNTER("labels_left_out_total", api->labels_left_out,
		"Attributes of resources that did not become labels: too many of them or of their "
		"values.");
	put_symbols(out, api->symbolizer);
	put_sources(out, symbolizer_sources(api->symbolizer));
	put_directories(out, symbolizer_directories(api->symbolizer));
	put_process(out, api);
}
