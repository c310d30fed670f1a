/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/flamegraph/accounting.h"

#include <stdlib.h>
#include <string.h>

void accounting_add_lost(struct accounting *accounting, const char *reason, uint64_t count)
{
	unsigned at = 0;

	while (at < accounting->lost_count && strcmp(accounting->lost_by[at].reason, reason))
		at++;
	if (at == ACCOUNTING_REASONS) {
		at--;
		accounting->lost_by[at].reason = "other";
	} else if (at == accounting->lost_count) {
		accounting->lost_count++;
		accounting->lost_by[at].reason = reason;
		accounting->lost_by[at].count = 0;
	}
	accounting->lost_by[at].count += count;
}

void accounting_add_incomplete(struct accounting *accounting, const char *reason, uint64_t samples)
{
	if (accounting->incomplete_count == ACCOUNTING_REASONS)
		return;
	accounting->incomplete_by[accounting->incomplete_count++] =
		(struct incomplete_reason){.reason = reason, .samples = samples};
}

/* By samples, then by name: the order does not depend on which stack was met first. */
static bool comes_before(const struct incomplete_place *a, const struct incomplete_place *b)
{
	int order = strcmp(a->name, b->name);

	if (a->samples != b->samples)
		return a->samples > b->samples;
	return order ? order < 0 : strcmp(a->build_id, b->build_id) < 0;
}

void accounting_add_place(struct accounting *accounting, const char *name, const char *build_id,
			  uint64_t samples)
{
	struct incomplete_reason *reason =
		&accounting->incomplete_by[accounting->incomplete_count - 1];
	const struct incomplete_place place = {name, build_id, samples};
	unsigned at = reason->module_count;

	while (at && comes_before(&place, &reason->modules[at - 1]))
		at--;
	if (at == ACCOUNTING_PLACES)
		return;
	if (reason->module_count < ACCOUNTING_PLACES)
		reason->module_count++;
	memmove(&reason->modules[at + 1], &reason->modules[at],
		(reason->module_count - 1 - at) * sizeof *reason->modules);
	reason->modules[at] = place;
}

static int compare_reasons(const void *a, const void *b)
{
	const struct incomplete_reason *x = a, *y = b;

	return x->samples != y->samples ? (x->samples < y->samples) - (x->samples > y->samples)
					: strcmp(x->reason, y->reason);
}

void accounting_sort_incomplete(struct accounting *accounting)
{
	qsort(accounting->incomplete_by, accounting->incomplete_count,
	      sizeof *accounting->incomplete_by, compare_reasons);
}
