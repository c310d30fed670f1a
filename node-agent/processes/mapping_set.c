/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/processes/mapping_set.h"

#include <stdlib.h>
#include <string.h>

enum {
	SMALLEST = 8,
	/* Of one process: vm.max_map_count is 65530, and who alternates that many executable
	 * mappings must not take everybody's share. */
	ROWS_MAX = 16384,
};

struct mapping_set *mapping_set_new(struct mapping_pool *pool)
{
	struct mapping_set *set = calloc(1, sizeof(*set));

	if (set) {
		*set = (struct mapping_set){.pool = pool, .references = 1};
		mapping_set_changed(set);
	}
	return set;
}

void mapping_set_changed(struct mapping_set *set)
{
	set->version = ++set->pool->last_version ? set->pool->last_version
						 : ++set->pool->last_version;
}

struct mapping_set *mapping_set_share(struct mapping_set *set)
{
	if (set)
		set->references++;
	return set;
}

static void keep_file(const struct mapping_set *set, const struct mapping *row)
{
	if (row->kind == MAPPING_FILE)
		set->pool->file_keep(set->pool->context, row->file);
}

static void drop_file(const struct mapping_set *set, const struct mapping *row)
{
	if (row->kind == MAPPING_FILE)
		set->pool->file_drop(set->pool->context, row->file);
}

void mapping_set_free(struct mapping_set *set)
{
	if (!set || --set->references)
		return;
	for (uint32_t i = 0; i < set->count; i++)
		drop_file(set, &set->rows[i]);
	set->pool->used -= set->capacity;
	free(set->rows);
	free(set);
}

static bool make_room(struct mapping_set *set, uint32_t rows)
{
	uint32_t capacity = set->capacity ? set->capacity : SMALLEST;
	struct mapping *grown;

	if (rows <= set->capacity)
		return true;
	while (capacity < rows)
		capacity *= 2;
	if (rows > ROWS_MAX || set->pool->used + (capacity - set->capacity) > set->pool->limit)
		return false;
	grown = realloc(set->rows, capacity * sizeof(*grown));
	if (!grown)
		return false;
	set->pool->used += capacity - set->capacity;
	set->rows = grown;
	set->capacity = capacity;
	return true;
}

bool mapping_set_own(struct mapping_set **set)
{
	struct mapping_set *shared = *set, *own;

	if (shared->references == 1)
		return true;
	own = mapping_set_new(shared->pool);
	if (!own || !make_room(own, shared->count)) {
		mapping_set_free(own);
		return false;
	}
	own->is_truncated = shared->is_truncated;
	own->version = shared->version;
	own->count = shared->count;
	if (own->count)
		memcpy(own->rows, shared->rows, own->count * sizeof(*own->rows));
	for (uint32_t i = 0; i < own->count; i++)
		keep_file(own, &own->rows[i]);
	mapping_set_free(shared);
	*set = own;
	return true;
}

/* The first row that ends behind the address. */
static uint32_t lower_bound(const struct mapping_set *set, uint64_t address)
{
	uint32_t low = 0, high = set->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (set->rows[middle].end > address)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

static void remove_rows(struct mapping_set *set, uint32_t at, uint32_t count)
{
	if (!count)
		return;
	for (uint32_t i = 0; i < count; i++)
		drop_file(set, &set->rows[at + i]);
	memmove(&set->rows[at], &set->rows[at + count],
		(set->count - at - count) * sizeof(*set->rows));
	set->count -= count;
}

static void cut_front(struct mapping *row, uint64_t address)
{
	if (row->kind != MAPPING_ANONYMOUS)
		row->file_offset += address - row->start;
	row->start = address;
}

/* Makes a hole from start to end. There must be room for one more row: a hole inside one splits it.
 */
static void make_hole(struct mapping_set *set, uint64_t start, uint64_t end)
{
	uint32_t at = lower_bound(set, start), last;

	if (at < set->count && set->rows[at].start < start) {
		if (set->rows[at].end > end) {
			memmove(&set->rows[at + 1], &set->rows[at],
				(set->count - at) * sizeof(*set->rows));
			set->count++;
			keep_file(set, &set->rows[at]);
			cut_front(&set->rows[at + 1], end);
		}
		set->rows[at++].end = start;
	}
	for (last = at; last < set->count && set->rows[last].end <= end; last++)
		;
	remove_rows(set, at, last - at);
	if (at < set->count && set->rows[at].start < end)
		cut_front(&set->rows[at], end);
}

static bool joins(const struct mapping *before, const struct mapping *after)
{
	return before->kind == MAPPING_ANONYMOUS && after->kind == MAPPING_ANONYMOUS &&
	       before->end == after->start;
}

bool mapping_set_add(struct mapping_set *set, const struct mapping *row)
{
	uint32_t at, since;

	if (!make_room(set, set->count + 2)) {
		drop_file(set, row);
		set->is_truncated = true;
		return false;
	}
	mapping_set_changed(set);
	since = row->since == MAPPING_SINCE_NOW ? set->version : row->since;
	make_hole(set, row->start, row->end);
	at = lower_bound(set, row->start);
	if (at > 0 && joins(&set->rows[at - 1], row)) {
		set->rows[--at].end = row->end;
		if (since)
			set->rows[at].since = since;
	} else {
		memmove(&set->rows[at + 1], &set->rows[at], (set->count - at) * sizeof(*set->rows));
		set->rows[at] = *row;
		set->rows[at].since = since;
		set->count++;
	}
	if (at + 1 < set->count && joins(&set->rows[at], &set->rows[at + 1])) {
		set->rows[at].end = set->rows[at + 1].end;
		remove_rows(set, at + 1, 1);
	}
	return true;
}

bool mapping_set_overlaps(const struct mapping_set *set, uint64_t start, uint64_t end)
{
	uint32_t at = lower_bound(set, start);

	return at < set->count && set->rows[at].start < end;
}

struct mapping *mapping_set_find(const struct mapping_set *set, uint64_t address, uint32_t *near)
{
	uint32_t at = *near;

	if (at >= set->count || address < set->rows[at].start || address >= set->rows[at].end)
		at = lower_bound(set, address);
	if (at >= set->count || address < set->rows[at].start)
		return NULL;
	*near = at;
	return &set->rows[at];
}
