/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of struct clickhouse_samples. Of this folder only.
 *
 * The way of a request: samples_add() writes its rows into the open group; the insert thread sends
 * the group's tables one after the other (what is referred to first, samples last), looks whether
 * ClickHouse has one of its profiles twice now, and calls done(). Nothing is kept here that another
 * farflame-server in front of the same ClickHouse would need: a profile is one row that is known by
 * its id, so that it may be inserted again by whoever is asked to; agents' counters are cumulative.
 * schema/store/clickhouse has the tables.
 *
 * What it decides is what SQLite's engine decides: store/rules/. What it lacks beside it:
 *  - deletion of what has sums only: 501 (remove.c); what processes were stays until the day's
 *    minutes go, as definitions do until the month's;
 *  - the newest minutes by the second, and how much of the time hosts reported: absent in answers;
 *  - what agents lack, their CPUs and clock jumps: 0 (samples_agents());
 *  - one count of --series-limit, and of reports out of time that come again, over all servers:
 *    each has its own. */
#ifndef SYMBOL_SERVER_STORE_CLICKHOUSE_SAMPLES_STORE_H
#define SYMBOL_SERVER_STORE_CLICKHOUSE_SAMPLES_STORE_H

#include <pthread.h>

#include "common/log.h"
#include "symbol-server/store/rules/agent_table.h"
#include "symbol-server/store/rules/aging.h"
#include "symbol-server/store/clickhouse/client.h"
#include "symbol-server/store/clickhouse/definitions.h"
#include "symbol-server/store/clickhouse/id_set.h"
#include "symbol-server/store/rules/pending_reports.h"
#include "symbol-server/store/rules/report_window.h"
#include "symbol-server/store/samples_engine.h"
#include "symbol-server/store/rules/sender_shares.h"
#include "symbol-server/store/rules/untimely_ids.h"

enum {
	GROUP_WAIT_MS = 50,         /* a group waits this long for company */
	GROUP_INTERVAL_MS = 250,    /* from one insert to the next while reports keep coming */
	GROUP_BYTES = 8 << 20,      /* enough: it is sent at once */
	GROUP_BYTES_MAX = 48 << 20, /* waiting; more is ERROR_BUSY */
	GROUP_DAYS_MAX = 50,        /* newer versions take 100 partitions in one insert */
	SERIES_DAYS = 64,           /* days and tenants whose series are counted; then anew */
	KNOWN_IDS_MAX = 4 << 20,    /* definitions that ClickHouse is known to have */
	LATE_MS = 300000,           /* from the end of a report to its arrival */
	PROBE_MS = 1000,            /* while ClickHouse is away */
	TIDY_INTERVAL_MS = 60000,
	ROLLUP_INTERVAL_MS = 10000,
	SERVERS_APART_S = 120, /* their clocks: sums are made so long after ROLLUP_CLOSED_MS */
	LATE_MARGIN_S = 3600,  /* minutes that go so soon are late samples already */
	DAYS_MAX = 4096,
	DAY_NUMBERS = 1 << 16,
};

enum group_table { /* in the order in which they are inserted */
		   GROUP_MODULES,
		   GROUP_LOCATIONS,
		   GROUP_STACKS,
		   GROUP_SERIES,
		   GROUP_LIFETIMES,
		   GROUP_REPORTS,
		   GROUP_LATE_REPORTS,
		   GROUP_MOMENTS,
		   GROUP_SPANS,
		   GROUP_SAMPLES,
		   GROUP_LATE_SAMPLES,
		   GROUP_TABLES,
};

struct row_group {
	uint64_t number;
	struct buffer tables[GROUP_TABLES];
	struct buffer ids;     /* of its profiles: what tells whether one is there twice */
	struct buffer late;    /* reports that came late: whose agents may be irregular */
	uint32_t first_late;   /* minute */
	struct id_set buckets; /* ten minutes that it changes, number since 1970 */
	struct id_set defined;
	uint32_t first_minute, last_minute; /* of ids, unix seconds */
	uint32_t days[GROUP_DAYS_MAX];
	unsigned day_count;
	uint64_t profiles, samples;
	int64_t begin_ms; /* of the first report */
	struct pending_reports pending;
};

struct clickhouse_samples {
	struct samples_store base; /* first */
	struct clickhouse *client;
	int64_t keep_ms[SAMPLES_RESOLUTIONS];
	int64_t trace_keep_ms; /* 0: no spans are kept */
	uint64_t max_disk_bytes;
	uint32_t series_max;
	const char *local; /* what names of tables end in where rows are changed: "" or "_local" */
	pthread_t insert_thread, tidy_thread;
	bool has_insert_thread, has_tidy_thread;
	uint64_t rollup_server; /* of this process among those that could add up */
	struct aging aging;     /* the tidy thread's; behind_ms is read by all, atomically */

	pthread_mutex_t lock; /* everything below */
	pthread_cond_t insert_wake, insert_done, tidy_wake;
	struct row_group *group; /* open */
	uint64_t committed;      /* groups up to this one are in ClickHouse */
	uint64_t fold_requests, folds_done;
	int64_t last_insert_ms;
	bool is_closing;
	bool is_away; /* the last insert or question failed; why says how */
	struct error why;
	struct id_set known;      /* definitions, mixed with their month */
	struct id_set series_met; /* mixed with day and tenant: what series_max counts */
	struct series_day {
		uint32_t tenant, day, count;
	} series_days[SERIES_DAYS];
	unsigned series_day_count;
	struct sender_shares series_hosts; /* of a host, mixed with day and tenant */
	struct log_fault series_folded;
	struct report_window window;
	struct untimely_ids untimely;
	struct agent_table agents; /* for /metrics only */
	struct samples_counters counters;
	uint64_t random[2];            /* ids of profiles that have none */
	uint8_t days[DAY_NUMBERS / 8]; /* that ClickHouse has partitions of, as far as known */
	unsigned day_count;
	struct definitions *definitions; /* read back */
};

static const int64_t day_ms = 86400000;
/* Of series that have no samples: why those that were refused are. */
static const char clickhouse_lost_label[] = "lost_by";

static inline struct clickhouse_samples *clickhouse_samples_of(struct samples_store *store)
{
	return (struct clickhouse_samples *)store;
}

int64_t clickhouse_now_ms(void);
uint32_t month_of(int64_t time_ms);   /* 202611 */
uint32_t day_number(int64_t time_ms); /* 20261121 */

/* ---- schema (migrations.c) ---- */

bool clickhouse_migrate(struct clickhouse *client, struct error *err);

/* ---- inserting (group.c, add.c, insert.c) ---- */

struct row_group *row_group_new(uint64_t number); /* NULL: no memory */
void row_group_free(struct row_group *group);
size_t row_group_bytes(const struct row_group *group);
bool clickhouse_samples_add(struct samples_store *base, const struct sample_batch *batch,
			    samples_done_fn *done, void *context, unsigned *duplicates,
			    struct error *err);
void *insert_thread(void *store);
bool clickhouse_samples_fold(struct samples_store *base, struct error *err);

/* The id of a series' labels that name no instance: what its sums are added to. (add.c) */
uint64_t whole_series_id(const struct series_labels *labels);

/* ---- sums (rollup.c) ---- */

/* What is over and not added up yet, when this server is the one to do it. *is_done: nothing is
 * left. */
bool clickhouse_rollup_turn(struct clickhouse_samples *store, int64_t now_ms, bool *is_done,
			    struct error *err);
uint64_t rollup_version(int64_t now_ms); /* larger than earlier ones, and nobody else's */

/* ---- keeping (tidy.c) ---- */

/* Which days there are; drops what is too old or too much. */
bool clickhouse_tidy(struct clickhouse_samples *store, int64_t now_ms, struct error *err);
void *tidy_thread(void *store);

/* ---- the rest of the engine, as samples.h says ---- */

struct samples_result *clickhouse_samples_query(struct samples_store *base,
						const struct samples_query *query,
						struct error *err);
struct samples_timeline *clickhouse_samples_timeline(struct samples_store *base,
						     const struct samples_query *query,
						     struct error *err);
bool clickhouse_samples_types(struct samples_store *base, const struct samples_query *query,
			      struct arena *arena, struct type_count **rows, size_t *count,
			      struct error *err);
bool clickhouse_samples_labels(struct samples_store *base, const struct samples_query *query,
			       struct arena *arena, struct label_count **rows, size_t *count,
			       struct error *err);
bool clickhouse_samples_label_values(struct samples_store *base, const struct samples_query *query,
				     const char *label, struct arena *arena,
				     struct value_count **rows, size_t *count, struct error *err);
bool clickhouse_samples_moments(struct samples_store *base, const struct samples_query *query,
				samples_moment_fn *fn, void *context, struct error *err);
bool clickhouse_samples_spans(struct samples_store *base, const struct samples_query *query,
			      samples_span_fn *fn, void *context, struct error *err);
bool clickhouse_samples_remove(struct samples_store *base, const struct samples_query *query,
			       struct samples_deleted *deleted, struct error *err);
bool clickhouse_samples_agents(struct samples_store *base, uint32_t tenant, struct arena *arena,
			       struct agent_state **rows, size_t *count, struct error *err);

#endif
