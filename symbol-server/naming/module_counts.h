/* SPDX-License-Identifier: Apache-2.0 */
/* Samples and value of named stacks by module: in it, without a name in it, ending without one. Of
 * this folder only. */
#ifndef SYMBOL_SERVER_NAMING_MODULE_COUNTS_H
#define SYMBOL_SERVER_NAMING_MODULE_COUNTS_H

#include "symbol-server/naming/named_stacks_state.h"

/* Fills samples, unsymbolized, nameless; a stack counts once for each module. False: err is set. */
bool module_counts_fill(struct named_stacks *stacks, struct error *err);

/* Adds the stack, which is shown, to what ends in a frame without a name. */
void module_counts_nameless(struct named_stacks *stacks, const struct result_stack *stack,
			    struct stack_totals *totals);

#endif
