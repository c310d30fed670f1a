/* SPDX-License-Identifier: Apache-2.0 */
/* What there is: types, label names, values of one label. From the sums of rows, rolled up where
 * they are; only for labels of samples, which are no part of a series, whether they are listed or
 * selected by, minutes are read and opened. */
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "symbol-server/store/rules/answerable.h"
#include "symbol-server/store/sample_context.h"
#include "symbol-server/store/rules/series_labels.h"
#include "symbol-server/store/sqlite/answers/view.h"

enum {
	ATTEMPTS = 3,
	ASK_ROWS = 64,     /* between two looks at the clock */
	THREADS_MS = 1000, /* so long threads are counted for a list of all labels */
};

enum choice { NOT_ASKED, WANTED, UNWANTED };

struct listing {
	struct view view;
	struct samples_query wanted;
	const struct samples_query *query;
	struct view_day *day;
	uint64_t *threads;       /* samples of each string of the day, as a context */
	uint8_t *choices;        /* of the same, enum choice */
	uint64_t of_context;     /* of the one being added */
	uint64_t *series;        /* samples of each series of the day */
	size_t room;             /* bytes of the three */
	uint64_t samples, value; /* of the type */
	struct {
		uint64_t samples, value;
	} row; /* what the query wants of the one being read */
	bool with_threads;
	struct label_sums sums;
	int64_t until_ms; /* it is enough then; 0: never */
	struct error *err;
	bool is_full, is_damaged;
	bool is_over;   /* a limit, as err says */
	bool is_enough; /* until_ms is over */
};

static bool reads_pairs(const struct listing *listing)
{
	return listing->with_threads || listing->query->thread_wanted;
}

/* False with is_full: no memory; with is_over: a limit. */
static bool is_wanted(struct listing *listing, uint32_t thread)
{
	uint8_t *known = &listing->choices[thread];
	char joined[CONTEXT_BYTES_MAX];
	const char *text;

	if (!listing->query->thread_wanted)
		return true;
	if (*known == NOT_ASKED) {
		listing->is_over = !limit_watch_goes_on(&listing->view.watch, listing->err);
		text = view_context(listing->day, listing->query, thread, joined);
		listing->is_full |= !text;
		if (!text || listing->is_over)
			return false;
		*known = listing->query->thread_wanted(listing->query->context, text) ? WANTED
										      : UNWANTED;
	}
	return *known == WANTED;
}

static bool add_pair(void *context, const struct packed_pair *pair)
{
	struct listing *listing = context;

	if (pair->thread >= listing->day->mark.count[CATALOG_STRINGS])
		return true; /* refers to nothing */
	if (!is_wanted(listing, pair->thread))
		return !listing->is_full && !listing->is_over;
	listing->row.samples += pair->samples;
	listing->row.value += pair->value;
	if (listing->with_threads)
		listing->threads[pair->thread] += pair->samples;
	return true;
}

static bool add_context(void *to, const char *name, const char *value)
{
	struct listing *listing = to;

	return label_sums_add(&listing->sums, name, value, listing->of_context, true);
}

static bool sums_failed(struct listing *listing)
{
	return label_sums_failed(&listing->sums, listing->err);
}

static bool add_contexts(struct listing *listing)
{
	char joined[CONTEXT_BYTES_MAX];

	for (uint32_t n = 1; n < listing->day->mark.count[CATALOG_STRINGS]; n++) {
		const char *context;

		if (!limit_watch_goes_on(&listing->view.watch, listing->err))
			return false;
		listing->of_context = listing->threads[n];
		if (!listing->of_context)
			continue;
		context = view_context(listing->day, listing->query, n, joined);
		if (!context)
			return error_set(listing->err, ERROR_MEMORY, "no memory for a listing");
		if (!sample_context_each(context, add_context, listing))
			return sums_failed(listing);
	}
	return true;
}

static bool goes_on(struct listing *listing)
{
	struct limit_watch *watch = &listing->view.watch;

	listing->is_over = !limit_watch_row(watch, listing->err);
	if (watch->rows % ASK_ROWS == 0) {
		listing->is_enough = listing->until_ms && monotonic_ms() > listing->until_ms;
		listing->is_over |= !limit_watch_allows(watch,
							listing->view.arena.used + listing->room +
								label_sums_bytes(&listing->sums),
							listing->err);
	}
	return !listing->is_enough && !listing->is_over;
}

static bool add_row(void *context, const struct view_row *row)
{
	struct listing *listing = context;

	listing->row.samples = listing->row.value = 0;
	if (!reads_pairs(listing)) {
		listing->row.samples = row->samples;
		listing->row.value = row->value;
	} else if (!view_each_pair(row, add_pair, listing)) {
		listing->is_damaged = !listing->is_full && !listing->is_over;
		return false;
	}
	listing->samples += listing->row.samples;
	listing->value += listing->row.value;
	listing->series[row->series] += listing->row.samples;
	return goes_on(listing);
}

static bool add_series(struct listing *listing, uint32_t number)
{
	const struct catalog *catalog = listing->day->catalog;
	const struct catalog_series *series = catalog_series(catalog, number);

	for (uint32_t i = 0; i < series->label_count; i++)
		if (!label_sums_add(&listing->sums,
				    catalog_string(catalog, series->labels[2 * i])->text,
				    catalog_string(catalog, series->labels[2 * i + 1])->text,
				    listing->series[number], false))
			return sums_failed(listing);
	return true;
}

static bool add_labels(struct listing *listing)
{
	for (uint32_t n = 1; n < listing->day->mark.count[CATALOG_SERIES]; n++)
		if (!limit_watch_goes_on(&listing->view.watch, listing->err) ||
		    (listing->series[n] && !add_series(listing, n)))
			return false;
	return true;
}

/* One type of one day. */
static bool list_day(struct listing *listing, unsigned type, bool with_labels, struct error *err)
{
	struct view_day *day = listing->day;

	if (!view_choose_series(&listing->view, day, listing->query, err))
		return false;
	if (!day->wanted)
		return true;
	memset(listing->series, 0, day->mark.count[CATALOG_SERIES] * sizeof *listing->series);
	if (listing->with_threads)
		memset(listing->threads, 0,
		       day->mark.count[CATALOG_STRINGS] * sizeof *listing->threads);
	if (reads_pairs(listing))
		memset(listing->choices, NOT_ASKED, day->mark.count[CATALOG_STRINGS]);
	if (!view_each(&listing->view, day, listing->query, type, reads_pairs(listing), add_row,
		       listing, err))
		return false;
	if (listing->is_damaged) {
		error_set(err, ERROR_FORMAT, "samples of a minute are damaged");
		view_set_aside(&listing->view, day, err);
		return false;
	}
	if (listing->is_over)
		return false;
	if (listing->is_full)
		return error_set(err, ERROR_MEMORY, "no memory for a listing");
	return (!with_labels || add_labels(listing)) &&
	       (!listing->with_threads || add_contexts(listing));
}

static bool list_type(struct listing *listing, unsigned type, bool with_labels, struct error *err)
{
	listing->samples = listing->value = 0;
	for (unsigned i = 0; i < listing->view.day_count && !listing->is_enough; i++) {
		listing->day = &listing->view.days[i];
		if (!list_day(listing, type, with_labels, err))
			return false;
	}
	return true;
}

static void close_listing(struct listing *listing)
{
	view_close(&listing->view);
	label_sums_release(&listing->sums);
	free(listing->series);
	free(listing->threads);
	free(listing->choices);
}

/* For one day after the other, whatever their types. */
static bool make_room(struct listing *listing)
{
	size_t series = 1, strings = 1;

	for (unsigned i = 0; i < listing->view.day_count; i++) {
		const uint32_t *count = listing->view.days[i].mark.count;

		series = count[CATALOG_SERIES] > series ? count[CATALOG_SERIES] : series;
		if (reads_pairs(listing) && count[CATALOG_STRINGS] > strings)
			strings = count[CATALOG_STRINGS];
	}
	listing->series = calloc(series, sizeof *listing->series);
	listing->threads = calloc(strings, sizeof *listing->threads);
	listing->choices = calloc(strings, 1);
	listing->room = (series + strings) * sizeof *listing->series + strings;
	return listing->series && listing->threads && listing->choices;
}

static bool open_listing(struct listing *listing, struct sqlite_samples *store,
			 const struct samples_query *query, bool with_threads, int *type,
			 struct error *err)
{
	if (!answerable_any_type(query, type, err))
		return false;
	memset(listing, 0, sizeof *listing);
	listing->wanted = *query;
	listing->wanted.by_thread = listing->with_threads = with_threads;
	listing->wanted.wants_process |= with_threads;
	listing->query = &listing->wanted;
	listing->err = err;
	label_sums_init(&listing->sums, &query->limits);
	if (!view_open(&listing->view, store, listing->query, *type, err))
		return false;
	if (make_room(listing))
		return true;
	close_listing(listing);
	return error_set(err, ERROR_MEMORY, "no memory for a listing");
}

/* All types wanted, one after the other. */
static bool list_all(struct listing *listing, int type, bool with_labels, struct error *err)
{
	for (unsigned i = 0; profile_type_name(i) && !listing->is_enough; i++)
		if ((type < 0 || i == (unsigned)type) && !list_type(listing, i, with_labels, err))
			return false;
	return true;
}

/* One try of a listing; *count rows. */
struct listed {
	struct sqlite_samples *store;
	const struct samples_query *query;
	const char *label;
	struct arena *arena;
	void *rows;
	size_t count;
};
typedef bool list_fn(struct listed *listed, struct error *err);

/* A file found damaged is set aside; without it the listing succeeds. */
static bool try_listing(list_fn *list, struct listed *listed, struct error *err)
{
	struct error why = {0};
	bool ok = false;

	for (int attempt = 0; attempt < ATTEMPTS && !ok; attempt++) {
		why = (struct error){0};
		listed->count = 0;
		ok = list(listed, &why);
		if (!ok && why.kind != ERROR_FORMAT)
			break;
	}
	if (!ok && err)
		*err = why;
	return ok;
}

static bool list_types(struct listed *listed, struct error *err)
{
	struct type_count *rows = listed->rows = arena_array(listed->arena, 32, sizeof *rows);
	struct listing listing;
	bool ok = true;
	int type;

	if (!rows)
		return error_set(err, ERROR_MEMORY, "no memory for a listing");
	if (!open_listing(&listing, listed->store, listed->query, false, &type, err))
		return false;
	for (unsigned i = 0; ok && profile_type_name(i); i++) {
		if (type >= 0 && i != (unsigned)type)
			continue;
		ok = list_type(&listing, i, false, err);
		if (ok && listing.samples)
			rows[listed->count++] = (struct type_count){profile_type_name(i),
								    profile_type_unit(i),
								    listing.samples, listing.value};
	}
	close_listing(&listing);
	return ok;
}

bool sqlite_samples_types(struct samples_store *base, const struct samples_query *query,
			  struct arena *arena, struct type_count **rows, size_t *count,
			  struct error *err)
{
	struct listed listed = {.store = sqlite_samples_of(base), .query = query, .arena = arena};
	bool ok = try_listing(list_types, &listed, err);

	*rows = listed.rows;
	*count = listed.count;
	return ok;
}

/* Threads of minutes, as many as are met in time, to the labels of roll-ups. */
static bool count_labels(struct listing *labels, struct listing *threads, struct listed *listed,
			 struct error *err)
{
	struct label_count *rows;

	for (size_t i = 0; i < threads->sums.count; i++)
		if (!label_sums_add(&labels->sums, threads->sums.values[i].label,
				    threads->sums.values[i].value, threads->sums.values[i].samples,
				    false))
			return label_sums_failed(&labels->sums, err);
	if (!label_sums_labels(&labels->sums, listed->arena, &rows, &listed->count, err))
		return false;
	for (size_t i = 0; i < listed->count; i++)
		rows[i].is_part = threads->is_enough && sample_context_has_name(rows[i].name);
	listed->rows = rows;
	return true;
}

/* All labels of the samples that are wanted, from their minutes. */
static bool list_chosen_labels(struct listed *listed, struct error *err)
{
	struct label_count *rows = NULL;
	struct listing listing;
	bool ok;
	int type;

	if (!open_listing(&listing, listed->store, listed->query, true, &type, err))
		return false;
	ok = list_all(&listing, type, true, err) &&
	     label_sums_labels(&listing.sums, listed->arena, &rows, &listed->count, err);
	listed->rows = rows;
	close_listing(&listing);
	return ok;
}

static bool list_labels(struct listed *listed, struct error *err)
{
	struct listing labels, threads;
	bool ok;
	int type;

	if (listed->query->thread_wanted)
		return list_chosen_labels(listed, err);
	if (!open_listing(&labels, listed->store, listed->query, false, &type, err))
		return false;
	ok = list_all(&labels, type, true, err);
	if (ok && open_listing(&threads, listed->store, listed->query, true, &type, err)) {
		threads.view.watch.started_ms = labels.view.watch.started_ms;
		threads.view.watch.rows = labels.view.watch.rows;
		threads.until_ms = monotonic_ms() + THREADS_MS;
		view_lend_series(&labels.view, &threads.view);
		ok = list_all(&threads, type, false, err) &&
		     count_labels(&labels, &threads, listed, err);
		close_listing(&threads);
	} else {
		ok = false;
	}
	close_listing(&labels);
	return ok;
}

bool sqlite_samples_labels(struct samples_store *base, const struct samples_query *query,
			   struct arena *arena, struct label_count **rows, size_t *count,
			   struct error *err)
{
	struct listed listed = {.store = sqlite_samples_of(base), .query = query, .arena = arena};
	bool ok = try_listing(list_labels, &listed, err);

	*rows = listed.rows;
	*count = listed.count;
	return ok;
}

static bool list_values(struct listed *listed, struct error *err)
{
	bool is_thread = sample_context_has_name(listed->label);
	struct value_count *rows = NULL;
	struct listing listing;
	bool ok;
	int type;

	if (!open_listing(&listing, listed->store, listed->query, is_thread, &type, err))
		return false;
	ok = list_all(&listing, type, !is_thread, err) &&
	     label_sums_values(&listing.sums, listed->label, listed->arena, &rows, &listed->count,
			       err);
	listed->rows = rows;
	close_listing(&listing);
	return ok;
}

bool sqlite_samples_label_values(struct samples_store *base, const struct samples_query *query,
				 const char *label, struct arena *arena, struct value_count **rows,
				 size_t *count, struct error *err)
{
	struct listed listed = {
		.store = sqlite_samples_of(base), .query = query, .label = label, .arena = arena};
	bool ok = try_listing(list_values, &listed, err);

	*rows = listed.rows;
	*count = listed.count;
	return ok;
}
