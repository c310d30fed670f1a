/* SPDX-License-Identifier: Apache-2.0 */
/* Pages of executables by their key, each once; at most UNWIND_PAGES_MAX. */
#ifndef NODE_AGENT_UNWIND_PAGE_TABLE_H
#define NODE_AGENT_UNWIND_PAGE_TABLE_H

#include <stdint.h>

#include "bpf/unwind_rows.h"
#include "common/hash_table.h"

#define PAGE_NONE UINT32_MAX

struct page_entry {
	uint32_t executable; /* 0: the entry is free, and page is the next free one's number */
	uint32_t page;
	uint32_t used_s;
	union {
		uint32_t first_row; /* LOADED */
		uint32_t asked_s;   /* ABSENT */
		uint32_t retry_s;   /* FAILED; UINT32_MAX: never */
	};
	uint16_t count;       /* rows from first_row on; 0 unless LOADED, or being it */
	uint8_t state : 2;    /* enum unwind_page_state */
	uint8_t is_asked : 1; /* ABSENT */
	uint8_t failures;     /* in a row, that may pass */
};

struct page_table {
	struct page_entry *entries;
	uint32_t count, room, first_free; /* of entries; count: the free ones too */
	struct hash_table by_key;
};

void page_table_init(struct page_table *table);
void page_table_release(struct page_table *table);

/* The entry's number, or PAGE_NONE. */
uint32_t page_table_find(const struct page_table *table, uint32_t executable, uint32_t page);

/* A new one, ABSENT; entries may move. PAGE_NONE: the table is full, or no memory. */
uint32_t page_table_add(struct page_table *table, uint32_t executable, uint32_t page);
void page_table_remove(struct page_table *table, uint32_t number);

#endif
