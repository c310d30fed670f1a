/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/naming/incomplete_counts.h"

#include <stdlib.h>
#include <string.h>

/* Where the walk stopped: code in anonymous memory has no module, and what it called is not the
 * place. Frames that were named on the host, such as an interpreter's, are passed over. */
static uint32_t stopped_in(const struct location_frames *names, const struct result_stack *stack)
{
	for (uint32_t i = stack->depth; i--;) {
		const struct result_location *at = &names->result->locations[stack->locations[i]];

		if (at->kind == LOCATION_KERNEL || at->kind == LOCATION_ANONYMOUS)
			return FRAME_NO_MODULE;
		if (at->kind == LOCATION_INCOMPLETE || !strcmp(at->type, "kernel"))
			continue;
		if (at->module < names->result->module_count)
			return names->module_of[at->module];
		if (location_has_address(at->kind))
			return FRAME_NO_MODULE;
	}
	return FRAME_NO_MODULE;
}

bool incomplete_counts_add(struct incomplete_counts *counts, const struct location_frames *names,
			   const struct result_stack *stack)
{
	uint32_t module = stopped_in(names, stack);
	uint8_t reason = names->locations[stack->locations[stack->depth - 1]].reason;
	uint64_t **by_module = &counts->by_module[reason];

	counts->samples[reason] += stack->samples;
	if (module == FRAME_NO_MODULE)
		return true;
	if (!*by_module)
		*by_module = calloc(names->module_count, sizeof **by_module);
	if (*by_module)
		(*by_module)[module] += stack->samples;
	return *by_module;
}

void incomplete_counts_fill(const struct incomplete_counts *counts,
			    const struct location_frames *names, struct accounting *accounting)
{
	for (unsigned i = 0; i < names->reason_count; i++) {
		if (!counts->samples[i])
			continue;
		accounting_add_incomplete(accounting, names->reasons[i], counts->samples[i]);
		for (uint32_t j = 0; counts->by_module[i] && j < names->module_count; j++)
			if (counts->by_module[i][j])
				accounting_add_place(accounting, names->modules[j].name,
						     names->modules[j].build_id,
						     counts->by_module[i][j]);
	}
	accounting_sort_incomplete(accounting);
}

void incomplete_counts_release(struct incomplete_counts *counts)
{
	for (unsigned i = 0; i < INCOMPLETE_REASONS; i++)
		free(counts->by_module[i]);
	memset(counts, 0, sizeof *counts);
}
