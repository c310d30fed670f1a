/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/store/clickhouse/definitions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbol-server/store/clickhouse/client.h"
#include "symbol-server/store/clickhouse/id_set.h"

#define DEFINITIONS_BYTES_MAX ((size_t)384 << 20)

struct definitions *definitions_new(void)
{
	static const size_t sizes[DEFINITION_KINDS] = {
		sizeof(struct defined_module), sizeof(struct defined_location),
		sizeof(struct defined_stack), sizeof(struct defined_series)};
	struct definitions *definitions = calloc(1, sizeof *definitions);

	if (!definitions)
		return NULL;
	definitions->references = 1;
	pthread_mutex_init(&definitions->reading, NULL);
	pthread_mutex_init(&definitions->lock, NULL);
	arena_init(&definitions->arena, DEFINITIONS_BYTES_MAX);
	for (unsigned i = 0; i < DEFINITION_KINDS; i++) {
		blocks_init(&definitions->items[i], sizes[i]);
		hash_table_init(&definitions->index[i], UINT32_MAX >> 1);
	}
	return definitions;
}

struct definitions *definitions_take(struct definitions *definitions)
{
	__atomic_add_fetch(&definitions->references, 1, __ATOMIC_RELAXED);
	return definitions;
}

void definitions_release(struct definitions *definitions)
{
	if (!definitions || __atomic_sub_fetch(&definitions->references, 1, __ATOMIC_ACQ_REL))
		return;
	for (unsigned i = 0; i < DEFINITION_KINDS; i++) {
		blocks_release(&definitions->items[i]);
		hash_table_release(&definitions->index[i]);
	}
	arena_release(&definitions->arena);
	pthread_mutex_destroy(&definitions->reading);
	pthread_mutex_destroy(&definitions->lock);
	free(definitions);
}

size_t definitions_bytes(const struct definitions *definitions)
{
	size_t bytes = definitions->arena.used;

	for (unsigned i = 0; i < DEFINITION_KINDS; i++)
		bytes += blocks_bytes(&definitions->items[i]) +
			 definitions->index[i].size * (sizeof(struct hash_slot) + 4);
	return bytes;
}

static uint32_t find(const struct definitions *definitions, enum definition_kind kind, uint64_t id)
{
	const struct hash_table *index = &definitions->index[kind];

	HASH_TABLE_EACH(i, index, id)
		/* every kind begins with its id */
		if (*(const uint64_t *)blocks_at(&definitions->items[kind], i) == id)
			return i;
	return UINT32_MAX;
}

void definitions_numbers(struct definitions *definitions, enum definition_kind kind,
			 const uint64_t *ids, size_t count, uint32_t *numbers)
{
	pthread_mutex_lock(&definitions->lock);
	for (size_t i = 0; i < count; i++)
		numbers[i] = find(definitions, kind, ids[i]);
	pthread_mutex_unlock(&definitions->lock);
}

uint32_t definitions_count(struct definitions *definitions, enum definition_kind kind)
{
	uint32_t count;

	pthread_mutex_lock(&definitions->lock);
	count = definitions->items[kind].count;
	pthread_mutex_unlock(&definitions->lock);
	return count;
}

/* --- rows --- */

struct definition_reader {
	struct definitions *definitions;
	enum definition_kind kind;
	uint32_t tenant;
	bool is_full;
};

/* Room for one more; NULL: none, or it is there (rows may come twice). */
static void *put(struct definition_reader *reader, uint64_t id)
{
	struct definitions *definitions = reader->definitions;
	struct blocks *items = &definitions->items[reader->kind];
	uint64_t *item;

	if (find(definitions, reader->kind, id) != UINT32_MAX)
		return NULL;
	item = blocks_add(items);
	if (!item || !hash_table_add(&definitions->index[reader->kind], id, items->count - 1)) {
		if (item)
			items->count--;
		reader->is_full = true;
		return NULL;
	}
	*item = id;
	return item;
}

static const char *keep(struct definition_reader *reader, struct text text)
{
	const char *copy = text.length
				   ? arena_text(&reader->definitions->arena, text.at, text.length)
				   : "";

	reader->is_full |= !copy;
	return copy ? copy : "";
}

static void set_id(struct build_id *id, struct text bytes)
{
	if (bytes.length > BUILD_ID_MAX)
		bytes.length = BUILD_ID_MAX;
	id->length = (uint8_t)bytes.length;
	memcpy(id->bytes, bytes.at, bytes.length);
}

static void read_module(struct definition_reader *reader, struct row_reader *row)
{
	uint64_t id = row_number(row, 8);
	struct text build_id = row_text(row), name = row_text(row);
	uint8_t base = (uint8_t)row_number(row, 1);
	struct defined_module *to;

	if (row->is_short)
		return;
	to = put(reader, id);
	if (!to)
		return;
	set_id(&to->module.id, build_id);
	to->module.name = keep(reader, name);
	to->module.base = (enum address_base)base;
}

static void read_location(struct definition_reader *reader, struct row_reader *row)
{
	uint64_t id = row_number(row, 8);
	struct defined_location read = {.location.kind = (enum location_kind)row_number(row, 1)};
	struct text function, file, type;
	struct defined_location *to;

	read.module_id = row_number(row, 8);
	read.location.address = row_number(row, 8);
	function = row_text(row);
	file = row_text(row);
	type = row_text(row);
	read.location.line = (uint32_t)row_number(row, 4);
	if (row->is_short)
		return;
	to = put(reader, id);
	if (!to)
		return;
	*to = read;
	to->id = id;
	to->location.module = UINT32_MAX;
	to->location.function = keep(reader, function);
	to->location.file = keep(reader, file);
	to->location.type = keep(reader, type);
}

static void read_stack(struct definition_reader *reader, struct row_reader *row)
{
	uint64_t id = row_number(row, 8);
	uint32_t depth = row_array(row);
	struct text bytes = row_fixed(row, depth * 8);
	struct defined_stack *to;

	if (row->is_short)
		return;
	if (depth > SAMPLES_DEPTH_MAX) {
		row->is_bad = true;
		return;
	}
	to = put(reader, id);
	if (!to)
		return;
	to->locations = arena_copy(&reader->definitions->arena, bytes.at, bytes.length);
	reader->is_full |= !to->locations;
	to->depth = to->locations ? depth : 0;
}

static bool read_texts(struct row_reader *row, struct text *texts, uint32_t *count)
{
	*count = row_array(row);
	if (*count > SAMPLES_LABELS_MAX) {
		row->is_bad = true;
		return false;
	}
	for (uint32_t i = 0; i < *count; i++)
		texts[i] = row_text(row);
	return !row->is_short;
}

static const char **keep_texts(struct definition_reader *reader, const struct text *texts,
			       uint32_t count)
{
	const char **kept = arena_array(&reader->definitions->arena, count, sizeof *kept);

	reader->is_full |= !kept;
	for (uint32_t i = 0; kept && i < count; i++)
		kept[i] = keep(reader, texts[i]);
	return kept;
}

static void read_series(struct definition_reader *reader, struct row_reader *row)
{
	struct text names[SAMPLES_LABELS_MAX], values[SAMPLES_LABELS_MAX];
	uint64_t id = row_number(row, 8);
	uint32_t count, same;
	struct defined_series *to;

	if (!read_texts(row, names, &count) || !read_texts(row, values, &same))
		return;
	if (same != count) {
		row->is_bad = true;
		return;
	}
	to = put(reader, id);
	if (!to)
		return;
	to->tenant = reader->tenant;
	to->labels.names = keep_texts(reader, names, count);
	to->labels.values = keep_texts(reader, values, count);
	to->labels.count = to->labels.names && to->labels.values ? count : 0;
	to->host = "";
	for (uint32_t i = 0; i < to->labels.count; i++)
		if (!strcmp(to->labels.names[i], "host"))
			to->host = to->labels.values[i];
}

static bool read_row(void *context, struct row_reader *row)
{
	static void (*const readers[DEFINITION_KINDS])(
		struct definition_reader *, struct row_reader *) = {read_module, read_location,
								    read_stack, read_series};
	struct definition_reader *reader = context;

	pthread_mutex_lock(&reader->definitions->lock);
	readers[reader->kind](reader, row);
	pthread_mutex_unlock(&reader->definitions->lock);
	return !reader->is_full;
}

/* --- asking --- */

/* The ids that are not there, each once. False: no memory. */
static bool missing(struct definitions *definitions, enum definition_kind kind, const uint64_t *ids,
		    size_t count, struct buffer *out)
{
	struct id_set met = {0};

	pthread_mutex_lock(&definitions->lock);
	for (size_t i = 0; i < count; i++)
		if (find(definitions, kind, ids[i]) == UINT32_MAX && id_set_add(&met, ids[i]))
			buffer_append(out, &ids[i], 8);
	pthread_mutex_unlock(&definitions->lock);
	id_set_release(&met);
	return !out->failed;
}

static bool read_missing(struct definitions *definitions, struct clickhouse *client,
			 enum definition_kind kind, const struct definitions_range *range,
			 const struct buffer *wanted, struct error *err)
{
	static const char *const selects[DEFINITION_KINDS] = {
		"SELECT module, build_id, name, base FROM modules WHERE module",
		"SELECT location, kind, module, address, function, file, type, line FROM locations "
		"WHERE location",
		"SELECT stack, locations FROM stacks WHERE stack",
		"SELECT series, label_names, label_values FROM series WHERE series",
	};
	struct definition_reader reader = {definitions, kind, range->tenant, false};
	char sql[400], tenant[40] = "";

	if (kind == DEFINITION_SERIES)
		snprintf(tenant, sizeof tenant, " AND tenant = %u", range->tenant);
	snprintf(sql, sizeof sql, "%s IN wanted AND month >= %u AND month <= %u%s", selects[kind],
		 range->first_month, range->last_month, tenant);
	if (!clickhouse_ask(client,
			    &(struct clickhouse_question){
				    .sql = sql,
				    .set = &(struct clickhouse_set){"id UInt64", wanted},
				    .limits = range->limits,
				    .is_cancelled = range->is_cancelled,
				    .cancel_context = range->context,
				    .row = read_row,
				    .context = &reader,
			    },
			    err))
		return false;
	return !reader.is_full || error_set(err, ERROR_LIMIT,
					    "the answer refers to more than %zu MiB of stacks: "
					    "narrow the time range or the selection",
					    DEFINITIONS_BYTES_MAX >> 20);
}

/* What the stacks or locations refer to: ids. False: no memory. */
static bool references(struct definitions *definitions, enum definition_kind kind,
		       const struct buffer *ids, struct buffer *out)
{
	const uint64_t *id = (const uint64_t *)ids->bytes;

	for (size_t i = 0; i < ids->length / 8; i++) {
		uint32_t number = find(definitions, kind, id[i]);
		const struct defined_location *location;
		const struct defined_stack *stack;

		if (number == UINT32_MAX)
			continue;
		stack = definitions_at(definitions, kind, number);
		location = definitions_at(definitions, kind, number);
		if (kind == DEFINITION_STACKS)
			buffer_append(out, stack->locations, stack->depth * sizeof(uint64_t));
		else if (location->module_id)
			buffer_append(out, &location->module_id, 8);
	}
	return !out->failed;
}

/* Ids become numbers; those of a stack in place. */
static void link_stack(struct definitions *definitions, struct defined_stack *stack)
{
	for (uint32_t i = 0; i < stack->depth; i++) {
		uint64_t id;

		memcpy(&id, (const char *)stack->locations + i * sizeof id, sizeof id);
		stack->locations[i] = find(definitions, DEFINITION_LOCATIONS, id);
	}
}

static void link_items(struct definitions *definitions, enum definition_kind kind,
		       const struct buffer *ids)
{
	const uint64_t *id = (const uint64_t *)ids->bytes;

	pthread_mutex_lock(&definitions->lock);
	for (size_t i = 0; i < ids->length / 8; i++) {
		uint32_t number = find(definitions, kind, id[i]);
		struct defined_location *location;

		if (number == UINT32_MAX)
			continue;
		location = blocks_at(&definitions->items[kind], number);
		if (kind == DEFINITION_STACKS)
			link_stack(definitions, blocks_at(&definitions->items[kind], number));
		else if (location->module_id)
			location->location.module = find(definitions, DEFINITION_MODULES,
							 location->module_id);
	}
	pthread_mutex_unlock(&definitions->lock);
}

static bool read_all(struct definitions *definitions, struct clickhouse *client,
		     enum definition_kind kind, const struct definitions_range *range,
		     const uint64_t *ids, size_t count, struct error *err)
{
	bool has_references = kind == DEFINITION_STACKS || kind == DEFINITION_LOCATIONS;
	struct buffer wanted, next;
	bool ok = true;

	buffer_init(&wanted, DEFINITIONS_BYTES_MAX);
	buffer_init(&next, DEFINITIONS_BYTES_MAX);
	if (!missing(definitions, kind, ids, count, &wanted)) {
		ok = error_set(err, ERROR_LIMIT, "the answer has too many stacks");
		goto out;
	}
	if (!wanted.length)
		goto out;
	ok = read_missing(definitions, client, kind, range, &wanted, err);
	if (!ok || !has_references)
		goto out;
	ok = references(definitions, kind, &wanted, &next) ||
	     error_set(err, ERROR_LIMIT, "the answer has too many stacks");
	if (ok && next.length)
		ok = read_all(definitions, client,
			      kind == DEFINITION_STACKS ? DEFINITION_LOCATIONS : DEFINITION_MODULES,
			      range, (const uint64_t *)next.bytes, next.length / 8, err);
	if (ok)
		link_items(definitions, kind, &wanted);
out:
	buffer_release(&wanted);
	buffer_release(&next);
	return ok;
}

bool definitions_read(struct definitions *definitions, struct clickhouse *client,
		      enum definition_kind kind, const struct definitions_range *range,
		      const uint64_t *ids, size_t count, struct error *err)
{
	bool ok;

	pthread_mutex_lock(&definitions->reading);
	ok = read_all(definitions, client, kind, range, ids, count, err);
	if (!ok)
		__atomic_store_n(&definitions->is_broken, true, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&definitions->reading);
	return ok;
}
