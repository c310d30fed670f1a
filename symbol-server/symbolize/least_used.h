/* SPDX-License-Identifier: Apache-2.0 */
/* What goes first where room is made: what was used longest ago. */
#ifndef SYMBOL_SERVER_SYMBOLIZE_LEAST_USED_H
#define SYMBOL_SERVER_SYMBOLIZE_LEAST_USED_H

#include <stdint.h>

#include "common/build_id.h"

struct victim {
	struct build_id id;
	int64_t used_ms;
};

/* For qsort(3). */
static inline int victim_compare(const void *left, const void *right)
{
	const struct victim *a = left, *b = right;

	return a->used_ms < b->used_ms ? -1 : a->used_ms > b->used_ms;
}

#endif
