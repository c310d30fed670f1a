/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/symbolize/go/go_inline_tree.h"

#include <stdlib.h>

enum {
	CHECKED_TREES = 64,
	CHECKED_FUNCTIONS = 1 << 16,
	MODULE_WORDS_FROM = 23, /* behind the text */
	MODULE_WORDS_TO = 64,
};

/* Go 1.20 to 1.26, 1.27, 1.18 and 1.19; a later version may have it anywhere. */
static const unsigned known_words[] = {40, 43, 38};

/* The call stands where an instruction of the parent's does, which was kept for that. (Go 1.16 to
 * 1.19 have parent, file and line in the tree as well: the same ones.) */
static bool read_call(struct dwarf_cursor cursor, const struct go_module *module,
		      const struct go_rows *rows, struct go_inlined_call *call)
{
	const struct go_row *row;

	dwarf_skip(&cursor, module->layout->inlining == GO_INLINING_1_16 ? 12 : 4);
	call->name = go_module_name(module, (uint32_t)dwarf_number(&cursor, 4));
	row = go_rows_at(rows, (uint32_t)dwarf_number(&cursor, 4));
	if (cursor.failed || !call->name || !row)
		return false;
	call->parent = row->inlined;
	call->file = row->file;
	call->line = row->line;
	return true;
}

bool go_inline_tree_call(const struct go_module *module, const struct go_function *function,
			 const struct go_rows *rows, int32_t number, struct go_inlined_call *call)
{
	uint64_t size = module->layout->inlining == GO_INLINING_1_16 ? 20 : 16,
		 at = (uint64_t)(uint32_t)number * size;
	struct dwarf_bytes bytes;
	struct dwarf_cursor cursor;

	/* Each call has an instruction of its own. */
	if (number < 0 || (uint32_t)number >= rows->size ||
	    (module->layout->is_relative && !module->inline_base))
		return false;
	bytes = go_image_at(module->image, module->inline_base + function->tree + at);
	cursor = dwarf_cursor_at(bytes, 0, module->image->is_big_endian);
	return read_call(cursor, module, rows, call) && call->parent < number;
}

/* ---- where trees are ---- */

struct verdict {
	uint32_t calls, first_names;
};

static bool is_tree(const struct go_module *module, const struct go_function *function,
		    const struct go_rows *rows, struct verdict *verdict)
{
	struct go_inlined_call call;

	for (size_t i = 0; i < rows->count; i++) {
		if (rows->rows[i].inlined < 0)
			continue;
		if (!go_inline_tree_call(module, function, rows, rows->rows[i].inlined, &call))
			return false;
		verdict->calls++;
		verdict->first_names += call.name == (const char *)module->names.at;
	}
	return true;
}

struct samples {
	struct go_function functions[CHECKED_TREES];
	struct go_rows rows[CHECKED_TREES];
	unsigned count;
};

/* Functions with trees, from all over the table. */
static void take_samples(struct samples *samples, const struct go_module *module)
{
	uint32_t step = module->count / CHECKED_FUNCTIONS + 1;
	uint32_t stride = module->count / (CHECKED_TREES * 16) + 1;

	step = stride > step ? stride : step;
	for (uint32_t first = 0; first < step && first < 64; first++)
		for (uint32_t i = first; i < module->count; i += step) {
			struct go_function *function = &samples->functions[samples->count];
			bool damaged = false;

			if (samples->count == CHECKED_TREES)
				return;
			if (go_module_function(module, i, function) && function->inline_pcs &&
			    go_rows_read(&samples->rows[samples->count], module, function,
					 &damaged) &&
			    !damaged)
				samples->count++;
		}
}

/* Zeros look like calls of whatever has the first name. */
static bool try_base(struct go_module *module, const struct samples *samples, unsigned word)
{
	struct verdict verdict = {0};
	bool ok;

	module->inline_base = go_module_word(module, word);
	ok = module->inline_base != 0;
	for (unsigned i = 0; i < samples->count && ok; i++)
		ok = is_tree(module, &samples->functions[i], &samples->rows[i], &verdict);
	ok = ok && verdict.first_names <= verdict.calls / 4;
	if (!ok)
		module->inline_base = 0;
	return ok;
}

static bool find_base(struct go_module *module, const struct samples *samples)
{
	for (size_t i = 0; i < sizeof(known_words) / sizeof(*known_words); i++)
		if (try_base(module, samples, known_words[i]))
			return true;
	for (unsigned word = MODULE_WORDS_FROM; word < MODULE_WORDS_TO; word++)
		if (try_base(module, samples, word))
			return true;
	return false;
}

bool go_inline_tree_find_base(struct go_module *module)
{
	struct samples *samples;
	bool found = true;

	module->inline_base = 0;
	if (!module->layout->is_relative || module->layout->inlining == GO_INLINING_NONE)
		return module->layout->inlining != GO_INLINING_NONE;
	samples = calloc(1, sizeof(*samples));
	if (!samples)
		return false;
	take_samples(samples, module);
	if (samples->count)
		found = find_base(module, samples);
	for (unsigned i = 0; i < CHECKED_TREES; i++)
		go_rows_release(&samples->rows[i]);
	free(samples);
	return found;
}
