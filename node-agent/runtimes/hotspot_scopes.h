/* SPDX-License-Identifier: Apache-2.0 */
/* What HotSpot's compilers leave behind about their code: which call of which method an instruction
 * belongs to, down to the innermost one that was inlined, and which line a bytecode comes from.
 * Formats: src/hotspot/share/code/{pcDesc,debugInfo,scopeDesc}.cpp, code/compressedStream.hpp
 * (since 20 utilities/unsigned5.hpp), oops/method.cpp of OpenJDK 8 to 25. Pure: the bytes are a
 * stranger's and may say anything. */
#ifndef NODE_AGENT_RUNTIMES_HOTSPOT_SCOPES_H
#define NODE_AGENT_RUNTIMES_HOTSPOT_SCOPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Numbers are written in one to five bytes, six bits more with each, by UNSIGNED5: which of the 256
 * bytes ends a number differs. */
enum hotspot_coding {
	HOTSPOT_CODING_ALL,     /* below 192 */
	HOTSPOT_CODING_NO_ZERO, /* since 20: 1 to 191; 0 is none of a number's */
};

enum { HOTSPOT_NUMBER_BYTES = 5 };

/* The number at *at, which goes behind it. False: the bytes end, or are no number's. */
bool hotspot_number_read(enum hotspot_coding coding, const uint8_t *bytes, size_t length,
			 size_t *at, uint32_t *value);

/* --- PcDescs --- */

/* Descriptions of instructions, `count` of them `stride` bytes each, in order of their pc_offset,
 * which are ints, as are scope_offset: members of each at the given offsets. */
struct hotspot_pcs {
	const uint8_t *bytes;
	uint32_t count, stride;
	uint32_t pc_at, scope_at; /* below stride, of four bytes */
};

enum { HOTSPOT_SCOPE_NONE = 0 }; /* an offset: nothing is described */

/* The first that has a scope and is for that byte of the code or one behind it, as HotSpot itself
 * looks for it: a call is described by where it returns to, and what is not described has the next
 * description. False: there is none; else *scope is an offset for hotspot_scope_read(). */
bool hotspot_pcs_find(const struct hotspot_pcs *pcs, uint32_t pc, uint32_t *scope);

/* --- scopes --- */

enum {
	HOTSPOT_SCOPE_BYTES = 3 * HOTSPOT_NUMBER_BYTES, /* that are looked at, at most */
	HOTSPOT_BCI_ENTRY = -1, /* the method is being entered: before its first bytecode */
};

struct hotspot_scope {
	uint32_t sender; /* the offset of its caller's; HOTSPOT_SCOPE_NONE: it is the outermost */
	uint32_t method; /* of the nmethod's metadata, counted from 1; 0: none */
	int32_t bci;
};

/* bytes: of the scopes from its offset on. False: they are none. */
bool hotspot_scope_read(enum hotspot_coding coding, const uint8_t *bytes, size_t length,
			struct hotspot_scope *scope);

/* --- lines --- */

/* table: a method's compressed table of lines and what lies behind it. Returns 0 where it does not
 * tell. bci below 0: as 0. */
uint32_t hotspot_line_find(enum hotspot_coding coding, const uint8_t *table, size_t length,
			   int32_t bci);

/* How much of it is the table, its end included; the length where it has no end. */
size_t hotspot_lines_bytes(enum hotspot_coding coding, const uint8_t *table, size_t length);

#endif
