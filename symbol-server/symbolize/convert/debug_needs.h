/* SPDX-License-Identifier: Apache-2.0 */
/* What a debug file needs besides itself to be read in full: the dwz file it borrows from, the .dwo
 * files with its functions. Read in the worker, by whoever has the file; the answer is text, and is
 * checked by whoever takes it. */
#ifndef SYMBOL_SERVER_SYMBOLIZE_CONVERT_DEBUG_NEEDS_H
#define SYMBOL_SERVER_SYMBOLIZE_CONVERT_DEBUG_NEEDS_H

#include <stdbool.h>
#include <stddef.h>

#include "common/buffer.h"
#include "common/build_id.h"
#include "common/error.h"
#include "symbol-server/symbolize/convert/debug_reader.h"

enum {
	DEBUG_NEEDS_PATHS = 960,       /* .dwo files of one module */
	DEBUG_NEEDS_TEXT_MAX = 4 << 20 /* bytes of the answer */
};

/* In the worker. Appends one line per need: "alt <build-id>", "dwo <path>" (DW_AT_dwo_name, behind
 * DW_AT_comp_dir where it is relative), "more" when there are more than DEBUG_NEEDS_PATHS. */
bool debug_needs_list(const struct debug_input *input, struct buffer *out, struct error *err);

struct debug_needs {
	struct build_id alt; /* length 0: no dwz file */
	char *paths[DEBUG_NEEDS_PATHS];
	size_t path_count;
	bool has_more;
};

/* Takes the text apart, in place; paths point into it. False: it is not what debug_needs_list()
 * writes. */
bool debug_needs_parse(char *text, struct debug_needs *needs);

#endif
