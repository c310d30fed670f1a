/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/store/rules/pending_reports.h"

#include <stdlib.h>

#include "common/array.h"

bool pending_reports_add(struct pending_reports *pending, samples_done_fn *done, void *context)
{
	if (!ARRAY_GROW(pending->list, pending->count, pending->room))
		return false;
	pending->list[pending->count++] = (struct pending_report){done, context};
	return true;
}

void pending_reports_answer(const struct pending_reports *pending, bool is_accepted,
			    const struct error *err)
{
	for (uint32_t i = 0; i < pending->count; i++)
		if (pending->list[i].done)
			pending->list[i].done(pending->list[i].context, is_accepted, err);
}

void pending_reports_release(struct pending_reports *pending)
{
	free(pending->list);
	*pending = (struct pending_reports){0};
}
