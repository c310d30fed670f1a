/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of all executables, each once: a number for a rule. Added to until all go at once, in
 * memory and, when there is one, in the kernel's map. */
#ifndef NODE_AGENT_UNWIND_RULE_TABLE_H
#define NODE_AGENT_UNWIND_RULE_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/unwind_rows.h"
#include "common/error.h"
#include "common/hash_table.h"

struct rule_table {
	int map; /* rules of bpf/unwind_rows.h, borrowed, or −1 */
	uint32_t count, room;
	struct unwind_rule *rules;
	struct hash_table by_content;
};

void rule_table_init(struct rule_table *table, int map);
void rule_table_release(struct rule_table *table);

/* The rule's number, new or known. False: UNWIND_RULES_MAX are there (ERROR_LIMIT), no memory, or
 * the kernel refuses. */
bool rule_table_number(struct rule_table *table, const struct unwind_rule *rule, uint16_t *number,
		       struct error *err);

/* All numbers are free again: nobody may know one any more. The map is written over in time. */
void rule_table_clear(struct rule_table *table);

/* NULL: no such number. Borrowed until the next rule comes. */
const struct unwind_rule *rule_table_find(const struct rule_table *table, uint32_t number);

#endif
