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

#include "common/gzip.h"
#include "common/hash_table.h"
#include "common/log.h"
#include "common/otlp.h"
#include "common/whole_file.h"
#include "node-agent/kernel/lacks.h"
#include "node-agent/kernel/stranger_reader.h"
#include "node-agent/own_process.h"
#include "node-agent/report/wall_clock.h"
#include "node-agent/status/agent_facts.h"

enum {
	ENCODED_MAX = 32 << 20,    /* what a server decodes at most */
	COMPRESSED_MAX = 16 << 20, /* and takes as a body */
	FILE_MAX = 256 << 20,
	GZIP_LEVEL = 6,
	TOLD_HASHES = 512,
	WAIT_COUNTERS = 11,
	FAULT_COUNTERS = 4,
	MEMORY_COUNTERS = 14,
	CONTEXT_COUNTERS = 7,
	WINDOW_COUNTERS = 16,
	STRANGER_COUNTERS = 4,
	OWN_METRICS = 16,
	METRICS_MAX = 256 << 10,
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

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

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
	reporter->interval_start_ns = clock_ns(CLOCK_MONOTONIC);
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
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC), end_ns = end_of_interval(reporter, now_ns);
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

#define PROFILE_TYPE(id_, name_, unit_) {name_, unit_},
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

static void add_if_any(struct ship_report *report, const char *name, uint64_t value)
{
	if (value)
		report->more[report->more_count++] = (struct profile_counter){name, value};
}

#define STACKS_NAME(name_, sentence_) "stacks." #name_,

/* How stacks ended; what never occurred is left out. */
static void fill_results(const struct sample_counters *samples, struct ship_report *report)
{
	static const char *const names[] = {WALK_RESULTS(STACKS_NAME)};

	_Static_assert((int)WALK_RESULT_COUNT + 4 + WAIT_COUNTERS + FAULT_COUNTERS +
				       MEMORY_COUNTERS + CONTEXT_COUNTERS + WINDOW_COUNTERS +
				       STRANGER_COUNTERS + LACK_COUNT <=
			       (int)SHIP_COUNTERS_MAX,
		       "a counter for each, guessed, malformed, the clock's, the files', and those "
		       "of other types");
	for (int i = 0; i < WALK_RESULT_COUNT; i++)
		add_if_any(report, names[i], samples->by_result[i]);
	report->more[report->more_count++] = (struct profile_counter){"stacks.guessed",
								      samples->guessed};
}

/* What off-cpu samples stand for beside what the kernel side counted without stacks, and why some
 * of it has none. */
static void fill_waits(const struct reporter *reporter, const struct switch_totals *switches,
		       struct ship_report *report)
{
	struct waits_counters waits;

	if (!reporter->from.waits)
		return;
	waits_counters(reporter->from.waits, &waits);
	const struct profile_counter counters[WAIT_COUNTERS] = {
		{"off-cpu.exact_ns", switches->waited_ns + switches->waited_disk_ns},
		{"off-cpu.exact_disk_ns", switches->waited_disk_ns},
		{"off-cpu.covered_ns", waits.covered_ns},
		{"off-cpu.waits", switches->waits},
		{"off-cpu.stacks", waits.off_cpu},
		{"off-cpu.too_long", switches->too_long},
		{"off-cpu.threads_full", switches->threads_full},
		{"off-cpu.long_without_stack", switches->escaped},
		{"off-cpu.stacks_lost",
		 switches->stacks_lost + switches->ends_lost + waits.refused},
		{"run-queue.exact_ns", switches->run_queue_ns},
		{"run-queue.covered_ns", waits.run_queue_covered_ns},
	};
	memcpy(report->more + report->more_count, counters, sizeof counters);
	report->more_count += WAIT_COUNTERS;
}

/* What the kernel counted, and how many stacks were taken of it. */
static void fill_faults(const struct reporter *reporter, const struct fault_totals *faults,
			const struct sample_counters *samples, struct ship_report *report)
{
	const struct profile_counter counters[FAULT_COUNTERS] = {
		{"page-fault.minor", faults->minor},
		{"page-fault.major", faults->major},
		{"page-fault.stacks", samples->by_type[SAMPLE_TYPE_page_fault]},
		{"page-fault.stacks_lost", faults->stacks_lost},
	};

	if (!(reporter->from.options->types >> SAMPLE_TYPE_page_fault & 1))
		return;
	memcpy(report->more + report->more_count, counters, sizeof counters);
	report->more_count += FAULT_COUNTERS;
}

/* What samples of memory stand on, and what they lack. */
static void fill_memory(const struct reporter *reporter, const struct alloc_totals *totals,
			struct ship_report *report)
{
	struct allocations_counters allocations;
	struct memory_probes_counters probes;

	if (!reporter->from.probes)
		return;
	allocations_counters(reporter->from.allocations, &allocations);
	memory_probes_counters(reporter->from.probes, &probes);
	const struct profile_counter counters[MEMORY_COUNTERS] = {
		{"mem.stacks", totals->stacks},
		{"mem.stacks_lost", totals->stacks_lost},
		{"mem.stacks_thinned", totals->thinned},
		{"mem.batches", totals->batches},
		{"mem.frees", totals->frees},
		{"mem.frees_lost", totals->frees_lost},
		{"mem.inuse_refused", allocations.live.refused},
		{"mem.without_profile", probes.without},
		{"mem.cut_off", probes.cut_off + probes.failed},
		{"mem.unknown_rates", probes.unknown_rates},
		{"mem.programs_refused", probes.refused},
		{"mem.inuse_unsure", probes.unsure},
		{"mem.inuse_corrected", probes.corrected},
		{"mem.cost_ns", probes.cost_ns},
	};
	memcpy(report->more + report->more_count, counters, sizeof counters);
	report->more_count += MEMORY_COUNTERS;
}

/* Whose requests samples belong to, and what of it is missing. */
static void fill_contexts(const struct reporter *reporter, const struct context_totals *totals,
			  struct ship_report *report)
{
	const uint64_t lost = stack_counts_lost_attributes(reporter->from.counts);
	struct requests_counters requests;

	requests_counters(reporter->from.requests, &requests);
	if (!requests.contexts.read && !totals->read && !totals->unread && !lost)
		return;
	const struct profile_counter counters[CONTEXT_COUNTERS] = {
		{"contexts.samples", totals->read},
		{"contexts.unread", totals->unread},
		{"contexts.cut", requests.cut + requests.contexts.cut},
		{"contexts.unknown_keys", requests.unknown_keys},
		{"contexts.attributes_lost", lost},
		{"contexts.processes", requests.contexts.read},
		{"contexts.refused", requests.contexts.refused},
	};
	memcpy(report->more + report->more_count, counters, sizeof counters);
	report->more_count += CONTEXT_COUNTERS;
}

/* What probes in allocators have cost, beside what they are allowed to. */
static void fill_windows(const struct reporter *reporter, struct ship_report *report)
{
	struct allocation_windows_counters windows;

	if (!reporter->from.windows)
		return;
	allocation_windows_counters(reporter->from.windows, &windows);
	const struct profile_counter counters[WINDOW_COUNTERS] = {
		{"mem.windows", windows.windows},
		{"mem.windows_failed", windows.failed},
		{"mem.windows_dear", windows.dear},
		{"mem.windows_samples", windows.samples},
		{"mem.windows_lost", windows.lost},
		{"mem.windows_cut_off", windows.cut_off},
		{"mem.windows_cost_ns", windows.cost_ns},
		{"mem.windows_used_ns", windows.used_ns},
		{"mem.windows_unseen_ns", windows.unseen_ns},
		{"mem.windows_refused", windows.refused + windows.files_refused},
		{"mem.windows_within", window_spread_units(windows.spread.within)},
		{"mem.windows_between", window_spread_units(windows.spread.between)},
		{"mem.names_asked", windows.names.asked},
		{"mem.names_answered", windows.names.answered},
		{"mem.names_unknown", windows.names.unknown},
		{"mem.names_refused", windows.names.refused},
	};
	memcpy(report->more + report->more_count, counters, sizeof counters);
	report->more_count += WINDOW_COUNTERS;
}

/* What strangers kept from being read. */
static void fill_strangers(struct ship_report *report)
{
	struct stranger_reader_counters now;

	stranger_reader_counters(&now);
	if (!now.hung && !now.refused && !now.died && !now.maps_cut)
		return;
	const struct profile_counter counters[STRANGER_COUNTERS] = {
		{"strangers.hung", now.hung},
		{"strangers.refused", now.refused},
		{"strangers.died", now.died},
		{"strangers.maps_cut", now.maps_cut},
	};
	memcpy(report->more + report->more_count, counters, sizeof counters);
	report->more_count += STRANGER_COUNTERS;
}

/* What it was denied since its start; what never occurred is left out. */
static void fill_lacks(struct ship_report *report)
{
	lack_look_at_descriptors();
	for (int i = 0; i < LACK_COUNT; i++)
		if (lack_times((enum lack)i))
			report->more[report->more_count++] =
				(struct profile_counter){lack_names[i], lack_times((enum lack)i)};
}

/* Cumulative counts as of the interval's end. A sample whose stack is not finished is taken when it
 * is: with the interval that has it. */
static void fill_counts(const struct reporter *reporter, struct ship_report *report)
{
	struct capture_totals totals;
	struct sample_counters samples;
	struct process_table_counters table;
	struct stacks_counters stacks;
	long online = sysconf(_SC_NPROCESSORS_ONLN);

	capture_counts(reporter->from.capture, &totals);
	samples_counters(reporter->from.samples, &samples);
	stacks_counters(reporter->from.stacks, &stacks);
	process_table_counters(reporter->from.table, &table);
	report->taken = totals.taken - stacks.waiting;
	report->idle = totals.idle;
	report->missed = totals.missed;
	report->cpus = online > 0 ? (uint64_t)online : 0;
	report->ring_full = totals.ring_full;
	report->no_scratch = totals.no_scratch;
	report->aggregate_full = samples.lost + reporter->lost_encoding;
	add_if_any(report, "lost.malformed", totals.malformed + samples.malformed);
	add_if_any(report, "clock.jumps", reporter->clock.jumps);
	add_if_any(report, "files.unnumbered", table.files_unnumbered);
	add_if_any(report, "processes.untold", samples.processes_untold);
	fill_results(&samples, report);
	fill_waits(reporter, &totals.switches, report);
	fill_faults(reporter, &totals.faults, &samples, report);
	fill_memory(reporter, &totals.allocs, report);
	fill_contexts(reporter, &totals.contexts, report);
	fill_windows(reporter, report);
	fill_strangers(report);
	fill_lacks(report);
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
		waits_report(reporter->from.waits, clock_ns(CLOCK_MONOTONIC));
	if (reporter->from.allocations)
		allocations_report(reporter->from.allocations);
}

/* What schema/README.md names of this host's counters, and ship's own. */
static size_t metrics_counters(const struct ship_report *report,
			       const struct ship_counters *shipped, struct profile_counter *out)
{
	const struct profile_counter own[] = {
		{"taken", report->taken},
		{"idle", report->idle},
		{"missed", report->missed},
		{"lost.ring_full", report->ring_full},
		{"lost.no_scratch", report->no_scratch},
		{"lost.aggregate_full", report->aggregate_full},
		{"lost.queue", shipped->samples_lost_queue},
		{"lost.refused", shipped->samples_lost_refused},
		{"lost.spool", shipped->samples_lost_spool},
		{"ship.samples", shipped->samples_sent},
		{"ship.bytes", shipped->bytes_sent},
		{"ship.retries", shipped->reports_retried},
		{"ship.profiles_refused", shipped->profiles_refused},
		{"ship.modules_uploaded", shipped->modules_uploaded},
		{"ship.uploads_failed", shipped->uploads_failed},
		{"ship.upload_files_refused", shipped->upload_files_refused},
	};

	memcpy(out, own, sizeof own);
	memcpy(out + OWN_METRICS, report->more, report->more_count * sizeof *report->more);
	_Static_assert(sizeof own / sizeof *own == OWN_METRICS, "all of them");
	return OWN_METRICS + report->more_count;
}

/* For this host's own monitoring, and --status. */
static void write_metrics(struct reporter *reporter, const struct ship_report *report,
			  struct ship *ship)
{
	const struct agent_options *options = reporter->from.options;
	struct profile_counter counters[OWN_METRICS + SHIP_COUNTERS_MAX];
	struct ship_counters shipped;
	struct error err = {0};
	struct buffer text;

	ship_counters(ship, &shipped);
	buffer_init(&text, METRICS_MAX);
	agent_facts_print(
		&text,
		&(struct agent_facts){
			.version = FARFLAME_VERSION,
			.capture = capture_map_bytes(reporter->from.capture) ? "bpf" : "perf",
			.server = options->server,
			.rate_hz = options->frequency_hz,
			.interval_ms = options->report_interval_ms,
			.now_ms = (int64_t)(clock_ns(CLOCK_REALTIME) / 1000000),
			.reports_made = report->seq,
			.reports_accepted = shipped.acknowledged_seq,
			.queue_bytes = shipped.queue_bytes,
			.spool_bytes = shipped.spool_bytes,
			.counters = counters,
			.counter_count = metrics_counters(report, &shipped, counters),
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
	fill_counts(reporter, &report);
	log_debug("report",
		  "seq=%" PRIu64 " samples=%" PRIu64 " bytes=%zu taken=%" PRIu64
		  " ring_full=%" PRIu64,
		  report.seq, report.samples, report.length, report.taken, report.ring_full);
	if (reporter->from.options->metrics_file)
		write_metrics(reporter, &report, ship);
	ship_submit(ship, &report);
	module_announcer_run(reporter->from.modules, ship);
	stack_counts_clear(reporter->from.counts);
}

/* --- into a file --- */

static bool encode_host(const struct reporter *reporter, const struct ship_report *report,
			struct buffer *out, struct error *err)
{
	const struct profile_counter own[] = {
		{"taken", report->taken},
		{"idle", report->idle},
		{"missed", report->missed},
		{"cpus", report->cpus},
		{"lost.ring_full", report->ring_full},
		{"lost.no_scratch", report->no_scratch},
		{"lost.aggregate_full", report->aggregate_full},
	};
	struct profile_counter counters[sizeof own / sizeof *own + SHIP_COUNTERS_MAX];
	struct profile_host host;

	memcpy(counters, own, sizeof own);
	memcpy(counters + sizeof own / sizeof *own, report->more,
	       report->more_count * sizeof *report->more);
	reporter_fill_host((void *)reporter, &host);
	host.sent_ns = 0; /* whenever somebody imports it */
	host.report_seq = report->seq;
	host.start_ns = report->start_ns;
	host.duration_ns = report->duration_ns;
	host.counters = counters;
	host.counter_count = sizeof own / sizeof *own + report->more_count;
	return otlp_encode_host(&host, out, err);
}

bool reporter_write(struct reporter *reporter, const char *path, struct error *err)
{
	struct ship_report report = {0};
	struct buffer bytes;
	bool ok;

	buffer_init(&bytes, FILE_MAX);
	report_held(reporter);
	close_interval(reporter, &report.start_ns, &report.duration_ns);
	report.seq = reporter->seq;
	report.samples = stack_counts_samples(reporter->from.counts);
	fill_counts(reporter, &report);
	ok = encode(reporter, report.start_ns, report.duration_ns, &bytes, NULL, err) &&
	     encode_host(reporter, &report, &bytes, err) &&
	     whole_file_write(path, &bytes, true, err);
	if (ok)
		log_info("profile written", "file=\"%s\" bytes=%zu samples=%" PRIu64, path,
			 bytes.length, report.samples);
	buffer_release(&bytes);
	stack_counts_clear(reporter->from.counts);
	return ok;
}

/* --- what the agent says about itself --- */

static void log_results(const struct sample_counters *samples)
{
	char text[512];
	size_t used = 0;

	for (int i = 0; i < WALK_RESULT_COUNT && used < sizeof text; i++)
		if (samples->by_result[i])
			used += (size_t)snprintf(text + used, sizeof text - used, " %s=%" PRIu64,
						 walk_result_name((enum walk_result)i),
						 samples->by_result[i]);
	log_debug("results", "%s", used ? text + 1 : "none yet");
}

static void log_memory(const struct reporter *reporter, const struct alloc_totals *totals)
{
	struct allocations_counters allocations;
	struct memory_probes_counters probes;

	if (!reporter->from.probes)
		return;
	allocations_counters(reporter->from.allocations, &allocations);
	memory_probes_counters(reporter->from.probes, &probes);
	log_info("memory",
		 "programs=%u processes=%u stacks=%" PRIu64 " stacks_lost=%" PRIu64
		 " frees=%" PRIu64 " frees_lost=%" PRIu64 " live=%u live_stacks=%u live_bytes=%u"
		 " refused=%" PRIu64 " unknown_frees=%" PRIu64 " without_profile=%" PRIu64
		 " cut_off=%" PRIu64 " failed=%" PRIu64 " unknown_rates=%" PRIu64
		 " cost_us=%" PRIu64,
		 probes.files, probes.processes, totals->stacks, totals->stacks_lost, totals->frees,
		 totals->frees_lost, allocations.live.pieces, allocations.live.stacks,
		 allocations.live.stack_bytes, allocations.live.refused, allocations.live.unknown,
		 probes.without, probes.cut_off, probes.failed, probes.unknown_rates,
		 probes.cost_ns / 1000);
}

static void log_contexts(const struct reporter *reporter, const struct context_totals *totals)
{
	const uint64_t lost = stack_counts_lost_attributes(reporter->from.counts);
	struct requests_counters requests;

	requests_counters(reporter->from.requests, &requests);
	if (!requests.contexts.read && !totals->read && !totals->unread && !lost)
		return;
	log_info("contexts",
		 "processes=%u publishing=%u located=%u read=%" PRIu64 " looks=%" PRIu64
		 " refused=%" PRIu64 " samples=%" PRIu64 " unread=%" PRIu64 " cut=%" PRIu64
		 " unknown_keys=%" PRIu64 " attributes_lost=%" PRIu64,
		 requests.contexts.processes, requests.contexts.publishing,
		 requests.contexts.located, requests.contexts.read, requests.contexts.looks,
		 requests.contexts.refused, totals->read, totals->unread,
		 requests.cut + requests.contexts.cut, requests.unknown_keys, lost);
}

static void log_waits(const struct reporter *reporter, const struct switch_totals *switches)
{
	const uint64_t exact_ns = switches->waited_ns + switches->waited_disk_ns;
	struct waits_counters waits;

	if (!reporter->from.waits)
		return;
	waits_counters(reporter->from.waits, &waits);
	log_info("waits",
		 "waits=%" PRIu64 " exact_s=%" PRIu64 " covered_s=%" PRIu64 " stacks=%" PRIu64
		 " stacks_lost=%" PRIu64 " refused=%" PRIu64 " ends_lost=%" PRIu64
		 " ends_unknown=%" PRIu64 " ends_unseen=%" PRIu64 " too_long=%" PRIu64
		 " escaped=%" PRIu64 " threads_full=%" PRIu64 " kept=%u kept_bytes=%u"
		 " sweeps=%" PRIu64 " sweep_stacks=%" PRIu64 " sweep_cpu_ms=%" PRIu64,
		 switches->waits, exact_ns / 1000000000, waits.covered_ns / 1000000000,
		 waits.off_cpu, switches->stacks_lost, waits.refused, switches->ends_lost,
		 waits.ends_unknown, switches->ends_unseen, switches->too_long, switches->escaped,
		 switches->threads_full, waits.kept, waits.kept_bytes, switches->sweeps,
		 switches->sweep_stacks, switches->sweep_cpu_ns / 1000000);
}

static void log_stacks(const struct reporter *reporter, const struct sample_counters *samples,
		       const struct capture_totals *totals)
{
	struct stacks_counters stacks;
	struct code_pages_counters pages;

	stacks_counters(reporter->from.stacks, &stacks);
	code_pages_counters(reporter->from.pages, &pages);
	log_info("stacks",
		 "complete=%" PRIu64 " guessed=%" PRIu64 " incomplete=%" PRIu64 " copies=%" PRIu64
		 " copies_refused=%" PRIu64 " copies_expired=%" PRIu64 " copies_waiting=%u"
		 " pages=%u pages_failed=%" PRIu64 " pages_evicted=%" PRIu64 " row_bytes=%" PRIu64
		 " parser_starts=%" PRIu64 " parser_kills=%" PRIu64,
		 samples->by_result[WALK_complete], samples->guessed, samples->incomplete,
		 totals->copies,
		 totals->copies_rate + totals->copies_ring + totals->copies_unmatched +
			 stacks.refused,
		 stacks.expired, stacks.waiting, pages.rows.pages, pages.rows.failed,
		 pages.rows.evicted, pages.rows.row_bytes, pages.parser.started,
		 pages.parser.killed + pages.parser.died);
	log_debug("copies",
		  "finished=%" PRIu64 " bytes=%" PRIu64 " refused_rate=%" PRIu64
		  " refused_ring=%" PRIu64 " unmatched=%" PRIu64 " refused_waiting=%" PRIu64
		  " waiting_bytes=%u",
		  stacks.finished, totals->copy_bytes, totals->copies_rate, totals->copies_ring,
		  totals->copies_unmatched, stacks.refused, stacks.waiting_bytes);
	log_debug("pages",
		  "loaded=%" PRIu64 " empty=%" PRIu64 " rows=%" PRIu64 " rules=%u asked=%" PRIu64
		  " waiting=%u parser_cpu_ms=%" PRIu64,
		  pages.rows.loaded, pages.rows.empty, pages.rows.rows, pages.rows.rules,
		  pages.parser.asked, pages.parser.waiting, pages.parser.cpu_ns / 1000000);
	log_debug("published processes",
		  "times=%" PRIu64 " pushed_out=%" PRIu64 " mappings_cut=%" PRIu64
		  " heads=%u blocks=%u",
		  stacks.processes.published, stacks.processes.pushed_out, stacks.processes.cut,
		  stacks.processes.heads, stacks.processes.blocks);
}

void reporter_log_summary(const struct reporter *reporter, const struct ship_counters *shipped)
{
	struct capture_totals totals;
	struct sample_counters samples;
	struct process_table_counters table;

	capture_counts(reporter->from.capture, &totals);
	samples_counters(reporter->from.samples, &samples);
	process_table_counters(reporter->from.table, &table);
	log_info("samples",
		 "taken=%" PRIu64 " idle=%" PRIu64 " missed=%" PRIu64 " sent=%" PRIu64
		 " lost_ring_full=%" PRIu64 " lost_no_scratch=%" PRIu64
		 " lost_aggregate_full=%" PRIu64 " lost_malformed=%" PRIu64 " lost_queue=%" PRIu64
		 " lost_refused=%" PRIu64 " lost_spool=%" PRIu64 " waiting_bytes=%" PRIu64
		 " spool_bytes=%" PRIu64 " sent_bytes=%" PRIu64 " uploaded_bytes=%" PRIu64
		 " upload_files_refused=%" PRIu64,
		 totals.taken, totals.idle, totals.missed, shipped->samples_sent, totals.ring_full,
		 totals.no_scratch, samples.lost + reporter->lost_encoding,
		 totals.malformed + samples.malformed, shipped->samples_lost_queue,
		 shipped->samples_lost_refused, shipped->samples_lost_spool, shipped->queue_bytes,
		 shipped->spool_bytes, shipped->bytes_sent, shipped->upload_bytes,
		 shipped->upload_files_refused);
	if (stack_counts_lost_times(reporter->from.counts))
		log_warn("timestamps left out", "samples=%" PRIu64 " why=\"no room in a report\"",
			 stack_counts_lost_times(reporter->from.counts));
	log_stacks(reporter, &samples, &totals);
	log_waits(reporter, &totals.switches);
	if (totals.faults.minor)
		log_info("page faults",
			 "minor=%" PRIu64 " major=%" PRIu64 " stacks=%" PRIu64
			 " stacks_lost=%" PRIu64,
			 totals.faults.minor, totals.faults.major, totals.faults.stacks,
			 totals.faults.stacks_lost);
	log_memory(reporter, &totals.allocs);
	log_contexts(reporter, &totals.contexts);
	stranger_reader_log();
	if (reporter->from.windows)
		allocation_windows_log(reporter->from.windows);
	if (log_level() < LOG_DEBUG)
		return;
	capture_totals(reporter->from.capture, &totals);
	log_results(&samples);
	log_debug("processes",
		  "maps_read=%" PRIu64 " maps_failed=%" PRIu64 " files_opened=%" PRIu64
		  " files_failed=%" PRIu64 " process_events_lost=%" PRIu64,
		  table.maps_read, table.maps_failed, table.files_opened, table.files_failed,
		  totals.process_events_lost);
	log_debug("timer",
		  "ticks=%" PRIu64 " idle=%" PRIu64 " missed=%" PRIu64 " filtered=%" PRIu64
		  " perf_count_ns=%" PRIu64,
		  totals.ticks, totals.idle, totals.missed, totals.filtered, totals.perf_count_ns);
	log_debug("memory", "pss_kib=%lu bpf_map_bytes=%" PRIu64, own_memory_kib(),
		  capture_map_bytes(reporter->from.capture));
}
