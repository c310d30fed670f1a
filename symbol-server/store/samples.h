/* SPDX-License-Identifier: Apache-2.0 */
/* Counted stacks in, counted stacks out; raw (module, address), never names. The one door through
 * which ingest writes and query reads samples, whatever engine is behind it (sqlite/, clickhouse/;
 * samples_engine.h is their side of it). */
#ifndef SYMBOL_SERVER_STORE_SAMPLES_H
#define SYMBOL_SERVER_STORE_SAMPLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/arena.h"
#include "common/build_id.h"
#include "common/error.h"
#include "common/profile.h" /* enum address_base */

enum {
	SAMPLES_BUCKET_MS = 60000,
	SAMPLES_DEPTH_MAX = 2050, /* frames of a stack; ingest cuts at 2048 and says so */
	SAMPLES_LABELS_MAX = 40,
};

/* PROFILE_TYPE(name on the API, unit of its values, is it a gauge, sampling): design.md §3. The
 * position is the number on disk; rows are only ever added. A gauge's samples say how much there is
 * at the end of their report, not what happened since the one before: gauges.h. */
#define PROFILE_TYPES(TYPE)                                \
	TYPE("on-cpu", "nanoseconds", false, EVEN)         \
	TYPE("off-cpu", "nanoseconds", false, UNEVEN)      \
	TYPE("waker", "nanoseconds", false, UNEVEN)        \
	TYPE("run-queue", "nanoseconds", false, UNEVEN)    \
	TYPE("still-blocked", "nanoseconds", false, WHOLE) \
	TYPE("mem-alloc", "bytes", false, UNEVEN)          \
	TYPE("mem-inuse", "bytes", true, UNEVEN)           \
	TYPE("page-fault", "bytes", false, UNEVEN)         \
	TYPE("on-gpu", "nanoseconds", false, UNEVEN)       \
	TYPE("hbm-alloc", "bytes", false, UNEVEN)          \
	TYPE("hbm-inuse", "bytes", true, UNEVEN)           \
	TYPE("rdma", "bytes", false, UNEVEN)

/* Do samples of one host all weigh the same? WHOLE: nothing is sampled, all there is was told. */
enum profile_sampling { SAMPLING_EVEN, SAMPLING_UNEVEN, SAMPLING_WHOLE };

/* Number of a type and back; -1 and NULL when there is none such. */
int profile_type_find(const char *name, size_t length);
const char *profile_type_name(unsigned number);
const char *profile_type_unit(unsigned number);
bool profile_type_is_gauge(unsigned number);
enum profile_sampling profile_type_sampling(unsigned number);

/* ---- what one request brings: decoded, checked, borrowed during the call ---- */

enum location_kind {
	LOCATION_NATIVE, /* module + ELF address */
	LOCATION_KERNEL, /* module + address relative to its base */
	LOCATION_NAMED,  /* function, file, line as the sender resolved them; type says the language
			  */
	LOCATION_ANONYMOUS,  /* "[anon]" */
	LOCATION_INCOMPLETE, /* last (root) frame of a stack: function holds the sentence why */
};

struct text { /* not NUL-terminated; UTF-8 repaired by the reader */
	const char *at;
	uint32_t length;
};

struct batch_module {
	/* The key: GNU build-id, else htlhash, else 16 bytes made of the Go id: hash_bytes() of its
	 * text with seeds 1 and 2, little-endian. Length 0: the sender knows only a name. */
	struct build_id id;
	struct build_id htlhash; /* when the sender gave it: an alias of id */
	struct text go_id;       /* likewise */
	struct text name;        /* base name of the file */
	enum address_base base;
};

struct batch_location {
	enum location_kind kind;
	uint32_t module;  /* into modules; NATIVE, KERNEL (UINT32_MAX: no module, name is
			     "[unknown]") */
	uint64_t address; /* canonical: ELF address, or relative to base */
	struct text function, file, type;
	uint32_t line;
};

struct batch_stack {          /* leaf first */
	uint32_t first_index; /* into location_indices */
	uint32_t depth;
	uint64_t hash[2]; /* of its modules' ids and addresses: the stable id (first 64 bits shown)
			   */
};

struct batch_label {
	struct text name, value;
	bool is_attribute; /* the sender did not mean it as a label: label_limits.h */
};

struct batch_series { /* sorted by name, no duplicates, no empty values */
	struct batch_label *labels;
	uint32_t label_count;
};

struct batch_sample {
	uint32_t stack;
	struct text thread;              /* its name */
	struct text context;             /* the same with its id and attributes: sample_context.h */
	const uint8_t *link;             /* 16 bytes trace id, 8 bytes span id; NULL: none */
	uint64_t samples;                /* count */
	uint64_t value;                  /* in the type's unit */
	uint32_t first_time, time_count; /* into times; 0: the sender does not say when */
};

struct batch_profile {
	uint8_t id[16];      /* all zero: none, then nothing is deduplicated */
	const char *type;    /* "on-cpu" …, static */
	int64_t time_ms;     /* start of its interval, unix; decides the bucket */
	int64_t duration_ms; /* of its interval; 0: the sender does not say */
	uint32_t series;
	uint32_t first_sample, sample_count;
	bool is_counted; /* the sender counts what it takes (batch_counters); else taken = samples
			  */
};

enum {
	BATCH_LOST_REASONS = 24, /* with tallies.h */
	BATCH_STACK_RESULTS = 40,
	COUNT_NAME_BYTES = 40,
};

struct named_count { /* a counter whose name the sender chose */
	char name[COUNT_NAME_BYTES];
	uint64_t count;
};

struct batch_count {
	struct text name;
	uint64_t count;
};

/* What agents count of a type beside its samples (tallies.h). It comes among the losses, under a
 * name that no reason can have. */
enum tally_what {
	TALLY_EXACT,
	TALLY_COVERED, /* what samples stand for */
	TALLY_WINDOWS, /* that samples come from; variances of sums of them, by their samples, and
			  by how they differ: in one unit, node-agent/window_spread.h */
	TALLY_WITHIN,
	TALLY_BETWEEN,
	TALLY_COUNT
};
struct tally {
	const char *attribute; /* after "farflame." */
	const char *name;      /* among the losses: with a colon */
	const char *type;
	enum tally_what what;
};

/* NULL: none such. */
const struct tally *tally_of_attribute(struct text attribute);

/* What an agent can be denied while it runs (node-agent/kernel/lacks.h), as "farflame.lacks.…". */
#define AGENT_LACKS(LACK)      LACK(descriptors) LACK(realtime) LACK(threads) LACK(bpf)
#define AGENT_LACK_ENUM(name_) AGENT_LACK_##name_,
enum agent_lack { AGENT_LACKS(AGENT_LACK_ENUM) AGENT_LACK_COUNT };
#undef AGENT_LACK_ENUM
extern const char *const agent_lack_names[AGENT_LACK_COUNT];

struct batch_counters { /* an agent's own resource; cumulative since that agent's start */
	uint8_t agent_id[16], profile_id[16];
	struct text host, agent_version, kernel_release;
	uint32_t rate_hz;
	uint64_t report_seq, acknowledged_seq;
	uint64_t taken, idle;
	struct batch_count lost[BATCH_LOST_REASONS];
	unsigned lost_count;
	struct batch_count stacks[BATCH_STACK_RESULTS]; /* by how the walk ended */
	unsigned stacks_count;
	int64_t time_ms; /* start of the report's interval */
	int64_t duration_ms;
	int64_t received_ms;
	int64_t sent_ms;                  /* on the agent's clock; 0: it does not say */
	uint64_t lacks[AGENT_LACK_COUNT]; /* how often it was denied that */
	uint64_t clock_jumps;             /* how often its host's clock was set */
	uint64_t cpus;                    /* online on its host; 0: it does not say */
};

struct batch_refusals { /* profiles that the store does not take; the rest of the batch is */
	unsigned profiles;
	char sentence[200]; /* why the first one is not; "" when none */
};

struct batch_untimely { /* what is too old to be kept or in the future, of a sender without counters
			 */
	const char *type, *reason; /* static: "too_old" or "too_new" */
	uint32_t series;           /* for its host alone */
	uint64_t samples;
	int64_t received_ms; /* counted as lost then */
	uint8_t id[16];      /* as struct batch_profile's; zero: not known */
};

struct sample_batch {
	uint32_t tenant; /* 1: the default tenant */
	struct batch_module *modules;
	uint32_t module_count;
	struct batch_location *locations;
	uint32_t location_count;
	uint32_t *location_indices;
	uint32_t location_index_count;
	struct batch_stack *stacks;
	uint32_t stack_count;
	struct batch_series *series;
	uint32_t series_count;
	struct batch_sample *samples;
	uint32_t sample_count;
	uint64_t *times;
	uint32_t time_count; /* unix ns, of single samples */
	struct batch_profile *profiles;
	uint32_t profile_count;
	struct batch_counters *counters;
	uint32_t counters_count;
	struct batch_untimely *untimely;
	uint32_t untimely_count;
	struct text sender; /* address of the peer: host label of senders that name no host */
	struct batch_refusals *refusals; /* filled by samples_add(); NULL: nobody asks */
};

/* ---- what a query gets ---- */

struct series_labels {
	const char *const *names;
	const char *const *values;
	uint32_t count;
};

struct samples_limits { /* of one query; 0: none. Passed: ERROR_LIMIT and a sentence (limits.h) */
	int64_t time_ms;
	uint64_t bytes; /* of the result and what it takes to make it */
	uint64_t rows;  /* stored rows that are read */
	/* Of a question that asks the store several times: since when its time runs, on the
	 * monotonic clock, and the rows it has read. 0, NULL: each call is one. */
	int64_t started_ms;
	uint64_t *rows_read;
	/* Set instead of ERROR_LIMIT where memory is short and a part of the answer is one, too:
	 * the heaviest stacks (samples_result.cut), so many of a listing's values. NULL: it is not.
	 */
	bool *is_cut;
};

struct samples_query {
	uint32_t tenant;
	/* Widened by the store, see samples_result: to whole seconds where by_second is set and the
	 * store has all of that time so, what a report brings being of the second in which it
	 * began; else to whole buckets. Of times that are whole minutes the sums are the same. */
	int64_t from_ms, until_ms;
	bool by_second;
	const char *type;
	/* Says for each series in range whether it takes part. labels hold service, host, process,
	 * container … (not thread). NULL: all. */
	bool (*series_wanted)(void *context, const struct series_labels *labels);
	/* The same said by single labels: a series takes part if each of them does by its value, ""
	 * where it has none. A value is asked for once, however many series have it; series_wanted
	 * is not asked then. 0: it is. */
	bool (*value_wanted)(void *context, unsigned chooser, const char *value);
	const char *const *choosers; /* labels */
	unsigned chooser_count;
	/* The same for a thread and what else its samples have (sample_context.h), asked once per
	 * distinct one; NULL: all. */
	bool (*thread_wanted)(void *context, const char *thread);
	bool wants_context; /* thread_wanted looks at more than threads' names */
	/* thread_wanted, or thread_names, looks at what the process is: contexts are joined with it
	 * first (lifetimes.h). */
	bool wants_process;
	bool counts_untold; /* with it: samples_result.untold */
	void *context;
	bool by_thread; /* keep threads apart in the result, as far as thread_names tell them */
	const char *const *thread_names; /* of sample_context.h; NULL: as they are */
	unsigned thread_name_count;
	bool by_bucket; /* keep buckets of step_ms apart (time lines) */
	/* With by_bucket: a multiple of 60 s, or with by_second of 1 s, of which the store then
	 * keeps minutes apart where it has not these; 0: 60 s. */
	int64_t step_ms;
	/* The labels that series_wanted and the caller look at. The store may leave all others out
	 * and answer from roll-ups that dropped them. NULL: any, so nothing is left out. */
	const char *const *labels;
	unsigned label_count;
	struct samples_limits limits;
	bool (*is_cancelled)(void *context); /* asked now and then; NULL: never */
	/* 16 and 8 bytes: only samples that came with that trace, that span; NULL: all. */
	const uint8_t *trace_id, *span_id;
	bool by_span; /* only samples that came with a span, and spans are kept apart */
	/* Only samples that came with a span of which it says so: 24 bytes of ids; NULL: all. */
	bool (*span_wanted)(void *context, const uint8_t *ids);
	bool only_spans;               /* only samples that came with a span */
	const uint64_t *stack_id;      /* only that stack: batch_stack.hash[0]; NULL: all */
	const uint64_t *kept_stack_id; /* never left out for want of memory */
	bool only_nodes;               /* stacks need no locations where they have nodes */
	bool is_exact; /* only samples that have a time, in [from_ms, until_ms) as they are */
	/* Of a gauge by_bucket: what each step adds to the mean of the whole range, instead of its
	 * own mean. */
	bool is_part_of_mean;
};

struct result_module {
	struct build_id id;
	const char *name;
	enum address_base base;
};

struct result_location {
	enum location_kind kind;
	uint32_t module; /* UINT32_MAX: none */
	uint64_t address;
	const char *function, *file, *type; /* "" when none */
	uint32_t line;
};

/* Stacks as a tree, where the engine has them so: a caller's number is smaller than its callee's.
 */
struct result_node {
	uint32_t caller;   /* 0: none */
	uint32_t location; /* into locations */
};

struct result_stack {              /* one per distinct (series, thread, bucket, stack) */
	uint32_t series;           /* into series */
	const char *thread;        /* a context with thread_names; "" unless by_thread */
	int64_t bucket_ms;         /* 0 unless by_bucket */
	const uint32_t *locations; /* leaf first, into locations; NULL: as node says */
	uint32_t depth;
	uint64_t samples, value;
	uint32_t node; /* its leaf, into nodes; 0: locations say it, or it has no frames */
	uint32_t span; /* with by_span: into spans */
	uint64_t id;   /* batch_stack.hash[0] */
};

struct host_accounting { /* sums over the range, for one host */
	const char *host;
	uint64_t taken, idle, samples; /* samples: stored, all types the agent counts in taken */
	uint64_t lost;
	struct {
		const char *reason;
		uint64_t count;
	} lost_by[BATCH_LOST_REASONS];
	unsigned lost_count;
	/* Of the query's type, in its unit: how much there was, and what all samples stand for. */
	bool has_exact;
	uint64_t tallies[TALLY_COUNT];
	/* Stored samples that are less than they were: under the host's series "other", without
	 * their stack; its sender had its share of the room. */
	uint64_t folded_series, folded_stacks;
	uint32_t number;      /* of the store's own */
	uint64_t reported_ms; /* time that reports of it stand for; 0: its senders do not say */
};

/* One host in one step of time. What a report brings is of the step in which it began, and so is
 * the time that it reports on: a value divided by that time is a rate, whatever lies between. */
struct host_step {
	uint32_t host;   /* into hosts */
	int64_t time_ms; /* start of the step */
	uint64_t reported_ms, lost;
};

struct samples_result { /* lives in one arena; free with samples_result_free() */
	struct arena arena;
	int64_t from_ms, until_ms; /* as widened */
	int64_t resolution_ms;     /* of the coarsest part: 1 s, 60 s, 10 min or 1 h; exact: 1 ms */
	/* Of a query for threads: before it only sums are left, which have none; 0: all has them.
	 */
	int64_t threads_from_ms;
	struct result_module *modules;
	uint32_t module_count;
	struct result_location *locations;
	uint32_t location_count;
	struct result_node *nodes;
	uint32_t node_count; /* element 0 is none */
	struct result_stack *stacks;
	size_t stack_count;
	uint8_t (*spans)[24]; /* trace id, span id; each once */
	uint32_t span_count;
	struct series_labels *series;
	uint32_t series_count;
	struct host_accounting *hosts;
	uint32_t host_count; /* hosts with wanted series or, for a
				query without matchers, any counters */
	/* Sorted by time; steps of step_ms, or of host_step_ms(). None: not known. */
	struct host_step *host_steps;
	uint32_t host_step_count;
	const char *unit;
	/* With counts_untold: samples of the series and time wanted, whichever of them
	 * thread_wanted takes, and of these those of processes of which nobody told what they are.
	 * 0 of 0: not counted. */
	struct {
		uint64_t samples, of;
	} untold;
	/* Beside the stacks: of the lightest ones, for which there was no memory (limits.is_cut).
	 * At most so much, where threads, spans or one stack are chosen. */
	struct {
		uint64_t samples, value;
	} cut;
};

struct samples_store;

enum samples_resolution { SAMPLES_RAW, SAMPLES_10M, SAMPLES_1H, SAMPLES_RESOLUTIONS };

struct samples_store_options {
	const char *directory;                /* holds samples-YYYYMMDD.db, journal */
	const char *clickhouse_url;           /* NULL: SQLite in the directory */
	int64_t keep_ms[SAMPLES_RESOLUTIONS]; /* older is deleted; raw 0: kept for ever; roll-ups 0:
					       * as long as raw */
	int64_t trace_keep_ms;                /* trace and span ids of samples; 0: none are kept */
	uint64_t max_disk_bytes;              /* oldest first; 0: no limit */
	uint32_t series_max;                  /* of a tenant and day; 0: CATALOG_SERIES_MAX */
	uint64_t dictionary_bytes;            /* of all days' in memory; 0: 1 GiB */
	/* Told what opening is at, as "reads the journal"; static texts. NULL: nobody asks. */
	void (*does)(void *context, const char *doing);
	void *does_context;
};

/* Opens, migrates, replays the journal. ERROR_UNSUPPORTED: written by a newer version. */
struct samples_store *samples_open(const struct samples_store_options *options, struct error *err);

/* Records the batch; done() is called once, from another thread, when it is on disk (accepted true)
 * or could not be written (false, err says why). The batch may be freed when this returns. Profiles
 * whose id was seen before are left out; duplicates counts them. false: refused at once —
 * ERROR_BUSY (try later), ERROR_LIMIT, ERROR_SYSTEM (disk full) — and done() is not called.
 * When a day has most of series_max, a host that has its share of them gets no new ones: its
 * further profiles are stored under its series with process "other". Where there is no room for
 * that either they are refused alone (batch->refusals), and their samples count as lost by
 * "series_limit". Likewise new stacks of a host that has its share of dictionary_bytes.
 * Thread-safe. */
typedef void samples_done_fn(void *context, bool accepted, const struct error *err);
bool samples_add(struct samples_store *store, const struct sample_batch *batch,
		 samples_done_fn *done, void *context, unsigned *duplicates, struct error *err);

/* Everything acknowledged before the call is in the result. Thread-safe, does not block writers. */
struct samples_result *samples_query(struct samples_store *store, const struct samples_query *query,
				     struct error *err);
void samples_result_free(struct samples_result *result);

struct type_count {
	const char *type, *unit;
	uint64_t samples, value;
};
struct label_count {
	const char *name;
	uint64_t values;
	bool is_part; /* there may be more: threads are counted for a second only */
};
struct value_count {
	const char *value;
	uint64_t samples;
};
/* The listings of /types, /labels, /labels/{name}: in arena, sorted; within the range and the
 * series wanted (type NULL: all). "thread" is a label here too. */
bool samples_types(struct samples_store *store, const struct samples_query *query,
		   struct arena *arena, struct type_count **rows, size_t *count, struct error *err);
bool samples_labels(struct samples_store *store, const struct samples_query *query,
		    struct arena *arena, struct label_count **rows, size_t *count,
		    struct error *err);
bool samples_label_values(struct samples_store *store, const struct samples_query *query,
			  const char *label, struct arena *arena, struct value_count **rows,
			  size_t *count, struct error *err);

/* Sums of rows without their stacks, for time lines: one point per (series of the result, step)
 * that has samples, sorted by series, then time. Threads and stacks are not looked at: a query with
 * thread_wanted is ERROR_OPTION. */
struct timeline_point {
	uint32_t series; /* into series */
	int64_t time_ms; /* start of the step */
	uint64_t samples, value;
};
struct samples_timeline {
	struct arena arena;                                /* holds everything */
	int64_t from_ms, until_ms, step_ms, resolution_ms; /* as widened */
	struct series_labels *series;
	uint32_t series_count; /* with the query's labels only */
	struct timeline_point *points;
	size_t point_count;
	struct host_accounting *hosts;
	uint32_t host_count;
	struct host_step *host_steps; /* as in samples_result */
	uint32_t host_step_count;
};
struct samples_timeline *samples_timeline(struct samples_store *store,
					  const struct samples_query *query, struct error *err);
void samples_timeline_free(struct samples_timeline *timeline);

/* Calls fn for each single sample that has a time, in [from_ms, until_ms) as they are, of the
 * series and threads wanted; no order. False from fn stops, and the return is then true as well.
 * ERROR_UNSUPPORTED: the engine keeps none. ERROR_FORMAT: a day turned out to be damaged and is set
 * aside; what fn was given is void, and the next try is without that day. */
typedef bool samples_moment_fn(void *context, int64_t time_ms, uint64_t value);
bool samples_moments(struct samples_store *store, const struct samples_query *query,
		     samples_moment_fn *fn, void *context, struct error *err);

/* Calls fn for every stored sum of samples that came with a span, of the series and threads wanted,
 * with its 24 bytes of ids; no order, and nothing is added up. The rest as samples_moments(). */
typedef bool samples_span_fn(void *context, const uint8_t *ids, uint64_t stack_id, uint64_t samples,
			     uint64_t value);
bool samples_spans(struct samples_store *store, const struct samples_query *query,
		   samples_span_fn *fn, void *context, struct error *err);

/* Deletes what is of the type (NULL: all), in the range as widened to whole buckets (minutes, or
 * what is left of them: ten minutes, hours), of the series wanted; roll-ups follow. When it returns
 * nothing of it is answered any more, and a restart does not bring it back. Accounts stay: what was
 * deleted counts as lost_by "deleted". ERROR_OPTION, and nothing is deleted: threads out of sums
 * that do not keep them apart. */
struct samples_deleted {
	uint64_t samples;          /* how many went, also when it failed midway */
	int64_t from_ms, until_ms; /* as widened */
};
bool samples_delete(struct samples_store *store, const struct samples_query *query,
		    struct samples_deleted *deleted, struct error *err);

/* A copy that farflame-server --data DIR could be started on, of everything acknowledged before the
 * call, while the store works on. The directory is made and must be empty. ERROR_UNSUPPORTED: the
 * engine has its own tools for that. */
bool samples_backup(struct samples_store *store, const char *directory, struct error *err);

struct agent_state {
	const char *host, *version, *kernel;
	uint32_t rate_hz;
	int64_t last_seen_ms;
	uint64_t heard;  /* SQLite: the larger was heard later, whatever clocks say */
	int64_t lag_ms;  /* received − end of the report's interval, of the last report */
	bool has_skew;   /* known since this server started */
	int64_t skew_ms; /* the agent's clock − this server's, the way included, of the last report
			  */
	/* SQLite: as heard since this server started */
	uint64_t lacks[AGENT_LACK_COUNT];
	uint64_t clock_jumps; /* times its host's clock was set by more than a second */
	uint64_t cpus;        /* online on its host; 0: not known */
	uint64_t taken, lost;
	struct {
		const char *reason;
		uint64_t count;
	} lost_by[BATCH_LOST_REASONS];
	unsigned lost_count;
	const struct named_count *stacks; /* by result of the walk, as the agent names them */
	unsigned stacks_count;
};
bool samples_agents(struct samples_store *store, uint32_t tenant, struct arena *arena,
		    struct agent_state **rows, size_t *count, struct error *err);

/* CPUs of those hosts together, as their agents heard last said since this server started. names:
 * sorted by strcmp(). 0: one of them is not known to have any, or the engine does not keep it. */
uint64_t samples_cpus(struct samples_store *store, uint32_t tenant, const char *const *names,
		      uint32_t count);

struct samples_counters { /* for /metrics; cumulative unless said */
	uint64_t reports, profiles, duplicates, samples, refused_busy;
	uint64_t journal_bytes, journal_syncs, folds, fold_errors, replayed;
	uint64_t recent_bytes; /* now: of the newest minutes by the second */
	uint64_t unfolded_ms; /* now: since when the oldest samples wait to be folded; 0: none do */
	uint64_t disk_bytes, days;                 /* now */
	int64_t oldest_ms;                         /* begin of the first day or month; 0: none */
	uint64_t level_bytes[SAMPLES_RESOLUTIONS]; /* files that have minutes; that have roll-ups
						      only */
	uint64_t days_reduced, days_deleted,
		months_deleted; /* by retention and the limit of disk */
	uint64_t rollup_lag_ms; /* now: age of the oldest closed bucket without its roll-up */
	uint64_t forecast_bytes,
		disk_full_seconds; /* now: where retention ends; 0: not known, never */
	uint64_t rollup_pairs,
		rollup_cpu_us; /* counted stacks read to be rolled up; its CPU time */
	uint64_t series, stacks, memory_bytes; /* now */
	/* Profiles and their samples that found no room for one more series; samples whose stack
	 * found no room in the day's dictionary and is shown as that sentence. */
	uint64_t times_refused, /* of single samples, far outside of their report */
		moments;        /* times kept */
	uint64_t series_refused_profiles, series_refused_samples, stacks_overflowed;
	/* Those that are their host's "other" instead, as it has its share of the series. */
	uint64_t series_folded_profiles, series_folded_samples;
	uint64_t dictionary_bytes, dictionaries_dropped; /* now; for room, before they were idle */
	/* Now, unix: start of the newest day, or when an agent was heard last if that is later; 0:
	 * nothing is known. A right clock is not before it. */
	int64_t newest_ms;
	uint64_t samples_damaged;               /* of days, lost so */
	uint64_t days_damaged, journal_damaged; /* set aside; records not usable; since the start */
	/* What agents reported of how their stack walks ended; names without room are "other". */
	struct named_count walks[BATCH_STACK_RESULTS];
	unsigned walk_count;
	/* What they reported as lost; likewise. */
	struct named_count lost[BATCH_LOST_REASONS];
	unsigned lost_count;
	/* Now: why reports are refused, and why what was taken stays in the journal; ERROR_NONE:
	 * not so. The first is forgotten some seconds after the last report that was refused. */
	struct error refusing, waiting;
};
void samples_counters(struct samples_store *store, struct samples_counters *out);

/* Folds what is in memory now and waits for it (tests, imports, backups). False: err says why not.
 */
bool samples_fold(struct samples_store *store, struct error *err);

/* Folds what is in memory, syncs, closes. Calls every outstanding done(). NULL is fine. */
void samples_close(struct samples_store *store);

#endif
