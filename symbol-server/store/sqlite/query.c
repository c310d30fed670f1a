/* SPDX-License-Identifier: Apache-2.0 */
/* samples_query(): rows of all days → one sum per distinct (series, thread, minute, stack). Rows
 * are collected first and added up series by series, so that the sums of one series are a plain
 * array. */
#include "symbol-server/store/sqlite/querying.h"
#include "symbol-server/store/sqlite/moment_rows.h"

#include <stdlib.h>
#include <string.h>

enum { RESULT_BYTES_MAX = 768 << 20, ATTEMPTS = 3 };

bool querying_grow(void **array, size_t count, size_t *capacity, size_t size)
{
	size_t larger = *capacity ? *capacity * 2 : 1024;
	void *copy;

	if (count < *capacity)
		return true;
	copy = realloc(*array, larger * size);
	if (!copy)
		return false;
	*array = copy;
	*capacity = larger;
	return true;
}

static bool make_maps(struct querying *querying)
{
	struct view *view = &querying->view;

	querying->maps = arena_array(&view->arena, view->day_count, sizeof *querying->maps);
	for (unsigned i = 0; querying->maps && i < view->day_count; i++) {
		const uint32_t *count = view->days[i].mark.count;
		struct day_maps *maps = &querying->maps[i];

		maps->series = arena_array(&view->arena, count[CATALOG_SERIES], 4);
		maps->stacks = arena_array(&view->arena, count[CATALOG_STACKS], 4);
		maps->locations = arena_array(&view->arena, count[CATALOG_LOCATIONS], 4);
		maps->modules = arena_array(&view->arena, count[CATALOG_MODULES], 4);
		maps->strings = arena_array(&view->arena, count[CATALOG_STRINGS],
					    sizeof *maps->strings);
		maps->threads = arena_array(&view->arena, count[CATALOG_STRINGS], 1);
		maps->is_host = arena_array(&view->arena, count[CATALOG_STRINGS], 1);
		querying->sums_room += count[CATALOG_STACKS];
	}
	return !view->arena.failed;
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

static bool same_labels(const struct series_labels *a, const struct series_labels *b)
{
	if (a->count != b->count)
		return false;
	for (uint32_t i = 0; i < a->count; i++)
		if (strcmp(a->names[i], b->names[i]) || strcmp(a->values[i], b->values[i]))
			return false;
	return true;
}

static uint64_t labels_hash(const struct series_labels *labels)
{
	uint64_t hash = 0;

	for (uint32_t i = 0; i < labels->count; i++) {
		hash = hash_bytes(labels->names[i], strlen(labels->names[i]), hash);
		hash = hash_bytes(labels->values[i], strlen(labels->values[i]), hash);
	}
	return hash;
}

static bool copy_labels(struct querying *querying, struct view_day *day, uint32_t number,
			struct series_labels *to)
{
	const struct catalog_series *from = catalog_series(day->catalog, number);
	struct arena *arena = &querying->result->arena;
	const char **names = arena_array(arena, from->label_count, sizeof *names);
	const char **values = arena_array(arena, from->label_count, sizeof *values);

	for (uint32_t i = 0; names && values && i < from->label_count; i++) {
		names[i] = querying_string(querying, day, from->labels[2 * i]);
		values[i] = querying_string(querying, day, from->labels[2 * i + 1]);
	}
	*to = (struct series_labels){names, values, from->label_count};
	return names && values && !querying->is_full;
}

/* The result's number of a day's series; the same labels on another day are the same series. */
static bool map_series(struct querying *querying, struct view_day *day, uint32_t number,
		       uint32_t *mapped)
{
	uint32_t *known = &querying_maps(querying, day)->series[number], probe = 0;
	struct samples_result *result = querying->result;
	struct series_labels labels;
	uint64_t hash;

	if (!*known) {
		if (!copy_labels(querying, day, number, &labels))
			return false;
		hash = labels_hash(&labels);
		for (uint32_t i = hash_table_first(&querying->series_index, hash, &probe);
		     i != HASH_TABLE_NONE;
		     i = hash_table_next(&querying->series_index, hash, &probe))
			if (same_labels(&result->series[i], &labels))
				*known = i + 1;
		if (!*known) {
			if (!hash_table_add(&querying->series_index, hash, result->series_count))
				return false;
			result->series[result->series_count++] = labels;
			*known = result->series_count;
		}
	}
	*mapped = *known - 1;
	return true;
}

/* --- collecting rows --- */

static bool is_wanted(void *context, uint32_t series)
{
	struct querying *querying = context;
	const struct view_day *day = querying->day;

	return series < day->mark.count[CATALOG_SERIES] &&
	       querying_maps(querying, day)->is_wanted[series];
}

static bool keep_piece(void *context, const struct view_row *row)
{
	struct querying *querying = context;
	struct piece piece = {.row = *row};

	if (!querying_grow((void **)&querying->pieces, querying->piece_count,
			   &querying->piece_capacity, sizeof piece) ||
	    !map_series(querying, row->day, row->series, &piece.series)) {
		querying->is_full = true;
		return false;
	}
	if (row->hosts_length)
		view_each_host(row, querying_keep_host, querying);
	if (row->packed) {
		piece.row.packed = arena_copy(&querying->view.arena, row->packed, row->length);
		querying->is_full |= !piece.row.packed;
	}
	querying->pieces[querying->piece_count++] = piece;
	return !querying->is_full;
}

static bool collect(struct querying *querying, struct error *err)
{
	struct view *view = &querying->view;
	uint32_t series = 0;

	for (unsigned i = 0; i < view->day_count; i++)
		series += view->days[i].mark.count[CATALOG_SERIES];
	querying->result->series = arena_array(&querying->result->arena, series,
					       sizeof *querying->result->series);
	if (!querying->result->series)
		return false;
	for (unsigned i = 0; i < view->day_count && !querying->is_full; i++) {
		struct view_day *day = &view->days[i];
		const uint32_t *list;
		uint32_t wanted;

		querying->day = day;
		querying->maps[i].is_wanted = view_wanted(view, day, querying->query, &wanted);
		if (!querying->maps[i].is_wanted)
			return false;
		if (!wanted)
			continue;
		if (querying->query->is_exact) {
			if (!moment_view_rows(view, day, querying->query, querying->type, is_wanted,
					      keep_piece, querying, err))
				return false;
			continue;
		}
		list = view_series_list(view, day, querying->maps[i].is_wanted, wanted);
		if (!view_each(view, day, querying->query, querying->type, true, list, wanted,
			       is_wanted, keep_piece, querying, err))
			return false;
	}
	return !querying->is_full;
}

/* --- adding up --- */

/* The result's number of a day's stack; the same stack on another day is the same. */
static bool map_stack(struct querying *querying, uint32_t number, uint32_t *mapped)
{
	struct view_day *day = querying->day;
	uint32_t *known = &querying_maps(querying, day)->stacks[number], probe = 0;
	const struct catalog_stack *stack;

	if (*known) {
		*mapped = *known - 1;
		return true;
	}
	stack = catalog_stack(day->catalog, number);
	if (querying->view.day_count > 1) {
		for (uint32_t i = hash_table_first(&querying->stack_index, stack->hash[0], &probe);
		     i != HASH_TABLE_NONE;
		     i = hash_table_next(&querying->stack_index, stack->hash[0], &probe))
			if (querying->stacks[i].hash[1] == stack->hash[1])
				*known = i + 1;
		if (!*known &&
		    !hash_table_add(&querying->stack_index, stack->hash[0], querying->stack_count))
			return false;
	}
	if (!*known) {
		struct distinct_stack *to = &querying->stacks[querying->stack_count];

		to->hash[0] = stack->hash[0];
		to->hash[1] = stack->hash[1];
		to->from = stack;
		to->day = day;
		*known = ++querying->stack_count;
	}
	*mapped = *known - 1;
	return true;
}

static bool is_thread_wanted(struct querying *querying, uint32_t thread)
{
	uint8_t *known = &querying_maps(querying, querying->day)->threads[thread];

	if (!querying->query->thread_wanted)
		return true;
	if (!*known)
		*known = querying->query->thread_wanted(
				 querying->query->context,
				 catalog_string(querying->day->catalog, thread)->text)
				 ? 1
				 : 2;
	return *known == 1;
}

static bool add_thread(struct querying *querying, const struct packed_pair *pair, uint32_t stack)
{
	struct thread_sum *to;

	if (!querying_grow((void **)&querying->thread_sums, querying->thread_count,
			   &querying->thread_capacity, sizeof *to))
		return false;
	to = &querying->thread_sums[querying->thread_count++];
	to->thread = querying_string(querying, querying->day, pair->thread);
	to->stack = stack;
	to->sum = (struct sum){pair->samples, pair->value};
	return true;
}

static bool add_pair(void *context, const struct packed_pair *pair)
{
	struct querying *querying = context;
	const uint32_t *count = querying->day->mark.count;
	uint32_t stack;

	if (pair->thread >= count[CATALOG_STRINGS] || !pair->stack ||
	    pair->stack >= count[CATALOG_STACKS])
		return true; /* refers to nothing */
	if (!is_thread_wanted(querying, pair->thread))
		return true;
	if (!map_stack(querying, pair->stack, &stack) ||
	    (querying->query->by_thread && !add_thread(querying, pair, stack))) {
		querying->is_full = true;
		return false;
	}
	if (querying->query->by_thread)
		return true;
	if (!querying->sums[stack].samples && !querying->sums[stack].value)
		querying->touched[querying->touched_count++] = stack;
	querying->sums[stack].samples += pair->samples;
	querying->sums[stack].value += pair->value;
	return true;
}

/* Where a row's step starts. */
static int64_t step_of(const struct querying *querying, const struct view_row *row)
{
	int64_t step_ms = querying->query->step_ms ? querying->query->step_ms : SAMPLES_BUCKET_MS;
	int64_t time_ms = row->day->day->day * day_ms + (int64_t)row->bucket * SAMPLES_BUCKET_MS;

	return time_ms / step_ms * step_ms;
}

static void put_stack(struct querying *querying, const struct piece *first, const char *thread,
		      uint32_t stack, const struct sum *sum)
{
	struct samples_result *result = querying->result;

	if (!querying_grow((void **)&result->stacks, result->stack_count, &querying->stack_room,
			   sizeof *result->stacks)) {
		querying->is_full = true;
		return;
	}
	result->stacks[result->stack_count++] = (struct result_stack){
		.series = first->series,
		.thread = thread,
		.bucket_ms = querying->query->by_bucket ? step_of(querying, &first->row) : 0,
		.depth = stack, /* number of the distinct stack until locations are known */
		.samples = sum->samples,
		.value = sum->value,
	};
}

static int compare_threads(const void *a, const void *b)
{
	const struct thread_sum *x = a, *y = b;
	int order = strcmp(x->thread, y->thread);

	return order ? order : (x->stack > y->stack) - (x->stack < y->stack);
}

static void put_threads(struct querying *querying, const struct piece *first)
{
	struct thread_sum *sums = querying->thread_sums;

	qsort(sums, querying->thread_count, sizeof *sums, compare_threads);
	for (size_t i = 0; i < querying->thread_count;) {
		struct thread_sum sum = sums[i];

		for (i++; i < querying->thread_count && !compare_threads(&sums[i], &sum); i++) {
			sum.sum.samples += sums[i].sum.samples;
			sum.sum.value += sums[i].sum.value;
		}
		put_stack(querying, first, sum.thread, sum.stack, &sum.sum);
	}
	querying->thread_count = 0;
}

static void put_sums(struct querying *querying, const struct piece *first)
{
	for (uint32_t i = 0; i < querying->touched_count; i++) {
		uint32_t stack = querying->touched[i];

		put_stack(querying, first, "", stack, &querying->sums[stack]);
		querying->sums[stack] = (struct sum){0};
	}
	querying->touched_count = 0;
}

static int compare_pieces(const void *a, const void *b)
{
	const struct piece *x = a, *y = b;

	if (x->series != y->series)
		return x->series < y->series ? -1 : 1;
	if (x->row.day != y->row.day)
		return x->row.day < y->row.day ? -1 : 1;
	return (x->row.bucket > y->row.bucket) - (x->row.bucket < y->row.bucket);
}

static bool same_group(const struct querying *querying, const struct piece *a,
		       const struct piece *b)
{
	return a->series == b->series &&
	       (!querying->query->by_bucket ||
		step_of(querying, &a->row) == step_of(querying, &b->row));
}

static bool prepare_sums(struct querying *querying)
{
	struct arena *arena = &querying->view.arena;

	querying->stacks = arena_array(arena, querying->sums_room, sizeof *querying->stacks);
	querying->sums = arena_array(arena, querying->sums_room, sizeof *querying->sums);
	querying->touched = arena_array(arena, querying->sums_room, sizeof *querying->touched);
	return !arena->failed;
}

static bool add_up(struct querying *querying, struct error *err)
{
	const struct piece *pieces = querying->pieces;
	size_t count = querying->piece_count;

	if (!prepare_sums(querying))
		return false;
	if (count)
		qsort(querying->pieces, count, sizeof *pieces, compare_pieces);
	for (size_t i = 0; i < count && !querying->is_full;) {
		const struct piece *first = &pieces[i];

		for (; i < count && same_group(querying, first, &pieces[i]); i++) {
			querying->day = pieces[i].row.day;
			if (!view_each_pair(&pieces[i].row, add_pair, querying) &&
			    !querying->is_full)
				return error_set(err, ERROR_FORMAT,
						 "samples of a minute are damaged");
		}
		if (querying->query->by_thread)
			put_threads(querying, first);
		else
			put_sums(querying, first);
		if (querying->query->is_cancelled &&
		    querying->query->is_cancelled(querying->query->context))
			return error_set(err, ERROR_BUSY, "the query was cancelled");
	}
	return !querying->is_full;
}

/* --- all of it --- */

static bool run_query(struct querying *querying, struct error *err)
{
	bool ok = make_maps(querying) && collect(querying, err) && add_up(querying, err) &&
		  querying_put_locations(querying) &&
		  /* What hosts took and lost is known by the minute. */
		  (querying->query->is_exact || querying_put_hosts(querying, err));

	if (!ok && (!err || !err->kind))
		error_set(err, ERROR_LIMIT,
			  "the answer does not fit %d MiB: narrow the time range or the selection",
			  RESULT_BYTES_MAX >> 20);
	return ok;
}

static struct samples_result *try_query(struct sqlite_samples *store,
					const struct samples_query *query, unsigned type,
					struct error *err)
{
	struct querying querying = {.query = query, .type = type};
	bool ok;

	if (!(query->is_exact ? moment_view_open(&querying.view, store, query, type, err)
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
	querying.result->from_ms = query->is_exact ? query->from_ms : querying.view.from_ms;
	querying.result->until_ms = query->is_exact ? query->until_ms : querying.view.until_ms;
	querying.result->resolution_ms = querying.view.resolution_ms;
	querying.result->unit = profile_type_unit(type);
	ok = run_query(&querying, err);
	hash_table_release(&querying.stack_index);
	hash_table_release(&querying.series_index);
	free(querying.pieces);
	free(querying.thread_sums);
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
	int type = query->type ? profile_type_find(query->type, strlen(query->type)) : -1;
	struct samples_result *result = NULL;
	struct error why = {0};

	if (type < 0) {
		error_set(err, ERROR_OPTION, "'%s' is not a profile type",
			  query->type ? query->type : "");
		return NULL;
	}
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
