/* SPDX-License-Identifier: Apache-2.0 */
/* Strangers' texts inside of formats that give characters a meaning. */
#ifndef SYMBOL_SERVER_FORMATS_QUOTED_H
#define SYMBOL_SERVER_FORMATS_QUOTED_H

#include <stddef.h>

#include "common/buffer.h"

/* One cell of CSV, quoted where needed; what a spreadsheet would take for a formula has an
 * apostrophe before it. */
void csv_put_text(struct buffer *out, const char *text);

/* In a code span, where nothing of Markdown means anything but backticks, and | in a table's cell:
 * names stay readable, and no @name or link comes alive in a chat. before and after are ours; more
 * than most bytes end in "…". */
void markdown_put_code(struct buffer *out, const char *before, const char *text, const char *after,
		       size_t most);
void markdown_put_cell_code(struct buffer *out, const char *before, const char *text,
			    const char *after, size_t most);

#endif
