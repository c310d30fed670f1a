/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/naming/label_groups.h"

#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "symbol-server/store/sample_context.h"

void label_groups_init(struct label_groups *groups)
{
	*groups = (struct label_groups){0};
	arena_init(&groups->texts, 64 << 20);
	hash_table_init(&groups->index, UINT32_MAX >> 1);
}

static bool is_equal(const struct label_values *left, const struct label_values *right,
		     unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (strcmp(left->values[i], right->values[i]))
			return false;
	return true;
}

static bool add(struct label_groups *groups, const struct label_values *values, uint64_t hash)
{
	if (!ARRAY_GROW(groups->list, groups->count, groups->room))
		return false;
	groups->list[groups->count] = *values;
	return hash_table_add(&groups->index, hash, (uint32_t)groups->count++);
}

bool label_groups_take(struct label_groups *groups, const struct query *query,
		       const struct series_labels *series, const char *thread, uint32_t *number)
{
	char parts[QUERY_GROUPS_MAX][CONTEXT_PROCESS_VALUE_MAX + 1];
	struct label_values values = {{NULL}};
	uint64_t hash = 0;

	for (unsigned i = 0; i < query->group_count; i++) {
		if (sample_context_has_name(query->groups[i])) {
			sample_context_get(thread, query->groups[i], parts[i], sizeof parts[i]);
			values.values[i] = parts[i];
		} else {
			values.values[i] = series_label(series, query->groups[i]);
		}
		hash = hash_bytes(values.values[i], strlen(values.values[i]) + 1, hash);
	}
	HASH_TABLE_EACH(at, &groups->index, hash)
		if (is_equal(&groups->list[at], &values, query->group_count)) {
			*number = at;
			return true;
		}
	for (unsigned i = 0; i < query->group_count; i++)
		if (values.values[i] == parts[i] &&
		    !(values.values[i] = arena_text(&groups->texts, parts[i], strlen(parts[i]))))
			return false;
	*number = (uint32_t)groups->count;
	return add(groups, &values, hash);
}

void label_groups_release(struct label_groups *groups)
{
	arena_release(&groups->texts);
	free(groups->list);
	hash_table_release(&groups->index);
}
