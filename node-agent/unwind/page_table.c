/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/unwind/page_table.h"

#include <stdlib.h>

#include "common/array.h"

void page_table_init(struct page_table *table)
{
	*table = (struct page_table){.first_free = PAGE_NONE};
	hash_table_init(&table->by_key, UNWIND_PAGES_MAX);
}

void page_table_release(struct page_table *table)
{
	free(table->entries);
	hash_table_release(&table->by_key);
	page_table_init(table);
}

static uint64_t hash_of(uint32_t executable, uint32_t page)
{
	return hash_word(0, (uint64_t)executable << 32 | page);
}

uint32_t page_table_find(const struct page_table *table, uint32_t executable, uint32_t page)
{
	uint64_t hash = hash_of(executable, page);

	HASH_TABLE_EACH(i, &table->by_key, hash)
		if (table->entries[i].executable == executable && table->entries[i].page == page)
			return i;
	return PAGE_NONE;
}

static uint32_t take_entry(struct page_table *table)
{
	uint32_t number = table->first_free;

	if (number != PAGE_NONE) {
		table->first_free = table->entries[number].page;
		return number;
	}
	if (!ARRAY_GROW(table->entries, table->count, table->room))
		return PAGE_NONE;
	return table->count++;
}

static void give_entry(struct page_table *table, uint32_t number)
{
	table->entries[number] = (struct page_entry){.page = table->first_free};
	table->first_free = number;
}

uint32_t page_table_add(struct page_table *table, uint32_t executable, uint32_t page)
{
	uint32_t number;

	if (table->by_key.live >= UNWIND_PAGES_MAX)
		return PAGE_NONE;
	number = take_entry(table);
	if (number == PAGE_NONE)
		return PAGE_NONE;
	if (!hash_table_add(&table->by_key, hash_of(executable, page), number)) {
		give_entry(table, number);
		return PAGE_NONE;
	}
	table->entries[number] = (struct page_entry){.executable = executable, .page = page};
	return number;
}

void page_table_remove(struct page_table *table, uint32_t number)
{
	const struct page_entry *entry = &table->entries[number];

	hash_table_remove(&table->by_key, hash_of(entry->executable, entry->page), number);
	give_entry(table, number);
}
