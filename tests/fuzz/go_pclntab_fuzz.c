/* SPDX-License-Identifier: Apache-2.0 */
/* An ELF file's Go table: every function of it, its rows in order, its inlined calls by numbers
 * that get smaller; then the whole of it as a symbol table. What is read stays inside of the file,
 * and ends. */
#include "symbol-server/symbolize/go/go_inline_tree.h"
#include "symbol-server/symbolize/go/go_pclntab.h"
#include "symbol-server/symbolize/symbol_table.h"

#include <string.h>

#include "tests/fuzz/fuzz.h"

enum { ROWS_LEFT = 1 << 20 };

static void check_rows(const struct go_module *module, const struct go_function *function,
		       const struct go_rows *rows)
{
	struct go_inlined_call call;

	if (!rows->count || rows->rows[0].at || rows->size > function->limit - function->start)
		abort();
	for (size_t i = 0; i < rows->count; i++) {
		const struct go_row *row = &rows->rows[i];

		if (i && row->at <= row[-1].at)
			abort();
		if (row->at < rows->size && go_rows_at(rows, row->at) != row)
			abort();
		if (go_inline_tree_call(module, function, rows, row->inlined, &call) &&
		    (call.parent >= row->inlined || !*call.name))
			abort();
	}
}

static void read_functions(struct go_module *module)
{
	struct go_rows rows = {0};
	struct go_function function;
	size_t left = ROWS_LEFT;
	bool damaged = false;

	go_inline_tree_find_base(module);
	for (uint32_t i = 0; i < module->count && left; i++) {
		if (!go_module_function(module, i, &function))
			continue;
		if (function.limit < function.start || !*function.name)
			abort();
		if (!go_rows_read(&rows, module, &function, &damaged))
			break;
		check_rows(module, &function, &rows);
		left = left > rows.count ? left - rows.count : 0;
	}
	go_rows_release(&rows);
}

static void make_table(const uint8_t *bytes, size_t length, const struct go_image *image)
{
	struct table_builder *builder = table_builder_new();
	uint64_t code[GO_SEGMENTS_MAX][2];
	struct symbol_table table = {0};
	uint32_t flags = 0;
	size_t count = 0;

	for (unsigned i = 0; i < image->segment_count; i++)
		if (image->segments[i].is_code) {
			code[count][0] = image->segments[i].address;
			code[count++][1] = image->segments[i].address +
					   image->segments[i].bytes.length;
		}
	if (builder && table_builder_sections(builder, (const uint64_t(*)[2])code, count, NULL) &&
	    go_pclntab_read(bytes, length, builder, &flags)) {
		table_builder_sort_symbols(builder);
		table_builder_finish(builder, NULL, &table, NULL);
	}
	table_builder_free(builder);
}

static void fuzz_one(const uint8_t *bytes, size_t length)
{
	struct go_image image;
	struct go_module module;

	if (go_image_open(&image, bytes, length) && go_module_find(&image, &module)) {
		read_functions(&module);
		make_table(bytes, length, &image);
	}
	go_image_close(&image);
}
