/* SPDX-License-Identifier: Apache-2.0 */
/* What Go's table says of each instruction of one function: file, line and which call it is inlined
 * by. Three tables of steps, "the value changes by that, for so many bytes", become one list. */
#ifndef SYMBOL_SERVER_SYMBOLIZE_GO_GO_ROWS_H
#define SYMBOL_SERVER_SYMBOLIZE_GO_GO_ROWS_H

#include "symbol-server/symbolize/go/go_module.h"

struct go_row {
	uint32_t at;     /* bytes from where the function begins */
	uint32_t file;   /* among all units' files; UINT32_MAX: unknown */
	uint32_t line;   /* 0: unknown */
	int32_t inlined; /* number in the inline tree; below 0: the function's own code */
};

struct go_rows {
	struct go_row *rows; /* by at, the first one is 0 */
	size_t count, room;
	uint32_t size; /* of the function's code, which may end before the next one begins */
};

/* Replaces what rows held, at least one row. damaged: set when the tables go on behind the
 * function's end. False: memory. */
bool go_rows_read(struct go_rows *rows, const struct go_module *module,
		  const struct go_function *function, bool *damaged);
void go_rows_release(struct go_rows *rows);

/* The row that covers that place, or NULL. */
const struct go_row *go_rows_at(const struct go_rows *rows, uint32_t at);

#endif
