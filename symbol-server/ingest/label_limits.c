/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/ingest/label_limits.h"

#include <pthread.h>
#include <stdlib.h>

#include "common/array.h"
#include "common/hash_table.h"
#include "common/keyed_hash.h"
#include "common/log.h"

enum { DAY_MS = 86400000, VALUES_MAX = LIMITED_NAMES_MAX * LIMITED_VALUES_MAX };

struct label_limits {
	pthread_mutex_t lock;
	int64_t day;
	struct hash_table index; /* (name, value) and name → hashes */
	uint64_t *hashes;
	uint32_t *values; /* of a name, by the place of its hash */
	uint32_t count, room, name_count;
};

struct label_limits *label_limits_new(struct error *err)
{
	struct label_limits *limits = calloc(1, sizeof *limits);

	if (!limits) {
		error_set(err, ERROR_MEMORY, "out of memory");
		return NULL;
	}
	pthread_mutex_init(&limits->lock, NULL);
	hash_table_init(&limits->index, VALUES_MAX + LIMITED_NAMES_MAX);
	return limits;
}

void label_limits_free(struct label_limits *limits)
{
	if (!limits)
		return;
	hash_table_release(&limits->index);
	pthread_mutex_destroy(&limits->lock);
	free(limits->hashes);
	free(limits->values);
	free(limits);
}

/* Requests that began before midnight come after it too. */
static void begin_day(struct label_limits *limits, int64_t day)
{
	if (day == limits->day || day == limits->day - 1)
		return;
	limits->day = day;
	limits->count = limits->name_count = 0;
	hash_table_clear(&limits->index);
}

static uint32_t find(const struct label_limits *limits, uint64_t hash)
{
	HASH_TABLE_EACH(i, &limits->index, hash)
		if (limits->hashes[i] == hash)
			return i;
	return HASH_TABLE_NONE;
}

static uint32_t add(struct label_limits *limits, uint64_t hash)
{
	uint32_t room = limits->room;

	if (!ARRAY_GROW(limits->hashes, limits->count, room) ||
	    !ARRAY_GROW(limits->values, limits->count, limits->room) ||
	    !hash_table_add(&limits->index, hash, limits->count))
		return HASH_TABLE_NONE;
	limits->hashes[limits->count] = hash;
	limits->values[limits->count] = 0;
	return limits->count++;
}

static uint32_t take_name(struct label_limits *limits, uint64_t hash)
{
	uint32_t name = find(limits, hash);

	if (name != HASH_TABLE_NONE || limits->name_count == LIMITED_NAMES_MAX)
		return name;
	name = add(limits, hash);
	limits->name_count += name != HASH_TABLE_NONE;
	return name;
}

static bool fits(struct label_limits *limits, const struct batch_label *label)
{
	uint64_t hash = keyed_hash(label->name.at, label->name.length, 0);
	uint32_t name = take_name(limits, hash);

	if (name == HASH_TABLE_NONE)
		return false;
	hash = keyed_hash(label->value.at, label->value.length, hash ^ 1);
	if (find(limits, hash) != HASH_TABLE_NONE)
		return true;
	if (limits->values[name] == LIMITED_VALUES_MAX) {
		log_warn("an attribute has too many values for a label", "label=%.*s values=%d",
			 (int)label->name.length, label->name.at, LIMITED_VALUES_MAX);
		return false;
	}
	if (add(limits, hash) == HASH_TABLE_NONE)
		return false;
	limits->values[name]++;
	return true;
}

static uint32_t limit_series(struct label_limits *limits, struct batch_series *series)
{
	uint32_t kept = 0, all = series->label_count;

	for (uint32_t i = 0; i < all; i++)
		if (!series->labels[i].is_attribute || fits(limits, &series->labels[i]))
			series->labels[kept++] = series->labels[i];
	series->label_count = kept;
	return all - kept;
}

uint64_t label_limits_apply(struct label_limits *limits, struct sample_batch *batch, int64_t now_ms)
{
	uint64_t left_out = 0;

	pthread_mutex_lock(&limits->lock);
	begin_day(limits, now_ms / DAY_MS);
	for (uint32_t i = 0; i < batch->profile_count; i++) {
		uint32_t series = batch->profiles[i].series;

		if (!i || series != batch->profiles[i - 1].series)
			left_out += limit_series(limits, &batch->series[series]);
	}
	pthread_mutex_unlock(&limits->lock);
	return left_out;
}
