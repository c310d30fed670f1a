/* SPDX-License-Identifier: Apache-2.0 */
/* A view of recent.h: its cells take the place of generations and files, of which the dictionaries
 * are read alone. */
#include "symbol-server/store/sqlite/answers/view.h"

static const int64_t second_ms = 1000;

static bool asks_seconds(const struct samples_query *query, int type)
{
	return query->by_second && type < SPANS_OF &&
	       (query->from_ms % SAMPLES_BUCKET_MS || query->until_ms % SAMPLES_BUCKET_MS ||
		(query->by_bucket && query->step_ms % SAMPLES_BUCKET_MS));
}

bool view_is_recent(struct view *view, const struct samples_query *query, int type)
{
	struct sqlite_samples *store = view->store;

	if (!asks_seconds(query, type) || query->from_ms < 0 ||
	    query->from_ms < store_kept_from_ms(store, SAMPLES_RAW, view->now_ms) ||
	    !recent_has(&store->recent, view->now_ms, query->from_ms, query->until_ms))
		return false;
	view->from_ms = query->from_ms / second_ms * second_ms;
	view->until_ms = (query->until_ms + second_ms - 1) / second_ms * second_ms;
	view->resolution_ms = second_ms;
	return true;
}

static int64_t time_of(const struct cell_key *key)
{
	return key->day * day_ms + key->bucket * (int64_t)SAMPLES_BUCKET_MS +
	       key->second * second_ms;
}

static bool in_range(const struct view *view, const struct samples_query *query, int type,
		     const struct cell_key *key)
{
	/* What hosts report is in the accounts of the first type. */
	return key->tenant == query->tenant &&
	       (type < 0 || key->type == (uint32_t)type || (!key->type && !key->series)) &&
	       time_of(key) >= view->from_ms && time_of(key) < view->until_ms;
}

bool view_take_recent(struct view *view, const struct samples_query *query, int type)
{
	const struct recent *recent = &view->store->recent;
	size_t count = 0;

	view->tables = arena_array(&view->arena, RECENT_PLACES, sizeof *view->tables);
	for (unsigned i = 0; view->tables && i < RECENT_PLACES; i++) {
		const struct recent_minute *minute = recent->places[i];

		if (!minute || minute->minute < view->from_ms / SAMPLES_BUCKET_MS ||
		    minute->minute * SAMPLES_BUCKET_MS >= view->until_ms)
			continue;
		view->tables[view->table_count++] = memory_table_take(minute->table);
		count += minute->table->cells.count;
	}
	view->cells = arena_array(&view->arena, count, sizeof *view->cells);
	for (unsigned i = 0; view->cells && i < view->table_count; i++)
		for (uint32_t k = 0; k < view->tables[i]->cells.count; k++) {
			const struct memory_cell *cell = blocks_at(&view->tables[i]->cells, k);

			if (in_range(view, query, type, &cell->key))
				view->cells[view->cell_count++] =
					(struct view_cell){.snapshot = memory_cell_snapshot(cell)};
		}
	return view->cells;
}

struct cut_series {
	const struct view_day *day;
	bool is_wanted;
};

static bool see_cut(void *context, const uint8_t *at, size_t length)
{
	struct cut_series *cut = context;
	const uint8_t *end = length ? at + length : at;
	uint64_t series;

	while (!cut->is_wanted && at < end && varint_read(&at, end, &series))
		cut->is_wanted = view_has_series(cut->day, (uint32_t)series);
	return !cut->is_wanted;
}

bool view_recent_is_whole(struct view *view, const struct samples_query *query, bool *is_whole,
			  struct error *err)
{
	*is_whole = true;
	for (unsigned i = 0; i < view->day_count; i++) {
		struct view_day *day = &view->days[i];
		struct cut_series cut = {day, false};

		for (size_t k = 0; !cut.is_wanted && k < day->cell_count; k++) {
			if (day->cells[k].snapshot.key.series != RECENT_CUT)
				continue;
			if (!view_choose_series(view, day, query, err))
				return false;
			if (day->is_wanted)
				memory_snapshot_each(&day->cells[k].snapshot, see_cut, &cut);
		}
		*is_whole &= !cut.is_wanted;
	}
	return true;
}

struct recent_relay {
	struct view_row row;
	view_row_fn *fn;
	void *context;
};

static bool relay_row(void *context, const struct recent_row *from)
{
	struct recent_relay *relay = context;
	struct view_row *row = &relay->row;

	row->series = from->series;
	row->samples = from->samples;
	row->value = from->value;
	row->packed = from->packed.at;
	row->length = from->packed.length;
	return !view_has_series(row->day, row->series) || relay->fn(relay->context, row);
}

static bool relay_run(void *context, const uint8_t *bytes, size_t length)
{
	return recent_each(bytes, length, relay_row, context);
}

bool view_each_recent(const struct view_row *cell, view_row_fn *fn, void *context)
{
	struct recent_relay relay = {*cell, fn, context};

	relay.row.cell = NULL;
	return memory_snapshot_each(&cell->cell->snapshot, relay_run, &relay);
}
