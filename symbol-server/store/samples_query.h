/* SPDX-License-Identifier: Apache-2.0 */
/* What is asked of the samples, and what comes: stacks, sums by step, single samples, spans,
 * listings; and deletion, which chooses as a query does. */
#ifndef SYMBOL_SERVER_STORE_SAMPLES_QUERY_H
#define SYMBOL_SERVER_STORE_SAMPLES_QUERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/arena.h"
#include "common/error.h"
#include "symbol-server/store/sample_batch.h"

struct samples_store;

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

#endif
