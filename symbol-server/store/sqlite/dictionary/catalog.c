/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/store/sqlite/dictionary/catalog.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "symbol-server/store/sqlite/dictionary/catalog_items.h"
#include "symbol-server/store/sqlite/dictionary/catalog_nodes.h"

enum { SPARE_BYTES = 128 << 20 }; /* read back, texts may lie closer than they did */

static const char full_sentence[] =
	"the day's dictionary of stacks is full, or it was damaged on the server's disk";

static struct text text_of(const char *text)
{
	return (struct text){text, (uint32_t)strlen(text)};
}

/* Entry 0 of every kind is "none"; stack 1 stands for stacks without room. */
static bool add_first_items(struct catalog *catalog)
{
	struct catalog_location location = {.kind = LOCATION_INCOMPLETE};
	uint32_t number;
	uint64_t hash[2];

	for (unsigned i = 0; i < CATALOG_KINDS; i++)
		if (!blocks_add(&catalog->items[i]))
			return false;
	((struct catalog_string *)blocks_at(&catalog->items[CATALOG_STRINGS], 0))->text = "";
	location.function = catalog_add_string(catalog, text_of(full_sentence));
	number = catalog_put_location(catalog, &location);
	hash[0] = hash[1] = hash_bytes(full_sentence, sizeof full_sentence - 1, 0);
	return number && catalog_put_stack(catalog, hash, &number, 1) == CATALOG_OVERFLOW_STACK;
}

struct catalog *catalog_new(void)
{
	static const size_t sizes[CATALOG_KINDS] = {
		sizeof(struct catalog_string), sizeof(struct catalog_module),
		sizeof(struct catalog_location), sizeof(struct catalog_stack),
		sizeof(struct catalog_series)};
	struct catalog *catalog = calloc(1, sizeof *catalog);

	if (!catalog)
		return NULL;
	catalog->references = 1;
	catalog->is_indexed = true;
	arena_init(&catalog->arena, CATALOG_BYTES_MAX);
	for (unsigned i = 0; i < CATALOG_KINDS; i++) {
		blocks_init(&catalog->items[i], sizes[i]);
		hash_table_init(&catalog->index[i], BLOCK_ITEMS * BLOCKS_MAX);
	}
	if (!add_first_items(catalog)) {
		catalog_release(catalog);
		return NULL;
	}
	return catalog;
}

struct catalog *catalog_take(struct catalog *catalog)
{
	__atomic_add_fetch(&catalog->references, 1, __ATOMIC_RELAXED);
	return catalog;
}

void catalog_release(struct catalog *catalog)
{
	if (!catalog || __atomic_sub_fetch(&catalog->references, 1, __ATOMIC_ACQ_REL))
		return;
	for (unsigned i = 0; i < CATALOG_KINDS; i++) {
		blocks_release(&catalog->items[i]);
		hash_table_release(&catalog->index[i]);
	}
	catalog_nodes_release(&catalog->nodes);
	sender_shares_release(&catalog->senders);
	sender_shares_release(&catalog->series_counted.hosts);
	arena_release(&catalog->arena);
	free(catalog);
}

struct catalog_mark catalog_mark(const struct catalog *catalog)
{
	struct catalog_mark mark;

	for (unsigned i = 0; i < CATALOG_KINDS; i++)
		mark.count[i] = catalog->items[i].count;
	mark.nodes = catalog->nodes.count;
	return mark;
}

bool catalog_is_persisted(const struct catalog *catalog)
{
	struct catalog_mark mark = catalog_mark(catalog);

	return !memcmp(mark.count, catalog->persisted.count, sizeof mark.count);
}

size_t catalog_bytes(const struct catalog *catalog)
{
	size_t bytes = sizeof *catalog + catalog->arena.used + catalog_nodes_bytes(&catalog->nodes);

	for (unsigned i = 0; i < CATALOG_KINDS; i++)
		bytes += blocks_bytes(&catalog->items[i]) +
			 catalog->index[i].size * (sizeof(struct hash_slot) + 4);
	return bytes;
}

uint64_t catalog_weight(const struct catalog *catalog)
{
	uint64_t weight = catalog->arena.used + catalog->nodes.count * sizeof(struct catalog_node);

	for (unsigned i = 0; i < CATALOG_KINDS; i++)
		weight += catalog->items[i].count *
			  (catalog->items[i].item_size + sizeof(struct hash_slot));
	return weight;
}

bool catalog_is_full(const struct catalog *catalog)
{
	return catalog->items[CATALOG_SERIES].count >= CATALOG_SERIES_MAX ||
	       catalog->items[CATALOG_STRINGS].count >= BLOCK_ITEMS * BLOCKS_MAX ||
	       catalog->arena.used >= CATALOG_BYTES_MAX - SPARE_BYTES;
}

/* --- hashes --- */

static uint64_t module_hash(const struct catalog_module *module)
{
	uint64_t hash = hash_bytes(module->id.bytes, module->id.length, module->base);

	return hash_word(hash_word(hash, module->name), module->go_id);
}

static uint64_t location_hash(const struct catalog_location *location)
{
	uint64_t hash = hash_word(location->address,
				  (uint64_t)location->module << 8 | location->kind);

	hash = hash_word(hash, (uint64_t)location->function << 32 | location->file);
	return hash_word(hash, (uint64_t)location->type << 32 | location->line);
}

static uint64_t series_hash(uint32_t tenant, const uint32_t *labels, uint32_t count)
{
	return hash_bytes(labels, (size_t)count * 2 * sizeof *labels, tenant);
}

static uint64_t item_hash(const struct catalog *catalog, enum catalog_kind kind, uint32_t n)
{
	switch (kind) {
	case CATALOG_STRINGS:
		return hash_bytes(catalog_string(catalog, n)->text,
				  catalog_string(catalog, n)->length, 0);
	case CATALOG_MODULES:
		return module_hash(catalog_module(catalog, n));
	case CATALOG_LOCATIONS:
		return location_hash(catalog_location(catalog, n));
	case CATALOG_STACKS:
		return catalog_stack(catalog, n)->hash[0];
	case CATALOG_SERIES:
		return series_hash(catalog_series(catalog, n)->tenant,
				   catalog_series(catalog, n)->labels,
				   catalog_series(catalog, n)->label_count);
	case CATALOG_KINDS:
		break;
	}
	return 0;
}

/* What takes the place of what was erased (upkeep/erase.c) or damaged (catalog_mend()): of one day
 * there may be hundreds of thousands that are the same. */
static bool is_made_up(enum catalog_kind kind, const void *item)
{
	static const char damaged[] = CATALOG_DAMAGED_TEXT;
	const struct catalog_string *string = item;
	const struct catalog_module *module = item;
	const struct catalog_location *location = item;
	const struct catalog_stack *stack = item;
	const struct catalog_series *series = item;

	switch (kind) {
	case CATALOG_STRINGS:
		return !string->length || (string->length == sizeof damaged - 1 &&
					   !memcmp(string->text, damaged, sizeof damaged - 1));
	case CATALOG_MODULES:
		return !module->id.length && !module->name;
	case CATALOG_LOCATIONS:
		return location->kind == LOCATION_ANONYMOUS && !location->module;
	case CATALOG_STACKS: /* none, or CATALOG_OVERFLOW_STACK's, whose node is the first */
		return stack->depth <= 1 && stack->node <= 1;
	case CATALOG_SERIES:
		return !series->label_count;
	case CATALOG_KINDS:
		break;
	}
	return false;
}

/* Of equal ones the first is found: each more of them would be a longer way for all. */
static bool index_item(struct catalog *catalog, enum catalog_kind kind, const void *item,
		       uint64_t hash, uint32_t n)
{
	struct hash_table *index = &catalog->index[kind];
	uint32_t probe = 0;

	return (is_made_up(kind, item) &&
		hash_table_first(index, hash, &probe) != HASH_TABLE_NONE) ||
	       hash_table_add(index, hash, n);
}

/* A catalog read back from its file gets its hash tables when the first thing is added. */
static bool ensure_index(struct catalog *catalog)
{
	if (catalog->is_indexed)
		return true;
	for (unsigned kind = 0; kind < CATALOG_KINDS; kind++)
		for (uint32_t n = 1; n < catalog->items[kind].count; n++)
			if (!index_item(catalog, kind, blocks_at(&catalog->items[kind], n),
					item_hash(catalog, kind, n), n)) {
				for (unsigned i = 0; i < CATALOG_KINDS; i++)
					hash_table_clear(&catalog->index[i]);
				return false;
			}
	catalog->is_indexed = true;
	return true;
}

void catalog_drop_index(struct catalog *catalog)
{
	for (unsigned i = 0; i < CATALOG_KINDS; i++)
		hash_table_release(&catalog->index[i]);
	catalog_nodes_drop_index(&catalog->nodes);
	catalog->is_indexed = false;
}

struct catalog *catalog_alike(const struct catalog *catalog)
{
	struct catalog *alike = malloc(sizeof *alike);

	if (!alike)
		return NULL;
	/* Not how many use it, which others count without the lock. */
	memcpy(&alike->items, &catalog->items, sizeof *alike - offsetof(struct catalog, items));
	for (unsigned i = 0; i < CATALOG_KINDS; i++) /* what is left of an index is not its */
		hash_table_init(&alike->index[i], catalog->index[i].limit);
	alike->nodes.index = NULL;
	alike->nodes.index_size = 0;
	return alike;
}

void catalog_index_alike(struct catalog *alike)
{
	if (alike && !(ensure_index(alike) && catalog_nodes_index(&alike->nodes)))
		catalog_drop_index(alike);
}

void catalog_take_index(struct catalog *catalog, struct catalog *alike)
{
	if (!alike)
		return;
	if (catalog->is_indexed) { /* somebody was faster */
		catalog_drop_index(alike);
	} else {
		catalog_drop_index(catalog);
		memcpy(catalog->index, alike->index, sizeof catalog->index);
		catalog->nodes.index = alike->nodes.index;
		catalog->nodes.index_size = alike->nodes.index_size;
		catalog->nodes.indexed = alike->nodes.indexed;
		catalog->is_indexed = alike->is_indexed;
	}
	free(alike);
}

void catalog_stack_locations(const struct catalog *catalog, const struct catalog_stack *stack,
			     uint32_t *locations)
{
	uint32_t at = stack->node;

	for (uint32_t i = 0; i < stack->depth; i++) {
		const struct catalog_node *node = catalog_node(catalog, at);

		locations[i] = node->location;
		at = node->caller;
	}
}

/* --- adding --- */

/* Puts a copy at the end; the index only when there is one. 0: no room. */
static uint32_t put_item(struct catalog *catalog, enum catalog_kind kind, const void *item,
			 uint64_t hash)
{
	struct blocks *items = &catalog->items[kind];
	void *to = blocks_add(items);

	if (!to)
		return 0;
	memcpy(to, item, items->item_size);
	if (catalog->is_indexed && !index_item(catalog, kind, to, hash, items->count - 1)) {
		items->count--;
		return 0;
	}
	return items->count - 1;
}

uint32_t catalog_put_string(struct catalog *catalog, const char *text, uint32_t length)
{
	struct catalog_string string = {arena_text(&catalog->arena, text, length), length};

	return string.text
		       ? put_item(catalog, CATALOG_STRINGS, &string, hash_bytes(text, length, 0))
		       : 0;
}

uint32_t catalog_put_module(struct catalog *catalog, const struct catalog_module *module)
{
	return put_item(catalog, CATALOG_MODULES, module, module_hash(module));
}

uint32_t catalog_put_location(struct catalog *catalog, const struct catalog_location *location)
{
	return put_item(catalog, CATALOG_LOCATIONS, location, location_hash(location));
}

uint32_t catalog_put_stack(struct catalog *catalog, const uint64_t hash[2],
			   const uint32_t *locations, uint32_t depth)
{
	struct catalog_stack stack = {{hash[0], hash[1]}, 0, depth};

	for (uint32_t i = depth; i--;) {
		stack.node = catalog_node_take(&catalog->nodes, stack.node, locations[i]);
		if (!stack.node)
			return 0;
	}
	return put_item(catalog, CATALOG_STACKS, &stack, hash[0]);
}

uint32_t catalog_put_series(struct catalog *catalog, uint32_t tenant, const uint32_t *labels,
			    uint32_t count)
{
	struct catalog_series series = {.label_count = count, .tenant = tenant};

	for (uint32_t i = 0; i < count; i++)
		if (!strcmp(catalog_string(catalog, labels[2 * i])->text, "host"))
			series.host = labels[2 * i + 1];
	series.labels = arena_copy(&catalog->arena, labels, (size_t)count * 2 * sizeof *labels);
	return series.labels ? put_item(catalog, CATALOG_SERIES, &series,
					series_hash(tenant, labels, count))
			     : 0;
}

static uint32_t find_string(const struct catalog *catalog, struct text text)
{
	const struct hash_table *index = &catalog->index[CATALOG_STRINGS];
	uint64_t hash = hash_bytes(text.at, text.length, 0);

	HASH_TABLE_EACH(n, index, hash) {
		const struct catalog_string *string = catalog_string(catalog, n);

		if (string->length == text.length && !memcmp(string->text, text.at, text.length))
			return n;
	}
	return 0;
}

uint32_t catalog_find_string(struct catalog *catalog, struct text text)
{
	return text.length && ensure_index(catalog) ? find_string(catalog, text) : 0;
}

uint32_t catalog_add_string(struct catalog *catalog, struct text text)
{
	uint32_t known;

	if (!text.length || !ensure_index(catalog))
		return 0;
	known = find_string(catalog, text);
	return known ? known : catalog_put_string(catalog, text.at, text.length);
}

static uint32_t add_module(struct catalog *catalog, const struct batch_module *from)
{
	const struct hash_table *index = &catalog->index[CATALOG_MODULES];
	struct catalog_module module = {
		.id = from->id, .htlhash = from->htlhash, .base = from->base};
	uint64_t hash;

	module.go_id = catalog_add_string(catalog, from->go_id);
	module.name = catalog_add_string(catalog, from->name);
	hash = module_hash(&module);
	HASH_TABLE_EACH(n, index, hash) {
		const struct catalog_module *other = catalog_module(catalog, n);

		/* Not the htlhash: agents tell it beside the id now and then only. */
		if (build_id_equal(&other->id, &module.id) && other->name == module.name &&
		    other->go_id == module.go_id && other->base == module.base)
			return n;
	}
	return catalog_put_module(catalog, &module);
}

static bool same_location(const struct catalog_location *a, const struct catalog_location *b)
{
	return a->address == b->address && a->module == b->module && a->kind == b->kind &&
	       a->function == b->function && a->file == b->file && a->type == b->type &&
	       a->line == b->line;
}

static uint32_t add_location(struct catalog *catalog, struct catalog_translation *translation,
			     uint32_t number)
{
	const struct hash_table *index = &catalog->index[CATALOG_LOCATIONS];
	const struct batch_location *from = &translation->batch->locations[number];
	struct catalog_location location = {
		.address = from->address, .line = from->line, .kind = from->kind};
	uint64_t hash;

	if (from->module != UINT32_MAX) {
		uint32_t *module = &translation->modules[from->module];

		if (!*module)
			*module = add_module(catalog, &translation->batch->modules[from->module]);
		if (!*module)
			return 0;
		location.module = *module;
	}
	location.function = catalog_add_string(catalog, from->function);
	location.file = catalog_add_string(catalog, from->file);
	location.type = catalog_add_string(catalog, from->type);
	hash = location_hash(&location);
	HASH_TABLE_EACH(n, index, hash)
		if (same_location(catalog_location(catalog, n), &location))
			return n;
	return catalog_put_location(catalog, &location);
}

static uint32_t new_stack(struct catalog *catalog, struct catalog_translation *translation,
			  const struct batch_stack *from)
{
	uint32_t locations[SAMPLES_DEPTH_MAX];

	if (catalog->is_closed || from->depth > SAMPLES_DEPTH_MAX ||
	    catalog->items[CATALOG_STACKS].count >= CATALOG_STACKS_MAX)
		return 0;
	for (uint32_t i = 0; i < from->depth; i++) {
		uint32_t number = translation->batch->location_indices[from->first_index + i];
		uint32_t *location = &translation->locations[number];

		if (!*location)
			*location = add_location(catalog, translation, number);
		if (!*location)
			return 0;
		locations[i] = *location;
	}
	return catalog_put_stack(catalog, from->hash, locations, from->depth);
}

uint32_t catalog_add_stack(struct catalog *catalog, struct catalog_translation *translation,
			   uint32_t number)
{
	const struct hash_table *index = &catalog->index[CATALOG_STACKS];
	const struct batch_stack *from = &translation->batch->stacks[number];
	uint32_t *known = &translation->stacks[number];

	if (*known)
		return *known;
	if (!ensure_index(catalog))
		return CATALOG_OVERFLOW_STACK;
	HASH_TABLE_EACH(n, index, from->hash[0])
		if (catalog_stack(catalog, n)->hash[1] == from->hash[1])
			return *known = n;
	*known = new_stack(catalog, translation, from);
	if (!*known) {
		catalog->overflowed++;
		/* Closed it is to one sender: the next one of the batch may have room. */
		*known = catalog->is_closed ? 0 : CATALOG_OVERFLOW_STACK;
		return CATALOG_OVERFLOW_STACK;
	}
	return *known;
}

static uint32_t find_series(const struct catalog *catalog, uint32_t tenant, const uint32_t *labels,
			    uint32_t count)
{
	const struct hash_table *index = &catalog->index[CATALOG_SERIES];
	uint64_t hash = series_hash(tenant, labels, count);

	HASH_TABLE_EACH(n, index, hash) {
		const struct catalog_series *other = catalog_series(catalog, n);

		if (other->tenant == tenant && other->label_count == count &&
		    !memcmp(other->labels, labels, (size_t)count * 2 * sizeof *labels))
			return n;
	}
	return 0;
}

uint32_t catalog_find_series(struct catalog *catalog, uint32_t tenant,
			     const struct batch_series *series)
{
	uint32_t labels[2 * SAMPLES_LABELS_MAX];

	if (series->label_count > SAMPLES_LABELS_MAX || !ensure_index(catalog))
		return 0;
	for (uint32_t i = 0; i < series->label_count; i++) {
		labels[2 * i] = find_string(catalog, series->labels[i].name);
		labels[2 * i + 1] = find_string(catalog, series->labels[i].value);
		if (!labels[2 * i] || !labels[2 * i + 1])
			return 0;
	}
	return find_series(catalog, tenant, labels, series->label_count);
}

uint32_t catalog_add_series(struct catalog *catalog, uint32_t tenant,
			    const struct batch_series *series)
{
	uint32_t labels[2 * SAMPLES_LABELS_MAX], count = series->label_count, known;

	if (count > SAMPLES_LABELS_MAX || !ensure_index(catalog))
		return 0;
	for (uint32_t i = 0; i < count; i++) {
		labels[2 * i] = catalog_add_string(catalog, series->labels[i].name);
		labels[2 * i + 1] = catalog_add_string(catalog, series->labels[i].value);
		if (!labels[2 * i] || !labels[2 * i + 1])
			return 0;
	}
	known = find_series(catalog, tenant, labels, count);
	if (known || catalog->items[CATALOG_SERIES].count >= CATALOG_SERIES_MAX)
		return known;
	return catalog_put_series(catalog, tenant, labels, count);
}
