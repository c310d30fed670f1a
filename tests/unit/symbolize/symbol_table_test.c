/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/symbolize/symbol_table.h"

#include <stdlib.h>

#include "common/buffer.h"
#include "common/hash_table.h"
#include "symbol-server/symbolize/convert/table_builder.h"
#include "tests/check.h"

enum { HASH_AT = 8, HASHED_FROM = 16 };

/* main at 0x401000–0x401100 with twice() inlined at 0x401020–0x401040 and inside of it once() at
 * 0x401028–0x401030; asm_start as a symbol with a line at 0x401200; a hole between. */
static struct buffer build(void)
{
	const uint64_t sections[1][2] = {{0x401000, 0x402000}};
	struct table_builder *builder = table_builder_new();
	struct symbol_table table = {.quality = QUALITY_DWARF};
	struct error err = {0};
	struct buffer packed;
	uint32_t file, header, outer, middle, inner;

	buffer_init(&packed, 1 << 20);
	CHECK(table_builder_sections(builder, sections, 1, &err));
	file = table_builder_text(builder, "/src/main.c");
	header = table_builder_text(builder, "/src/twice.h");
	CHECK_NUMBER(table_builder_text(builder, "/src/main.c"), file);
	table_builder_symbol(
		builder, &(struct code_symbol){.address = 0x401200,
					       .size = 0x10,
					       .name = table_builder_text(builder, "asm_start")});
	table_builder_sort_symbols(builder);
	outer = table_builder_node(builder, table_builder_text(builder, "main"), SYMBOL_NONE, 0, 0);
	middle = table_builder_node(builder, table_builder_text(builder, "twice"), outer, file, 12);
	inner = table_builder_node(builder, table_builder_text(builder, "once"), middle, header, 5);

	struct line_row rows[] = {
		{0x401000, file, 10, false},   {0x401020, header, 4, false},
		{0x401028, header, 99, false}, {0x401028, header, 7, false}, /* last wins */
		{0x401030, header, 5, false},  {0x401040, file, 13, false},
		{0x401080, file, 0, false},    {0x401100, 0, 0, true},
		{0x401200, file, 77, false},   {0x401210, 0, 0, true},
	};
	struct code_range ranges[] = {
		{0, 0x50, outer, 0}, /* a tombstone */
		{0x401000, 0x401100, outer, 0},
		{0x401020, 0x401040, middle, 1},
		{0x401028, 0x401030, inner, 2},
	};

	table_builder_function(builder, ranges, 4, rows, 10);
	table_builder_unit_end(builder, NULL, 0, rows, 10);
	table.bases[ADDRESS_ELF].is_known = true;
	table.bases[ADDRESS_KERNEL_TEXT] = (struct symbol_base){true, 0x401000};
	table.load = (struct symbol_base){true, 0x400000};
	CHECK(table_builder_finish(builder, NULL, &table, &err));
	CHECK(symbol_table_pack(&table, &packed, &err));
	table_builder_free(builder);
	return packed;
}

static const char *at(const struct symbol_table *table, enum address_base base, uint64_t address)
{
	static char text[1024];
	struct symbol_frame frames[SYMBOL_CHAIN_MAX];
	unsigned count = symbol_table_lookup(table, base, address, frames);
	size_t length = 0;

	text[0] = '\0';
	for (unsigned i = 0; i < count; i++)
		length += (size_t)snprintf(text + length, sizeof(text) - length, "%s%s %s:%u%s",
					   i ? ", " : "", frames[i].name, frames[i].file,
					   frames[i].line, frames[i].is_inline ? " inline" : "");
	return text;
}

static void lookups(const struct buffer *packed)
{
	struct error err = {0};
	struct symbol_table *table = symbol_table_unpack(packed->bytes, packed->length, 1 << 20,
							 &err);

	CHECK(table);
	if (!table)
		return;
	CHECK_TEXT(at(table, ADDRESS_ELF, 0x401000), "main /src/main.c:10");
	CHECK_TEXT(at(table, ADDRESS_ELF, 0x40101f), "main /src/main.c:10");
	CHECK_TEXT(at(table, ADDRESS_ELF, 0x401020),
		   "twice /src/twice.h:4 inline, main /src/main.c:12");
	CHECK_TEXT(at(table, ADDRESS_ELF, 0x40102f),
		   "once /src/twice.h:7 inline, twice /src/twice.h:5 inline, main /src/main.c:12");
	CHECK_TEXT(at(table, ADDRESS_ELF, 0x401030),
		   "twice /src/twice.h:5 inline, main /src/main.c:12");
	CHECK_TEXT(at(table, ADDRESS_ELF, 0x401040), "main /src/main.c:13");
	CHECK_TEXT(at(table, ADDRESS_ELF, 0x4010ff), "main /src/main.c:0");
	CHECK_TEXT(at(table, ADDRESS_ELF, 0x401100), "");
	CHECK_TEXT(at(table, ADDRESS_ELF, 0x4011ff), "");
	CHECK_TEXT(at(table, ADDRESS_ELF, 0x401200), "asm_start /src/main.c:77");
	CHECK_TEXT(at(table, ADDRESS_ELF, 0x40120f), "asm_start /src/main.c:77");
	CHECK_TEXT(at(table, ADDRESS_ELF, 0x401210), "");
	CHECK_TEXT(at(table, ADDRESS_ELF, 0x400fff), "");
	CHECK_TEXT(at(table, ADDRESS_ELF, 0), "");
	CHECK_TEXT(at(table, ADDRESS_ELF, UINT64_MAX), "");
	CHECK_TEXT(at(table, ADDRESS_ELF, UINT64_C(0x100401000)), "");
	CHECK_TEXT(at(table, ADDRESS_KERNEL_TEXT, 0), "main /src/main.c:10");
	CHECK_TEXT(at(table, ADDRESS_KERNEL_TEXT, 0x200), "asm_start /src/main.c:77");
	CHECK_TEXT(at(table, ADDRESS_MODULE_TEXT, 0), "");
	symbol_table_release(table);
}

static void limits(const struct buffer *packed)
{
	struct error err = {0};

	CHECK(!symbol_table_unpack(packed->bytes, packed->length, 100, &err));
	CHECK_NUMBER(err.kind, ERROR_LIMIT);
	for (size_t length = 0; length < packed->length; length += 7)
		if (symbol_table_unpack(packed->bytes, length, 1 << 20, NULL))
			CHECK(!"a cut table is refused");
	CHECK(!symbol_table_unpack(packed->bytes, packed->length - 1, 1 << 20, NULL));
}

/* With the checksum made right again: what is taken must be safe to look up, whatever it says. */
static void mutations(const struct buffer *packed)
{
	uint8_t *copy = malloc(packed->length);
	unsigned refused = 0, taken = 0, unhashed = 0;

	srand(3);
	for (int round = 0; round < 20000; round++) {
		struct symbol_table *table;
		uint64_t hash;

		memcpy(copy, packed->bytes, packed->length);
		for (int i = 0; i <= round % 3; i++)
			copy[HASHED_FROM + (size_t)rand() % (packed->length - HASHED_FROM)] =
				(uint8_t)rand();
		if (memcmp(copy, packed->bytes, packed->length) != 0) {
			table = symbol_table_unpack(copy, packed->length, 1 << 24, NULL);
			unhashed += table != NULL;
			symbol_table_release(table);
		}
		hash = hash_bytes(copy + HASHED_FROM, packed->length - HASHED_FROM, 0);
		memcpy(copy + HASH_AT, &hash, sizeof(hash));
		table = symbol_table_unpack(copy, packed->length, 1 << 24, NULL);
		refused += !table;
		taken += table != NULL;
		for (uint64_t address = 0x400ff0; table && address < 0x401300; address += 3)
			at(table, ADDRESS_ELF, address);
		symbol_table_release(table);
	}
	free(copy);
	printf("# of 20000 mutations %u refused, %u taken\n", refused, taken);
	CHECK(refused > 10000);
	CHECK_NUMBER(unhashed, 0);
}

static void deep_chains(void)
{
	const uint64_t sections[1][2] = {{0x1000, 0x2000}};
	struct table_builder *builder = table_builder_new();
	struct symbol_table table = {0}, *loaded;
	struct symbol_frame frames[SYMBOL_CHAIN_MAX];
	struct code_range *ranges = calloc(400, sizeof(*ranges));
	uint32_t name, node = SYMBOL_NONE;
	struct buffer packed;

	buffer_init(&packed, 1 << 20);
	table_builder_sections(builder, sections, 1, NULL);
	name = table_builder_text(builder, "f");
	for (uint32_t i = 0; i < 400; i++) {
		node = table_builder_node(builder, name, node, 0, i);
		ranges[i] = (struct code_range){0x1000, 0x1100, node, i, 0};
	}
	table_builder_function(builder, ranges, 400, NULL, 0);
	table.bases[ADDRESS_ELF].is_known = true;
	CHECK(table_builder_finish(builder, NULL, &table, NULL));
	CHECK(symbol_table_pack(&table, &packed, NULL));
	loaded = symbol_table_unpack(packed.bytes, packed.length, 1 << 20, NULL);
	CHECK(loaded);
	CHECK_NUMBER(symbol_table_lookup(loaded, ADDRESS_ELF, 0x1000, frames), SYMBOL_CHAIN_MAX);
	symbol_table_release(loaded);
	table_builder_free(builder);
	buffer_release(&packed);
	free(ranges);
}

static void wide_code(void)
{
	const uint64_t sections[2][2] = {{0x1000, 0x2000}, {0x200000000, 0x200001000}};
	struct table_builder *builder = table_builder_new();
	struct error err = {0};

	CHECK(!table_builder_sections(builder, sections, 2, &err));
	CHECK_TEXT(err.message, "its code is spread over more than 4 GiB");
	table_builder_free(builder);
}

static void extents(const struct buffer *packed)
{
	struct symbol_table *table = symbol_table_unpack(packed->bytes, packed->length, 1 << 20,
							 NULL);
	uint64_t start = 0, end = 0;

	CHECK(symbol_table_extent(table, ADDRESS_ELF, 0x401029, &start, &end));
	CHECK_NUMBER(start, 0x401000);
	CHECK_NUMBER(end, 0x401100);
	CHECK(symbol_table_extent(table, ADDRESS_ELF, 0x40120f, &start, &end));
	CHECK_NUMBER(start, 0x401200);
	CHECK_NUMBER(end, 0x401210);
	CHECK(!symbol_table_extent(table, ADDRESS_ELF, 0x401210, &start, &end));
	CHECK(!symbol_table_extent(table, ADDRESS_ELF, 0x400fff, &start, &end));
	CHECK(!symbol_table_extent(table, ADDRESS_ELF, UINT64_MAX, &start, &end));
	symbol_table_release(table);
}

/* A table as the first format had it: the same columns behind a header without the load base. */
static void older_format(const struct buffer *packed)
{
	enum { FORMAT_AT = 16, KNOWN_AT = 64, LOAD_AT = 160 };
	size_t length = packed->length - sizeof(uint64_t);
	uint8_t *old = malloc(length);
	struct symbol_table *table;
	struct symbol_frame frames[SYMBOL_CHAIN_MAX];
	uint32_t format = 1, known;
	uint64_t hash;

	table = symbol_table_unpack(packed->bytes, packed->length, 1 << 20, NULL);
	CHECK(table->load.is_known && table->load.address == 0x400000);
	symbol_table_release(table);
	memcpy(old, packed->bytes, LOAD_AT);
	memcpy(old + LOAD_AT, packed->bytes + LOAD_AT + 8, length - LOAD_AT);
	memcpy(old + FORMAT_AT, &format, sizeof(format));
	memcpy(&known, old + KNOWN_AT, sizeof(known));
	CHECK_NUMBER(known, 1 | 2 | 8);
	hash = hash_bytes(old + HASHED_FROM, length - HASHED_FROM, 0);
	memcpy(old + HASH_AT, &hash, sizeof(hash));
	table = symbol_table_unpack(old, length, 1 << 20, NULL);
	CHECK(table && !table->load.is_known);
	if (table)
		CHECK_NUMBER(symbol_table_lookup(table, ADDRESS_ELF, 0x401028, frames), 3);
	symbol_table_release(table);
	free(old);
}

/* Two functions over the same code, as COMDAT leaves them: the first one counts, all of it. */
static void same_code_twice(void)
{
	const uint64_t sections[1][2] = {{0x1000, 0x2000}};
	const struct line_row rows[] = {
		{0x1000, 0, 1, false}, {0x1080, 0, 2, false}, {0x1200, 0, 0, true}};
	struct table_builder *builder = table_builder_new();
	struct symbol_table table = {.quality = QUALITY_DWARF}, *loaded;
	uint32_t nodes[3];
	struct code_range first = {0x1000, 0x1100, 0, 0, 0},
			  second[2] = {{0x1000, 0x1140, 0, 0, 0}, {0x1020, 0x1090, 0, 1, 0}};
	struct buffer packed;

	buffer_init(&packed, 1 << 20);
	table_builder_sections(builder, sections, 1, NULL);
	nodes[0] = table_builder_node(builder, table_builder_text(builder, "first"), SYMBOL_NONE, 0,
				      0);
	nodes[1] = table_builder_node(builder, table_builder_text(builder, "second"), SYMBOL_NONE,
				      0, 0);
	nodes[2] = table_builder_node(builder, table_builder_text(builder, "inlined"), nodes[1], 0,
				      9);
	first.node = nodes[0];
	second[0].node = nodes[1];
	second[1].node = nodes[2];
	table_builder_sort_symbols(builder);
	table_builder_function(builder, &first, 1, rows, 3);
	table_builder_function(builder, second, 2, rows, 3);
	table.bases[ADDRESS_ELF].is_known = true;
	CHECK(table_builder_finish(builder, NULL, &table, NULL) &&
	      symbol_table_pack(&table, &packed, NULL));
	loaded = symbol_table_unpack(packed.bytes, packed.length, 1 << 20, NULL);
	CHECK(loaded != NULL);
	for (uint64_t address = 0x1000; loaded && address < 0x1100; address += 0x10)
		CHECK_TEXT(at(loaded, ADDRESS_ELF, address),
			   address < 0x1080 ? "first :1" : "first :2");
	if (loaded)
		CHECK_TEXT(at(loaded, ADDRESS_ELF, 0x1120), "second :2");
	symbol_table_release(loaded);
	buffer_release(&packed);
	table_builder_free(builder);
}

int main(void)
{
	struct buffer packed = build();

	extents(&packed);
	older_format(&packed);

	lookups(&packed);
	limits(&packed);
	mutations(&packed);
	deep_chains();
	wide_code();
	same_code_twice();
	buffer_release(&packed);
	return checks_done();
}
