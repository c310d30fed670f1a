/* SPDX-License-Identifier: Apache-2.0 */
/* Frames whose names an expression matches. Of this folder only. */
#ifndef SYMBOL_SERVER_API_NAME_SEARCH_H
#define SYMBOL_SERVER_API_NAME_SEARCH_H

#include <stdbool.h>
#include <stddef.h>

#include "symbol-server/flamegraph/flame_tree.h"
#include "symbol-server/query/pattern.h"

enum { NAME_SEARCH_ENTRIES = 4096 }; /* a power of two */

struct name_search { /* all zero: nothing is searched */
	const struct pattern *pattern;
	struct {
		const char *name;
		bool is_wanted;
	} cache[NAME_SEARCH_ENTRIES]; /* names live as long as the stacks, and each is one text */
};

bool name_search_has(struct name_search *search, const struct flame_frame *frame);
bool name_search_any(struct name_search *search, const struct flame_frame *frames, size_t depth);

#endif
