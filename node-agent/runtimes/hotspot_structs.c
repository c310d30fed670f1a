/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/runtimes/hotspot_structs.h"

#include <stdlib.h>
#include <string.h>

#include "common/array.h"

enum {
	PAGE = 4096,
	PAGES = 256, /* kept of texts: a real machine's lie in 66 at most */
	ENTRY_MAX = 256,
};

struct row {
	uint64_t name, of, value; /* hashes; `of`: of a field's type */
	bool is_static;
	uint8_t bytes;
};

struct hotspot_structs {
	struct row *rows;
	uint32_t count, room, reads;
};

/* --- memory, a page at a time --- */

struct page {
	uint64_t address; /* + 1; 0: none */
	uint8_t bytes[PAGE];
};

struct pages {
	const struct python_memory *memory;
	struct hotspot_structs *structs; /* counts */
	struct page entries, texts[PAGES];
};

static const uint8_t *page_read(struct pages *pages, struct page *page, uint64_t address)
{
	const uint64_t begin = address & ~(uint64_t)(PAGE - 1);

	if (page->address == begin + 1)
		return page->bytes;
	if (pages->structs->reads == HOTSPOT_READS_MAX)
		return NULL;
	pages->structs->reads++;
	page->address = 0;
	if (!pages->memory->read(pages->memory->context, begin, page->bytes, PAGE))
		return NULL;
	page->address = begin + 1;
	return page->bytes;
}

static bool read_bytes(struct pages *pages, uint64_t address, void *to, size_t bytes)
{
	for (size_t done = 0; done < bytes;) {
		const size_t at = (address + done) % PAGE;
		const size_t now = bytes - done < PAGE - at ? bytes - done : PAGE - at;
		const uint8_t *page = page_read(pages, &pages->entries, address + done);

		if (!page)
			return false;
		memcpy((uint8_t *)to + done, page + at, now);
		done += now;
	}
	return true;
}

/* False: it has no end within HOTSPOT_TEXT_MAX bytes, or is not there. */
static bool read_text(struct pages *pages, uint64_t address, char text[HOTSPOT_TEXT_MAX])
{
	for (size_t done = 0; done < HOTSPOT_TEXT_MAX;) {
		const size_t at = (address + done) % PAGE;
		const size_t left = HOTSPOT_TEXT_MAX - done;
		const size_t now = left < PAGE - at ? left : PAGE - at;
		struct page *kept = &pages->texts[(address + done) / PAGE % PAGES];
		const uint8_t *page = page_read(pages, kept, address + done);

		if (!page)
			return false;
		memcpy(text + done, page + at, now);
		if (memchr(page + at, '\0', now))
			return true;
		done += now;
	}
	return false;
}

/* --- rows --- */

enum row_kind { ROW_FIELD, ROW_TYPE, ROW_CONSTANT };

/* FNV-1a, of both with their ends. */
static uint64_t name_of(enum row_kind kind, const char *first, const char *second)
{
	const char *const texts[] = {first, second};
	uint64_t hash = 0xcbf29ce484222325 + kind;

	for (size_t i = 0; i < 2; i++) {
		const char *text = texts[i];

		do
			hash = (hash ^ (uint8_t)*text) * 0x100000001b3;
		while (*text++);
	}
	return hash;
}

static uint8_t bytes_of(const char *type)
{
	static const struct {
		const char *name;
		uint8_t bytes;
	} known[] = {
		{"bool", 1},          {"u1", 1},          {"jbyte", 1},
		{"unsigned char", 1}, {"signed char", 1}, {"u2", 2},
		{"int16_t", 2},       {"uint16_t", 2},    {"unsigned short", 2},
		{"short", 2},         {"int", 4},         {"jint", 4},
		{"uint", 4},          {"juint", 4},       {"uint32_t", 4},
		{"unsigned int", 4},  {"u4", 4},          {"pid_t", 4},
		{"address", 8},       {"size_t", 8},      {"intptr_t", 8},
		{"uint64_t", 8},      {"oop", 8},         {"OopHandle", 8},
		{"AccessFlags", 4},   {"long", 8},        {"uintptr_t", 8},
	};
	const size_t length = strlen(type);

	if (length && type[length - 1] == '*')
		return 8;
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (!strcmp(type, known[i].name))
			return known[i].bytes;
	return 0;
}

/* --- tables --- */

struct table {
	enum row_kind kind;
	uint8_t pointer, stride, name, second, of, value, address, is_static; /* hotspot_symbol */
	bool is_int;
};

enum { ABSENT = 0xff };

static const struct table tables[] = {
	{.kind = ROW_FIELD,
	 .pointer = HOTSPOT_SYMBOL_STRUCTS,
	 .stride = HOTSPOT_SYMBOL_STRUCT_STRIDE,
	 .name = HOTSPOT_SYMBOL_STRUCT_TYPE,
	 .second = HOTSPOT_SYMBOL_STRUCT_FIELD,
	 .of = HOTSPOT_SYMBOL_STRUCT_OF,
	 .value = HOTSPOT_SYMBOL_STRUCT_OFFSET,
	 .address = HOTSPOT_SYMBOL_STRUCT_ADDRESS,
	 .is_static = HOTSPOT_SYMBOL_STRUCT_IS_STATIC},
	{.kind = ROW_TYPE,
	 .pointer = HOTSPOT_SYMBOL_TYPES,
	 .stride = HOTSPOT_SYMBOL_TYPE_STRIDE,
	 .name = HOTSPOT_SYMBOL_TYPE_NAME,
	 .second = ABSENT,
	 .of = ABSENT,
	 .value = HOTSPOT_SYMBOL_TYPE_SIZE,
	 .address = ABSENT,
	 .is_static = ABSENT},
	{.kind = ROW_CONSTANT,
	 .pointer = HOTSPOT_SYMBOL_INTS,
	 .stride = HOTSPOT_SYMBOL_INT_STRIDE,
	 .name = HOTSPOT_SYMBOL_INT_NAME,
	 .second = ABSENT,
	 .of = ABSENT,
	 .value = HOTSPOT_SYMBOL_INT_VALUE,
	 .address = ABSENT,
	 .is_static = ABSENT,
	 .is_int = true},
	{.kind = ROW_CONSTANT,
	 .pointer = HOTSPOT_SYMBOL_LONGS,
	 .stride = HOTSPOT_SYMBOL_LONG_STRIDE,
	 .name = HOTSPOT_SYMBOL_LONG_NAME,
	 .second = ABSENT,
	 .of = ABSENT,
	 .value = HOTSPOT_SYMBOL_LONG_VALUE,
	 .address = ABSENT,
	 .is_static = ABSENT},
};

struct reading {
	struct pages *pages;
	uint64_t values[HOTSPOT_SYMBOL_COUNT]; /* of the variables */
	uint8_t entry[ENTRY_MAX];
};

static uint64_t word_of(const struct reading *reading, uint8_t symbol, size_t bytes)
{
	uint64_t word = 0;

	memcpy(&word, reading->entry + reading->values[symbol], bytes);
	return word;
}

/* A text that the entry leads to; "" where it has none. */
static bool text_of(struct reading *reading, uint8_t symbol, char text[HOTSPOT_TEXT_MAX])
{
	const uint64_t at = symbol == ABSENT ? 0 : word_of(reading, symbol, 8);

	*text = '\0';
	return !at || read_text(reading->pages, at, text);
}

static bool take_row(struct reading *reading, const struct table *table)
{
	struct hotspot_structs *structs = reading->pages->structs;
	char name[HOTSPOT_TEXT_MAX], second[HOTSPOT_TEXT_MAX], of[HOTSPOT_TEXT_MAX];
	struct row row = {0};

	if (!text_of(reading, table->name, name) || !text_of(reading, table->second, second) ||
	    !text_of(reading, table->of, of) || structs->count == HOTSPOT_ROWS_MAX ||
	    !ARRAY_GROW(structs->rows, structs->count, structs->room))
		return false;
	row.name = name_of(table->kind, name, second);
	row.of = name_of(ROW_TYPE, of, "");
	row.bytes = bytes_of(of);
	row.is_static = table->is_static != ABSENT && word_of(reading, table->is_static, 4);
	row.value = word_of(reading, row.is_static ? table->address : table->value,
			    table->is_int ? 4 : 8);
	if (table->is_int)
		row.value = (uint64_t)(int64_t)(int32_t)row.value;
	structs->rows[structs->count++] = row;
	return true;
}

/* The offsets lie within the entry, which is no longer than what is read of it. */
static bool is_sound(const struct reading *reading, const struct table *table)
{
	const uint8_t words[] = {table->name,  table->second,  table->of,
				 table->value, table->address, table->is_static};
	const uint64_t stride = reading->values[table->stride];

	if (stride < 8 || stride > ENTRY_MAX || !reading->values[table->pointer])
		return false;
	for (size_t i = 0; i < sizeof words; i++)
		if (words[i] != ABSENT && reading->values[words[i]] > stride - 8)
			return false;
	return true;
}

/* A row without a name is the end. */
static bool read_table(struct reading *reading, const struct table *table)
{
	const uint64_t stride = reading->values[table->stride];

	if (!is_sound(reading, table))
		return false;
	for (uint64_t at = reading->values[table->pointer];; at += stride) {
		if (!read_bytes(reading->pages, at, reading->entry, stride))
			return false;
		if (!word_of(reading, table->name, 8))
			return true;
		if (!take_row(reading, table))
			return false;
	}
}

static bool read_all(struct pages *pages, const struct runtime_symbols *symbols, uint64_t base)
{
	struct reading reading = {.pages = pages};

	for (size_t i = 0; i < HOTSPOT_SYMBOL_COUNT; i++)
		if (!read_bytes(pages, base + symbols->hotspot[i], &reading.values[i],
				sizeof reading.values[i]))
			return false;
	for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
		if (!read_table(&reading, &tables[i]))
			return false;
	return true;
}

struct hotspot_structs *hotspot_structs_read(const struct python_memory *memory,
					     const struct runtime_symbols *symbols, uint64_t base,
					     struct error *err)
{
	struct hotspot_structs *structs = calloc(1, sizeof *structs);
	struct pages *pages = calloc(1, sizeof *pages);
	bool ok = false;

	if (structs && pages) {
		pages->memory = memory;
		pages->structs = structs;
		ok = read_all(pages, symbols, base);
		if (!ok)
			error_set(err, ERROR_FORMAT, "its tables are not there, or make no sense");
	} else {
		error_no_memory(err);
	}
	free(pages);
	if (ok)
		return structs;
	hotspot_structs_free(structs);
	return NULL;
}

void hotspot_structs_free(struct hotspot_structs *structs)
{
	if (!structs)
		return;
	free(structs->rows);
	free(structs);
}

/* --- looking up --- */

static const struct row *row_find(const struct hotspot_structs *structs, uint64_t name)
{
	for (uint32_t i = 0; i < structs->count; i++)
		if (structs->rows[i].name == name)
			return &structs->rows[i];
	return NULL;
}

bool hotspot_structs_field(const struct hotspot_structs *structs, const char *type,
			   const char *field, struct hotspot_field *out)
{
	const struct row *row = row_find(structs, name_of(ROW_FIELD, type, field));

	if (!row)
		return false;
	*out = (struct hotspot_field){row->is_static, row->value, row->bytes};
	return true;
}

bool hotspot_structs_is_type(const struct hotspot_structs *structs, const char *type,
			     const char *field, const char *of)
{
	const struct row *row = row_find(structs, name_of(ROW_FIELD, type, field));

	return row && row->of == name_of(ROW_TYPE, of, "");
}

bool hotspot_structs_size(const struct hotspot_structs *structs, const char *type, uint64_t *bytes)
{
	const struct row *row = row_find(structs, name_of(ROW_TYPE, type, ""));

	if (row)
		*bytes = row->value;
	return row;
}

bool hotspot_structs_constant(const struct hotspot_structs *structs, const char *name,
			      int64_t *value)
{
	const struct row *row = row_find(structs, name_of(ROW_CONSTANT, name, ""));

	if (row)
		*value = (int64_t)row->value;
	return row;
}

uint32_t hotspot_structs_rows(const struct hotspot_structs *structs)
{
	return structs->count;
}

uint32_t hotspot_structs_reads(const struct hotspot_structs *structs)
{
	return structs->reads;
}
