/* SPDX-License-Identifier: Apache-2.0 */
/* The server's answer to where functions lie: one `<name> 0x<ELF address> <bytes>` a line
 * (schema/rest/openapi.yaml, /api/v1/modules/{build_id}/symbols). Pure: text in, numbers out. */
#ifndef NODE_AGENT_SHIP_SYMBOL_LIST_H
#define NODE_AGENT_SHIP_SYMBOL_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buffer.h"
#include "common/error.h"

enum { SYMBOL_LIST_MAX = 64 };

struct symbol_list {
	uint32_t count;
	struct listed_symbol {
		uint32_t name; /* which of those asked for */
		uint64_t address, bytes;
	} items[SYMBOL_LIST_MAX];
};

/* All of it or false: a line of another form, a name that was not asked for (ERROR_FORMAT), more
 * functions than there is room for (ERROR_LIMIT). No byte is an empty list. */
bool symbol_list_parse(struct bytes text, const char *const *names, size_t name_count,
		       struct symbol_list *list, struct error *err);

#endif
