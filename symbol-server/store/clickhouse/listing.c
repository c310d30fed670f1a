/* SPDX-License-Identifier: Apache-2.0 */
/* What there is: types, label names, values of one label. */
#include <stdlib.h>
#include <string.h>

#include "symbol-server/store/clickhouse/asking.h"

static const char thread_label[] = "thread";

struct value_sum {
	const char *label, *value;
	uint64_t samples;
};

struct listing {
	struct asking asking;
	struct arena texts;
	struct hash_table index;
	struct value_sum *values;
	size_t value_count, value_room;
};

static bool open_listing(struct listing *listing, struct samples_store *base,
			 const struct samples_query *query, struct error *err)
{
	int type = query->type ? profile_type_find(query->type, strlen(query->type)) : -1;

	if (query->type && type < 0)
		return error_set(err, ERROR_OPTION, "'%s' is not a profile type", query->type);
	*listing = (struct listing){0};
	if (!asking_open(&listing->asking, clickhouse_samples_of(base), query, type, err))
		return false;
	arena_init(&listing->texts, ASKING_BYTES_MAX);
	hash_table_init(&listing->index, 1 << 22);
	return true;
}

static void close_listing(struct listing *listing)
{
	asking_close(&listing->asking);
	arena_release(&listing->texts);
	hash_table_release(&listing->index);
	free(listing->values);
}

/* Adds samples to one value of one label; texts live as long as the listing. */
static bool add_value(struct listing *listing, const char *label, const char *value,
		      uint64_t samples)
{
	uint64_t hash = hash_bytes(value, strlen(value), hash_bytes(label, strlen(label), 0));
	uint32_t probe = 0;

	for (uint32_t i = hash_table_first(&listing->index, hash, &probe); i != HASH_TABLE_NONE;
	     i = hash_table_next(&listing->index, hash, &probe))
		if (!strcmp(listing->values[i].label, label) &&
		    !strcmp(listing->values[i].value, value)) {
			listing->values[i].samples += samples;
			return true;
		}
	if (!asking_grow((void **)&listing->values, listing->value_count, &listing->value_room,
			 sizeof *listing->values) ||
	    !hash_table_add(&listing->index, hash, (uint32_t)listing->value_count))
		return false;
	listing->values[listing->value_count++] = (struct value_sum){label, value, samples};
	return true;
}

static bool add_labels(struct listing *listing)
{
	for (size_t i = 0; i < listing->asking.series_count; i++) {
		const struct series_sum *sum = &listing->asking.series[i];
		const struct series_labels *labels = &asking_series(&listing->asking, sum)->labels;

		for (uint32_t k = 0; sum->is_wanted && sum->samples && k < labels->count; k++)
			if (!add_value(listing, labels->names[k], labels->values[k], sum->samples))
				return false;
	}
	return true;
}

static bool add_thread(void *context, struct row_reader *row)
{
	struct listing *listing = context;
	struct text thread = row_text(row);
	uint64_t samples = row_number(row, 8);
	const char *name;

	if (row->is_short || !thread.length)
		return true;
	name = arena_text(&listing->texts, thread.at, thread.length);
	listing->asking.is_full |= !name || !add_value(listing, thread_label, name, samples);
	return !listing->asking.is_full;
}

static bool add_threads(struct listing *listing, struct error *err)
{
	struct buffer sql;
	bool ok;

	if (!listing->asking.wanted_count)
		return true;
	buffer_init(&sql, 8192);
	buffer_append_text(&sql, "SELECT thread, sum(stack_sample) FROM ");
	asking_source(&listing->asking, &sql, "threads, stack_samples");
	buffer_append_text(&sql, " ARRAY JOIN threads AS thread, stack_samples AS stack_sample "
				 "GROUP BY thread");
	ok = asking_ask(&listing->asking, &sql, false, add_thread, listing, err);
	buffer_release(&sql);
	return ok;
}

static int compare_values(const void *a, const void *b)
{
	const struct value_sum *x = a, *y = b;
	int order = strcmp(x->label, y->label);

	return order ? order : strcmp(x->value, y->value);
}

static bool list_values(struct listing *listing, bool with_threads, struct error *err)
{
	if (!add_labels(listing))
		return error_set(err, ERROR_MEMORY, "no memory for a listing");
	if (with_threads && !add_threads(listing, err))
		return false;
	if (listing->value_count)
		qsort(listing->values, listing->value_count, sizeof *listing->values,
		      compare_values);
	return true;
}

bool clickhouse_samples_types(struct samples_store *base, const struct samples_query *query,
			      struct arena *arena, struct type_count **rows, size_t *count,
			      struct error *err)
{
	struct listing listing;

	*count = 0;
	*rows = arena_array(arena, 32, sizeof **rows);
	if (!*rows)
		return error_set(err, ERROR_MEMORY, "no memory for a listing");
	if (!open_listing(&listing, base, query, err))
		return false;
	for (unsigned type = 0; profile_type_name(type); type++) {
		struct type_count row = {profile_type_name(type), profile_type_unit(type), 0, 0};

		for (size_t i = 0; i < listing.asking.series_count; i++) {
			const struct series_sum *sum = &listing.asking.series[i];

			if (sum->type != type || !sum->is_wanted)
				continue;
			row.samples += sum->samples;
			row.value += sum->value;
		}
		if (row.samples)
			(*rows)[(*count)++] = row;
	}
	close_listing(&listing);
	return true;
}

bool clickhouse_samples_labels(struct samples_store *base, const struct samples_query *query,
			       struct arena *arena, struct label_count **rows, size_t *count,
			       struct error *err)
{
	struct listing listing;
	bool ok;

	*count = 0;
	if (!open_listing(&listing, base, query, err))
		return false;
	ok = list_values(&listing, true, err);
	*rows = arena_array(arena, listing.value_count, sizeof **rows);
	for (size_t i = 0; *rows && ok && i < listing.value_count; i++) {
		const char *label = listing.values[i].label;

		if (!i || strcmp((*rows)[*count - 1].name, label))
			(*rows)[(*count)++].name = arena_text(arena, label, strlen(label));
		if (arena->failed)
			break;
		(*rows)[*count - 1].values++;
	}
	close_listing(&listing);
	return ok &&
	       (!arena->failed || error_set(err, ERROR_LIMIT, "a listing does not fit its room"));
}

bool clickhouse_samples_label_values(struct samples_store *base, const struct samples_query *query,
				     const char *label, struct arena *arena,
				     struct value_count **rows, size_t *count, struct error *err)
{
	struct listing listing;
	bool ok;

	*count = 0;
	if (!open_listing(&listing, base, query, err))
		return false;
	ok = list_values(&listing, !strcmp(label, thread_label), err);
	*rows = arena_array(arena, listing.value_count, sizeof **rows);
	for (size_t i = 0; *rows && ok && i < listing.value_count; i++) {
		const struct value_sum *from = &listing.values[i];
		struct value_count *to = &(*rows)[*count];

		if (strcmp(from->label, label))
			continue;
		to->value = arena_text(arena, from->value, strlen(from->value));
		to->samples = from->samples;
		++*count;
	}
	close_listing(&listing);
	return ok &&
	       (!arena->failed || error_set(err, ERROR_LIMIT, "a listing does not fit its room"));
}
