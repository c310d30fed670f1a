/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/symbolize/module_list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/array.h"
#include "common/file_hash.h"

void module_list_init(struct module_list *list)
{
	memset(list, 0, sizeof(*list));
	hash_table_init(&list->by_id, MODULES_MAX);
}

void module_list_release(struct module_list *list)
{
	for (uint32_t i = 0; i < list->count; i++) {
		if (list->modules[i].downloaded >= 0)
			close(list->modules[i].downloaded);
		if (list->modules[i].alt_downloaded >= 0)
			close(list->modules[i].alt_downloaded);
	}
	for (int i = 0; i < QUEUE_COUNT; i++)
		free(list->queues[i].numbers);
	hash_table_release(&list->by_id);
	free(list->modules);
	free(list->forgotten);
	memset(list, 0, sizeof(*list));
}

struct module *module_list_find(struct module_list *list, const struct build_id *id)
{
	uint64_t hash = build_id_hash(id);

	HASH_TABLE_EACH(i, &list->by_id, hash)
		if (build_id_equal(&list->modules[i].id, id))
			return &list->modules[i];
	return NULL;
}

struct module *module_list_add(struct module_list *list, const struct build_id *id, int64_t now_ms)
{
	struct module *module = module_list_find(list, id);

	if (module)
		return module;
	if (list->count == MODULES_MAX)
		module_list_make_room(list, true);
	if (list->count == MODULES_MAX || !ARRAY_GROW(list->modules, list->count, list->room) ||
	    !hash_table_add(&list->by_id, build_id_hash(id), list->count)) {
		list->refused++;
		return NULL;
	}
	module = &list->modules[list->count++];
	*module = (struct module){
		.id = *id, .downloaded = -1, .alt_downloaded = -1, .first_seen_ms = now_ms};
	MODULE_TEXT(module->reason, "it waits for its turn");
	return module;
}

void module_list_meet(struct module_list *list, struct module *module, bool is_sampled,
		      uint32_t sender, int64_t now_ms)
{
	if (!module->met_ms) {
		module->sender = sender;
		list->announced += !is_sampled && !module->is_stored;
	}
	module->met_ms = now_ms;
	module->is_sampled |= is_sampled;
}

bool module_is_kept(const struct module *module)
{
	return module->is_sampled || module->is_stored || module->is_uploaded ||
	       module->uploading || module->quality != QUALITY_NONE;
}

size_t module_list_take_forgotten(struct module_list *list, struct build_id *ids, size_t room)
{
	size_t count = list->forgotten_count < room ? list->forgotten_count : room;

	list->forgotten_count -= count;
	if (count)
		memcpy(ids, list->forgotten + list->forgotten_count, count * sizeof(*ids));
	return count;
}

/* ---- queues: heaps, as 100,000 modules may wait at once after a long pause ---- */

static bool comes_first(const struct module *left, const struct module *right)
{
	if (left->rank != right->rank)
		return left->rank < right->rank;
	return left->weight != right->weight ? left->weight > right->weight
					     : left->order < right->order;
}

static void put_at(struct module_list *list, struct module_heap *heap, uint32_t place,
		   uint32_t number)
{
	heap->numbers[place] = number;
	list->modules[number].place = place;
}

static void move_up(struct module_list *list, struct module_heap *heap, uint32_t place)
{
	uint32_t number = heap->numbers[place];

	for (uint32_t above; place; place = above) {
		above = (place - 1) / 2;
		if (!comes_first(&list->modules[number], &list->modules[heap->numbers[above]]))
			break;
		put_at(list, heap, place, heap->numbers[above]);
	}
	put_at(list, heap, place, number);
}

static void move_down(struct module_list *list, struct module_heap *heap, uint32_t place)
{
	uint32_t number = heap->numbers[place];

	for (uint32_t below; (below = place * 2 + 1) < heap->count; place = below) {
		if (below + 1 < heap->count && comes_first(&list->modules[heap->numbers[below + 1]],
							   &list->modules[heap->numbers[below]]))
			below++;
		if (!comes_first(&list->modules[heap->numbers[below]], &list->modules[number]))
			break;
		put_at(list, heap, place, heap->numbers[below]);
	}
	put_at(list, heap, place, number);
}

static uint8_t rank_of(const struct module *module)
{
	if (module->quality < QUALITY_SYMTAB)
		return module->is_uploaded ? 0 : 1;
	return module->quality < QUALITY_DWARF ? 2 : 3;
}

void module_list_queue(struct module_list *list, struct module *module, enum module_queue queue)
{
	struct module_heap *heap = &list->queues[queue];

	if (module->queue == queue) { /* what was uploaded meanwhile moves forward */
		module->rank = rank_of(module);
		move_up(list, heap, module->place);
		return;
	}
	if (module->queue != QUEUE_NONE) {
		module->is_again = true;
		return;
	}
	if (!ARRAY_GROW(heap->numbers, heap->count, heap->room))
		return; /* it is met again */
	module->order = list->queued++;
	module->rank = rank_of(module);
	module->queue = queue;
	heap->numbers[heap->count++] = (uint32_t)(module - list->modules);
	move_up(list, heap, heap->count - 1);
}

void module_list_renumber(struct module_list *list, enum module_queue queue,
			  const uint32_t *numbers)
{
	struct module_heap *heap = &list->queues[queue];
	uint32_t count = heap->count;

	heap->count = 0;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t number = numbers[heap->numbers[i]];

		if (number == UINT32_MAX)
			continue;
		heap->numbers[heap->count++] = number;
		move_up(list, heap, heap->count - 1);
	}
}

void module_list_weigh(struct module_list *list, struct module *module, uint64_t samples)
{
	module->weight += samples;
	if (module->queue != QUEUE_NONE && module->queue != QUEUE_BUSY)
		move_up(list, &list->queues[module->queue], module->place);
}

struct module *module_list_take(struct module_list *list, enum module_queue queue)
{
	struct module_heap *heap = &list->queues[queue];
	struct module *module;

	if (!heap->count)
		return NULL;
	module = &list->modules[heap->numbers[0]];
	heap->numbers[0] = heap->numbers[--heap->count];
	if (heap->count)
		move_down(list, heap, 0);
	module->queue = QUEUE_BUSY;
	if (queue == QUEUE_LOCAL)
		module->is_again = false;
	return module;
}

/* ---- rows of the store ---- */

void module_text(char *field, size_t room, const char *text)
{
	snprintf(field, room, "%s", text ? text : "");
}

void module_to_row(const struct module *module, struct module_row *row)
{
	*row = (struct module_row){
		.id = module->id,
		.name = module->name,
		.state = module->state,
		.quality = module->quality,
		.reason = module->reason,
		.source = module->source,
		.raw_bytes = module->raw_bytes,
		.packed_bytes = module->packed_bytes,
		.functions = module->functions,
		.ranges = module->ranges,
		.retry_at_ms = module->retry_at_ms,
		.first_seen_ms = module->first_seen_ms,
		.updated_ms = module->updated_ms,
		.failures = module->failures,
		.is_uploaded = module->is_uploaded,
		.flags = module->flags,
		.converter = module->converter,
		.files = module->files,
		.file_bytes = module->file_bytes,
		.fetch_ms = module->fetch_ms,
		.conversion_ms = module->conversion_ms,
		.last_used_ms = module->last_used_ms,
		.is_dropped = module->is_dropped,
		.is_gnu = module->is_gnu,
	};
}

/* An id of 16 bytes can also be an htlhash: unless it was met as a GNU build-id it waits for
 * symbolizer_want() to say. */
void module_from_row(struct module *module, const struct module_row *row)
{
	MODULE_TEXT(module->name, row->name);
	MODULE_TEXT(module->reason, row->reason);
	MODULE_TEXT(module->source, row->source);
	module->is_gnu = row->is_gnu || row->id.length != FILE_HASH_BYTES;
	module->state = row->state < MODULE_STATE_COUNT ? row->state : MODULE_wanted;
	module->quality = row->quality < QUALITY_COUNT ? row->quality : QUALITY_NONE;
	module->raw_bytes = row->raw_bytes;
	module->packed_bytes = row->packed_bytes;
	module->functions = row->functions;
	module->ranges = row->ranges;
	module->retry_at_ms = row->retry_at_ms;
	module->first_seen_ms = row->first_seen_ms;
	module->updated_ms = row->updated_ms;
	module->failures = row->failures;
	module->is_uploaded = row->is_uploaded;
	module->flags = row->flags;
	module->converter = row->converter;
	module->files = row->files;
	module->file_bytes = row->file_bytes;
	module->fetch_ms = row->fetch_ms;
	module->conversion_ms = row->conversion_ms;
	module->last_used_ms = module->stored_used_ms = row->last_used_ms;
	module->is_stored = true;
	module->is_dropped = row->is_dropped;
	module->has_failed = module->state == MODULE_failed;
	/* A conversion that did not end has left no table: it starts again. */
	if (module->state == MODULE_fetching || module->state == MODULE_converting)
		module->state = MODULE_wanted;
}
