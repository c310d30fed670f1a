/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/symbolize/convert/table_builder.h"

#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "symbol-server/symbolize/convert/table_builder_state.h"
#include "symbol-server/symbolize/symbol_table.h"

struct table_builder *table_builder_new(void)
{
	struct table_builder *builder = calloc(1, sizeof(*builder));

	if (!builder)
		return NULL;
	buffer_init(&builder->texts, TEXTS_BYTES_MAX);
	buffer_append_char(&builder->texts, '\0');
	hash_table_init(&builder->text_table, ROWS_MAX);
	hash_table_init(&builder->node_table, ROWS_MAX);
	hash_table_init(&builder->location_table, ROWS_MAX);
	return builder;
}

void table_builder_free(struct table_builder *builder)
{
	if (!builder)
		return;
	buffer_release(&builder->texts);
	hash_table_release(&builder->text_table);
	hash_table_release(&builder->node_table);
	hash_table_release(&builder->location_table);
	free(builder->nodes.at);
	free(builder->locations.at);
	free(builder->pieces.at);
	free(builder->leftovers.at);
	free(builder->symbols.at);
	free(builder->covered.at);
	free(builder->starts.at);
	free(builder->range_locations.at);
	free(builder);
}

void *table_rows_add(struct table_builder *builder, struct rows *rows, size_t size)
{
	builder->is_cut |= rows->count >= ROWS_MAX;
	if (rows->count >= ROWS_MAX)
		return NULL;
	if (rows->count == rows->room &&
	    !array_grow(NULL, &rows->at, size, rows->count + 1, &rows->room, UINT32_MAX)) {
		builder->no_memory = true;
		return NULL;
	}
	return (uint8_t *)rows->at + rows->count++ * size;
}

/* ---- where there is code ---- */

static int compare_sections(const void *left, const void *right)
{
	const struct code_section *a = left, *b = right;

	return a->start < b->start ? -1 : a->start > b->start;
}

bool table_builder_sections(struct table_builder *builder, const uint64_t (*sections)[2],
			    size_t count, struct error *err)
{
	struct code_section *to = builder->sections;
	uint32_t kept = 0;

	if (count > SECTIONS_MAX)
		return error_set(err, ERROR_LIMIT, "more than %d sections with code", SECTIONS_MAX);
	for (size_t i = 0; i < count; i++)
		if (sections[i][1] > sections[i][0])
			to[kept++] = (struct code_section){sections[i][0], sections[i][1]};
	if (!kept)
		return error_set(err, ERROR_NOT_FOUND, "it has no section with code");
	qsort(to, kept, sizeof(*to), compare_sections);
	builder->section_count = 1;
	for (uint32_t i = 1; i < kept; i++) { /* overlapping ones become one */
		struct code_section *last = &to[builder->section_count - 1];

		if (to[i].start >= last->end)
			to[builder->section_count++] = to[i];
		else if (to[i].end > last->end)
			last->end = to[i].end;
	}
	builder->first = to[0].start;
	if (to[builder->section_count - 1].end - builder->first >= SYMBOL_NONE)
		return error_set(err, ERROR_LIMIT, "its code is spread over more than 4 GiB");
	return true;
}

/* Cuts [low, high) to the section low is in. False: it is in none, or empty. */
static bool clip(const struct table_builder *builder, uint64_t low, uint64_t *high)
{
	const struct code_section *section = code_section_find(builder->sections,
							       builder->section_count, low);

	if (!section)
		return false;
	if (*high > section->end)
		*high = section->end;
	return *high > low;
}

/* ---- texts, nodes, locations: equal ones are one ---- */

uint32_t table_builder_text(struct table_builder *builder, const char *text)
{
	size_t length = text ? strnlen(text, TEXT_MAX) : 0;
	uint64_t hash = hash_bytes(text, length, 0);
	uint32_t offset = (uint32_t)builder->texts.length;

	if (!length)
		return 0;
	HASH_TABLE_EACH(i, &builder->text_table, hash) {
		const char *known = (const char *)builder->texts.bytes + i;

		if (!strncmp(known, text, length) && !known[length])
			return i;
	}
	buffer_append(&builder->texts, text, length);
	buffer_append_char(&builder->texts, '\0');
	if (builder->texts.failed || !hash_table_add(&builder->text_table, hash, offset)) {
		builder->no_memory = true;
		return 0;
	}
	return offset;
}

const char *table_builder_text_at(const struct table_builder *builder, uint32_t text)
{
	return (const char *)builder->texts.bytes + text;
}

static uint32_t depth_of(const struct symbol_node *nodes, uint32_t node)
{
	uint32_t depth = 0;

	for (; node != SYMBOL_NONE; node = nodes[node].parent)
		depth++;
	return depth;
}

uint32_t table_builder_node(struct table_builder *builder, uint32_t name, uint32_t parent,
			    uint32_t call_file, uint32_t call_line)
{
	struct symbol_node node = {name, parent, call_file, call_line}, *nodes, *added;
	uint64_t hash = hash_bytes(&node, sizeof(node), 0);

	nodes = builder->nodes.at;
	HASH_TABLE_EACH(i, &builder->node_table, hash)
		if (!memcmp(&nodes[i], &node, sizeof(node)))
			return i;
	if (depth_of(nodes, parent) >= SYMBOL_CHAIN_MAX)
		return parent;
	added = table_rows_add(builder, &builder->nodes, sizeof(*added));
	if (!added || !hash_table_add(&builder->node_table, hash, builder->nodes.count - 1)) {
		builder->no_memory |= !builder->is_cut;
		return parent;
	}
	*added = node;
	return builder->nodes.count - 1;
}

uint32_t table_builder_location(struct table_builder *builder, uint32_t node, uint32_t file,
				uint32_t line)
{
	struct symbol_location row = {node, file, line}, *rows = builder->locations.at, *added;
	uint64_t hash = hash_word((uint64_t)node << 32 | file, line);

	HASH_TABLE_EACH(i, &builder->location_table, hash)
		if (!memcmp(&rows[i], &row, sizeof(row)))
			return i;
	added = table_rows_add(builder, &builder->locations, sizeof(*added));
	if (!added ||
	    !hash_table_add(&builder->location_table, hash, builder->locations.count - 1)) {
		builder->no_memory |= !builder->is_cut;
		return SYMBOL_NONE;
	}
	*added = row;
	return builder->locations.count - 1;
}

/* ---- symbols ---- */

void table_builder_symbol(struct table_builder *builder, const struct code_symbol *symbol)
{
	struct code_symbol *added;

	if (!code_section_find(builder->sections, builder->section_count, symbol->address))
		return;
	added = table_rows_add(builder, &builder->symbols, sizeof(*added));
	if (added)
		*added = *symbol;
}

void table_builder_sort_symbols(struct table_builder *builder)
{
	builder->symbols.count = (uint32_t)code_symbols_sort(
		builder->symbols.at, builder->symbols.count, (const char *)builder->texts.bytes);
}

uint32_t table_builder_symbol_at(const struct table_builder *builder, uint64_t address)
{
	const struct code_symbol *symbols = builder->symbols.at;
	uint32_t low = 0, high = builder->symbols.count;

	while (low < high) { /* the first one at or after the address */
		uint32_t middle = low + (high - low) / 2;

		if (symbols[middle].address < address)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < builder->symbols.count && symbols[low].address == address; low++)
		if (symbols[low].is_function)
			return symbols[low].name;
	return 0;
}

/* ---- functions ---- */

static int compare_ranges(const void *left, const void *right)
{
	const struct code_range *a = left, *b = right;

	if (a->low != b->low)
		return a->low < b->low ? -1 : 1;
	return a->order < b->order ? -1 : a->order > b->order;
}

/* First row behind the address. */
static size_t rows_after(const struct line_row *rows, size_t count, uint64_t address)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (rows[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct flatten {
	struct table_builder *builder;
	struct {
		uint64_t high;
		uint32_t node, depth, order;
	} open[OPEN_MAX]; /* by order: the last one counts */
	unsigned depth;
	const struct line_row *rows;
	size_t row_count, next_row; /* the first row behind the position */
};

static void flatten_open(struct flatten *state, const struct code_range *range, uint64_t at)
{
	uint64_t high = range->high;
	unsigned place = state->depth;

	while (place && state->open[place - 1].order > range->order)
		place--;
	/* What sticks out of the function it is inlined into is cut, out of a sibling it is not. */
	for (unsigned i = place; i-- > 0;)
		if (state->open[i].depth < range->depth) {
			if (high > state->open[i].high)
				high = state->open[i].high;
			break;
		}
	if (high <= at || state->depth == OPEN_MAX)
		return;
	memmove(&state->open[place + 1], &state->open[place],
		(state->depth++ - place) * sizeof(*state->open));
	state->open[place].high = high;
	state->open[place].node = range->node;
	state->open[place].depth = range->depth;
	state->open[place].order = range->order;
}

static void flatten_piece(struct flatten *state, uint64_t low, uint64_t high)
{
	const struct line_row *row = state->next_row ? &state->rows[state->next_row - 1] : NULL;
	struct table_builder *builder = state->builder;
	struct piece *last = builder->pieces.at, *piece;
	bool has_line = row && !row->is_end;
	uint32_t at = (uint32_t)(low - builder->first);
	uint32_t where = table_builder_location(builder, state->open[state->depth - 1].node,
						has_line ? row->file : 0, has_line ? row->line : 0);

	last = builder->pieces.count ? last + builder->pieces.count - 1 : NULL;
	if (last && last->high == at && last->location == where) {
		last->high = (uint32_t)(high - builder->first);
		return;
	}
	piece = table_rows_add(builder, &builder->pieces, sizeof(*piece));
	if (piece && where != SYMBOL_NONE)
		*piece = (struct piece){at, (uint32_t)(high - builder->first), where,
					builder->function_count};
	else if (piece)
		builder->pieces.count--;
}

static void cover_span(struct table_builder *builder, uint32_t low, uint32_t high)
{
	struct address_range *last = builder->covered.at, *added;

	if (low >= high)
		return;
	if (builder->covered.count && last[builder->covered.count - 1].high == low) {
		last[builder->covered.count - 1].high = high;
		return;
	}
	added = table_rows_add(builder, &builder->covered, sizeof(*added));
	if (added)
		*added = (struct address_range){low, high};
}

static size_t clip_ranges(const struct table_builder *builder, struct code_range *ranges,
			  size_t count)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++) {
		struct code_range range = ranges[i];

		if (!clip(builder, range.low, &range.high))
			continue;
		range.order = (uint32_t)i;
		ranges[kept++] = range;
	}
	return kept;
}

void table_builder_function(struct table_builder *builder, struct code_range *ranges, size_t count,
			    const struct line_row *rows, size_t row_count)
{
	struct flatten state = {.builder = builder, .rows = rows, .row_count = row_count};
	uint64_t at;
	size_t i = 0;

	count = clip_ranges(builder, ranges, count);
	if (!count)
		return;
	if (count > 1)
		qsort(ranges, count, sizeof(*ranges), compare_ranges);
	builder->function_count++;
	at = ranges[0].low;
	state.next_row = rows_after(rows, row_count, at);
	for (;;) {
		uint64_t next;

		while (state.depth && state.open[state.depth - 1].high <= at)
			state.depth--;
		for (; i < count && ranges[i].low <= at; i++)
			flatten_open(&state, &ranges[i], at);
		if (!state.depth) {
			if (i == count)
				return;
			at = ranges[i].low;
			continue;
		}
		while (state.next_row < row_count && rows[state.next_row].address <= at)
			state.next_row++;
		next = state.open[state.depth - 1].high;
		if (i < count && ranges[i].low < next)
			next = ranges[i].low;
		if (state.next_row < row_count && rows[state.next_row].address < next)
			next = rows[state.next_row].address;
		flatten_piece(&state, at, next);
		cover_span(builder, (uint32_t)(at - builder->first),
			   (uint32_t)(next - builder->first));
		at = next;
	}
}

static int compare_spans(const void *left, const void *right)
{
	const struct address_range *a = left, *b = right;

	return a->low < b->low ? -1 : a->low > b->low;
}

static void add_leftover(struct table_builder *builder, uint32_t low, uint32_t high,
			 const struct line_row *row)
{
	struct leftover *last = builder->leftovers.at, *added;

	last = builder->leftovers.count ? last + builder->leftovers.count - 1 : NULL;
	if (last && last->high == low && last->file == row->file && last->line == row->line) {
		last->high = high;
		return;
	}
	added = table_rows_add(builder, &builder->leftovers, sizeof(*added));
	if (added)
		*added = (struct leftover){low, high, row->file, row->line};
}

/* What of one row's addresses no function covers. next: the first span that ends behind low. */
static void leave_row(struct table_builder *builder, const struct line_row *row, uint32_t low,
		      uint32_t high, uint32_t *next)
{
	const struct address_range *spans = builder->covered.at;

	while (*next < builder->covered.count && spans[*next].high <= low)
		++*next;
	for (uint32_t i = *next; low < high && i < builder->covered.count; i++) {
		if (spans[i].low >= high)
			break;
		if (spans[i].low > low)
			add_leftover(builder, low, spans[i].low, row);
		if (spans[i].high > low)
			low = spans[i].high;
	}
	if (low < high)
		add_leftover(builder, low, high, row);
}

/* What is not the unit's code counts as covered. A row of no length before the end of a sequence
 * looks, sorted, as if it lasted until the next sequence. */
static void cover_foreign_code(struct table_builder *builder, struct code_range *code, size_t count)
{
	uint32_t at = 0;

	count = clip_ranges(builder, code, count);
	if (!count)
		return;
	qsort(code, count, sizeof(*code), compare_ranges);
	for (size_t i = 0; i < count; i++) {
		uint32_t high = (uint32_t)(code[i].high - builder->first);

		cover_span(builder, at, (uint32_t)(code[i].low - builder->first));
		at = high > at ? high : at;
	}
	cover_span(builder, at, UINT32_MAX);
}

void table_builder_unit_end(struct table_builder *builder, struct code_range *code,
			    size_t code_count, const struct line_row *rows, size_t count)
{
	uint32_t next = 0;

	cover_foreign_code(builder, code, code_count);
	if (builder->covered.count)
		qsort(builder->covered.at, builder->covered.count, sizeof(struct address_range),
		      compare_spans);
	for (size_t i = 0; i + 1 < count; i++) {
		uint64_t high = rows[i + 1].address;

		if (!rows[i].is_end && clip(builder, rows[i].address, &high))
			leave_row(builder, &rows[i], (uint32_t)(rows[i].address - builder->first),
				  (uint32_t)(high - builder->first), &next);
	}
	builder->covered.count = 0;
}

bool table_builder_has_functions(const struct table_builder *builder)
{
	return builder->pieces.count > 0;
}

bool table_builder_has_function_at(const struct table_builder *builder, uint64_t address)
{
	const struct piece *pieces = builder->pieces.at;
	uint64_t at = address - builder->first;

	for (uint32_t i = 0; i < builder->pieces.count; i++)
		if (at >= pieces[i].low && at < pieces[i].high)
			return true;
	return false;
}

bool table_builder_is_cut(const struct table_builder *builder)
{
	return builder->is_cut;
}
