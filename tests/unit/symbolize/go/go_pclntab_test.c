/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/symbolize/go/go_pclntab.h"

#include <elf.h>

#include "symbol-server/symbolize/symbol_table.h"
#include "tests/check.h"

/* An ELF file without section headers: code, then data with a table written by hand as Go 1.18,
 * 1.20, 1.26 and 1.27 lay it out, and the runtime's moduledata that points to it.
 *
 *   main.outer  0x401000–0x401030   line 10; 0x10–0x20 is main.middle (line 20) and in it, up to
 *                                   0x18, main.leaf (line 30)
 *   main.last   0x401040–0x401048   line 40 */
enum {
	CODE = 0x1000,
	TABLE = 0x2000,
	MODULE = 0x3000,
	TREES = 0x3400,
	LENGTH = 0x4000,
	BASE = 0x400000,
	NAMES_AT = 0x80,
	UNITS_AT = 0xc0,
	FILES_AT = 0xd0,
	PCS_AT = 0x100,
	FUNCTIONS_AT = 0x180,
};

struct written {
	uint8_t bytes[LENGTH];
	bool is_64, is_big_endian;
	uint8_t magic;
	unsigned trees_word; /* of moduledata */
};

static void put(struct written *file, size_t at, unsigned size, uint64_t value)
{
	for (unsigned i = 0; i < size; i++)
		file->bytes[at + (file->is_big_endian ? size - 1 - i : i)] = (uint8_t)(value >>
										       8 * i);
}

static unsigned word(const struct written *file)
{
	return file->is_64 ? 8 : 4;
}

static void put_segment(struct written *file, unsigned number, uint32_t type, uint32_t flags,
			size_t offset, size_t size)
{
	size_t at = file->is_64 ? 64 + number * 56 : 52 + number * 32;

	put(file, at, 4, type);
	if (file->is_64)
		put(file, at + 4, 4, flags);
	at += file->is_64 ? 8 : 4;
	put(file, at, word(file), offset);
	put(file, at + word(file), word(file), BASE + offset);
	put(file, at + 3 * word(file), word(file), size);
	put(file, at + 4 * word(file), word(file), size);
	if (!file->is_64)
		put(file, at + 5 * word(file), 4, flags);
}

static void put_headers(struct written *file)
{
	static const uint8_t note[] = "Go\0";

	memcpy(file->bytes, ELFMAG, SELFMAG);
	file->bytes[EI_CLASS] = file->is_64 ? ELFCLASS64 : ELFCLASS32;
	file->bytes[EI_DATA] = file->is_big_endian ? ELFDATA2MSB : ELFDATA2LSB;
	put(file, 16, 2, ET_EXEC);
	put(file, 18, 2, EM_X86_64);
	put(file, file->is_64 ? 32 : 28, word(file), file->is_64 ? 64 : 52);
	put(file, file->is_64 ? 54 : 42, 2, file->is_64 ? 56 : 32);
	put(file, file->is_64 ? 56 : 44, 2, 3);
	put_segment(file, 0, PT_LOAD, PF_R | PF_X, CODE, 0x1000);
	put_segment(file, 1, PT_LOAD, PF_R | PF_W, TABLE, LENGTH - TABLE);
	put_segment(file, 2, PT_NOTE, PF_R, 0x200, 20);
	put(file, 0x200, 4, 4);
	put(file, 0x204, 4, 4);
	put(file, 0x208, 4, 4);
	memcpy(file->bytes + 0x20c, note, sizeof(note));
}

static void put_table(struct written *file)
{
	static const char names[] = "main.outer\0main.middle\0main.leaf\0main.last";
	static const uint8_t pcs[] = {
		0,                                   /* offset 0: no table */
		2,  0x30, 0,                         /* 1: file 0 */
		22, 0x10, 40, 8, 19, 8, 39, 0x10, 0, /* 4: lines 10, 30, 20, 0 … see below */
		0,  0x10, 4,  8, 1,  8, 1,  0x10, 0, /* 13: calls -1, 1, 0, -1 */
		82, 8,    0,                         /* 22: line 40 */
		2,  8,    0,                         /* 25: file 0 */
	};
	unsigned size = word(file);
	const uint64_t parts[] = {2, 1, 0, NAMES_AT, UNITS_AT, FILES_AT, PCS_AT, FUNCTIONS_AT};

	put(file, TABLE, 4, 0xffffff00u | file->magic);
	file->bytes[TABLE + 6] = 1;
	file->bytes[TABLE + 7] = (uint8_t)size;
	for (unsigned i = 0; i < 8; i++)
		put(file, TABLE + 8 + i * size, size, parts[i]);
	memcpy(file->bytes + TABLE + NAMES_AT, names, sizeof(names));
	put(file, TABLE + UNITS_AT, 4, 0);
	memcpy(file->bytes + TABLE + FILES_AT, "/src/main.go", 13);
	memcpy(file->bytes + TABLE + PCS_AT, pcs, sizeof(pcs));
}

static void put_function(struct written *file, unsigned number, uint32_t start, uint32_t name,
			 uint32_t file_pcs, uint32_t line_pcs, bool has_tree)
{
	unsigned fixed = file->magic == 0xf1 ? 44 : 40;
	size_t entry = TABLE + FUNCTIONS_AT + number * 8u, at = 0x40 + number * 0x50;

	put(file, entry, 4, start);
	put(file, entry + 4, 4, at);
	at += TABLE + FUNCTIONS_AT;
	put(file, at, 4, start);
	put(file, at + 4, 4, name);
	put(file, at + 20, 4, file_pcs);
	put(file, at + 24, 4, line_pcs);
	put(file, at + 28, 4, has_tree ? 3 : 0);
	file->bytes[at + fixed - 1] = has_tree ? 4 : 0;
	put(file, at + fixed + 8, 4, has_tree ? 13 : 0);
	put(file, at + fixed + 24, 4, has_tree ? 0x20 : 0);
}

/* A call in the tree: who, and an instruction that stands where the call does. */
static void put_call(struct written *file, unsigned number, uint32_t name, uint32_t parent_pc)
{
	bool is_new = file->magic == 0xf1;
	size_t at = TREES + 0x20 + number * (is_new ? 16u : 20u);

	put(file, at + (is_new ? 4 : 12), 4, name);
	put(file, at + (is_new ? 8 : 16), 4, parent_pc);
}

static void put_module(struct written *file)
{
	unsigned size = word(file);
	const uint64_t words[] = {BASE + TABLE, BASE + TABLE + NAMES_AT, 0x40, 0x40};

	for (unsigned i = 0; i < 4; i++)
		put(file, MODULE + i * size, size, words[i]);
	put(file, MODULE + 20 * size, size, BASE + CODE);
	put(file, MODULE + 21 * size, size, BASE + CODE + 0x48);
	put(file, MODULE + 22 * size, size, BASE + CODE);
	put(file, MODULE + file->trees_word * size, size, BASE + TREES);
}

static void write_file(struct written *file)
{
	memset(file->bytes, 0, sizeof(file->bytes));
	put_headers(file);
	put_table(file);
	put_function(file, 0, 0, 0, 1, 4, true);
	put_function(file, 1, 0x40, 33, 25, 22, false);
	put(file, TABLE + FUNCTIONS_AT + 16, 4, 0x48);
	put_call(file, 0, 11, 4);    /* main.middle, called where the code at 4 is: line 10 */
	put_call(file, 1, 23, 0x19); /* main.leaf, called where the code at 0x19 is: line 20 */
	put_module(file);
}

/* "function:line;…" of the address, innermost first. */
static const char *names_at(const struct written *file, uint64_t address, uint32_t *flags)
{
	static const uint64_t code[1][2] = {{BASE + CODE, BASE + CODE + 0x1000}};
	static char text[256];
	struct table_builder *builder = table_builder_new();
	struct symbol_table table = {.quality = QUALITY_PCLNTAB}, *loaded = NULL;
	struct symbol_frame frames[SYMBOL_CHAIN_MAX];
	struct buffer packed;
	size_t used = 0;

	*flags = 0;
	*text = 0;
	buffer_init(&packed, 1 << 20);
	table.bases[ADDRESS_ELF].is_known = true;
	if (!table_builder_sections(builder, code, 1, NULL) ||
	    !go_pclntab_read(file->bytes, sizeof(file->bytes), builder, flags)) {
		strcpy(text, "no table");
	} else if (table_builder_finish(builder, NULL, &table, NULL) &&
		   symbol_table_pack(&table, &packed, NULL)) {
		loaded = symbol_table_unpack(packed.bytes, packed.length, 1 << 20, NULL);
		for (unsigned i = 0,
			      count = symbol_table_lookup(loaded, ADDRESS_ELF, address, frames);
		     i < count; i++)
			used += (size_t)snprintf(text + used, sizeof(text) - used, "%s:%u;",
						 frames[i].name, frames[i].line);
		symbol_table_release(loaded);
	}
	buffer_release(&packed);
	table_builder_free(builder);
	return text;
}

static struct written file = {.is_64 = true, .magic = 0xf1, .trees_word = 40};

static void check_names(void)
{
	uint32_t flags;

	write_file(&file);
	CHECK_TEXT(names_at(&file, BASE + CODE, &flags), "main.outer:10;");
	CHECK_NUMBER(flags, 0);
	CHECK_TEXT(names_at(&file, BASE + CODE + 0x10, &flags),
		   "main.leaf:30;main.middle:20;main.outer:10;");
	CHECK_TEXT(names_at(&file, BASE + CODE + 0x18, &flags), "main.middle:20;main.outer:10;");
	CHECK_TEXT(names_at(&file, BASE + CODE + 0x20, &flags), "main.outer:0;");
	CHECK_TEXT(names_at(&file, BASE + CODE + 0x30, &flags), ""); /* padding */
	CHECK_TEXT(names_at(&file, BASE + CODE + 0x47, &flags), "main.last:40;");
	CHECK_TEXT(names_at(&file, BASE + CODE + 0x48, &flags), "");
}

static void every_layout(void)
{
	static const struct {
		uint8_t magic;
		unsigned trees_word;
	} versions[] = {{0xf0, 38}, {0xf1, 40}, {0xf1, 43}, {0xf1, 50}};

	for (unsigned i = 0; i < 16; i++) {
		file.is_64 = i & 1;
		file.is_big_endian = i & 2;
		file.magic = versions[i / 4].magic;
		file.trees_word = versions[i / 4].trees_word;
		check_names();
	}
	file = (struct written){.is_64 = true, .magic = 0xf1, .trees_word = 40};
}

/* What follows the damage is "" where nothing of the table can be believed. */
static void damaged(size_t at, unsigned size, uint64_t value, const char *want, uint32_t want_flags)
{
	uint32_t flags;

	write_file(&file);
	put(&file, at, size, value);
	CHECK_TEXT(names_at(&file, BASE + CODE + 0x10, &flags), want);
	CHECK_NUMBER(flags, want_flags);
}

static void damage(void)
{
	const size_t calls = TREES + 0x20, first = TABLE + FUNCTIONS_AT + 0x40;

	/* trees that cannot be: no inlined calls, and said to be missing */
	damaged(calls + 8, 4, 0x10, "main.outer:30;", SYMBOL_TABLE_NO_INLINES);  /* in its callee */
	damaged(calls + 24, 4, 0x10, "main.outer:30;", SYMBOL_TABLE_NO_INLINES); /* in itself */
	damaged(calls + 24, 4, 0x7fffffff, "main.outer:30;", SYMBOL_TABLE_NO_INLINES);
	damaged(calls + 20, 4, 24, "main.outer:30;", SYMBOL_TABLE_NO_INLINES); /* amid a name */
	damaged(MODULE + 40 * 8, 8, 0, "main.outer:30;", SYMBOL_TABLE_NO_INLINES);
	damaged(MODULE + 40 * 8, 8, BASE + TABLE, "main.outer:30;", SYMBOL_TABLE_NO_INLINES);
	damaged(MODULE + 40 * 8, 8, BASE + 0x3800, "main.outer:30;",
		SYMBOL_TABLE_NO_INLINES); /* zeros */
	/* one function */
	damaged(first + 4, 4, 0x7fffffff, "", SYMBOL_TABLE_DAMAGED); /* its name */
	damaged(TABLE + FUNCTIONS_AT + 4, 4, UINT32_MAX, "", SYMBOL_TABLE_DAMAGED);
	damaged(first + 20, 4, 0x70000000, "main.outer:30;", SYMBOL_TABLE_DAMAGED); /* its files */
	damaged(first + 28, 4, UINT32_MAX, "main.outer:30;", 0); /* how many tables it has */
	/* the whole table */
	damaged(TABLE + 8, 8, UINT32_MAX, "no table", 0);
	damaged(TABLE + 8, 8, 0, "no table", 0);
	damaged(TABLE + 7, 1, 4, "no table", 0);
	damaged(TABLE + 8 + 3 * 8, 8, UINT64_MAX, "no table", 0);
	damaged(TABLE + 8 + 7 * 8, 8, LENGTH, "no table", 0);
	/* another text than the one that it was linked for */
	damaged(MODULE + 22 * 8, 8, BASE + CODE + 0x100, "no table", 0);
	damaged(MODULE, 8, BASE + MODULE, "no table", 0);
}

int main(void)
{
	every_layout();
	damage();
	return checks_done();
}
