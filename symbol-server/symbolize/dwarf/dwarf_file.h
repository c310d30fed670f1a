/* SPDX-License-Identifier: Apache-2.0 */
/* One ELF file's debug sections in memory, ready to be read: inflated (SHF_COMPRESSED with zlib or
 * zstd, GNU's .zdebug_*) and, in relocatable objects, relocated. Nothing is inflated that nobody
 * asks for, and what is done with can be given back. ELF: gABI chapter 4; compression: gABI
 * "Section compression"; .zdebug: "ZLIB" and the size as 8 bytes, big-endian. 32 and 64 bit, either
 * byte order.
 *
 * Why this room is not libdw (elfutils): Debian 12's 0.188 reads no section compressed with zstd,
 *no .dwp, and no line where .debug_aranges is missing (clang, Go; both from 0.191 on). Its
 * dwarf_getscopes() gave no chain of inlined calls for 55 % of python3.11's addresses (GCC's LTO)
 *and 68 % of a Rust program's. A walk of whole units over it, into the same table, cost (CPU
 *seconds and MB resident, libdw : a reader of our own; inflating included) glibc 2.36		0.13
 *s, 44 MB : 0.09 s, 33 MB python3.11		0.35 s, 88 MB : 0.18 s, 46 MB
 *	Linux 6.1		1.8 s, 488 MB : 0.81 s, 318 MB
 *	OpenJDK 17's libjvm	4.3 s, 949 MB : 2.6 s, 600 MB
 *	ceph-osd 16		6.7 s, 1466 MB : 4.1 s, 935 MB
 * since libdw keeps every line table until dwarf_end(). Out of memory it calls exit(), where this
 * room says what it could not have and the rest of the file still counts. The price is this room;
 * tests/fuzz and the sandbox it runs in stand for its mistakes. */
#ifndef SYMBOL_SERVER_SYMBOLIZE_DWARF_DWARF_FILE_H
#define SYMBOL_SERVER_SYMBOLIZE_DWARF_DWARF_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "symbol-server/symbolize/dwarf/dwarf_cursor.h"

/* DWARF 5, section 7.3.5 and appendix B; .debug_types is DWARF 4's. In a .dwo or .dwp their names
 * end in ".dwo". */
enum dwarf_section {
	DWARF_INFO,
	DWARF_TYPES,
	DWARF_ABBREV,
	DWARF_LINE,
	DWARF_STR,
	DWARF_LINE_STR,
	DWARF_STR_OFFSETS,
	DWARF_ADDR,
	DWARF_RANGES,
	DWARF_RNGLISTS,
	DWARF_CU_INDEX,
	DWARF_TU_INDEX,
	DWARF_SECTION_COUNT,
};

struct dwarf_limits {
	size_t section_bytes; /* one section inflated */
	size_t total_bytes;   /* all that is inflated at a time */
	bool is_mapping; /* the bytes are a file's private mapping: pages that were inflated are
			    given back, and would come again */
};

enum {
	DWARF_TEXT_BASE = 1 << 20, /* where .text of a relocatable object is put: nothing of it is
				      at 0, which would look thrown away */
	DWARF_ID_MAX = 64,
};

struct dwarf_file; /* opaque: its sections may be inflated on first use */

/* bytes stay the caller's and must outlive the file; they are not written to. NULL: ERROR_FORMAT,
 * it is no ELF file or its headers point outside of it; ERROR_MEMORY. */
struct dwarf_file *dwarf_file_open(const uint8_t *bytes, size_t length,
				   const struct dwarf_limits *limits, struct error *err);
void dwarf_file_close(struct dwarf_file *file); /* NULL is fine */

bool dwarf_file_is_big_endian(const struct dwarf_file *file);
bool dwarf_file_has(const struct dwarf_file *file, enum dwarf_section section);
/* Split DWARF: its sections end in ".dwo". */
bool dwarf_file_is_split(const struct dwarf_file *file);
/* A relocatable object of a machine whose relocations are not known: nothing in it can be read. */
bool dwarf_file_is_unrelocated(const struct dwarf_file *file);

/* Its build-id; length, 0: none. */
size_t dwarf_file_id(const struct dwarf_file *file, uint8_t id[DWARF_ID_MAX]);
/* The build-id of the supplementary file (dwz) of .gnu_debugaltlink or .debug_sup; 0: none. */
size_t dwarf_file_alt_id(const struct dwarf_file *file, uint8_t id[DWARF_ID_MAX]);

/* The section's bytes, inflated and relocated at the first call. at NULL: there is none, or it is
 * damaged or over the limit (then *flags |= SYMBOL_TABLE_DAMAGED or _CUT). */
struct dwarf_bytes dwarf_file_section(struct dwarf_file *file, enum dwarf_section section,
				      uint32_t *flags);
/* What it holds of the section goes back; the bytes are not valid any more. */
void dwarf_file_drop(struct dwarf_file *file, enum dwarf_section section);

#endif
