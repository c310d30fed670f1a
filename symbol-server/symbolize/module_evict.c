/* SPDX-License-Identifier: Apache-2.0 */
/* Which modules make room where there are too many: module_list.h. A whole look at the list lets
 * some thousand go, so that it is not needed for each. */
#include "symbol-server/symbolize/module_list.h"

#include <stdlib.h>
#include <string.h>

#include "common/array.h"

enum {
	LET_GO_FULL = MODULES_MAX / 16,
	LET_GO_ANNOUNCED = ANNOUNCED_MAX / 8,
	SENDER_SHARE = MODULES_MAX / 4,
	SENDER_SLOTS = 1 << 12, /* senders that share one are taken for one */
};

struct candidate {
	uint32_t number;
	uint8_t rank; /* the smaller goes first */
	int64_t met_ms;
};

static bool is_backed(const struct module *module)
{
	return module->quality != QUALITY_NONE || module->packed_bytes || module->is_uploaded ||
	       module->uploading || module->queue == QUEUE_BUSY || module->downloaded >= 0 ||
	       module->alt_downloaded >= 0 || module->alt.length;
}

static bool is_announced(const struct module *module)
{
	return !module->is_sampled && !module->is_stored;
}

static int compare_candidates(const void *left, const void *right)
{
	const struct candidate *a = left, *b = right;

	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	return a->met_ms < b->met_ms ? -1 : a->met_ms > b->met_ms;
}

/* Those that may go, the first of them first. */
static size_t list_candidates(struct module_list *list, bool is_full, struct candidate *out)
{
	static const uint8_t is_never_met = 0, is_of_many = 1, is_met = 2;
	uint32_t by_sender[SENDER_SLOTS] = {0};
	size_t count = 0;

	for (uint32_t i = 0; i < list->count; i++)
		by_sender[list->modules[i].sender % SENDER_SLOTS] += !is_backed(&list->modules[i]);
	by_sender[0] = 0; /* not known */
	for (uint32_t i = 0; i < list->count; i++) {
		const struct module *module = &list->modules[i];
		uint8_t rank = !module->is_sampled ? is_never_met
			       : by_sender[module->sender % SENDER_SLOTS] > SENDER_SHARE
				       ? is_of_many
				       : is_met;

		if (!is_backed(module) && (is_full || is_announced(module)))
			out[count++] = (struct candidate){i, rank, module->met_ms};
	}
	qsort(out, count, sizeof(*out), compare_candidates);
	return count;
}

static void forget_row(struct module_list *list, const struct build_id *id)
{
	if (!ARRAY_GROW(list->forgotten, list->forgotten_count, list->forgotten_room))
		return; /* the row stays; read again after a restart, it goes first */
	list->forgotten[list->forgotten_count++] = *id;
}

/* Moves what stays together, and what refers to modules by number along with it. */
static void close_gaps(struct module_list *list, const bool *goes, uint32_t *numbers)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < list->count; i++) {
		numbers[i] = goes[i] ? UINT32_MAX : kept;
		if (!goes[i] && kept++ != i)
			list->modules[kept - 1] = list->modules[i];
	}
	list->count = kept;
	hash_table_clear(&list->by_id);
	for (uint32_t i = 0; i < kept; i++)
		hash_table_add(&list->by_id, build_id_hash(&list->modules[i].id), i);
	for (int queue = 0; queue < QUEUE_COUNT; queue++)
		module_list_renumber(list, (enum module_queue)queue, numbers);
}

bool module_list_make_room(struct module_list *list, bool is_full)
{
	size_t most = is_full ? LET_GO_FULL : LET_GO_ANNOUNCED, count = 0;
	struct candidate *candidates = malloc((list->count + 1) * sizeof(*candidates));
	uint32_t *numbers = malloc((list->count + 1) * sizeof(*numbers));
	bool *goes = calloc(list->count + 1, sizeof(*goes));

	if (candidates && numbers && goes)
		count = list_candidates(list, is_full, candidates);
	/* Some were met in samples since they were counted. */
	if (!is_full && count < ANNOUNCED_MAX) {
		list->announced = (uint32_t)count;
		most = 0;
	}
	if (count > most)
		count = most;
	for (size_t i = 0; i < count; i++) {
		const struct module *module = &list->modules[candidates[i].number];

		goes[candidates[i].number] = true;
		list->announced -= is_announced(module) && list->announced;
		if (module->is_stored)
			forget_row(list, &module->id);
	}
	if (count)
		close_gaps(list, goes, numbers);
	list->evicted += count;
	free(goes);
	free(numbers);
	free(candidates);
	return count != 0;
}
