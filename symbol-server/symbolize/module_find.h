/* SPDX-License-Identifier: Apache-2.0 */
/* Which module a client of a symbol server means: by its build-id, or by the id that Breakpad, and
 * after it Mozilla's symbolication API, make of its first bytes. */
#ifndef SYMBOL_SERVER_SYMBOLIZE_MODULE_FIND_H
#define SYMBOL_SERVER_SYMBOLIZE_MODULE_FIND_H

#include <stdbool.h>
#include <stddef.h>

#include "symbol-server/symbolize/symbolizer.h"

struct module_question {
	struct build_id id; /* as asked, of a Breakpad id 16 bytes; when it is known the module's */
	bool is_breakpad;   /* of a file that is only in a directory no more: id is whole then */
	bool is_known;
};

/* "c0ffee…": a build-id in hexadecimal, an even number of digits; or a Breakpad id, of which 32 are
 * the first 16 bytes as a GUID, fields little-endian, followed by the age 0. */
bool module_question_parse(const char *text, struct module_question *out);

/* Fills in what is known, and the whole id of what a directory has. Of several modules with the
 * same first 16 bytes the one with the best table. */
void symbolizer_find_modules(struct symbolizer *symbolizer, struct module_question *questions,
			     size_t count);

#endif
