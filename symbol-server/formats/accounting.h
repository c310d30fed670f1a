/* SPDX-License-Identifier: Apache-2.0 */
/* What every answer about samples says about itself (design.md §6, "Accounting"). */
#ifndef SYMBOL_SERVER_FORMATS_ACCOUNTING_H
#define SYMBOL_SERVER_FORMATS_ACCOUNTING_H

#include <stdint.h>

#include "symbol-server/formats/json_writer.h"

enum { ACCOUNTING_REASONS = 32 };

struct accounting {
	uint64_t value, samples; /* what the answer contains before any cut */
	uint64_t taken, lost;    /* of the selected hosts in that time, samples */
	struct {
		const char *reason; /* borrowed */
		uint64_t count;
	} lost_by[ACCOUNTING_REASONS];
	unsigned lost_count;
	int64_t unexplained;                      /* taken − stored − lost; must be 0 */
	uint64_t unwind_incomplete, unsymbolized; /* samples */
	uint64_t cut;                             /* value */
	uint64_t hosts;
};

/* Adds to one reason; with all places taken to the last. */
void accounting_add_lost(struct accounting *accounting, const char *reason, uint64_t count);

/* {"value":…,…} */
void accounting_json(struct json *json, const struct accounting *accounting);

#endif
