/* SPDX-License-Identifier: Apache-2.0 */
/* Text ↔ small number: equal texts get the same number. Number 0 is always "". */
#ifndef COMMON_STRING_TABLE_H
#define COMMON_STRING_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "common/arena.h"
#include "common/hash_table.h"

struct string_table {
	struct arena arena;
	struct hash_table table;
	const char **texts; /* by number; borrowed until clear or release */
	uint32_t *lengths;
	uint32_t count;
	uint32_t capacity;
};

/* Both ceilings hold: bytes of text and number of texts. */
void string_table_init(struct string_table *table, size_t limit_bytes, uint32_t limit_texts);
/* The text's number; added when new. 0 (the empty text) when a ceiling is reached:
 * arena.failed says so at the end. */
uint32_t string_table_add(struct string_table *table, const char *text);
uint32_t string_table_add_bytes(struct string_table *table, const char *text, size_t length);
/* UINT32_MAX when absent. */
uint32_t string_table_find(const struct string_table *table, const char *text, size_t length);
void string_table_clear(struct string_table *table);
void string_table_release(struct string_table *table);

#endif
