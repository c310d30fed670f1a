/* SPDX-License-Identifier: Apache-2.0 */
/* One module's names: sorted range starts → location → chain of functions; flat, read-only, shared.
 * In symbols.db it is packed: delta/varint columns, each column a zstd frame. Everything is checked
 * when it is unpacked, so that a lookup checks nothing. The shape is SymCache's
 * (getsentry/symbolic); why it is not GSYM or rows: GSYM loses lines and is slower, rows take 50
 * times the time and 10 times the space. Door to libzstd. */
#ifndef SYMBOL_SERVER_SYMBOLIZE_SYMBOL_TABLE_H
#define SYMBOL_SERVER_SYMBOLIZE_SYMBOL_TABLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buffer.h"
#include "common/error.h"
#include "common/profile.h"
#include "symbol-server/store/symbols.h"

/* Changes with the packed bytes' layout; those from the oldest on are read, and converted again. 1
 * has no load base. */
enum { SYMBOL_TABLE_FORMAT = 2, SYMBOL_TABLE_OLDEST = 1 };

#define SYMBOL_NONE UINT32_MAX

struct symbol_node {        /* one function at one call site */
	uint32_t name;      /* offset into strings, never of an empty one */
	uint32_t parent;    /* node it was inlined into, a smaller index; SYMBOL_NONE: none */
	uint32_t call_file; /* offset into strings; where the parent calls it */
	uint32_t call_line;
};

struct symbol_location { /* what a range of addresses is */
	uint32_t node;
	uint32_t file; /* offset into strings; 0: unknown */
	uint32_t line; /* 0: unknown */
};

enum symbol_table_flags { /* what the table could not have; said in the module's reason */
			  SYMBOL_TABLE_DWO_MISSING =
				  1, /* split DWARF: lines, but no inlined functions */
			  SYMBOL_TABLE_ALT_MISSING =
				  2, /* dwz: some names are in a file that was not there */
			  SYMBOL_TABLE_CUT =
				  4, /* a limit was reached; the rest of the units is not in it */
			  SYMBOL_TABLE_DAMAGED = 8,      /* some units could not be read */
			  SYMBOL_TABLE_UNRELOCATED = 16, /* a relocatable object: names only */
			  SYMBOL_TABLE_NO_INLINES =
				  32, /* Go's own table: inlined calls were not found */
};

struct symbol_base { /* where an enum address_base counts from */
	bool is_known;
	uint64_t address; /* in the numbers of the table's ranges */
};

struct symbol_table {
	uint32_t range_count, location_count, node_count, string_bytes;
	uint32_t function_count; /* outermost functions and symbols, for people */
	uint32_t flags;
	enum symbol_quality quality;
	struct symbol_base bases[ADDRESS_MODULE_TEXT + 1];
	struct symbol_base load;   /* ELF address of the first PT_LOAD */
	uint64_t first;            /* address that starts count from */
	const uint32_t *starts;    /* ascending, the first is 0 */
	const uint32_t *locations; /* by range; SYMBOL_NONE: a hole. The last range is a hole. */
	const struct symbol_location *location_rows;
	const struct symbol_node *nodes;
	const char *strings; /* offset 0 is the empty text */

	/* made when loaded */
	const uint32_t *buckets; /* by (address − first) >> bucket_shift: first range at or after
				    its start */
	unsigned bucket_shift;
	size_t bytes; /* of memory */
	atomic_uint references;
};

struct symbol_frame {
	const char *name; /* as it is in the table: mangled or plain; never NULL */
	const char *file; /* "" when unknown */
	uint32_t line;    /* 0: unknown */
	bool is_inline;   /* was inlined into the next frame of the chain */
};

enum { SYMBOL_CHAIN_MAX = 256 };

/* Appends the packed table. */
bool symbol_table_pack(const struct symbol_table *table, struct buffer *out, struct error *err);

/* A table with one reference, checked in full. ERROR_FORMAT: damaged, or of another format;
 * ERROR_LIMIT: it would need more than limit_bytes of memory. */
struct symbol_table *symbol_table_unpack(const void *bytes, size_t length, size_t limit_bytes,
					 struct error *err);

/* Frames at the address, innermost first; 0: no symbol covers it (a name is never a guess). base
 * says what the address counts from; the table knows the ELF address of that base. Texts are
 * borrowed from the table. No locks, no allocation. */
unsigned symbol_table_lookup(const struct symbol_table *table, enum address_base base,
			     uint64_t address, struct symbol_frame frames[SYMBOL_CHAIN_MAX]);

/* The code around the address that belongs to the same outermost function without a gap: [*start,
 * *end), counted from base as address is. False: no symbol covers it. */
bool symbol_table_extent(const struct symbol_table *table, enum address_base base, uint64_t address,
			 uint64_t *start, uint64_t *end);

/* Whether is() says so of a file that some line is in; each is asked about once or more. */
bool symbol_table_has_file(const struct symbol_table *table,
			   bool (*is)(void *context, const char *file), void *context);

struct symbol_table *symbol_table_hold(struct symbol_table *table);
void symbol_table_release(struct symbol_table *table); /* NULL is fine */

#endif
