/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/unwind/rule_table.h"

#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "node-agent/kernel/bpf_map.h"

void rule_table_init(struct rule_table *table, int map)
{
	*table = (struct rule_table){.map = map};
	hash_table_init(&table->by_content, UNWIND_RULES_MAX);
}

void rule_table_release(struct rule_table *table)
{
	free(table->rules);
	hash_table_release(&table->by_content);
	rule_table_init(table, -1);
}

bool rule_table_number(struct rule_table *table, const struct unwind_rule *rule, uint16_t *number,
		       struct error *err)
{
	uint64_t hash = hash_bytes(rule, sizeof *rule, 0);

	HASH_TABLE_EACH(i, &table->by_content, hash)
		if (!memcmp(&table->rules[i], rule, sizeof *rule)) {
			*number = (uint16_t)i;
			return true;
		}
	if (table->count >= UNWIND_RULES_MAX)
		return error_set(err, ERROR_LIMIT, "%d unwind rules are the limit",
				 UNWIND_RULES_MAX);
	if (!ARRAY_GROW(table->rules, table->count, table->room))
		return error_set(err, ERROR_MEMORY, "no memory for unwind rules");
	if (table->map >= 0 && !bpf_map_write(table->map, &table->count, rule, err))
		return error_prefix(err, "unwind rule");
	if (!hash_table_add(&table->by_content, hash, table->count))
		return error_set(err, ERROR_MEMORY, "no memory for unwind rules");
	table->rules[table->count] = *rule;
	*number = (uint16_t)table->count++;
	return true;
}

void rule_table_clear(struct rule_table *table)
{
	hash_table_clear(&table->by_content);
	table->count = 0;
}

const struct unwind_rule *rule_table_find(const struct rule_table *table, uint32_t number)
{
	return number < table->count ? &table->rules[number] : NULL;
}
