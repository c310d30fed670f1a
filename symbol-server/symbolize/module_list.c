/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/symbolize/module_list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/file_hash.h"

void module_list_init(struct module_list *list)
{
	memset(list, 0, sizeof(*list));
	hash_table_init(&list->by_id, MODULES_MAX);
}

void module_list_release(struct module_list *list)
{
	for (uint32_t i = 0; i < list->count; i++)
		if (list->modules[i].downloaded >= 0)
			close(list->modules[i].downloaded);
	for (int i = 0; i < QUEUE_COUNT; i++)
		free(list->queues[i].numbers);
	hash_table_release(&list->by_id);
	free(list->modules);
	memset(list, 0, sizeof(*list));
}

struct module *module_list_find(struct module_list *list, const struct build_id *id)
{
	uint64_t hash = build_id_hash(id);
	uint32_t probe;

	for (uint32_t i = hash_table_first(&list->by_id, hash, &probe); i != HASH_TABLE_NONE;
	     i = hash_table_next(&list->by_id, hash, &probe))
		if (build_id_equal(&list->modules[i].id, id))
			return &list->modules[i];
	return NULL;
}

struct module *module_list_add(struct module_list *list, const struct build_id *id, int64_t now_ms)
{
	struct module *module = module_list_find(list, id);

	if (module)
		return module;
	if (list->count == list->room) {
		uint32_t room = list->room ? list->room * 2 : 64;
		struct module *more = NULL;

		if (list->count < MODULES_MAX)
			more = realloc(list->modules, room * sizeof(*more));
		if (!more) {
			list->refused++;
			return NULL;
		}
		list->modules = more;
		list->room = room;
	}
	if (!hash_table_add(&list->by_id, build_id_hash(id), list->count)) {
		list->refused++;
		return NULL;
	}
	module = &list->modules[list->count++];
	*module = (struct module){.id = *id, .downloaded = -1, .first_seen_ms = now_ms};
	MODULE_TEXT(module->reason, "it waits for its turn");
	return module;
}

void module_list_queue(struct module_list *list, struct module *module, enum module_queue queue)
{
	uint32_t number = (uint32_t)(module - list->modules);

	if (module->queue != QUEUE_NONE) {
		module->is_again |= module->queue != queue;
		return;
	}
	if (list->queues[queue].count == list->queues[queue].room) {
		uint32_t room = list->queues[queue].room ? list->queues[queue].room * 2 : 64;
		uint32_t *numbers = realloc(list->queues[queue].numbers, room * sizeof(*numbers));

		if (!numbers)
			return; /* it is met again */
		list->queues[queue].numbers = numbers;
		list->queues[queue].room = room;
	}
	list->queues[queue].numbers[list->queues[queue].count++] = number;
	module->queue = queue;
}

struct module *module_list_take(struct module_list *list, enum module_queue queue)
{
	uint32_t *numbers = list->queues[queue].numbers, best = 0;
	struct module *module;

	if (!list->queues[queue].count)
		return NULL;
	for (uint32_t i = 1; i < list->queues[queue].count; i++)
		if (list->modules[numbers[i]].weight > list->modules[numbers[best]].weight)
			best = i;
	module = &list->modules[numbers[best]];
	numbers[best] = numbers[--list->queues[queue].count];
	module->queue = QUEUE_BUSY;
	if (queue == QUEUE_LOCAL)
		module->is_again = false;
	return module;
}

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
	};
}

/* Whether the id is a GNU build-id is not in the store: one of 16 bytes can also be an htlhash, and
 * waits for symbolizer_want() to say. */
void module_from_row(struct module *module, const struct module_row *row)
{
	MODULE_TEXT(module->name, row->name);
	MODULE_TEXT(module->reason, row->reason);
	MODULE_TEXT(module->source, row->source);
	module->is_gnu = row->id.length != FILE_HASH_BYTES;
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
	/* A conversion that did not end has left no table: it starts again. */
	if (module->state == MODULE_fetching || module->state == MODULE_converting)
		module->state = MODULE_wanted;
}
