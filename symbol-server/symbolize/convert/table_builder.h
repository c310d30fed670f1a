/* SPDX-License-Identifier: Apache-2.0 */
/* Functions with their inlined parts, line rows and symbols, in any order → one flat symbol table.
 * Runs in the conversion worker: memory is bounded by its limit, what is short shows at the end. */
#ifndef SYMBOL_SERVER_SYMBOLIZE_CONVERT_TABLE_BUILDER_H
#define SYMBOL_SERVER_SYMBOLIZE_CONVERT_TABLE_BUILDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "symbol-server/symbolize/symbol_table.h"

/* A name that is not known yet: table_builder_finish() asks for it. */
#define TABLE_NAME_PENDING 0x80000000u

struct line_row { /* of one unit, by ascending address; of equal addresses the last one counts */
	uint64_t address;
	uint32_t file, line;
	bool is_end; /* of a sequence: nothing is known from here on */
};

struct code_range {
	uint64_t low, high;
	uint32_t node;
	uint32_t depth; /* of inlining; 0: the function itself */
	uint32_t order; /* table_builder_function() sets it */
};

/* How much a symbol's name is worth where several start at one address: less is better. */
enum symbol_binding { BINDING_GLOBAL, BINDING_WEAK, BINDING_LOCAL };

struct code_symbol {
	uint64_t address;
	uint64_t size;    /* 0: up to the next symbol or the section's end */
	uint32_t name;    /* 0: it has none, and ends one of no size before it */
	bool is_function; /* FUNC, IFUNC; false: NOTYPE, a label of assembler code */
	enum symbol_binding binding;
};

struct table_builder;

struct table_builder *table_builder_new(void);
void table_builder_free(struct table_builder *builder);

/* Where there is code; first of all. What lies outside is dropped: dead functions of discarded
 * sections, absolute and per-CPU symbols. ERROR_LIMIT: too many, or more than 4 GiB apart. */
bool table_builder_sections(struct table_builder *builder, const uint64_t (*sections)[2],
			    size_t count, struct error *err);

/* Offset of the text; equal texts have one. 0 for NULL, "" and when memory is short. Longer than
 * 64 KiB is cut. */
uint32_t table_builder_text(struct table_builder *builder, const char *text);
const char *table_builder_text_at(const struct table_builder *builder, uint32_t text);

/* The function name, inlined into parent (SYMBOL_NONE: not inlined) at that place. Equal ones are
 * one. At SYMBOL_CHAIN_MAX deep the parent itself is the answer. */
uint32_t table_builder_node(struct table_builder *builder, uint32_t name, uint32_t parent,
			    uint32_t call_file, uint32_t call_line);

void table_builder_symbol(struct table_builder *builder, const struct code_symbol *symbol);
/* After the last symbol. Of those that begin at one address the longest is cut by the shorter ones
 * inside of it; of equal address and size (aliases, folded functions, constructors' C1 and C2) one
 * name stays, whatever the table's order: the one of a function, not `__GI_…` nor versioned, global
 * before weak before local, with fewer leading underscores, shorter, first in the alphabet. One of
 * size 0 is a name only for what no sized one covers, up to the next symbol or its section's end.
 */
void table_builder_sort_symbols(struct table_builder *builder);
/* Name of the function symbol that starts there; 0: none. */
uint32_t table_builder_symbol_at(const struct table_builder *builder, uint64_t address);

/* One function and what is inlined into it (sorted here), with its unit's rows. ranges: a caller
 * before what is inlined into it. Where ranges overlap that should not, the last one counts, as for
 * llvm-symbolizer and addr2line. */
void table_builder_function(struct table_builder *builder, struct code_range *ranges, size_t count,
			    const struct line_row *rows, size_t row_count);
/* After a unit's last function: rows no function covers keep their lines, for symbols. code: the
 * unit's own code (sorted here), nothing outside is believed; code_count 0: it does not say. */
void table_builder_unit_end(struct table_builder *builder, struct code_range *code,
			    size_t code_count, const struct line_row *rows, size_t count);

/* Has any function been put in? */
bool table_builder_has_functions(const struct table_builder *builder);
/* Does one cover the address? Looks through all of them. */
bool table_builder_has_function_at(const struct table_builder *builder, uint64_t address);
/* A limit on entries was reached and the rest dropped. */
bool table_builder_is_cut(const struct table_builder *builder);

/* Fills the counts and arrays of table; they are the builder's. pending: by (name & ~PENDING), the
 * offset of its text. ERROR_MEMORY; ERROR_NOT_FOUND: there is no name at all in it. */
bool table_builder_finish(struct table_builder *builder, const uint32_t *pending,
			  struct symbol_table *table, struct error *err);

#endif
