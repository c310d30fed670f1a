/* SPDX-License-Identifier: Apache-2.0 */
/* Hot spots and changes → bytes. Pure. */
#ifndef SYMBOL_SERVER_FORMATS_HOTSPOTS_JSON_H
#define SYMBOL_SERVER_FORMATS_HOTSPOTS_JSON_H

#include "symbol-server/flamegraph/hot_spots.h"
#include "symbol-server/formats/flame_formats.h"

struct hotspots_answer {
	struct flame_answer flame; /* type, unit, match, times, accounting, modules */
	const struct hot_spots *spots;
	const char *const *labels;
	unsigned label_count;
	const char *const *(*values_of)(const void *context, uint32_t process);
	const void *context;
	int64_t step_ms, first_ms, resolution_ms;
	uint32_t step_count;
	const uint32_t *order; /* processes, the largest first */
	uint32_t process_limit, top_limit;
	bool by_total, by_samples, is_gauge;
	double least;
	/* Parameters of the query that its links repeat; NULL or "": not given. */
	const char *focus, *ignore, *hide, *demangle, *collapse;
};

/* {"type",…,"changes":[…],"processes":[…],"functions":[…],"accounting":{…}}:
 * schema/rest/openapi.yaml
 */
bool hotspots_json(const struct hotspots_answer *answer, struct buffer *out);

#endif
