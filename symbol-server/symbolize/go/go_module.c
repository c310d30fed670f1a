/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/symbolize/go/go_module.h"

#include <string.h>

enum {
	FUNCTIONS_MAX = 1 << 24, /* a program of 700 MB has half a million */
	MODULE_NAMES = 1,        /* moduledata: pointer and length of the names */
	MODULE_TEXT = 22,        /* behind minpc and maxpc, in Go 1.16 to 1.27 */
	SEARCHES_MAX = 8,        /* through the whole file */
	PCDATA_INLINE = 2,
	FUNCDATA_INLINE = 3,
};

static const struct go_layout layouts[] = {
	{0xfb, false, 0, 0, 0, 0, 0, 0, 28, GO_INLINING_NONE},
	{0xfa, false, 0, 2, 3, 4, 5, 6, 36, GO_INLINING_1_16},
	{0xf0, true, 2, 3, 4, 5, 6, 7, 36, GO_INLINING_1_16},
	{0xf1, true, 2, 3, 4, 5, 6, 7, 40, GO_INLINING_1_20}, /* the text's word: 0 since 1.26 */
};

static uint64_t number_at(const struct go_module *module, struct dwarf_bytes bytes, uint64_t offset,
			  unsigned size, bool *ok)
{
	struct dwarf_cursor cursor = dwarf_cursor_at(bytes, offset, module->image->is_big_endian);
	uint64_t value = dwarf_number(&cursor, size);

	*ok &= !cursor.failed;
	return value;
}

/* ---- header ---- */

/* The first 8 bytes: magic, two zeros, an instruction's least size, a pointer's size. */
static const struct go_layout *read_magic(struct go_module *module)
{
	const uint8_t *at = module->table.at;
	bool ok = true;
	uint32_t magic;

	if (module->table.length < 8 || at[4] || at[5] || at[7] != go_image_word(module->image) ||
	    (at[6] != 1 && at[6] != 2 && at[6] != 4))
		return NULL;
	magic = (uint32_t)number_at(module, module->table, 0, 4, &ok);
	module->quantum = at[6];
	for (size_t i = 0; i < sizeof(layouts) / sizeof(*layouts); i++)
		if (magic == (0xffffff00u | layouts[i].magic))
			return &layouts[i];
	return NULL;
}

static uint64_t header_word(const struct go_module *module, unsigned word, bool *ok)
{
	unsigned size = go_image_word(module->image);

	return number_at(module, module->table, 8 + (uint64_t)word * size, size, ok);
}

/* From one part's beginning to the next one's; they stand in order. */
static bool take_part(const struct go_module *module, unsigned word, unsigned next,
		      struct dwarf_bytes *part)
{
	bool ok = true;
	uint64_t start = word ? header_word(module, word, &ok) : 0;
	uint64_t end = next ? header_word(module, next, &ok) : module->table.length;

	if (!ok || start > end || end > module->table.length)
		return false;
	*part = (struct dwarf_bytes){module->table.at + start, (size_t)(end - start)};
	return true;
}

/* Go 1.2: one table, its files behind the functions' entries. */
static bool take_old_files(struct go_module *module, uint64_t entries_end)
{
	bool ok = true;
	uint64_t at = number_at(module, module->table, entries_end, 4, &ok), count;

	count = number_at(module, module->table, at, 4, &ok);
	if (!ok || count > (module->table.length - at) / 4)
		return false;
	module->units = (struct dwarf_bytes){module->table.at + at, (size_t)count * 4};
	return true;
}

static unsigned entry_bytes(const struct go_module *module)
{
	return module->layout->is_relative ? 4 : go_image_word(module->image);
}

static bool read_header(struct go_module *module)
{
	const struct go_layout *layout = read_magic(module);
	uint64_t size, count;
	bool ok = true;

	if (!layout)
		return false;
	module->layout = layout;
	count = header_word(module, 0, &ok);
	if (!ok || !count || count > FUNCTIONS_MAX ||
	    !take_part(module, layout->names_word, layout->units_word, &module->names) ||
	    !take_part(module, layout->units_word, layout->files_word, &module->units) ||
	    !take_part(module, layout->files_word, layout->pcs_word, &module->files) ||
	    !take_part(module, layout->pcs_word, layout->functions_word, &module->pcs) ||
	    !take_part(module, layout->functions_word, 0, &module->functions))
		return false;
	module->count = (uint32_t)count;
	module->entries = module->functions;
	if (!layout->functions_word) {
		unsigned before = 8 + go_image_word(module->image);

		module->entries.at += before;
		module->entries.length -= before;
	}
	size = (count * 2 + 1) * entry_bytes(module);
	if (size > module->entries.length)
		return false;
	return layout->functions_word ||
	       take_old_files(module, (uint64_t)(module->entries.at - module->table.at) + size);
}

/* ---- functions ---- */

/* Where function number index begins; of the one behind the last, where that ends. */
static bool read_entry(const struct go_module *module, uint32_t index, uint64_t *start)
{
	unsigned size = entry_bytes(module);
	uint64_t at = (uint64_t)index * 2 * size;
	bool ok = true;

	*start = number_at(module, module->entries, at, size, &ok);
	if (!module->layout->is_relative && module->image->relocation_count)
		return go_image_pointer(
			module->image,
			module->address + (uint64_t)(module->entries.at - module->table.at) + at,
			start);
	*start += module->text;
	return ok;
}

const char *go_module_name(const struct go_module *module, uint32_t offset)
{
	struct dwarf_cursor cursor = dwarf_cursor_at(module->names, offset, false);
	const char *name = dwarf_text(&cursor);

	if (cursor.failed || !*name)
		return NULL;
	if (module->layout->names_word && offset && module->names.at[offset - 1])
		return NULL;
	return name;
}

const char *go_module_file(const struct go_module *module, uint32_t index)
{
	bool ok = true;
	uint64_t offset = number_at(module, module->units, (uint64_t)index * 4, 4, &ok);
	struct dwarf_cursor cursor = dwarf_cursor_at(module->files, offset, false);
	const char *name = dwarf_text(&cursor);

	return ok && !cursor.failed && *name ? name : NULL;
}

/* at: behind the function's fixed part, where the numbers of its tables stand. */
static void read_tree(const struct go_module *module, struct go_function *function, uint64_t at,
		      uint32_t tables, uint8_t trees)
{
	unsigned size = module->layout->is_relative ? 4 : go_image_word(module->image);
	uint64_t base = module->address + (uint64_t)(module->functions.at - module->table.at);
	uint64_t inline_pcs, tree;
	bool ok = true;

	if (tables <= PCDATA_INLINE || trees <= FUNCDATA_INLINE ||
	    module->layout->inlining == GO_INLINING_NONE)
		return;
	inline_pcs = number_at(module, module->functions, at + PCDATA_INLINE * 4, 4, &ok);
	at += (uint64_t)tables * 4;
	if (module->layout->is_relative) {
		tree = number_at(module, module->functions, at + FUNCDATA_INLINE * 4, 4, &ok);
		ok &= tree != UINT32_MAX;
	} else { /* pointers, aligned in memory */
		at = (base + at + size - 1) & ~(uint64_t)(size - 1);
		ok &= go_image_pointer(module->image, at + FUNCDATA_INLINE * size, &tree) && tree;
	}
	if (!ok || !inline_pcs)
		return;
	function->inline_pcs = (uint32_t)inline_pcs;
	function->tree = tree;
}

static bool read_function(const struct go_module *module, uint64_t at, struct go_function *function)
{
	struct dwarf_cursor cursor = dwarf_cursor_at(module->functions, at,
						     module->image->is_big_endian);
	uint64_t fixed;
	uint32_t tables;
	uint8_t trees;

	dwarf_skip(&cursor, entry_bytes(module));
	fixed = (uint64_t)(cursor.at - module->functions.at);
	function->name_at = (uint32_t)dwarf_number(&cursor, 4);
	dwarf_skip(&cursor, 12); /* arguments, deferred return, stack */
	function->file_pcs = (uint32_t)dwarf_number(&cursor, 4);
	function->line_pcs = (uint32_t)dwarf_number(&cursor, 4);
	tables = (uint32_t)dwarf_number(&cursor, 4);
	function->unit = module->layout->functions_word ? (uint32_t)dwarf_number(&cursor, 4) : 0;
	if (cursor.failed || module->functions.length - fixed < module->layout->fixed_bytes)
		return false;
	trees = module->functions.at[fixed + module->layout->fixed_bytes - 1];
	function->name = go_module_name(module, function->name_at);
	read_tree(module, function, fixed + module->layout->fixed_bytes, tables, trees);
	return function->name != NULL;
}

bool go_module_function(const struct go_module *module, uint32_t index,
			struct go_function *function)
{
	unsigned size = entry_bytes(module);
	bool ok = true;
	uint64_t at;

	*function = (struct go_function){0};
	at = number_at(module, module->entries, ((uint64_t)index * 2 + 1) * size, size, &ok);
	return ok && read_entry(module, index, &function->start) &&
	       read_entry(module, index + 1, &function->limit) &&
	       function->limit >= function->start &&
	       function->limit - function->start <= UINT32_MAX &&
	       read_function(module, at, function);
}

/* ---- moduledata ---- */

uint64_t go_module_word(const struct go_module *module, unsigned number)
{
	uint64_t value;

	if (!module->data ||
	    !go_image_pointer(module->image,
			      module->data + (uint64_t)number * go_image_word(module->image),
			      &value))
		return 0;
	return value;
}

/* It begins with the table's address, and the names' address and length twice. */
static bool is_data_at(struct go_module *module, uint64_t address)
{
	uint64_t names = module->address + (uint64_t)(module->names.at - module->table.at);

	module->data = address;
	if (go_module_word(module, 0) == module->address &&
	    go_module_word(module, MODULE_NAMES) == names &&
	    go_module_word(module, MODULE_NAMES + 1) == go_module_word(module, MODULE_NAMES + 2))
		return true;
	module->data = 0;
	return false;
}

/* A program's segments do not overlap: no byte is looked at more often than by a few searches. */
static bool may_search(struct go_module *module, const struct go_segment *segment)
{
	if (segment->bytes.length > module->budget)
		return false;
	module->budget -= segment->bytes.length;
	return true;
}

static bool find_data_in(struct go_module *module, const struct go_segment *segment)
{
	unsigned size = go_image_word(module->image);
	size_t at = (size_t)(-segment->address & (size - 1));
	uint8_t want[8];

	for (unsigned i = 0; i < size; i++)
		want[i] = (uint8_t)(module->address >>
				    8 * (module->image->is_big_endian ? size - 1 - i : i));
	for (; at + size <= segment->bytes.length; at += size)
		if (!memcmp(segment->bytes.at + at, want, size) &&
		    is_data_at(module, segment->address + at))
			return true;
	return false;
}

static bool find_data(struct go_module *module)
{
	const struct go_image *image = module->image;

	if (image->module && is_data_at(module, image->module))
		return true;
	for (size_t i = 0; i < image->relocation_count; i++)
		if (image->relocations[i].value == module->address &&
		    is_data_at(module, image->relocations[i].address))
			return true;
	for (unsigned i = 0; i < image->segment_count; i++)
		if (image->segments[i].is_writable && may_search(module, &image->segments[i]) &&
		    find_data_in(module, &image->segments[i]))
			return true;
	return false;
}

/* ---- the text ---- */

static bool is_code(const struct go_image *image, uint64_t start, uint64_t end)
{
	for (unsigned i = 0; i < image->segment_count; i++) {
		const struct go_segment *segment = &image->segments[i];

		if (segment->is_code && start >= segment->address && end >= start &&
		    end - segment->address <= segment->bytes.length)
			return true;
	}
	return false;
}

/* As the runtime checks it when it starts: the first function begins at minpc and the last one ends
 * at maxpc. Where a linker moved text sections apart, they do not. */
static bool is_text(struct go_module *module, uint64_t text, bool has_data)
{
	uint64_t first, last;

	module->text = module->layout->is_relative ? text : 0;
	if (!read_entry(module, 0, &first) || !read_entry(module, module->count, &last) ||
	    !is_code(module->image, first, last))
		return false;
	return !has_data || (first == go_module_word(module, MODULE_TEXT - 2) &&
			     last == go_module_word(module, MODULE_TEXT - 1));
}

/* Without moduledata only a table that says where its text is can be believed, and only one that a
 * section's name says to be it. */
static bool find_text(struct go_module *module, bool is_section)
{
	const struct go_layout *layout = module->layout;
	uint64_t text = 0, at;

	if (layout->magic != 0xfb && find_data(module))
		return is_text(module, go_module_word(module, MODULE_TEXT), true);
	at = module->address + 8 + (uint64_t)layout->text_word * go_image_word(module->image);
	if (layout->is_relative && (!go_image_pointer(module->image, at, &text) || !text))
		return false;
	return is_section && is_text(module, text, false);
}

static bool is_table_at(struct go_module *module, uint64_t address, bool is_section)
{
	const struct go_image *image = module->image;

	*module = (struct go_module){.image = image,
				     .address = address,
				     .budget = module->budget,
				     .table = go_image_at(image, address)};
	return module->table.at && read_header(module) && find_text(module, is_section);
}

/* Some linkers merge it with other data, and not every file keeps its section headers. */
static bool search_table(struct go_module *module, const struct go_segment *segment)
{
	unsigned size = go_image_word(module->image);
	size_t at = (size_t)(-segment->address & (size - 1));

	for (; at + 8 <= segment->bytes.length; at += size) {
		const uint8_t *bytes = segment->bytes.at + at;

		if (bytes[1] == 0xff && bytes[2] == 0xff && !bytes[4] && !bytes[5] &&
		    bytes[7] == size && is_table_at(module, segment->address + at, false))
			return true;
	}
	return false;
}

bool go_module_find(const struct go_image *image, struct go_module *module)
{
	*module = (struct go_module){.image = image, .budget = SEARCHES_MAX * image->file.length};
	if (image->table && is_table_at(module, image->table, true))
		return true;
	for (unsigned i = 0; i < image->segment_count && image->is_go; i++)
		if (may_search(module, &image->segments[i]) &&
		    search_table(module, &image->segments[i]))
			return true;
	return false;
}
