/* SPDX-License-Identifier: Apache-2.0 */
/* samples_query(): rows of all days → one sum per distinct (series, thread, step, stack). Rows are
 * copied as they come, packed, until there are CHUNK_BYTES of them, and then added up series by
 * series (query_sums.c). Series that differ only in labels nobody looks at are one. */
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/keyed_hash.h"
#include "symbol-server/store/rules/answerable.h"
#include "symbol-server/store/sqlite/days/moment_rows.h"
#include "symbol-server/store/sqlite/days/span_rows.h"
#include "symbol-server/store/sqlite/answers/querying.h"
#include "symbol-server/store/rules/series_labels.h"

enum {
	RESULT_BYTES_MAX = 768 << 20,
	ATTEMPTS = 3,
	FIXED_BYTES = 1 << 20,
	ASK_STEPS = 64, /* pieces and the like between two looks at the clock */
};

static bool make_maps(struct querying *querying)
{
	struct view *view = &querying->view;

	querying->maps = arena_array(&view->arena, view->day_count, sizeof *querying->maps);
	for (unsigned i = 0; querying->maps && i < view->day_count; i++) {
		const uint32_t *count = view->days[i].mark.count;
		struct day_maps *maps = &querying->maps[i];

		maps->series = arena_array(&view->arena, count[CATALOG_SERIES], 4);
		maps->stacks = arena_array(&view->arena, count[CATALOG_STACKS], 4);
		maps->strings = arena_array(&view->arena, count[CATALOG_STRINGS],
					    sizeof *maps->strings);
		maps->threads = arena_array(&view->arena, count[CATALOG_STRINGS], 4);
		maps->is_untold = arena_array(&view->arena, count[CATALOG_STRINGS], 1);
		maps->is_host = arena_array(&view->arena, count[CATALOG_STRINGS], 1);
	}
	return !view->arena.failed;
}

/* --- limits --- */

bool querying_goes_on(struct querying *querying)
{
	size_t bytes;

	if (querying->is_stopped || querying->is_full)
		return false;
	if (querying->steps++ % ASK_STEPS)
		return true;
	bytes = querying_bytes(querying);
	if (querying->most_bytes) /* it is cut before; not what there is in any case */
		bytes -= bytes < FIXED_BYTES ? bytes : FIXED_BYTES;
	querying->is_stopped = !limit_watch_allows(&querying->view.watch, bytes, querying->err);
	return !querying->is_stopped;
}

const char *querying_string(struct querying *querying, struct view_day *day, uint32_t string)
{
	const char **known = &querying_maps(querying, day)->strings[string];
	const struct catalog_string *from = catalog_string(day->catalog, string);

	if (!string)
		return "";
	if (!*known)
		*known = arena_text(&querying->result->arena, from->text, from->length);
	if (!*known)
		querying->is_full = true;
	return *known ? *known : "";
}

/* --- series --- */

static bool copy_labels(struct querying *querying, struct view_day *day, uint32_t number,
			struct series_labels *to)
{
	const struct catalog_series *from = catalog_series(day->catalog, number);
	struct arena *arena = &querying->result->arena;
	const char **names = arena_array(arena, from->label_count, sizeof *names);
	const char **values = arena_array(arena, from->label_count, sizeof *values);

	*to = (struct series_labels){names, values, 0};
	for (uint32_t i = 0; names && values && i < from->label_count; i++) {
		uint32_t name = from->labels[2 * i];

		if (!samples_query_asks(querying->query, catalog_string(day->catalog, name)->text))
			continue;
		names[to->count] = querying_string(querying, day, name);
		values[to->count++] = querying_string(querying, day, from->labels[2 * i + 1]);
	}
	return names && values && !querying->is_full;
}

static bool add_series(struct querying *querying, const struct series_labels *labels, uint64_t hash)
{
	struct samples_result *result = querying->result;

	if (!ARENA_GROW(&result->arena, result->series, result->series_count,
			querying->series_room) ||
	    !hash_table_add(&querying->series_index, hash, result->series_count))
		return false;
	result->series[result->series_count++] = *labels;
	return true;
}

/* The result's number of a day's series; those that look the same are the same series. */
static bool map_series(struct querying *querying, struct view_day *day, uint32_t number,
		       uint32_t *mapped)
{
	struct day_maps *maps = querying_maps(querying, day);
	uint32_t *known = &maps->series[number], probe = 0;
	struct samples_result *result = querying->result;
	struct series_labels labels;
	uint64_t hash;

	if (!*known) {
		uint32_t host = catalog_series(day->catalog, number)->host;

		if (!copy_labels(querying, day, number, &labels))
			return false;
		hash = series_labels_hash(&labels);
		for (uint32_t i = hash_table_first(&querying->series_index, hash, &probe);
		     i != HASH_TABLE_NONE;
		     i = hash_table_next(&querying->series_index, hash, &probe))
			if (series_labels_equal(&result->series[i], &labels))
				*known = i + 1;
		if (!*known) {
			if (!add_series(querying, &labels, hash))
				return false;
			*known = result->series_count;
		}
		if (host)
			maps->is_host[host] = 1;
	}
	*mapped = *known - 1;
	return true;
}

/* --- collecting rows --- */

static bool keep_bytes(struct querying *querying, struct piece *piece, const struct view_row *row)
{
	if (!ARRAY_RESERVE(querying->bytes, querying->byte_count + row->length,
			   querying->byte_room))
		return false;
	if (row->length)
		memcpy(querying->bytes + querying->byte_count, row->packed, row->length);
	piece->at = querying->byte_count;
	piece->length = (uint32_t)row->length;
	querying->byte_count += row->length;
	return true;
}

static bool map_span(struct querying *querying, const uint8_t *ids, uint32_t *mapped)
{
	struct samples_result *result = querying->result;
	uint64_t hash;
	uint32_t probe = 0;

	if (!ids)
		return true;
	hash = keyed_hash(ids, SPAN_IDS_BYTES, 0);
	for (uint32_t i = hash_table_first(&querying->span_index, hash, &probe);
	     i != HASH_TABLE_NONE; i = hash_table_next(&querying->span_index, hash, &probe))
		if (!memcmp(result->spans[i], ids, SPAN_IDS_BYTES)) {
			*mapped = i;
			return true;
		}
	if (!ARRAY_GROW(result->spans, result->span_count, querying->span_room) ||
	    !hash_table_add(&querying->span_index, hash, result->span_count))
		return false;
	*mapped = result->span_count++;
	memcpy(result->spans[*mapped], ids, SPAN_IDS_BYTES);
	return true;
}

/* When its step begins. */
static int64_t step_of(const struct querying *querying, const struct view_row *row)
{
	int64_t step_ms = querying->query->step_ms ? querying->query->step_ms : SAMPLES_BUCKET_MS;

	return querying->query->by_bucket ? view_row_ms(row) / step_ms * step_ms : 0;
}

/* Spans and single times were counted as they were read. */
static bool count_row(struct querying *querying)
{
	if (!querying->is_traced && !querying->query->is_exact)
		querying->is_stopped |= !limit_watch_row(&querying->view.watch, querying->err);
	return querying_goes_on(querying);
}

/* There may be no room for one more series; most of what is taken then is theirs. */
static bool lacks_series(struct querying *querying, const struct view_row *row)
{
	return querying->most_bytes && !querying_maps(querying, row->day)->series[row->series] &&
	       querying_bytes(querying) > querying->most_bytes / 4 * 3;
}

static bool keep_piece(void *context, const struct view_row *row)
{
	struct querying *querying = context;
	struct piece piece = {.day = (uint32_t)(row->day - querying->view.days),
			      .step_ms = step_of(querying, row),
			      .cell = row->cell};

	if (!count_row(querying))
		return false;
	if ((querying->byte_count > querying_chunk_bytes(querying) ||
	     querying->piece_count >= querying_chunk_pieces(querying)) &&
	    !querying_add_pieces(querying))
		return false;
	if (lacks_series(querying, row)) {
		querying_cut(querying, row->samples, row->value);
		return true;
	}
	if (row->hosts_length)
		view_each_host(row, querying_keep_host, querying);
	if (!map_series(querying, row->day, row->series, &piece.series) ||
	    !map_span(querying, row->span, &piece.span) ||
	    !ARRAY_GROW(querying->pieces, querying->piece_count, querying->piece_room) ||
	    (row->packed && !keep_bytes(querying, &piece, row))) {
		querying->is_full = true;
		return false;
	}
	if (row->packed || row->cell)
		querying->pieces[querying->piece_count++] = piece;
	return true;
}

static bool collect_day(struct querying *querying, struct view_day *day)
{
	struct view *view = &querying->view;

	querying->day = day;
	if (!view_choose_series(view, day, querying->query, querying->err))
		return false;
	if (!day->wanted)
		return true;
	if (querying->is_traced)
		return span_view_rows(view, day, querying->query, querying->type, keep_piece,
				      querying, querying->err);
	if (querying->query->is_exact)
		return moment_view_rows(view, day, querying->query, querying->type, keep_piece,
					querying, querying->err);
	return view_each(view, day, querying->query, querying->type, true, keep_piece, querying,
			 querying->err);
}

static bool collect(struct querying *querying)
{
	bool ok = true;

	for (unsigned i = 0; ok && i < querying->view.day_count; i++)
		ok = collect_day(querying, &querying->view.days[i]) && !querying->is_full &&
		     !querying->is_stopped;
	return ok && querying_add_pieces(querying) && querying_merge_sums(querying);
}

/* --- all of it --- */

static bool run_query(struct querying *querying)
{
	bool ok = make_maps(querying) && collect(querying) && querying_put_locations(querying) &&
		  /* What hosts took and lost is known by the minute. */
		  (querying->is_traced || querying->query->is_exact ||
		   querying_put_hosts(querying, querying->err));

	return ok || answer_is_too_large(RESULT_BYTES_MAX, querying->err);
}

static struct samples_result *try_query(struct sqlite_samples *store,
					const struct samples_query *query, unsigned type,
					struct error *err)
{
	struct querying querying = {.query = query, .type = type, .err = err};
	bool ok;

	querying.is_traced = query->trace_id || query->span_id || query->by_span ||
			     query->only_spans || query->span_wanted;

	if (!(querying.is_traced ? span_view_open(&querying.view, store, query, type, err)
	      : query->is_exact  ? moment_view_open(&querying.view, store, query, type, err)
				 : view_open(&querying.view, store, query, (int)type, err)))
		return NULL;
	querying.result = calloc(1, sizeof *querying.result);
	if (!querying.result) {
		error_set(err, ERROR_MEMORY, "no memory for an answer");
		view_close(&querying.view);
		return NULL;
	}
	arena_init(&querying.result->arena, RESULT_BYTES_MAX);
	hash_table_init(&querying.stack_index, UINT32_MAX >> 1);
	hash_table_init(&querying.series_index, UINT32_MAX >> 1);
	hash_table_init(&querying.thread_index, UINT32_MAX >> 1);
	hash_table_init(&querying.span_index, UINT32_MAX >> 1);
	querying_cut_start(&querying);
	querying.result->from_ms = query->is_exact ? query->from_ms : querying.view.from_ms;
	querying.result->until_ms = query->is_exact ? query->until_ms : querying.view.until_ms;
	querying.result->resolution_ms = query->is_exact ? 1 : querying.view.resolution_ms;
	querying.result->threads_from_ms = querying.view.threads_from_ms;
	querying.result->unit = profile_type_unit(type);
	ok = run_query(&querying);
	querying_release_sums(&querying);
	if (querying.damaged)
		view_set_aside(&querying.view, querying.damaged, err);
	view_close(&querying.view);
	if (!ok) {
		samples_result_free(querying.result);
		return NULL;
	}
	return querying.result;
}

struct samples_result *sqlite_samples_query(struct samples_store *base,
					    const struct samples_query *query, struct error *err)
{
	struct sqlite_samples *store = sqlite_samples_of(base);
	struct samples_result *result = NULL;
	struct error why = {0};
	int type;

	if (!answerable_type(query, &type, err))
		return NULL;
	/* A file found damaged is set aside; without it the query succeeds. */
	for (int attempt = 0; attempt < ATTEMPTS && !result; attempt++) {
		why = (struct error){0};
		result = try_query(store, query, (unsigned)type, &why);
		if (!result && why.kind != ERROR_FORMAT)
			break;
	}
	if (!result && err)
		*err = why;
	return result;
}
