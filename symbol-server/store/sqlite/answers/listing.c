/* SPDX-License-Identifier: Apache-2.0 */
/* What there is: types, label names, values of one label. From the sums of rows; the packed samples
 * are only opened for "thread", which is not part of a series. */
#include <string.h>

#include "symbol-server/store/series_labels.h"
#include "symbol-server/store/sqlite/answers/view.h"

static const char thread_label[] = "thread";

struct listing {
	struct view view;
	struct samples_query wanted;
	const struct samples_query *query;
	struct view_day *day;
	const uint8_t *is_wanted;
	uint64_t *series;        /* samples of each series of the day */
	uint64_t samples, value; /* of the type */
	bool with_threads;
	struct label_sums sums; /* texts live as long as the view */
	bool is_full;
};

static bool is_wanted(void *context, uint32_t series)
{
	const struct listing *listing = context;

	return series < listing->day->mark.count[CATALOG_SERIES] && listing->is_wanted[series];
}

static bool add_thread(void *context, const struct packed_pair *pair)
{
	struct listing *listing = context;
	const char *thread;

	if (!pair->thread || pair->thread >= listing->day->mark.count[CATALOG_STRINGS])
		return true;
	thread = catalog_string(listing->day->catalog, pair->thread)->text;
	if (!label_sums_add(&listing->sums, thread_label, thread, pair->samples))
		listing->is_full = true;
	return !listing->is_full;
}

static bool add_row(void *context, const struct view_row *row)
{
	struct listing *listing = context;

	listing->samples += row->samples;
	listing->value += row->value;
	listing->series[row->series] += row->samples;
	if (listing->with_threads)
		view_each_pair(row, add_thread, listing);
	return !listing->is_full;
}

static bool add_labels(struct listing *listing)
{
	const struct catalog *catalog = listing->day->catalog;

	for (uint32_t n = 1; n < listing->day->mark.count[CATALOG_SERIES]; n++) {
		const struct catalog_series *series;

		if (!listing->series[n])
			continue;
		series = catalog_series(catalog, n);
		for (uint32_t i = 0; i < series->label_count; i++)
			if (!label_sums_add(
				    &listing->sums,
				    catalog_string(catalog, series->labels[2 * i])->text,
				    catalog_string(catalog, series->labels[2 * i + 1])->text,
				    listing->series[n]))
				return false;
	}
	return true;
}

/* One type of one day. */
static bool list_day(struct listing *listing, unsigned type, bool with_labels, struct error *err)
{
	struct view_day *day = listing->day;
	const uint32_t *list;
	uint32_t wanted;

	listing->is_wanted = view_wanted(&listing->view, day, listing->query, &wanted);
	listing->series = arena_array(&listing->view.arena, day->mark.count[CATALOG_SERIES] + 1,
				      sizeof *listing->series);
	if (!listing->is_wanted || !listing->series)
		return error_set(err, ERROR_LIMIT, "the time range has too much in it");
	if (!wanted)
		return true;
	list = view_series_list(&listing->view, day, listing->is_wanted, wanted);
	if (!view_each(&listing->view, day, listing->query, type, listing->with_threads, list,
		       wanted, is_wanted, add_row, listing, err))
		return false;
	if (listing->is_full || (with_labels && !add_labels(listing)))
		return error_set(err, ERROR_MEMORY, "no memory for a listing");
	return true;
}

static bool list_type(struct listing *listing, unsigned type, bool with_labels, struct error *err)
{
	listing->samples = listing->value = 0;
	for (unsigned i = 0; i < listing->view.day_count; i++) {
		listing->day = &listing->view.days[i];
		if (!list_day(listing, type, with_labels, err))
			return false;
	}
	return true;
}

static bool open_listing(struct listing *listing, struct sqlite_samples *store,
			 const struct samples_query *query, bool with_threads, int *type,
			 struct error *err)
{
	*type = query->type ? profile_type_find(query->type, strlen(query->type)) : -1;
	if (query->type && *type < 0)
		return error_set(err, ERROR_OPTION, "'%s' is not a profile type", query->type);
	memset(listing, 0, sizeof *listing);
	listing->wanted = *query;
	listing->wanted.by_thread = listing->with_threads = with_threads;
	listing->query = &listing->wanted;
	label_sums_init(&listing->sums);
	return view_open(&listing->view, store, listing->query, *type, err);
}

static void close_listing(struct listing *listing)
{
	view_close(&listing->view);
	label_sums_release(&listing->sums);
}

/* All types wanted, one after the other. */
static bool list_all(struct listing *listing, int type, struct error *err)
{
	for (unsigned i = 0; profile_type_name(i); i++)
		if ((type < 0 || i == (unsigned)type) && !list_type(listing, i, true, err))
			return false;
	return true;
}

bool sqlite_samples_types(struct samples_store *base, const struct samples_query *query,
			  struct arena *arena, struct type_count **rows, size_t *count,
			  struct error *err)
{
	struct sqlite_samples *store = sqlite_samples_of(base);
	struct listing listing;
	bool ok = true;
	int type;

	*count = 0;
	*rows = arena_array(arena, 32, sizeof **rows);
	if (!*rows)
		return error_set(err, ERROR_MEMORY, "no memory for a listing");
	if (!open_listing(&listing, store, query, false, &type, err))
		return false;
	for (unsigned i = 0; ok && profile_type_name(i); i++) {
		if (type >= 0 && i != (unsigned)type)
			continue;
		ok = list_type(&listing, i, false, err);
		if (ok && listing.samples)
			(*rows)[(*count)++] = (struct type_count){profile_type_name(i),
								  profile_type_unit(i),
								  listing.samples, listing.value};
	}
	close_listing(&listing);
	return ok;
}

bool sqlite_samples_labels(struct samples_store *base, const struct samples_query *query,
			   struct arena *arena, struct label_count **rows, size_t *count,
			   struct error *err)
{
	struct listing listing;
	bool ok;
	int type;

	if (!open_listing(&listing, sqlite_samples_of(base), query, true, &type, err))
		return false;
	ok = list_all(&listing, type, err) &&
	     label_sums_labels(&listing.sums, arena, rows, count, err);
	close_listing(&listing);
	return ok;
}

bool sqlite_samples_label_values(struct samples_store *base, const struct samples_query *query,
				 const char *label, struct arena *arena, struct value_count **rows,
				 size_t *count, struct error *err)
{
	struct listing listing;
	bool ok;
	int type;

	if (!open_listing(&listing, sqlite_samples_of(base), query, !strcmp(label, thread_label),
			  &type, err))
		return false;
	ok = list_all(&listing, type, err) &&
	     label_sums_values(&listing.sums, label, arena, rows, count, err);
	close_listing(&listing);
	return ok;
}
