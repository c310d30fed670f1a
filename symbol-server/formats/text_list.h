/* SPDX-License-Identifier: Apache-2.0 */
/* Distinct texts, numbered in order of appearance; borrowed, not copied. */
#ifndef SYMBOL_SERVER_FORMATS_TEXT_LIST_H
#define SYMBOL_SERVER_FORMATS_TEXT_LIST_H

#include <stdbool.h>
#include <stdint.h>

#include "common/hash_table.h"

struct text_list {
	const char **texts;
	uint32_t count;
	/* private below */
	uint32_t capacity;
	struct hash_table table;
};

void text_list_init(struct text_list *list, uint32_t limit);
/* hash: frame_name_hash(text), 0: made here. false: the limit or memory is reached. */
bool text_list_take(struct text_list *list, const char *text, uint64_t hash, uint32_t *number);
void text_list_release(struct text_list *list);

#endif
