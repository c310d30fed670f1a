/* SPDX-License-Identifier: Apache-2.0 */
/* What samples have besides their series and stacks, as a query asks for it. */
#include "symbol-server/store/sqlite/answers/view.h"

const char *view_context(struct view_day *day, const struct samples_query *query, uint32_t thread,
			 char out[CONTEXT_BYTES_MAX])
{
	const char *context = thread ? catalog_string(day->catalog, thread)->text : "";

	if (!query->wants_process)
		return context;
	if (!day->lifetimes)
		day->lifetimes = catalog_lifetimes_new(day->catalog,
						       day->mark.count[CATALOG_STRINGS]);
	return day->lifetimes ? lifetimes_join(day->lifetimes, context, out) : NULL;
}
