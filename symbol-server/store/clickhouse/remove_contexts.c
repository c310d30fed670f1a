/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/store/clickhouse/remove_contexts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "symbol-server/store/clickhouse/processes.h"
#include "symbol-server/store/sample_context.h"

enum { PART_BYTES = 8 << 10 /* a statement has them nine times, beside its series */ };

struct definition_reader {
	struct contexts_gone *gone;
	struct scope *scope;
	struct processes processes;
};

/* "Syntax", string literals. */
static void put_literal(struct buffer *out, const char *text)
{
	buffer_append_char(out, '\'');
	for (; *text; text++) {
		if (*text == '\'' || *text == '\\')
			buffer_append_char(out, '\\');
		if ((unsigned char)*text < ' ')
			buffer_printf(out, "\\x%02x", *text);
		else
			buffer_append_char(out, *text);
	}
	buffer_append_char(out, '\'');
}

static bool add(struct contexts_gone *gone, const char *context)
{
	struct context_part *part = gone->part_count ? &gone->parts[gone->part_count - 1] : NULL;

	if (!part || part->length > PART_BYTES) {
		if (!ARRAY_GROW(gone->parts, gone->part_count, gone->part_room))
			return false;
		part = &gone->parts[gone->part_count++];
		*part = (struct context_part){.at = gone->literals.length};
	} else {
		buffer_append_char(&gone->literals, ',');
	}
	put_literal(&gone->literals, context);
	part->length = gone->literals.length - part->at;
	return !gone->literals.failed;
}

static bool keep(void *context, struct row_reader *row)
{
	struct definition_reader *reader = context;
	const struct samples_query *query = reader->scope->query;
	struct text thread = row_text(row);
	uint64_t samples = row_number(row, 8);
	char name[CONTEXT_BYTES_MAX], joined[CONTEXT_BYTES_MAX];

	if (row->is_short)
		return true;
	snprintf(name, sizeof name, "%.*s", (int)thread.length, thread.at);
	if (!query->thread_wanted(query->context, processes_join(&reader->processes, name, joined)))
		return true;
	reader->gone->samples += samples;
	reader->scope->is_full |= !add(reader->gone, name);
	return !reader->scope->is_full;
}

bool contexts_gone_read(struct contexts_gone *gone, struct scope *scope, struct error *err)
{
	static const struct source_columns columns = {.names = "series, threads, stack_samples"};
	struct definition_reader reader = {.gone = gone, .scope = scope};
	struct buffer sql;
	bool ok = processes_read(&reader.processes, scope, err);

	*gone = (struct contexts_gone){0};
	buffer_init(&gone->literals, 64 << 20);
	if (ok && scope->wanted_count) {
		buffer_init(&sql, 8192);
		buffer_append_text(&sql, "SELECT thread, sum(stack_sample) FROM (SELECT threads, "
					 "stack_samples FROM ");
		scope_source(scope, &sql, &columns);
		buffer_append_text(&sql, " AS profiles ALL INNER JOIN wanted USING (series)) ARRAY "
					 "JOIN threads AS thread, stack_samples AS stack_sample "
					 "GROUP BY thread");
		ok = scope_ask(scope, &sql, true, keep, &reader, err);
		buffer_release(&sql);
	}
	processes_release(&reader.processes);
	return ok;
}

void contexts_gone_release(struct contexts_gone *gone)
{
	buffer_release(&gone->literals);
	free(gone->parts);
}

static const char *const of_samples[] = {"stacks", "stack_samples", "stack_values", NULL};
static const char *const of_moments[] = {"times", "stacks", "values", NULL};
static const char *const of_spans[] = {"links", "stacks", "link_samples", "link_values", NULL};

void contexts_gone_put(const struct contexts_gone *gone, const struct context_part *part,
		       const char *table, struct buffer *sql)
{
	const bool is_moments = !strcmp(table, "moments"), is_spans = !strcmp(table, "spans");
	const char *const *arrays = is_moments ? of_moments : is_spans ? of_spans : of_samples;
	const char *list = (const char *)gone->literals.bytes + part->at;
	const int length = (int)part->length;

	buffer_append_text(sql, " UPDATE ");
	if (arrays == of_samples)
		buffer_printf(sql,
			      "deleted = deleted + arraySum(arrayFilter((n, t) -> has([%.*s], t), "
			      "stack_samples, threads)), samples = toUInt64(samples - "
			      "arraySum(arrayFilter((n, t) -> has([%.*s], t), stack_samples, "
			      "threads))), value = toUInt64(value - arraySum(arrayFilter((n, t) -> "
			      "has([%.*s], t), stack_values, threads))), ",
			      length, list, length, list, length, list);
	for (; *arrays; arrays++)
		buffer_printf(sql, "%s = arrayFilter((n, t) -> NOT has([%.*s], t), %s, threads), ",
			      *arrays, length, list, *arrays);
	buffer_printf(sql,
		      "threads = arrayFilter(t -> NOT has([%.*s], t), threads) WHERE "
		      "arrayExists(t -> has([%.*s], t), threads) AND ",
		      length, list, length, list);
}
