/* SPDX-License-Identifier: Apache-2.0 */
/* samples_query(): sums by (series, thread, bucket, stack) are ClickHouse's work; stacks become
 * locations from the dictionaries that are kept here. */
#include <stdlib.h>
#include <string.h>

#include "symbol-server/store/rules/answerable.h"
#include "symbol-server/store/clickhouse/processes.h"
#include "symbol-server/store/sample_context.h"

enum { ATTEMPTS = 2, STACK_BYTES = 512 /* what one takes here, with its frames */ };

static const char no_definition[] = "ClickHouse does not have the stack's definition any more";

struct row_sum { /* of the answer */
	uint64_t stack, samples, value;
	uint32_t series; /* of the result */
	uint32_t bucket; /* minute, unix seconds */
	uint32_t span;   /* of the result; 0 unless by_span */
	const char *thread;
};

struct query_run {
	struct scope scope;
	const struct samples_query *exact; /* NULL: whole minutes */
	bool is_traced;                    /* of a trace or a span: spans are read */
	struct samples_result *result;
	struct processes processes;
	struct hash_table thread_index, name_index, row_index, span_index;
	struct known_thread {
		const char *context; /* as it is stored, or the name that it begins with */
		const char *name;    /* in the result; NULL: not wanted */
		bool is_untold;      /* nobody told of its process */
	} * threads;
	size_t thread_count, thread_room;
	struct row_sum *rows;
	size_t row_count, row_room, span_room;
	uint64_t most_rows, seen_rows; /* most: the heaviest so many are asked for; 0: all */
	struct {
		uint64_t samples, value;
	} seen;
	/* numbers of the dictionary → numbers of the result + 1 */
	uint32_t *locations, *modules;
	const uint32_t **stacks; /* of distinct stacks by the dictionary's number */
};

/* --- rows --- */

static const char *keep_text(struct query_run *run, const char *text, size_t length)
{
	const char *copy = length ? arena_text(&run->result->arena, text, length) : "";

	run->scope.is_full |= !copy;
	return copy ? copy : "";
}

/* Of a context: what of it is told apart, each text once. NULL: not wanted. */
static const char *name_of(struct query_run *run, const char *context)
{
	const struct samples_query *query = run->scope.query;
	char reduced[CONTEXT_BYTES_MAX];
	uint32_t probe = 0;
	uint64_t hash;

	if (query->thread_wanted && !query->thread_wanted(query->context, context))
		return NULL;
	if (!query->by_thread)
		return "";
	if (!query->thread_names)
		return keep_text(run, context, strlen(context));
	sample_context_reduce(context, query->thread_names, query->thread_name_count, reduced);
	hash = hash_bytes(reduced, strlen(reduced), 0);
	for (uint32_t i = hash_table_first(&run->name_index, hash, &probe); i != HASH_TABLE_NONE;
	     i = hash_table_next(&run->name_index, hash, &probe))
		if (!strcmp(run->threads[i].name, reduced))
			return run->threads[i].name;
	run->scope.is_full |= !hash_table_add(&run->name_index, hash, (uint32_t)run->thread_count);
	return keep_text(run, reduced, strlen(reduced));
}

/* The context, as far as it is known in the result. NULL: no memory. */
static const struct known_thread *know_thread(struct query_run *run, struct text context)
{
	uint64_t hash = hash_bytes(context.at, context.length, 0);
	char out[CONTEXT_BYTES_MAX];
	struct known_thread to;
	const char *joined;
	uint32_t probe = 0;

	for (uint32_t i = hash_table_first(&run->thread_index, hash, &probe); i != HASH_TABLE_NONE;
	     i = hash_table_next(&run->thread_index, hash, &probe)) {
		const struct known_thread *known = &run->threads[i];

		if (strlen(known->context) == context.length &&
		    !memcmp(known->context, context.at, context.length))
			return known;
	}
	if (!SCOPE_GROW(run->threads, run->thread_count, run->thread_room) ||
	    !hash_table_add(&run->thread_index, hash, (uint32_t)run->thread_count)) {
		run->scope.is_full = true;
		return NULL;
	}
	to.context = keep_text(run, context.at, context.length);
	joined = processes_join(&run->processes, to.context, out);
	to.is_untold = !lifetime_is_told(joined);
	to.name = name_of(run, joined);
	run->threads[run->thread_count] = to;
	return &run->threads[run->thread_count++];
}

static bool has_threads(const struct samples_query *query)
{
	return query->by_thread || query->thread_wanted;
}

static void count_untold(struct query_run *run, const struct known_thread *known, uint64_t samples)
{
	if (!run->scope.query->counts_untold)
		return;
	run->result->untold.of += samples;
	run->result->untold.samples += known->is_untold ? samples : 0;
}

/* A row says of which span it is. */
static bool has_links(const struct samples_query *query)
{
	return query->by_span || query->span_wanted;
}

/* The ids' number in the result, each once. */
static uint32_t map_span(struct query_run *run, const uint8_t *ids)
{
	struct samples_result *result = run->result;
	uint64_t hash = hash_bytes(ids, SPAN_IDS_BYTES, 0);
	uint32_t probe = 0;

	for (uint32_t i = hash_table_first(&run->span_index, hash, &probe); i != HASH_TABLE_NONE;
	     i = hash_table_next(&run->span_index, hash, &probe))
		if (!memcmp(result->spans[i], ids, SPAN_IDS_BYTES))
			return i;
	if (!SCOPE_GROW(result->spans, result->span_count, run->span_room) ||
	    !hash_table_add(&run->span_index, hash, result->span_count)) {
		run->scope.is_full = true;
		return 0;
	}
	memcpy(result->spans[result->span_count], ids, SPAN_IDS_BYTES);
	return result->span_count++;
}

static void add_row(struct query_run *run, const struct row_sum *sum)
{
	if (!SCOPE_GROW(run->rows, run->row_count, run->row_room)) {
		run->scope.is_full = true;
		return;
	}
	run->rows[run->row_count++] = *sum;
}

/* Contexts of which nothing else is told apart are one. */
static void merge_row(struct query_run *run, const struct row_sum *sum)
{
	uint64_t where = hash_word(hash_word(sum->series, sum->bucket), sum->span);
	uint64_t hash = hash_word(hash_word(sum->stack, where), (uintptr_t)sum->thread);
	uint32_t probe = 0;

	for (uint32_t i = hash_table_first(&run->row_index, hash, &probe); i != HASH_TABLE_NONE;
	     i = hash_table_next(&run->row_index, hash, &probe)) {
		struct row_sum *to = &run->rows[i];

		if (to->stack != sum->stack || to->series != sum->series ||
		    to->bucket != sum->bucket || to->thread != sum->thread || to->span != sum->span)
			continue;
		to->samples += sum->samples;
		to->value += sum->value;
		return;
	}
	run->scope.is_full |= !hash_table_add(&run->row_index, hash, (uint32_t)run->row_count);
	add_row(run, sum);
}

static bool keep_row(void *context, struct row_reader *row)
{
	struct query_run *run = context;
	const struct samples_query *query = run->scope.query;
	struct row_sum sum = {.series = (uint32_t)row_number(row, 4), .thread = ""};
	struct text thread = {"", 0}, ids = {"", 0};

	if (has_threads(query))
		thread = row_text(row);
	if (query->by_bucket)
		sum.bucket = (uint32_t)row_number(row, 4);
	if (has_links(query))
		ids = row_fixed(row, SPAN_IDS_BYTES);
	sum.stack = row_number(row, 8);
	sum.samples = row_number(row, 8);
	sum.value = row_number(row, 8);
	row->is_bad |= !row->is_short && sum.series >= run->result->series_count;
	if (row->is_short || row->is_bad)
		return true;
	if (query->span_wanted && !query->span_wanted(query->context, (const uint8_t *)ids.at))
		return true;
	run->seen_rows++;
	run->seen.samples += sum.samples;
	run->seen.value += sum.value;
	if (has_threads(query)) {
		const struct known_thread *known = know_thread(run, thread);

		if (known)
			count_untold(run, known, sum.samples);
		sum.thread = known ? known->name : NULL;
	}
	if (query->stack_id && sum.stack != *query->stack_id)
		return true;
	if (query->by_span)
		sum.span = map_span(run, (const uint8_t *)ids.at);
	if (sum.thread && (has_threads(query) || has_links(query)))
		merge_row(run, &sum);
	else if (sum.thread)
		add_row(run, &sum);
	return !run->scope.is_full && limit_watch_goes_on(&run->scope.watch, NULL);
}

static void put_groups(const struct samples_query *query, struct buffer *sql)
{
	buffer_append_text(sql, " GROUP BY series_group, stack");
	if (has_threads(query))
		buffer_append_text(sql, ", context");
	if (query->by_bucket)
		buffer_append_text(sql, ", bucket");
	if (has_links(query))
		buffer_append_text(sql, ", link");
}

static void put_span_rows(const struct query_run *run, struct buffer *sql)
{
	const struct samples_query *query = run->scope.query;

	buffer_printf(sql,
		      "%sstack, sum(one_count), sum(one_value) FROM (SELECT series_group, minute, "
		      "link, stack, thread, one_count, one_value FROM ",
		      has_links(query) ? "link, " : "");
	scope_span_source(&run->scope, query, sql);
	buffer_append_text(sql, " AS single ALL INNER JOIN wanted USING (series))");
	put_groups(query, sql);
}

static void put_exact_rows(const struct query_run *run, struct buffer *sql)
{
	const struct samples_query *query = run->scope.query;

	buffer_append_text(sql, "stack, toUInt64(count()), sum(one_value) FROM (SELECT "
				"series_group, minute, stack, thread, one_value FROM ");
	scope_exact_source(&run->scope, run->exact, sql);
	buffer_append_text(sql, " AS single ALL INNER JOIN wanted USING (series))");
	put_groups(query, sql);
}

static void put_rows(const struct query_run *run, struct buffer *sql)
{
	static const struct source_columns columns = {
		.names = "series, minute, stacks, stack_samples, stack_values",
		.rolled = "series, bucket AS minute, stacks, stack_samples, stack_values",
		.is_whole = true,
	};
	static const struct source_columns with_threads = {
		.names = "series, minute, stacks, threads, stack_samples, stack_values",
		.rolled =
			"series, bucket AS minute, stacks, arrayMap(one -> '', stacks) AS threads, "
			"stack_samples, stack_values",
		.is_whole = true,
	};
	const struct samples_query *query = run->scope.query;

	buffer_printf(sql,
		      "stack, sum(stack_sample), sum(stack_value) FROM (SELECT series_group, "
		      "minute, stacks%s, stack_samples, stack_values FROM ",
		      has_threads(query) ? ", threads" : "");
	scope_source(&run->scope, sql, has_threads(query) ? &with_threads : &columns);
	buffer_append_text(sql, " AS profiles ALL INNER JOIN wanted USING (series)) ARRAY JOIN "
				"stacks AS stack, stack_samples AS stack_sample, stack_values AS "
				"stack_value");
	if (has_threads(query))
		buffer_append_text(sql, ", threads AS thread");
	put_groups(query, sql);
}

/* Of times that are exact there is no sum that would say what was left out. */
static void put_most(struct query_run *run, struct buffer *sql)
{
	const struct samples_query *query = run->scope.query;

	if (!query->limits.is_cut || !query->limits.bytes || run->exact || run->is_traced)
		return;
	run->most_rows = query->limits.bytes / STACK_BYTES;
	buffer_append_text(sql, " ORDER BY ");
	if (query->kept_stack_id)
		buffer_printf(sql, "stack = %llu DESC, ",
			      (unsigned long long)*query->kept_stack_id);
	buffer_printf(sql, "sum(stack_value) DESC LIMIT %llu", (unsigned long long)run->most_rows);
}

/* What the series have, less what came. */
static void count_cut(struct query_run *run)
{
	const struct scope *scope = &run->scope;
	struct samples_result *result = run->result;

	if (!run->most_rows || run->seen_rows < run->most_rows)
		return;
	for (size_t i = 0; i < scope->series_count; i++) {
		if (!scope->series[i].is_wanted)
			continue;
		result->cut.samples += scope->series[i].samples;
		result->cut.value += scope->series[i].value;
	}
	result->cut.samples -= run->seen.samples < result->cut.samples ? run->seen.samples
								       : result->cut.samples;
	result->cut.value -= run->seen.value < result->cut.value ? run->seen.value
								 : result->cut.value;
	*scope->query->limits.is_cut |= result->cut.samples > 0;
}

static bool read_rows(struct query_run *run, struct error *err)
{
	const struct samples_query *query = run->scope.query;
	int64_t step_s = (query->step_ms ? query->step_ms : SAMPLES_BUCKET_MS) / 1000;
	struct buffer sql;
	bool ok;

	buffer_init(&sql, 8192);
	buffer_append_text(&sql, "SELECT series_group, ");
	if (has_threads(query))
		scope_context(query, &sql);
	if (query->by_bucket)
		buffer_printf(&sql, "toUInt32(intDiv(toUInt32(minute), %lld) * %lld) AS bucket, ",
			      (long long)step_s, (long long)step_s);
	if (run->is_traced)
		put_span_rows(run, &sql);
	else if (run->exact)
		put_exact_rows(run, &sql);
	else
		put_rows(run, &sql);
	put_most(run, &sql);
	ok = scope_ask(&run->scope, &sql, true, keep_row, run, err);
	buffer_release(&sql);
	if (ok)
		count_cut(run);
	return ok;
}

/* --- the result --- */

static const char *copy_text(struct query_run *run, const char *text)
{
	const char *copy;

	if (!*text)
		return "";
	copy = arena_text(&run->result->arena, text, strlen(text));
	run->scope.is_full |= !copy;
	return copy ? copy : "";
}

static uint32_t map_module(struct query_run *run, uint32_t number)
{
	struct samples_result *result = run->result;
	const struct defined_module *from;

	if (number == UINT32_MAX)
		return UINT32_MAX;
	if (!run->modules[number]) {
		from = definitions_at(run->scope.definitions, DEFINITION_MODULES, number);
		result->modules[result->module_count] = from->module;
		result->modules[result->module_count].name = copy_text(run, from->module.name);
		run->modules[number] = ++result->module_count;
	}
	return run->modules[number] - 1;
}

/* Number 0 of the result's locations stands for what has no definition. */
static uint32_t map_location(struct query_run *run, uint32_t number)
{
	struct samples_result *result = run->result;
	const struct defined_location *from;
	struct result_location *to;

	if (number == UINT32_MAX)
		return 0;
	if (!run->locations[number]) {
		from = definitions_at(run->scope.definitions, DEFINITION_LOCATIONS, number);
		to = &result->locations[result->location_count];
		*to = from->location;
		to->module = map_module(run, from->location.module);
		to->function = copy_text(run, from->location.function);
		to->file = copy_text(run, from->location.file);
		to->type = copy_text(run, from->location.type);
		run->locations[number] = ++result->location_count;
	}
	return run->locations[number] - 1;
}

static bool map_stack(struct query_run *run, uint32_t number, struct result_stack *to)
{
	static const uint32_t unknown[] = {0};
	const struct defined_stack *from;
	uint32_t *locations;

	if (number == UINT32_MAX) {
		to->locations = unknown;
		to->depth = 1;
		return true;
	}
	from = definitions_at(run->scope.definitions, DEFINITION_STACKS, number);
	to->depth = from->depth;
	if (!run->stacks[number]) {
		locations = arena_array(&run->result->arena, from->depth, sizeof *locations);
		if (!locations)
			return false;
		for (uint32_t i = 0; i < from->depth; i++)
			locations[i] = map_location(run, from->locations[i]);
		run->stacks[number] = locations;
	}
	to->locations = run->stacks[number];
	return true;
}

/* Dense maps of everything that the dictionary has now; the result's arrays are of what is used. */
static bool make_maps(struct query_run *run, uint32_t count[DEFINITION_KINDS])
{
	struct samples_result *result = run->result;

	for (unsigned i = 0; i < DEFINITION_KINDS; i++)
		count[i] = definitions_count(run->scope.definitions, (enum definition_kind)i);
	run->stacks = calloc(count[DEFINITION_STACKS] + 1, sizeof *run->stacks);
	run->locations = calloc(count[DEFINITION_LOCATIONS] + 1, sizeof *run->locations);
	run->modules = calloc(count[DEFINITION_MODULES] + 1, sizeof *run->modules);
	result->locations = arena_array(&result->arena, count[DEFINITION_LOCATIONS] + 1,
					sizeof *result->locations);
	result->modules = arena_array(&result->arena, count[DEFINITION_MODULES] + 1,
				      sizeof *result->modules);
	result->stacks = calloc(run->row_count + 1, sizeof *result->stacks);
	if (!run->stacks || !run->locations || !run->modules || !result->stacks ||
	    result->arena.failed)
		return false;
	result->locations[result->location_count++] =
		(struct result_location){.kind = LOCATION_INCOMPLETE,
					 .module = UINT32_MAX,
					 .function = no_definition,
					 .file = "",
					 .type = ""};
	return true;
}

static bool put_stacks(struct query_run *run, const uint32_t *numbers, struct error *err)
{
	struct samples_result *result = run->result;
	uint32_t count[DEFINITION_KINDS];

	if (!make_maps(run, count))
		return false;
	for (size_t i = 0; i < run->row_count; i++) {
		const struct row_sum *row = &run->rows[i];
		struct result_stack *to = &result->stacks[i];

		*to = (struct result_stack){.series = row->series,
					    .thread = row->thread,
					    .bucket_ms = row->bucket * 1000ll,
					    .span = row->span,
					    .samples = row->samples,
					    .value = row->value,
					    .id = row->stack};
		/* What has a number was read before the maps were made. */
		if (!limit_watch_goes_on(&run->scope.watch, err))
			return false;
		if (!map_stack(run, numbers[i], to))
			return false;
	}
	result->stack_count = run->row_count;
	return !run->scope.is_full;
}

static bool define_stacks(struct query_run *run, struct error *err)
{
	struct definitions_range range = scope_definitions_range(&run->scope);
	struct definitions *definitions = run->scope.definitions;
	uint64_t *ids = calloc(run->row_count + 1, sizeof *ids);
	uint32_t *numbers = calloc(run->row_count + 1, sizeof *numbers);
	bool ok = ids && numbers;

	for (size_t i = 0; ok && i < run->row_count; i++)
		ids[i] = run->rows[i].stack;
	ok = ok && definitions_read(definitions, run->scope.store->client, DEFINITION_STACKS,
				    &range, ids, run->row_count, err);
	if (ok) {
		definitions_numbers(definitions, DEFINITION_STACKS, ids, run->row_count, numbers);
		ok = put_stacks(run, numbers, err);
	}
	free(ids);
	free(numbers);
	return ok;
}

/* --- all of it --- */

static bool run_query(struct query_run *run, struct error *err)
{
	struct scope *scope = &run->scope;
	struct samples_result *result = run->result;
	bool ok;

	result->from_ms = run->exact ? run->exact->from_ms : scope->from_ms;
	result->until_ms = run->exact ? run->exact->until_ms : scope->until_ms;
	result->resolution_ms = scope->query->is_exact ? 1 : scope->parts.resolution_s * 1000ll;
	result->unit = profile_type_unit((unsigned)scope->type);
	ok = scope_groups(scope, &result->arena, &result->series, &result->series_count) &&
	     processes_read(&run->processes, scope, err);
	if (ok && scope->wanted_count)
		ok = read_rows(run, err);
	ok = ok && define_stacks(run, err);
	if (ok && !run->exact &&
	    !run->is_traced) /* what hosts took and lost is known by the minute */
		ok = scope_hosts(scope, &result->arena, &result->hosts, &result->host_count, err);
	return ok || answer_is_too_large(SCOPE_BYTES_MAX, err);
}

static struct samples_result *try_query(struct clickhouse_samples *store,
					const struct samples_query *query, int type, bool *again,
					int attempt, struct error *err)
{
	struct rollup_wants wants = rollup_wants_of(query);
	const bool is_traced = scope_is_traced(query), is_exact = query->is_exact && !is_traced;
	struct samples_query wide = is_traced  ? scope_kept_spans(store, query)
				    : is_exact ? scope_widen_exact(query)
					       : *query;
	struct query_run run = {.exact = is_exact ? query : NULL, .is_traced = is_traced};
	bool ok = false;

	if (is_exact || is_traced)
		wants.sums = wants.hours = false;
	if (!scope_open(&run.scope, store, &wide, type, &wants, err))
		return NULL;
	run.result = calloc(1, sizeof *run.result);
	if (run.result) {
		arena_init(&run.result->arena, SCOPE_BYTES_MAX);
		hash_table_init(&run.row_index, UINT32_MAX >> 1);
		hash_table_init(&run.thread_index, UINT32_MAX >> 1);
		hash_table_init(&run.name_index, UINT32_MAX >> 1);
		hash_table_init(&run.span_index, UINT32_MAX >> 1);
		ok = run_query(&run, err);
		hash_table_release(&run.row_index);
		hash_table_release(&run.thread_index);
		hash_table_release(&run.name_index);
		hash_table_release(&run.span_index);
	} else {
		error_set(err, ERROR_MEMORY, "no memory for an answer");
	}
	*again = !ok && scope_again(store, run.scope.definitions, attempt, err);
	processes_release(&run.processes);
	free(run.threads);
	free(run.rows);
	free(run.locations);
	free(run.modules);
	free(run.stacks);
	scope_close(&run.scope);
	if (ok)
		return run.result;
	samples_result_free(run.result);
	return NULL;
}

struct samples_result *clickhouse_samples_query(struct samples_store *base,
						const struct samples_query *query,
						struct error *err)
{
	struct samples_result *result = NULL;
	struct error why = {0};
	bool again = true;
	int type;

	if (!answerable_type(query, &type, err))
		return NULL;
	for (int attempt = 0; attempt < ATTEMPTS && !result && again; attempt++) {
		why = (struct error){0};
		again = false;
		result = try_query(clickhouse_samples_of(base), query, type, &again, attempt, &why);
	}
	if (!result && err)
		*err = why;
	return result;
}
