/* SPDX-License-Identifier: Apache-2.0 */
#include "common/string_table.h"

#include <stdlib.h>
#include <string.h>

#include "common/array.h"

void string_table_init(struct string_table *table, size_t limit_bytes, uint32_t limit_texts)
{
	*table = (struct string_table){ .count = 1 }; /* 0 is "" and needs no memory */
	arena_init(&table->arena, limit_bytes);
	hash_table_init(&table->table, limit_texts);
}

uint32_t string_table_find(const struct string_table *table, const char *text, size_t length)
{
	uint64_t hash = hash_bytes(text, length, 0);

	if (!length)
		return 0;
	HASH_TABLE_EACH(i, &table->table, hash)
		if (table->lengths[i] == length && !memcmp(table->texts[i], text, length))
			return i;
	return UINT32_MAX;
}

static bool make_room(struct string_table *table)
{
	uint32_t room = table->capacity;

	if (table->count < table->capacity)
		return true;
	if (!ARRAY_GROW(table->texts, table->count, room) ||
	    !ARRAY_GROW(table->lengths, table->count, table->capacity))
		return false;
	table->texts[0] = "";
	table->lengths[0] = 0;
	return true;
}

uint32_t string_table_add_bytes(struct string_table *table, const char *text, size_t length)
{
	uint32_t found = string_table_find(table, text, length);
	char *copy;

	if (found != UINT32_MAX)
		return found;
	if (length >= UINT32_MAX || !make_room(table))
		goto full;
	copy = arena_text(&table->arena, text, length);
	if (!copy || !hash_table_add(&table->table, hash_bytes(text, length, 0), table->count))
		goto full;
	table->texts[table->count] = copy;
	table->lengths[table->count] = (uint32_t)length;
	return table->count++;
full:
	table->arena.failed = true;
	return 0;
}

uint32_t string_table_add(struct string_table *table, const char *text)
{
	return string_table_add_bytes(table, text, strlen(text));
}

void string_table_clear(struct string_table *table)
{
	arena_clear(&table->arena);
	hash_table_clear(&table->table);
	table->count = 1;
}

void string_table_release(struct string_table *table)
{
	if (!table)
		return;
	arena_release(&table->arena);
	hash_table_release(&table->table);
	free(table->texts);
	free(table->lengths);
	string_table_init(table, table->arena.limit, table->table.limit);
}
