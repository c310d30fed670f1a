/* SPDX-License-Identifier: Apache-2.0 */
/* Door to zlib and zstd for compressed sections, whose size is known before. */
#ifndef SYMBOL_SERVER_SYMBOLIZE_DWARF_SECTION_INFLATE_H
#define SYMBOL_SERVER_SYMBOLIZE_DWARF_SECTION_INFLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ELF's numbers: gABI, "Section compression". */
enum section_compression { COMPRESSION_ZLIB = 1, COMPRESSION_ZSTD = 2 };

/* Fills room bytes at out. False: damaged, of another kind, or of another size. */
bool section_inflate(enum section_compression kind, const uint8_t *bytes, size_t length,
		     uint8_t *out, size_t room);

#endif
