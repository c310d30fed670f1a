/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/formats/text_list.h"

#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "symbol-server/flamegraph/flame_tree.h"

void text_list_init(struct text_list *list, uint32_t limit)
{
	*list = (struct text_list){0};
	hash_table_init(&list->table, limit);
}

bool text_list_take(struct text_list *list, const char *text, uint64_t hash, uint32_t *number)
{
	if (!hash)
		hash = frame_name_hash(text);
	HASH_TABLE_EACH(at, &list->table, hash) {
		if (list->texts[at] != text && strcmp(list->texts[at], text))
			continue;
		*number = at;
		return true;
	}
	if (!ARRAY_GROW(list->texts, list->count, list->capacity) ||
	    !hash_table_add(&list->table, hash, list->count))
		return false;
	list->texts[list->count] = text;
	*number = list->count++;
	return true;
}

void text_list_release(struct text_list *list)
{
	hash_table_release(&list->table);
	free(list->texts);
}
