/* SPDX-License-Identifier: Apache-2.0 */
/* When functions ran → bytes. Pure. */
#ifndef SYMBOL_SERVER_FORMATS_FUNCTION_HEAT_FORMATS_H
#define SYMBOL_SERVER_FORMATS_FUNCTION_HEAT_FORMATS_H

#include "symbol-server/flamegraph/function_heat.h"
#include "symbol-server/formats/timeline_formats.h"

struct function_heat_answer {
	struct flame_answer flame; /* type, unit, times, modules, accounting */
	const struct function_heat *heat;
	struct heat_value other; /* of all columns */
	size_t other_functions;  /* that would have had a row */
	int64_t resolution_ms;
	const struct timeline_time *times; /* by column; NULL: not known */
};

/* {…,"functions":[…],"cells":{"row","column","value","samples","error"},"other":{"functions",
 * "value","samples","values":[…]},"all":[…],"accounting"}: cells that are not zero, row by row. */
bool function_heat_json(const struct flame_answer *answer, struct buffer *out);
/* A row per function and step that has something; "[other]" is what has no function's row. */
bool function_heat_csv(const struct flame_answer *answer, struct buffer *out);

#endif
