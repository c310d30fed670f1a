/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/report/counters.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "node-agent/own_process.h"

enum { SOURCES_MAX = 6, TEXT_MAX = 1024 };

enum { /* of nanoseconds, what a key is in */
	US = 1000,
	MS = 1000 * US,
	S = 1000 * MS,
};

enum {
	REPORTED_IF_ANY = 1 << 0,
	SAID_IF_ANY = 1 << 1,
	IF_ANY = REPORTED_IF_ANY | SAID_IF_ANY,
};

enum source_kind { SOURCE_NONE, SOURCE_U32, SOURCE_U64, SOURCE_DOUBLE };

struct source {
	uint16_t offset; /* in struct counted */
	uint8_t kind;
};

/* One figure: the sum of its sources. */
struct counter {
	enum counter_line line;
	const char *key;    /* in the log's line; NULL: not said */
	const char *metric; /* after "farflame."; NULL: not reported */
	struct source sources[SOURCES_MAX];
	uint32_t divisor; /* of what is said, not of what is reported; 0: none */
	uint8_t flags;
	uint8_t not_for; /* enum counters_reader */
};

#define KIND(member_) \
	_Generic(((struct counted *)NULL)->member_, \
		 uint32_t: SOURCE_U32, uint64_t: SOURCE_U64, double: SOURCE_DOUBLE)
#define OF(member_)   {offsetof(struct counted, member_), KIND(member_)}
#define KERNEL(name_) OF(capture.kernel[COUNT_##name_])

#define RESULT(name_, sentence_) \
	{LINE_results, #name_, "stacks." #name_, {OF(samples.by_result[WALK_##name_])}, \
	 .flags = IF_ANY},
#define MERGE(name_, sentence_) \
	{LINE_results, "interpreter_" #name_, "stacks.interpreter_" #name_, \
	 {OF(samples.by_merge[MERGE_##name_])}, .flags = IF_ANY},
#define LACK(name_, sentence_) \
	{LINE_lacks, NULL, "lacks." #name_, {OF(lacks[LACK_##name_])}, .flags = IF_ANY},

#define SHIP_NAMES_IT .not_for = COUNTERS_REPORT
#define HOSTS_OWN     .not_for = COUNTERS_REPORT | COUNTERS_FILE

/* Each line's in its order; "stacks." behind all that is lost, for servers that keep fewer. */
static const struct counter counters[] = {
	{LINE_samples, NULL, "taken", {OF(taken_whole)}, SHIP_NAMES_IT},
	{LINE_samples, NULL, "cpus", {OF(cpus)}, .not_for = COUNTERS_REPORT | COUNTERS_HOST},
	{LINE_samples, "taken", NULL, {OF(capture.taken)}},
	{LINE_samples, "idle", "idle", {OF(capture.idle)}, SHIP_NAMES_IT},
	{LINE_samples, "missed", "missed", {OF(capture.missed)}, SHIP_NAMES_IT},
	{LINE_samples, "sent", "ship.samples", {OF(shipped.samples_sent)}, HOSTS_OWN},
	{LINE_samples, "lost_ring_full", "lost.ring_full", {OF(capture.ring_full)}, SHIP_NAMES_IT},
	{LINE_samples, "lost_no_scratch", "lost.no_scratch", {OF(capture.no_scratch)},
	 SHIP_NAMES_IT},
	{LINE_samples, "lost_aggregate_full", "lost.aggregate_full",
	 {OF(samples.lost), OF(lost_encoding)}, SHIP_NAMES_IT},
	{LINE_samples, "lost_malformed", "lost.malformed",
	 {OF(capture.malformed), OF(samples.malformed)}, .flags = REPORTED_IF_ANY},
	{LINE_samples, "lost_queue", "lost.queue", {OF(shipped.samples_lost_queue)}, HOSTS_OWN},
	{LINE_samples, "lost_refused", "lost.refused", {OF(shipped.samples_lost_refused)},
	 HOSTS_OWN},
	{LINE_samples, "lost_spool", "lost.spool", {OF(shipped.samples_lost_spool)}, HOSTS_OWN},
	{LINE_samples, "waiting_bytes", NULL, {OF(shipped.queue_bytes)}},
	{LINE_samples, "spool_bytes", NULL, {OF(shipped.spool_bytes)}},
	{LINE_samples, "sent_bytes", "ship.bytes", {OF(shipped.bytes_sent)}, HOSTS_OWN},
	{LINE_samples, "uploaded_bytes", NULL, {OF(shipped.upload_bytes)}},
	{LINE_samples, "upload_files_refused", "ship.upload_files_refused",
	 {OF(shipped.upload_files_refused)}, HOSTS_OWN},
	{LINE_samples, NULL, "ship.retries", {OF(shipped.reports_retried)}, HOSTS_OWN},
	{LINE_samples, NULL, "ship.profiles_refused", {OF(shipped.profiles_refused)}, HOSTS_OWN},
	{LINE_samples, NULL, "ship.modules_uploaded", {OF(shipped.modules_uploaded)}, HOSTS_OWN},
	{LINE_samples, NULL, "ship.uploads_failed", {OF(shipped.uploads_failed)}, HOSTS_OWN},
	{LINE_samples, NULL, "ship.network_restarts", {OF(shipped.network_restarts)}, HOSTS_OWN},
	{LINE_samples, NULL, "clock.jumps", {OF(clock_jumps)}, .flags = IF_ANY},
	{LINE_samples, NULL, "files.unnumbered", {OF(table.files_unnumbered)}, .flags = IF_ANY},
	{LINE_samples, NULL, "processes.untold", {OF(samples.processes_untold)}, .flags = IF_ANY},

	{LINE_times, "samples", NULL, {OF(times_lost)}, .flags = IF_ANY},

	{LINE_stacks, "complete", NULL, {OF(samples.by_result[WALK_complete])}},
	{LINE_stacks, "guessed", NULL, {OF(samples.guessed)}},
	{LINE_stacks, "incomplete", NULL, {OF(samples.incomplete)}},
	{LINE_stacks, "copies", NULL, {OF(capture.copies)}},
	{LINE_stacks, "copies_refused", NULL,
	 {KERNEL(copies_rate), KERNEL(copies_ring), OF(capture.copies_unmatched),
	  OF(stacks.refused)}},
	{LINE_stacks, "copies_expired", NULL, {OF(stacks.expired)}},
	{LINE_stacks, "copies_waiting", NULL, {OF(stacks.waiting)}},
	{LINE_stacks, "pages", NULL, {OF(pages.rows.pages)}},
	{LINE_stacks, "pages_failed", NULL, {OF(pages.rows.failed)}},
	{LINE_stacks, "pages_evicted", NULL, {OF(pages.rows.evicted)}},
	{LINE_stacks, "row_bytes", NULL, {OF(pages.rows.row_bytes)}},
	{LINE_stacks, "parser_starts", NULL, {OF(pages.parser.started)}},
	{LINE_stacks, "parser_kills", NULL, {OF(pages.parser.killed), OF(pages.parser.died)}},

	{LINE_copies, "finished", NULL, {OF(stacks.finished)}},
	{LINE_copies, "bytes", NULL, {OF(capture.copy_bytes)}},
	{LINE_copies, "refused_rate", NULL, {KERNEL(copies_rate)}},
	{LINE_copies, "refused_ring", NULL, {KERNEL(copies_ring)}},
	{LINE_copies, "unmatched", NULL, {OF(capture.copies_unmatched)}},
	{LINE_copies, "refused_waiting", NULL, {OF(stacks.refused)}},
	{LINE_copies, "waiting_bytes", NULL, {OF(stacks.waiting_bytes)}},

	{LINE_pages, "loaded", NULL, {OF(pages.rows.loaded)}},
	{LINE_pages, "empty", NULL, {OF(pages.rows.empty)}},
	{LINE_pages, "rows", NULL, {OF(pages.rows.rows)}},
	{LINE_pages, "rules", NULL, {OF(pages.rows.rules)}},
	{LINE_pages, "asked", NULL, {OF(pages.parser.asked)}},
	{LINE_pages, "waiting", NULL, {OF(pages.parser.waiting)}},
	{LINE_pages, "parser_cpu_ms", NULL, {OF(pages.parser.cpu_ns)}, MS},

	{LINE_published, "times", NULL, {OF(stacks.processes.published)}},
	{LINE_published, "pushed_out", NULL, {OF(stacks.processes.pushed_out)}},
	{LINE_published, "mappings_cut", NULL, {OF(stacks.processes.cut)}},
	{LINE_published, "heads", NULL, {OF(stacks.processes.heads)}},
	{LINE_published, "blocks", NULL, {OF(stacks.processes.blocks)}},

	/* what samples stand for beside what the kernel side counted without stacks, and why some
	 * of it has none */
	{LINE_waits, "waits", "off-cpu.waits", {KERNEL(waits)}},
	{LINE_waits, "exact_s", "off-cpu.exact_ns", {KERNEL(waited_ns), KERNEL(waited_disk_ns)}, S},
	{LINE_waits, NULL, "off-cpu.exact_disk_ns", {KERNEL(waited_disk_ns)}},
	{LINE_waits, "covered_s", "off-cpu.covered_ns", {OF(waits.covered_ns)}, S},
	{LINE_waits, "stacks", "off-cpu.stacks", {OF(waits.off_cpu)}},
	{LINE_waits, NULL, "off-cpu.stacks_lost",
	 {KERNEL(switch_ring_full), KERNEL(wakes_ring_full), OF(waits.refused)}},
	{LINE_waits, "stacks_lost", NULL, {KERNEL(switch_ring_full)}},
	{LINE_waits, "refused", NULL, {OF(waits.refused)}},
	{LINE_waits, "ends_lost", NULL, {KERNEL(wakes_ring_full)}},
	{LINE_waits, "ends_unknown", NULL, {OF(waits.ends_unknown)}},
	{LINE_waits, "ends_unseen", NULL, {KERNEL(ends_unseen)}},
	{LINE_waits, "too_long", "off-cpu.too_long", {KERNEL(waits_too_long)}},
	{LINE_waits, "escaped", "off-cpu.long_without_stack", {KERNEL(waits_escaped)}},
	{LINE_waits, "threads_full", "off-cpu.threads_full", {KERNEL(threads_full)}},
	{LINE_waits, "kept", NULL, {OF(waits.kept)}},
	{LINE_waits, "kept_bytes", NULL, {OF(waits.kept_bytes)}},
	{LINE_waits, "sweeps", NULL, {OF(capture.sweeps.done)}},
	{LINE_waits, "sweep_stacks", NULL, {OF(capture.sweeps.stacks)}},
	{LINE_waits, "sweep_cpu_ms", NULL, {OF(capture.sweeps.cpu_ns)}, MS},
	{LINE_waits, NULL, "run-queue.exact_ns", {KERNEL(run_queue_ns)}},
	{LINE_waits, NULL, "run-queue.covered_ns", {OF(waits.run_queue_covered_ns)}},

	{LINE_faults, "minor", "page-fault.minor", {OF(capture.faults.minor)}},
	{LINE_faults, "major", "page-fault.major", {OF(capture.faults.major)}},
	{LINE_faults, NULL, "page-fault.stacks", {OF(samples.by_type[SAMPLE_TYPE_page_fault])}},
	{LINE_faults, "stacks", NULL, {KERNEL(fault_stacks)}},
	{LINE_faults, "stacks_lost", "page-fault.stacks_lost", {KERNEL(fault_ring_full)}},

	/* what samples of memory stand on, and what they lack */
	{LINE_memory, "programs", NULL, {OF(probes.files)}},
	{LINE_memory, "processes", NULL, {OF(probes.processes)}},
	{LINE_memory, "stacks", "mem.stacks", {KERNEL(allocs)}},
	{LINE_memory, "stacks_lost", "mem.stacks_lost",
	 {KERNEL(alloc_ring_full), KERNEL(alloc_no_scratch), KERNEL(alloc_unreadable)}},
	{LINE_memory, NULL, "mem.stacks_thinned", {KERNEL(allocs_thinned)}},
	{LINE_memory, NULL, "mem.batches", {KERNEL(alloc_batches)}},
	{LINE_memory, "frees", "mem.frees", {KERNEL(frees)}},
	{LINE_memory, "frees_lost", "mem.frees_lost", {KERNEL(frees_ring_full)}},
	{LINE_memory, "live", NULL, {OF(allocations.live.pieces)}},
	{LINE_memory, "live_stacks", NULL, {OF(allocations.live.stacks)}},
	{LINE_memory, "live_bytes", NULL, {OF(allocations.live.stack_bytes)}},
	{LINE_memory, "refused", "mem.inuse_refused", {OF(allocations.live.refused)}},
	{LINE_memory, "unknown_frees", NULL, {OF(allocations.live.unknown)}},
	{LINE_memory, "without_profile", "mem.without_profile", {OF(probes.without)}},
	{LINE_memory, NULL, "mem.cut_off", {OF(probes.cut_off), OF(probes.failed)}},
	{LINE_memory, "cut_off", NULL, {OF(probes.cut_off)}},
	{LINE_memory, "failed", NULL, {OF(probes.failed)}},
	{LINE_memory, "unknown_rates", "mem.unknown_rates", {OF(probes.unknown_rates)}},
	{LINE_memory, NULL, "mem.programs_refused", {OF(probes.refused)}},
	{LINE_memory, NULL, "mem.inuse_unsure", {OF(probes.unsure)}},
	{LINE_memory, NULL, "mem.inuse_corrected", {OF(probes.corrected)}},
	{LINE_memory, "cost_us", "mem.cost_ns", {OF(probes.cost_ns)}, US},

	/* whose requests samples belong to, and what of it is missing */
	{LINE_contexts, "processes", NULL, {OF(requests.contexts.processes)}},
	{LINE_contexts, "publishing", NULL, {OF(requests.contexts.publishing)}},
	{LINE_contexts, "located", NULL, {OF(requests.contexts.located)}},
	{LINE_contexts, "read", "contexts.processes", {OF(requests.contexts.read)}},
	{LINE_contexts, "looks", NULL, {OF(requests.contexts.looks)}},
	{LINE_contexts, "refused", "contexts.refused", {OF(requests.contexts.refused)}},
	{LINE_contexts, "samples", "contexts.samples",
	 {KERNEL(contexts), OF(capture.sweeps.contexts)}},
	{LINE_contexts, "unread", "contexts.unread",
	 {KERNEL(contexts_unread), OF(capture.sweeps.contexts_unread)}},
	{LINE_contexts, "cut", "contexts.cut", {OF(requests.cut), OF(requests.contexts.cut)}},
	{LINE_contexts, "unknown_keys", "contexts.unknown_keys", {OF(requests.unknown_keys)}},
	{LINE_contexts, "attributes_lost", "contexts.attributes_lost", {OF(attributes_lost)}},

	/* what runtimes tell of the code they make, and what of it could not be taken */
	{LINE_jit, "processes", NULL, {OF(jit.processes)}},
	{LINE_jit, "maps", NULL, {OF(jit.maps)}},
	{LINE_jit, "dumps", NULL, {OF(jit.dumps)}},
	{LINE_jit, NULL, "jit.files", {OF(jit.maps), OF(jit.dumps)}},
	{LINE_jit, "entries", "jit.entries", {OF(jit.entries)}},
	{LINE_jit, "bytes", NULL, {OF(jit.bytes)}},
	{LINE_jit, "pieces", NULL, {OF(jit.pieces)}},
	{LINE_jit, "named", "jit.named", {OF(jit.named)}},
	{LINE_jit, "unnamed", "jit.unnamed", {OF(jit.unnamed)}},
	{LINE_jit, "unsure", NULL, {OF(jit.unsure)}},
	{LINE_jit, "refused", NULL, {OF(jit.refused)}},
	{LINE_jit, "foreign", NULL, {OF(jit.foreign)}},
	{LINE_jit, "failed", NULL, {OF(jit.failed)}},
	{LINE_jit, NULL, "jit.refused", {OF(jit.refused), OF(jit.foreign), OF(jit.failed)}},
	{LINE_jit, "cut", "jit.cut", {OF(jit.cut)}},
	/* whose frames an interpreter has, and what of them is missing */
	{LINE_runtimes, "samples", "runtimes.samples", {KERNEL(runtimes)}},
	{LINE_runtimes, "cut", "runtimes.cut", {KERNEL(runtimes_cut)}},
	{LINE_runtimes, "unread", "runtimes.unread", {KERNEL(runtimes_unread)}},
	{LINE_runtimes, "looks", NULL, {OF(runtimes.looks)}},
	{LINE_runtimes, "places", NULL, {OF(runtimes.places)}},
	{LINE_runtimes, "processes", "runtimes.processes", {OF(runtimes.located)}},
	{LINE_runtimes, "unknown", "runtimes.unknown", {OF(runtimes.unknown)}},
	{LINE_runtimes, "not_located", "runtimes.not_located",
	 {OF(runtimes.not_located), OF(runtimes.contradicted)}},
	{LINE_runtimes, "others", "runtimes.others", {OF(runtimes.others)}},
	{LINE_runtimes, "refused", "runtimes.refused", {OF(runtimes.refused)}},
	{LINE_runtimes, "frames", "runtimes.frames", {OF(names.frames)}},
	{LINE_runtimes, "nameless", "runtimes.nameless", {OF(names.nameless)}},
	{LINE_runtimes, "no_list", "runtimes.no_list",
	 {OF(names.merged[MERGE_no_list]), OF(names.merged[MERGE_early]),
	  OF(names.merged[MERGE_unknown]), OF(names.merged[MERGE_too_new]),
	  OF(names.merged[MERGE_no_place]), OF(names.merged[MERGE_not_by_perf])}},
	{LINE_runtimes, "early", "runtimes.early", {OF(names.merged[MERGE_early])}},
	{LINE_runtimes, "unsure", "runtimes.unsure", {OF(names.merged[MERGE_unsure])}},
	{LINE_runtimes, "differ", "runtimes.differ", {OF(names.merged[MERGE_differ])}},
	{LINE_runtimes, "guessed", "runtimes.guessed", {OF(names.merged[MERGE_guessed])}},
	{LINE_runtimes, "names_cut", "runtimes.names_cut",
	 {OF(names.codes.names_cut), OF(names.codes.lines_cut)}},
	{LINE_runtimes, "codes", NULL, {OF(names.codes.read)}},
	{LINE_runtimes, "codes_told", NULL, {OF(names.codes.told)}},
	{LINE_runtimes, "codes_gone", NULL, {OF(names.codes.gone)}},
	{LINE_runtimes, "codes_unread", NULL, {OF(names.codes.unread)}},
	{LINE_runtimes, "codes_refused", NULL, {OF(names.codes.refused)}},
	{LINE_runtimes, "codes_bytes", NULL, {OF(names.codes.bytes)}},

	/* Java virtual machines of HotSpot's: those whose stacks are walked, and those not */
	{LINE_runtimes, "jvms", "jvms", {OF(runtimes.hotspots.located)}},
	{LINE_runtimes, "jvms_now", NULL, {OF(runtimes.hotspots.places)}},
	{LINE_runtimes, "jvm_looks", NULL, {OF(runtimes.hotspots.looks)}},
	{LINE_runtimes, "jvms_unknown", "jvms.unknown", {OF(runtimes.hotspots.unknown)}},
	{LINE_runtimes, "jvms_refused", "jvms.refused", {OF(runtimes.hotspots.refused)}},
	{LINE_runtimes, "java_frames", "jvms.frames", {OF(java.frames)}},
	{LINE_runtimes, "java_nameless", "jvms.nameless", {OF(java.nameless)}},
	{LINE_runtimes, "java_cut", "jvms.cut", {OF(java.cut), OF(java.codes.calls_cut)}},
	{LINE_runtimes, "java_names_cut", NULL,
	 {OF(java.codes.names_cut), OF(java.codes.lines_cut)}},
	{LINE_runtimes, "java_methods", NULL, {OF(java.codes.methods)}},
	{LINE_runtimes, "java_compiled", NULL, {OF(java.codes.compiled)}},
	{LINE_runtimes, "java_gone", NULL, {OF(java.codes.gone)}},
	{LINE_runtimes, "java_unread", NULL, {OF(java.codes.unread)}},
	{LINE_runtimes, "java_refused", NULL, {OF(java.codes.refused)}},
	{LINE_runtimes, "java_bytes", NULL, {OF(java.codes.bytes)}},

	/* what strangers kept from being read */
	{LINE_strangers, "asked", NULL, {OF(strangers.asked)}},
	{LINE_strangers, "hung", "strangers.hung", {OF(strangers.hung)}},
	{LINE_strangers, "refused", "strangers.refused", {OF(strangers.refused)}},
	{LINE_strangers, "died", "strangers.died", {OF(strangers.died)}},
	{LINE_strangers, "maps_cut", "strangers.maps_cut", {OF(strangers.maps_cut)}},
	{LINE_strangers, "stalled_ms", NULL, {OF(strangers.stalled_ms)}},
	{LINE_strangers, "held", NULL, {OF(strangers.held)}},
	{LINE_strangers, "cpu_ms", NULL, {OF(strangers.cpu_ns)}, MS},

	/* what probes in allocators have cost, beside what they are allowed to */
	{LINE_windows, "processes", NULL, {OF(windows.processes)}},
	{LINE_windows, "windows", "mem.windows", {OF(windows.windows)}},
	{LINE_windows, "failed", "mem.windows_failed", {OF(windows.failed)}},
	{LINE_windows, "blurred", NULL, {OF(windows.blurred)}},
	{LINE_windows, "dear", "mem.windows_dear", {OF(windows.dear)}},
	{LINE_windows, "cut_off", "mem.windows_cut_off", {OF(windows.cut_off)}},
	{LINE_windows, "samples", "mem.windows_samples", {OF(windows.samples)}},
	{LINE_windows, "lost", "mem.windows_lost", {OF(windows.lost)}},
	{LINE_windows, "hits", NULL, {OF(windows.hits)}},
	{LINE_windows, "hit_ns", NULL, {OF(windows.hit_ns)}},
	{LINE_windows, "cost_us", "mem.windows_cost_ns", {OF(windows.cost_ns)}, US},
	{LINE_windows, "used_us", "mem.windows_used_ns", {OF(windows.used_ns)}, US},
	{LINE_windows, "unseen_us", "mem.windows_unseen_ns", {OF(windows.unseen_ns)}, US},
	{LINE_windows, "cost_percent", NULL, {OF(windows_percent)}},
	{LINE_windows, "budget", NULL, {OF(windows_budget)}},
	{LINE_windows, "refused", "mem.windows_refused",
	 {OF(windows.refused), OF(windows.files_refused)}},
	{LINE_windows, NULL, "mem.windows_within", {OF(windows_within)}},
	{LINE_windows, NULL, "mem.windows_between", {OF(windows_between)}},
	{LINE_windows, "names_asked", "mem.names_asked", {OF(windows.names.asked)}},
	{LINE_windows, "names_answered", "mem.names_answered", {OF(windows.names.answered)}},
	{LINE_windows, "names_unknown", "mem.names_unknown", {OF(windows.names.unknown)}},
	{LINE_windows, "names_refused", "mem.names_refused", {OF(windows.names.refused)}},

	WALK_RESULTS(RESULT) /* how stacks ended, */
	FRAME_MERGES(MERGE)  /* or, if that is well, how their interpreter's part did */
	{LINE_results, NULL, "stacks.guessed", {OF(samples.guessed)}},

	{LINE_processes, "maps_read", NULL, {OF(table.maps_read)}},
	{LINE_processes, "maps_failed", NULL, {OF(table.maps_failed)}},
	{LINE_processes, "files_opened", NULL, {OF(table.files_opened)}},
	{LINE_processes, "files_failed", NULL, {OF(table.files_failed)}},
	{LINE_processes, "process_events_lost", NULL, {OF(capture.process_events_lost)}},

	{LINE_timer, "ticks", NULL, {OF(capture.ticks)}},
	{LINE_timer, "idle", NULL, {OF(capture.idle)}},
	{LINE_timer, "missed", NULL, {OF(capture.missed)}},
	{LINE_timer, "filtered", NULL, {OF(capture.filtered)}},
	{LINE_timer, "perf_count_ns", NULL, {OF(capture.perf_count_ns)}},

	{LINE_own, "pss_kib", NULL, {OF(own_kib)}},
	{LINE_own, "bpf_map_bytes", NULL, {OF(map_bytes)}},

	LACKS(LACK) /* what it was denied since its start */
};

enum { COUNTERS = sizeof counters / sizeof *counters };

/* --- reading --- */

static void read_windows(const struct report_sources *from, struct counted *now)
{
	const struct allocation_windows_counters *windows = &now->windows;

	if (!from->windows)
		return;
	allocation_windows_counters(from->windows, &now->windows);
	now->windows_within = window_spread_units(windows->spread.within);
	now->windows_between = window_spread_units(windows->spread.between);
	if (windows->used_ns)
		now->windows_percent = 100.0 * (double)windows->cost_ns / (double)windows->used_ns;
	now->windows_budget = 100 * from->options->budgets[KERNEL_SOURCE_alloc];
}

static void read_parts(const struct report_sources *from, struct counted *now)
{
	samples_counters(from->samples, &now->samples);
	process_table_counters(from->table, &now->table);
	stacks_counters(from->stacks, &now->stacks);
	code_pages_counters(from->pages, &now->pages);
	requests_counters(from->requests, &now->requests);
	jit_files_counters(from->jit, &now->jit);
	stranger_reader_counters(&now->strangers);
	if (from->waits)
		waits_counters(from->waits, &now->waits);
	if (from->allocations)
		allocations_counters(from->allocations, &now->allocations);
	if (from->probes)
		memory_probes_counters(from->probes, &now->probes);
	if (from->runtimes)
		runtimes_counters(from->runtimes, &now->runtimes);
	samples_runtime_counters(from->samples, &now->names);
	samples_java_counters(from->samples, &now->java);
	read_windows(from, now);
	for (int i = 0; i < LACK_COUNT; i++)
		now->lacks[i] = lack_times((enum lack)i);
}

static void note_absent(const struct report_sources *from, struct counted *now)
{
	const struct stranger_reader_counters *strangers = &now->strangers;

	for (int line = 0; line < LINE_COUNT; line++)
		now->is_there[line] = true;
	now->is_there[LINE_waits] = from->waits;
	now->is_there[LINE_memory] = from->probes;
	now->is_there[LINE_windows] = from->windows;
	now->is_there[LINE_faults] = from->options->types >> SAMPLE_TYPE_page_fault & 1;
	now->is_silent[LINE_faults] = !now->capture.faults.minor;
	now->is_there[LINE_contexts] =
		now->requests.contexts.read || now->capture.kernel[COUNT_contexts] ||
		now->capture.kernel[COUNT_contexts_unread] || now->capture.sweeps.contexts ||
		now->capture.sweeps.contexts_unread || now->attributes_lost;
	now->is_there[LINE_jit] = now->jit.maps || now->jit.dumps || now->jit.foreign;
	now->is_there[LINE_runtimes] = now->capture.kernel[COUNT_runtimes] ||
				      now->runtimes.located || now->runtimes.unknown ||
				      now->runtimes.hotspots.located ||
				      now->runtimes.hotspots.unknown ||
				      now->names.merged[MERGE_unsure] ||
				      now->names.merged[MERGE_not_by_perf] ||
				      now->runtimes.not_located || now->runtimes.contradicted;
	now->is_there[LINE_strangers] = strangers->hung || strangers->refused || strangers->died ||
					strangers->maps_cut;
}

void counters_read(const struct report_sources *from, bool is_exact, struct counted *now)
{
	long online = sysconf(_SC_NPROCESSORS_ONLN);

	if (is_exact)
		capture_totals(from->capture, &now->capture);
	else
		capture_counts(from->capture, &now->capture);
	read_parts(from, now);
	now->taken_whole = now->capture.taken - now->stacks.waiting;
	now->cpus = online > 0 ? (uint64_t)online : 0;
	now->times_lost = stack_counts_lost_times(from->counts);
	now->attributes_lost = stack_counts_lost_attributes(from->counts);
	if (is_exact) {
		now->map_bytes = capture_map_bytes(from->capture);
		now->own_kib = own_memory_kib();
	}
	note_absent(from, now);
}

/* --- telling --- */

static uint64_t value_of(const struct counted *now, const struct counter *counter)
{
	uint64_t sum = 0;

	for (int i = 0; i < SOURCES_MAX; i++) {
		const struct source *source = &counter->sources[i];
		const void *at = (const char *)now + source->offset;

		if (source->kind == SOURCE_U32)
			sum += *(const uint32_t *)at;
		else if (source->kind == SOURCE_U64)
			sum += *(const uint64_t *)at;
	}
	return sum;
}

size_t counters_list(const struct counted *now, enum counters_reader reader,
		     struct profile_counter *out, size_t room)
{
	size_t count = 0;

	for (int i = 0; i < COUNTERS && count < room; i++) {
		const struct counter *counter = &counters[i];
		uint64_t value = value_of(now, counter);

		if (counter->metric && now->is_there[counter->line] &&
		    !(counter->not_for & reader) && (value || !(counter->flags & REPORTED_IF_ANY)))
			out[count++] = (struct profile_counter){counter->metric, value};
	}
	return count;
}

static int put_value(char *at, size_t room, const struct counted *now,
		     const struct counter *counter)
{
	const struct source *first = counter->sources;
	uint64_t value = value_of(now, counter);

	if (first->kind == SOURCE_DOUBLE)
		return snprintf(at, room, " %s=%.3f", counter->key,
				*(const double *)((const char *)now + first->offset));
	if (!value && counter->flags & SAID_IF_ANY)
		return 0;
	return snprintf(at, room, " %s=%" PRIu64, counter->key,
			value / (counter->divisor ? counter->divisor : 1));
}

void counters_text(const struct counted *now, enum counter_line line, char *text, size_t room)
{
	size_t used = 0;

	*text = '\0';
	if (!now->is_there[line] || now->is_silent[line])
		return;
	for (int i = 0; i < COUNTERS && used < room; i++)
		if (counters[i].line == line && counters[i].key)
			used += (size_t)put_value(text + used, room - used, now, &counters[i]);
}

void counters_log(const struct counted *now)
{
#define LINE(name_, event_, level_) {event_, level_},
	static const struct {
		const char *event;
		enum log_level level;
	} lines[] = {COUNTER_LINES(LINE)};
	static struct log_site sites[LINE_COUNT];
	char text[TEXT_MAX];

	for (int line = 0; line < LINE_COUNT; line++) {
		counters_text(now, (enum counter_line)line, text, sizeof text);
		if (!*text && line == LINE_results)
			snprintf(text, sizeof text, " none yet");
		if (*text)
			log_write(&sites[line], lines[line].level, lines[line].event, "%s%s",
				  text + 1,
				  line == LINE_times ? " why=\"no room in a report\"" : "");
	}
}
