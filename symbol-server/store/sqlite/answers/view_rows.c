/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of a view: of generations in memory and of files, as one. */
#include "symbol-server/store/sqlite/answers/view.h"

#include <string.h>

#include "symbol-server/store/sqlite/rollups/rollup.h"
#include "symbol-server/store/sqlite/series_choice.h"

enum { FEW_SERIES = 4 /* one in so many or fewer is looked up one by one */ };

struct row_relay {
	struct view *view;
	struct view_day *day;
	view_row_fn *fn;
	void *context;
	bool is_stopped;
};

static bool relay(void *context, const struct day_row *row, const struct day_data *data)
{
	struct row_relay *relay = context;
	struct view_row out = {.day = relay->day,
			       .type = row->type,
			       .bucket = row->bucket,
			       .series = row->series,
			       .samples = row->samples,
			       .value = row->value,
			       .packed = data->data,
			       .length = data->length,
			       .hosts = data->hosts,
			       .hosts_length = data->hosts_length};

	if (row->series >= relay->day->mark.count[CATALOG_SERIES])
		return true; /* it refers to nothing: a dictionary cut short by damage */
	relay->is_stopped = !relay->fn(relay->context, &out);
	return !relay->is_stopped;
}

static bool relay_wanted(void *context, uint32_t series)
{
	return view_has_series(((struct row_relay *)context)->day, series);
}

static bool is_in_parts(const struct view_parts *parts, uint32_t minute)
{
	for (unsigned i = 0; i < parts->count; i++)
		if (minute >= parts->at[i].from && minute < parts->at[i].until)
			return true;
	return false;
}

static void relay_cell(struct row_relay *relay, struct view_row *row)
{
	if (relay->view->is_recent && row->series == RECENT_SAMPLES)
		relay->is_stopped = !view_each_recent(row, relay->fn, relay->context);
	else if (!row->series || relay_wanted(relay, row->series))
		relay->is_stopped = !relay->fn(relay->context, row);
}

static bool is_seen(const struct row_relay *relay, const struct view_cell *cell)
{
	const struct cell_key *key = &cell->snapshot.key;

	return relay->view->is_recent
		       ? key->series != RECENT_CUT
		       : cell->start >= relay->day->folded_through &&
				 is_in_parts(&relay->day->samples, key->bucket) &&
				 key->series < relay->day->mark.count[CATALOG_SERIES];
}

/* Cells of the type that the file's transaction does not have. */
static bool each_cell(struct row_relay *relay, unsigned type, bool accounts, struct error *err)
{
	for (size_t i = 0; !relay->is_stopped && i < relay->day->cell_count; i++) {
		const struct view_cell *cell = &relay->day->cells[i];
		const struct cell_key *key = &cell->snapshot.key;
		struct view_row row = {.day = relay->day,
				       .type = key->type,
				       .bucket = key->bucket,
				       .series = key->series,
				       .second = (int32_t)key->second,
				       .samples = cell->snapshot.samples,
				       .value = cell->snapshot.value,
				       .cell = cell};

		if (!limit_watch_goes_on(&relay->view->watch, err))
			return false;
		if (key->type == type && !key->series == accounts && is_seen(relay, cell))
			relay_cell(relay, &row);
	}
	return true;
}

bool view_read_failed(struct view *view, struct view_day *day, struct error *err)
{
	if (view->watch.why.kind != ERROR_NONE && err)
		*err = view->watch.why;
	else if (err && err->kind == ERROR_FORMAT)
		view_set_aside(view, day, err);
	return false;
}

static struct day_range part_range(const struct samples_query *query, unsigned type,
				   const struct view_part *part)
{
	return (struct day_range){query->tenant, type,        part->from,
				  part->until,   part->level, part->above};
}

static bool names_instance(const struct catalog *catalog, uint32_t number)
{
	const struct catalog_series *series = catalog_series(catalog, number);

	for (uint32_t i = 0; i < series->label_count; i++)
		if (rollup_drops_label(catalog_string(catalog, series->labels[2 * i])->text))
			return true;
	return false;
}

static bool is_fleet(enum day_level level)
{
	return level == DAY_10M_FLEET || level == DAY_1H_FLEET;
}

bool view_each(struct view *view, struct view_day *day, const struct samples_query *query,
	       unsigned type, bool with_data, view_row_fn *fn, void *context, struct error *err)
{
	struct row_relay sink = {view, day, fn, context, false};

	for (unsigned i = 0; day->reader && !sink.is_stopped && i < day->samples.count; i++) {
		const struct day_range range = part_range(query, type, &day->samples.at[i]);
		bool of_fleet = day->fleet && is_fleet(range.level);

		if (!day_reader_samples(day->reader, &range, of_fleet ? day->fleet : day->list,
					of_fleet ? day->fleet_count : day->wanted, with_data,
					relay_wanted, relay, &sink, err))
			return view_read_failed(view, day, err);
	}
	return sink.is_stopped || !day->catalog || each_cell(&sink, type, false, err);
}

bool view_each_account(struct view *view, struct view_day *day, const struct samples_query *query,
		       unsigned type, view_row_fn *fn, void *context, struct error *err)
{
	struct row_relay sink = {view, day, fn, context, false};

	for (unsigned i = 0; day->reader && !sink.is_stopped && i < day->accounts.count; i++) {
		const struct day_range range = part_range(query, type, &day->accounts.at[i]);

		if (!day_reader_accounts(day->reader, &range, relay, &sink, err))
			return view_read_failed(view, day, err);
	}
	return sink.is_stopped || !day->catalog || each_cell(&sink, type, true, err);
}

struct pair_sink {
	packed_pair_fn *pair;
	packed_account_fn *account;
	void *context;
};

static bool each_raw(void *context, const uint8_t *bytes, size_t length)
{
	const struct pair_sink *sink = context;

	return sink->pair ? packed_each_run(bytes, length, sink->pair, sink->context)
			  : account_each(bytes, length, sink->account, sink->context);
}

bool view_each_pair(const struct view_row *row, packed_pair_fn *fn, void *context)
{
	struct pair_sink sink = {fn, NULL, context};

	return row->cell ? memory_snapshot_each(&row->cell->snapshot, each_raw, &sink)
			 : packed_each(row->packed, row->length, fn, context);
}

bool view_each_entry(const struct view_row *row, packed_account_fn *fn, void *context)
{
	struct pair_sink sink = {NULL, fn, context};

	return row->cell ? memory_snapshot_each(&row->cell->snapshot, each_raw, &sink)
			 : account_each(row->packed, row->length, fn, context);
}

void view_each_host(const struct view_row *row, view_host_fn *fn, void *context)
{
	const uint8_t *at = row->hosts, *end = at + row->hosts_length;
	uint64_t host = 0, more;

	while (at < end && varint_read(&at, end, &more)) {
		host += more;
		if (host < row->day->mark.count[CATALOG_STRINGS])
			fn(context, (uint32_t)host);
	}
}

/* --- series --- */

/* Of many alike the roll-ups of a fleet have rows of one series only, unless it found no room in
 * the dictionary: the others need not be looked for. */
static bool list_fleet(struct view *view, struct view_day *day)
{
	uint32_t *fleet;
	bool is_full;

	pthread_mutex_lock(&view->store->lock);
	is_full = catalog_is_full(day->catalog);
	pthread_mutex_unlock(&view->store->lock);
	if (is_full)
		return true;
	fleet = arena_array(&view->arena, day->wanted + 1, sizeof *fleet);
	for (uint32_t i = 0; fleet && i < day->wanted; i++)
		if (!names_instance(day->catalog, day->list[i]))
			fleet[day->fleet_count++] = day->list[i];
	day->fleet = fleet;
	return fleet;
}

static bool list_series(struct view *view, struct view_day *day)
{
	uint32_t count = day->mark.count[CATALOG_SERIES], found = 0;
	uint32_t *list;

	for (uint32_t n = 1; n < count; n++)
		day->wanted += day->is_wanted[n];
	if (!day->wanted || day->wanted * FEW_SERIES > count)
		return true;
	list = arena_array(&view->arena, day->wanted, sizeof *list);
	for (uint32_t n = 1; list && n < count; n++)
		if (day->is_wanted[n])
			list[found++] = n;
	day->list = list;
	return list && list_fleet(view, day);
}

bool view_choose_series(struct view *view, struct view_day *day, const struct samples_query *query,
			struct error *err)
{
	uint32_t chosen = 1;

	if (day->is_wanted || !day->catalog)
		return true;
	day->is_wanted = arena_alloc(&view->arena, day->mark.count[CATALOG_SERIES] + 1);
	if (!day->is_wanted)
		return error_set(err, ERROR_LIMIT, "the time range has too much in it");
	if (day->like && day->like->is_wanted) {
		chosen = day->like->mark.count[CATALOG_SERIES];
		memcpy(day->is_wanted, day->like->is_wanted, chosen);
	}
	return series_choose(day->catalog, &day->mark, chosen, query, day->is_wanted, &view->watch,
			     err) &&
	       (list_series(view, day) ||
		error_set(err, ERROR_LIMIT, "the time range has too much in it"));
}

void view_lend_series(const struct view *from, struct view *to)
{
	for (unsigned i = 0; i < to->day_count; i++)
		for (unsigned k = 0; k < from->day_count; k++)
			if (to->days[i].catalog == from->days[k].catalog &&
			    to->days[i].mark.count[CATALOG_SERIES] >=
				    from->days[k].mark.count[CATALOG_SERIES])
				to->days[i].like = &from->days[k];
}
