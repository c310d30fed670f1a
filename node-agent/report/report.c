/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/report/report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/gzip.h"
#include "common/hash_table.h"
#include "common/log.h"
#include "common/otlp.h"
#include "common/whole_file.h"
#include "node-agent/report/counters.h"
#include "node-agent/report/wall_clock.h"
#include "node-agent/status/agent_facts.h"

enum {
	ENCODED_MAX = 32 << 20,    /* what a server decodes at most */
	COMPRESSED_MAX = 16 << 20, /* and takes as a body */
	FILE_MAX = 256 << 20,
	GZIP_LEVEL = 6,
	TOLD_HASHES = 512,
	METRICS_MAX = SHIP_COUNTERS_MAX + 17, /* beside a report's those that are the host's own */
	METRICS_BYTES_MAX = 256 << 10,
};

static const uint64_t tell_again_ns = 3600ull * 1000000000;

struct reporter {
	struct report_sources from;
	struct utsname system;
	uint8_t agent_id[16];
	uint64_t seq;
	uint64_t lost_encoding;     /* samples of reports that could not be made */
	uint64_t interval_start_ns; /* CLOCK_MONOTONIC */
	struct wall_clock clock;
	/* Files whose htlhash went out beside their GNU id, by a hash of that id: one that has lost
	 * its place to another is told again, no harm. */
	uint64_t told[TOLD_HASHES];
	uint64_t told_since_ns; /* CLOCK_MONOTONIC */
	struct log_fault no_metrics;
};

static bool random_id(uint8_t id[16], struct error *err)
{
	return getrandom(id, 16, 0) == 16 || error_set_system(err, errno, "getrandom");
}

struct reporter *reporter_new(const struct report_sources *sources, struct error *err)
{
	struct reporter *reporter = calloc(1, sizeof *reporter);

	if (!reporter) {
		error_set(err, ERROR_MEMORY, "no memory for reports");
		return NULL;
	}
	reporter->from = *sources;
	uname(&reporter->system);
	reporter->interval_start_ns = monotonic_ns();
	wall_clock_start(&reporter->clock);
	samples_begin_report(reporter->from.samples, wall_clock_now_ns(&reporter->clock));
	if (random_id(reporter->agent_id, err))
		return reporter;
	reporter_free(reporter);
	return NULL;
}

void reporter_free(struct reporter *reporter)
{
	free(reporter);
}

void reporter_fill_host(void *context, struct profile_host *host)
{
	struct reporter *reporter = context;
	const struct agent_options *options = reporter->from.options;

	*host = (struct profile_host){
		.host = options->host,
		.kernel_release = reporter->system.release,
		.architecture = reporter->system.machine,
		.agent_version = FARFLAME_VERSION,
		.rate_hz = options->frequency_hz,
		.sent_ns = wall_clock_now_ns(&reporter->clock),
		.label_names = options->label_names,
		.label_values = options->label_values,
		.label_count = options->label_count,
	};
	memcpy(host->agent_id, reporter->agent_id, sizeof host->agent_id);
}

/* --- the interval --- */

/* The htlhash of a file with a GNU id is but another name, for senders that know no other. It
 * cannot be compressed, so the server hears it once in an hour. */
static bool tells_htlhash(struct reporter *reporter, const struct executable *executable)
{
	uint64_t *told, hash;

	if (!executable->gnu.length)
		return true;
	hash = hash_word(build_id_hash(&executable->gnu), build_id_hash(&executable->htlhash));
	told = &reporter->told[hash % TOLD_HASHES];
	if (*told == hash)
		return false;
	*told = hash;
	return true;
}

static void fill_mapping(void *context, uint32_t mapping, struct profile_mapping *row,
			 struct stack_counts_strings *strings)
{
	struct reporter *reporter = context;
	const struct executable *executable = process_table_executable(reporter->from.table,
								       mapping);

	if (!executable)
		return; /* forgotten already: its frames have no file */
	row->file_name = stack_counts_text(strings, executable->name);
	if (executable->base == ADDRESS_ELF)
		row->path = stack_counts_text(strings, executable->path);
	row->gnu = executable->gnu;
	if (tells_htlhash(reporter, executable))
		row->htlhash = executable->htlhash;
	row->go_id = stack_counts_text(strings, executable->go_id);
	row->base = executable->base;
	row->start = executable->start;
	row->limit = executable->limit;
	row->file_offset = executable->file_offset;
}

/* The interval ends where the samples do that it has: what was taken while they were looked at is the
 * next one's, and would not have had room in it. */
static uint64_t end_of_interval(const struct reporter *reporter, uint64_t now_ns)
{
	uint64_t until_ns = capture_delivered_until_ns(reporter->from.capture);

	return until_ns > reporter->interval_start_ns && until_ns < now_ns ? until_ns : now_ns;
}

static void close_interval(struct reporter *reporter, uint64_t *start_ns, uint64_t *duration_ns)
{
	uint64_t now_ns = monotonic_ns(), end_ns = end_of_interval(reporter, now_ns);
	int64_t set_ns = wall_clock_close(&reporter->clock, now_ns - end_ns, start_ns, duration_ns);

	if (set_ns)
		log_warn("clock was set", "by_ms=%" PRId64 " times=%" PRIu64, set_ns / 1000000,
			 reporter->clock.jumps);
	reporter->interval_start_ns = end_ns;
	samples_begin_report(reporter->from.samples, *start_ns + *duration_ns);
	if (now_ns - reporter->told_since_ns > tell_again_ns) {
		memset(reporter->told, 0, sizeof reporter->told);
		reporter->told_since_ns = now_ns;
	}
	reporter->seq++;
}

#define PROFILE_TYPE(id_, name_, unit_, wants_, record_) {name_, unit_},
static const struct profile_type types[] = {SAMPLE_TYPES(PROFILE_TYPE)};

static bool encode(struct reporter *reporter, uint64_t start_ns, uint64_t duration_ns,
		   struct buffer *out, struct otlp_parts *parts, struct error *err)
{
	struct profile profile = {0};
	struct profile_host host;
	uint8_t id[16];

	reporter_fill_host(reporter, &host);
	if (!random_id(id, err) ||
	    !stack_counts_take(reporter->from.counts, fill_mapping, reporter, &profile, err))
		return false;
	profile.type = types[0].name;
	profile.unit = types[0].unit;
	profile.other_types = types + 1;
	profile.other_type_count = SAMPLE_TYPE_COUNT - 1;
	profile.start_ns = start_ns;
	profile.duration_ns = duration_ns;
	profile.time_offset_ns = start_ns + duration_ns - reporter->interval_start_ns;
	profile.period_ns = 1000000000 / reporter->from.options->frequency_hz;
	memcpy(profile.id, id, sizeof profile.id);
	return otlp_encode(&profile, &host, out, parts, err);
}

/* Cumulative counts as of the interval's end. A sample whose stack is not finished is taken when it
 * is: with the interval that has it. */
static void fill_counts(const struct reporter *reporter, struct counted *now,
			struct ship_report *report)
{
	*now = (struct counted){.lost_encoding = reporter->lost_encoding,
				.clock_jumps = reporter->clock.jumps};
	lack_look_at_descriptors();
	counters_read(&reporter->from, false, now);
	report->taken = now->taken_whole;
	report->idle = now->capture.idle;
	report->missed = now->capture.missed;
	report->cpus = now->cpus;
	report->ring_full = now->capture.ring_full;
	report->no_scratch = now->capture.no_scratch;
	report->aggregate_full = now->samples.lost + now->lost_encoding;
	report->more_count = counters_list(now, COUNTERS_REPORT, report->more, SHIP_COUNTERS_MAX);
}

static bool compress(struct reporter *reporter, struct ship_report *report, struct error *err)
{
	struct otlp_parts parts;
	struct buffer plain, gzip;
	bool ok;

	buffer_init(&plain, ENCODED_MAX);
	buffer_init(&gzip, COMPRESSED_MAX);
	ok = encode(reporter, report->start_ns, report->duration_ns, &plain, &parts, err) &&
	     gzip_compress_parts(plain.bytes, parts.ends, parts.count, GZIP_LEVEL, &gzip, err);
	buffer_release(&plain);
	if (ok)
		report->gzip = buffer_take(&gzip, &report->length);
	buffer_release(&gzip);
	return ok;
}

static void report_held(struct reporter *reporter)
{
	if (reporter->from.waits)
		waits_report(reporter->from.waits, monotonic_ns());
	if (reporter->from.allocations)
		allocations_report(reporter->from.allocations);
}

/* For this host's own monitoring, and --status. */
static void write_metrics(struct reporter *reporter, struct counted *now, struct ship *ship)
{
	const struct agent_options *options = reporter->from.options;
	const struct ship_counters *shipped = &now->shipped;
	struct profile_counter counters[METRICS_MAX];
	struct error err = {0};
	struct buffer text;

	ship_counters(ship, &now->shipped);
	buffer_init(&text, METRICS_BYTES_MAX);
	agent_facts_print(
		&text,
		&(struct agent_facts){
			.version = FARFLAME_VERSION,
			.capture = capture_map_bytes(reporter->from.capture) ? "bpf" : "perf",
			.server = options->server,
			.rate_hz = options->frequency_hz,
			.interval_ms = options->report_interval_ms,
			.now_ms = unix_time_ms(),
			.reports_made = reporter->seq,
			.reports_accepted = shipped->acknowledged_seq,
			.queue_bytes = shipped->queue_bytes,
			.spool_bytes = shipped->spool_bytes,
			.counters = counters,
			.counter_count = counters_list(now, COUNTERS_HOST, counters, METRICS_MAX),
		});
	if (!text.failed && whole_file_write(options->metrics_file, &text, false, &err))
		log_fault_over(&reporter->no_metrics, "metrics not written");
	else
		log_fault_write(&reporter->no_metrics, 0, LOG_WARN, "metrics not written",
				"file=\"%s\" why=\"%s\"", options->metrics_file,
				text.failed ? "no memory" : err.message);
	buffer_release(&text);
}

void reporter_ship(struct reporter *reporter, struct ship *ship)
{
	struct ship_report report = {0};
	struct error err = {0};
	struct counted now;

	report_held(reporter);
	close_interval(reporter, &report.start_ns, &report.duration_ns);
	report.seq = reporter->seq;
	report.samples = stack_counts_samples(reporter->from.counts);
	if (!compress(reporter, &report, &err)) {
		log_error("report not made", "samples=%" PRIu64 " why=\"%s\"", report.samples,
			  err.message);
		reporter->lost_encoding += report.samples;
		stack_counts_clear(reporter->from.counts);
		return; /* the next one's counts tell of it */
	}
	fill_counts(reporter, &now, &report);
	log_debug("report",
		  "seq=%" PRIu64 " samples=%" PRIu64 " bytes=%zu taken=%" PRIu64
		  " ring_full=%" PRIu64,
		  report.seq, report.samples, report.length, report.taken, report.ring_full);
	if (reporter->from.options->metrics_file)
		write_metrics(reporter, &now, ship);
	ship_submit(ship, &report);
	module_announcer_run(reporter->from.modules, ship);
	stack_counts_clear(reporter->from.counts);
}

/* --- into a file --- */

static bool encode_host(const struct reporter *reporter, const struct ship_report *report,
			const struct counted *now, struct buffer *out, struct error *err)
{
	struct profile_counter counters[METRICS_MAX];
	struct profile_host host;

	reporter_fill_host((void *)reporter, &host);
	host.sent_ns = 0; /* whenever somebody imports it */
	host.report_seq = report->seq;
	host.start_ns = report->start_ns;
	host.duration_ns = report->duration_ns;
	host.counters = counters;
	host.counter_count = counters_list(now, COUNTERS_FILE, counters, METRICS_MAX);
	return otlp_encode_host(&host, out, err);
}

bool reporter_write(struct reporter *reporter, const char *path, struct error *err)
{
	struct ship_report report = {0};
	struct buffer bytes;
	struct counted now;
	bool ok;

	buffer_init(&bytes, FILE_MAX);
	report_held(reporter);
	close_interval(reporter, &report.start_ns, &report.duration_ns);
	report.seq = reporter->seq;
	report.samples = stack_counts_samples(reporter->from.counts);
	fill_counts(reporter, &now, &report);
	ok = encode(reporter, report.start_ns, report.duration_ns, &bytes, NULL, err) &&
	     encode_host(reporter, &report, &now, &bytes, err) &&
	     whole_file_write(path, &bytes, true, err);
	if (ok)
		log_info("profile written", "file=\"%s\" bytes=%zu samples=%" PRIu64, path,
			 bytes.length, report.samples);
	buffer_release(&bytes);
	stack_counts_clear(reporter->from.counts);
	return ok;
}

/* --- what the agent says about itself --- */

void reporter_log_summary(const struct reporter *reporter, const struct ship_counters *shipped)
{
	struct counted now = {.shipped = *shipped,
			      .lost_encoding = reporter->lost_encoding,
			      .clock_jumps = reporter->clock.jumps};

	counters_read(&reporter->from, log_level() >= LOG_DEBUG, &now);
	counters_log(&now);
}
