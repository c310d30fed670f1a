/* SPDX-License-Identifier: Apache-2.0 */
/* Incomplete stacks counted by the reason why and the module in which the walk stopped. */
#ifndef SYMBOL_SERVER_NAMING_INCOMPLETE_COUNTS_H
#define SYMBOL_SERVER_NAMING_INCOMPLETE_COUNTS_H

#include <stdbool.h>
#include <stdint.h>

#include "symbol-server/flamegraph/accounting.h"
#include "symbol-server/naming/location_frames.h"

struct incomplete_counts {
	uint64_t samples[INCOMPLETE_REASONS];
	uint64_t *by_module[INCOMPLETE_REASONS]; /* by module of the names; NULL: none */
};

/* Adds a stack whose last (root) location says why it is incomplete. The module is that of the
 * outermost native frame; a stack without one counts for its reason alone. False: no memory. */
bool incomplete_counts_add(struct incomplete_counts *counts, const struct location_frames *names,
			   const struct result_stack *stack);

/* Fills incomplete_by; texts are those of names. */
void incomplete_counts_fill(const struct incomplete_counts *counts,
			    const struct location_frames *names, struct accounting *accounting);

void incomplete_counts_release(struct incomplete_counts *counts);

#endif
