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
#include "symbol-server/store/sqlite/answers/query_run.h"
#include "symbol-server/store/rules/series_labels.h"

enum {
	RESULT_BYTES_MAX = 768 << 20,
	ATTEMPTS = 3,
	FIXED_BYTES = 1 << 20,
	ASK_STEPS = 64, /* pieces and the like between two looks at the clock */
};

static bool make_maps(struct query_run *run)
{
	struct view *view = &run->view;

	run->maps = arena_array(&view->arena, view->day_count, sizeof *run->maps);
	for (unsigned i = 0; run->maps && i < view->day_count; i++) {
		const uint32_t *count = view->days[i].mark.count;
		struct day_maps *maps = &run->maps[i];

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

bool query_run_goes_on(struct query_run *run)
{
	size_t bytes;

	if (run->is_stopped || run->is_full)
		return false;
	if (run->steps++ % ASK_STEPS)
		return true;
	bytes = query_run_bytes(run);
	if (run->most_bytes) /* it is cut before; not what there is in any case */
		bytes -= bytes < FIXED_BYTES ? bytes : FIXED_BYTES;
	run->is_stopped = !limit_watch_allows(&run->view.watch, bytes, run->err);
	return !run->is_stopped;
}

const char *query_run_string(struct query_run *run, struct view_day *day, uint32_t string)
{
	const char **known = &query_run_maps(run, day)->strings[string];
	const struct catalog_string *from = catalog_string(day->catalog, string);

	if (!string)
		return "";
	if (!*known)
		*known = arena_text(&run->result->arena, from->text, from->length);
	if (!*known)
		run->is_full = true;
	return *known ? *known : "";
}

/* --- series --- */

static bool copy_labels(struct query_run *run, struct view_day *day, uint32_t number,
			struct series_labels *to)
{
	const struct catalog_series *from = catalog_series(day->catalog, number);
	struct arena *arena = &run->result->arena;
	const char **names = arena_array(arena, from->label_count, sizeof *names);
	const char **values = arena_array(arena, from->label_count, sizeof *values);

	*to = (struct series_labels){names, values, 0};
	for (uint32_t i = 0; names && values && i < from->label_count; i++) {
		uint32_t name = from->labels[2 * i];

		if (!samples_query_asks(run->query, catalog_string(day->catalog, name)->text))
			continue;
		names[to->count] = query_run_string(run, day, name);
		values[to->count++] = query_run_string(run, day, from->labels[2 * i + 1]);
	}
	return names && values && !run->is_full;
}

static bool add_series(struct query_run *run, const struct series_labels *labels, uint64_t hash)
{
	struct samples_result *result = run->result;

	if (!ARENA_GROW(&result->arena, result->series, result->series_count, run->series_room) ||
	    !hash_table_add(&run->series_index, hash, result->series_count))
		return false;
	result->series[result->series_count++] = *labels;
	return true;
}

/* The result's number of a day's series; those that look the same are the same series. */
static bool map_series(struct query_run *run, struct view_day *day, uint32_t number,
		       uint32_t *mapped)
{
	struct day_maps *maps = query_run_maps(run, day);
	uint32_t *known = &maps->series[number];
	struct samples_result *result = run->result;
	struct series_labels labels;
	uint64_t hash;

	if (!*known) {
		uint32_t host = catalog_series(day->catalog, number)->host;

		if (!copy_labels(run, day, number, &labels))
			return false;
		hash = series_labels_hash(&labels);
		HASH_TABLE_EACH(i, &run->series_index, hash)
			if (series_labels_equal(&result->series[i], &labels))
				*known = i + 1;
		if (!*known) {
			if (!add_series(run, &labels, hash))
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

static bool keep_bytes(struct query_run *run, struct piece *piece, const struct view_row *row)
{
	if (!ARRAY_RESERVE(run->bytes, run->byte_count + row->length, run->byte_room))
		return false;
	if (row->length)
		memcpy(run->bytes + run->byte_count, row->packed, row->length);
	piece->at = run->byte_count;
	piece->length = (uint32_t)row->length;
	run->byte_count += row->length;
	return true;
}

static bool map_span(struct query_run *run, const uint8_t *ids, uint32_t *mapped)
{
	struct samples_result *result = run->result;
	uint64_t hash;

	if (!ids)
		return true;
	hash = keyed_hash(ids, SPAN_IDS_BYTES, 0);
	HASH_TABLE_EACH(i, &run->span_index, hash)
		if (!memcmp(result->spans[i], ids, SPAN_IDS_BYTES)) {
			*mapped = i;
			return true;
		}
	if (!ARRAY_GROW(result->spans, result->span_count, run->span_room) ||
	    !hash_table_add(&run->span_index, hash, result->span_count))
		return false;
	*mapped = result->span_count++;
	memcpy(result->spans[*mapped], ids, SPAN_IDS_BYTES);
	return true;
}

/* When its step begins. */
static int64_t step_of(const struct query_run *run, const struct view_row *row)
{
	int64_t step_ms = run->query->step_ms ? run->query->step_ms : SAMPLES_BUCKET_MS;

	return run->query->by_bucket ? view_row_ms(row) / step_ms * step_ms : 0;
}

/* Spans and single times were counted as they were read. */
static bool count_row(struct query_run *run)
{
	if (!run->is_traced && !run->query->is_exact)
		run->is_stopped |= !limit_watch_row(&run->view.watch, run->err);
	return query_run_goes_on(run);
}

/* There may be no room for one more series; most of what is taken then is theirs. */
static bool lacks_series(struct query_run *run, const struct view_row *row)
{
	return run->most_bytes && !query_run_maps(run, row->day)->series[row->series] &&
	       query_run_bytes(run) > run->most_bytes / 4 * 3;
}

static bool keep_piece(void *context, const struct view_row *row)
{
	struct query_run *run = context;
	struct piece piece = {.day = (uint32_t)(row->day - run->view.days),
			      .step_ms = step_of(run, row),
			      .cell = row->cell};

	if (!count_row(run))
		return false;
	if ((run->byte_count > query_run_chunk_bytes(run) ||
	     run->piece_count >= query_run_chunk_pieces(run)) &&
	    !query_run_add_pieces(run))
		return false;
	if (lacks_series(run, row)) {
		query_run_cut(run, row->samples, row->value);
		return true;
	}
	if (row->hosts_length)
		view_each_host(row, query_run_keep_host, run);
	if (!map_series(run, row->day, row->series, &piece.series) ||
	    !map_span(run, row->span, &piece.span) ||
	    !ARRAY_GROW(run->pieces, run->piece_count, run->piece_room) ||
	    (row->packed && !keep_bytes(run, &piece, row))) {
		run->is_full = true;
		return false;
	}
	if (row->packed || row->cell)
		run->pieces[run->piece_count++] = piece;
	return true;
}

static bool collect_day(struct query_run *run, struct view_day *day)
{
	struct view *view = &run->view;

	run->day = day;
	if (!view_choose_series(view, day, run->query, run->err))
		return false;
	if (!day->wanted)
		return true;
	if (run->is_traced)
		return span_view_rows(view, day, run->query, run->type, keep_piece, run, run->err);
	if (run->query->is_exact)
		return moment_view_rows(view, day, run->query, run->type, keep_piece, run,
					run->err);
	return view_each(view, day, run->query, run->type, true, keep_piece, run, run->err);
}

static bool collect(struct query_run *run)
{
	bool ok = true;

	for (unsigned i = 0; ok && i < run->view.day_count; i++)
		ok = collect_day(run, &run->view.days[i]) && !run->is_full && !run->is_stopped;
	return ok && query_run_add_pieces(run) && query_run_merge_sums(run);
}

/* --- all of it --- */

static bool run_query(struct query_run *run)
{
	bool ok = make_maps(run) && collect(run) && query_run_put_locations(run) &&
		  /* What hosts took and lost is known by the minute. */
		  (run->is_traced || run->query->is_exact || query_run_put_hosts(run, run->err));

	return ok || answer_is_too_large(RESULT_BYTES_MAX, run->err);
}

static struct samples_result *try_query(struct sqlite_samples *store,
					const struct samples_query *query, unsigned type,
					struct error *err)
{
	struct query_run run = {.query = query, .type = type, .err = err};
	bool ok;

	run.is_traced = query->trace_id || query->span_id || query->by_span || query->only_spans ||
			query->span_wanted;

	if (!(run.is_traced     ? span_view_open(&run.view, store, query, type, err)
	      : query->is_exact ? moment_view_open(&run.view, store, query, type, err)
				: view_open(&run.view, store, query, (int)type, err)))
		return NULL;
	run.result = calloc(1, sizeof *run.result);
	if (!run.result) {
		error_set(err, ERROR_MEMORY, "no memory for an answer");
		view_close(&run.view);
		return NULL;
	}
	arena_init(&run.result->arena, RESULT_BYTES_MAX);
	hash_table_init(&run.stack_index, UINT32_MAX >> 1);
	hash_table_init(&run.series_index, UINT32_MAX >> 1);
	hash_table_init(&run.thread_index, UINT32_MAX >> 1);
	hash_table_init(&run.span_index, UINT32_MAX >> 1);
	query_run_cut_start(&run);
	run.result->from_ms = query->is_exact ? query->from_ms : run.view.from_ms;
	run.result->until_ms = query->is_exact ? query->until_ms : run.view.until_ms;
	run.result->resolution_ms = query->is_exact ? 1 : run.view.resolution_ms;
	run.result->threads_from_ms = run.view.threads_from_ms;
	run.result->unit = profile_type_unit(type);
	ok = run_query(&run);
	query_run_release_sums(&run);
	if (run.damaged)
		view_set_aside(&run.view, run.damaged, err);
	view_close(&run.view);
	if (!ok) {
		samples_result_free(run.result);
		return NULL;
	}
	return run.result;
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
