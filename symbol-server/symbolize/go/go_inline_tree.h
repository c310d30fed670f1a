/* SPDX-License-Identifier: Apache-2.0 */
/* A Go function's inline tree (FUNCDATA_InlTree): for each call that was inlined, which function
 * and where the call stands; what the code's rows number. Formats: inlinedCall in runtime/symtab.go
 * of Go 1.16 to 1.19 and runtime/symtabinl.go since 1.20. */
#ifndef SYMBOL_SERVER_SYMBOLIZE_GO_GO_INLINE_TREE_H
#define SYMBOL_SERVER_SYMBOLIZE_GO_GO_INLINE_TREE_H

#include "symbol-server/symbolize/go/go_rows.h"

struct go_inlined_call {
	const char *name;
	int32_t parent; /* a smaller number; below 0: the function itself */
	uint32_t file;  /* of the call, as in rows; UINT32_MAX: unknown */
	uint32_t line;
};

/* The call of that number in the function's tree. False: that cannot be. */
bool go_inline_tree_call(const struct go_module *module, const struct go_function *function,
			 const struct go_rows *rows, int32_t number, struct go_inlined_call *call);

/* Since Go 1.18 trees count from a place (go:func.*) that only moduledata tells, each few versions
 * in another word: sets inline_base to the one from which trees are trees. False: there are trees
 * and no such place. */
bool go_inline_tree_find_base(struct go_module *module);

#endif
