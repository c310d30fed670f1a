/* SPDX-License-Identifier: Apache-2.0 */
/* An ELF file's bytes as the program will see them: by address, with the pointers that only
 * relocations put there. As much of ELF as Go's own table asks for: segments, a few sections by
 * name, relative relocations with addends. 32 and 64 bit, either byte order; works without section
 * headers. System V gABI, chapters 4 and 5; numbers of relocations: the psABIs. */
#ifndef SYMBOL_SERVER_SYMBOLIZE_GO_GO_IMAGE_H
#define SYMBOL_SERVER_SYMBOLIZE_GO_GO_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbol-server/symbolize/dwarf/dwarf_cursor.h"

enum { GO_SEGMENTS_MAX = 64 };

struct go_segment { /* one PT_LOAD, as far as the file has its bytes */
	uint64_t address;
	struct dwarf_bytes bytes;
	bool is_code, is_writable;
};

struct go_relocation {
	uint64_t address, value;
};

struct go_image {
	struct dwarf_bytes file;
	bool is_64, is_big_endian;
	uint16_t machine;
	struct go_segment segments[GO_SEGMENTS_MAX];
	unsigned segment_count;
	struct go_relocation *relocations; /* by address; of Go programs only */
	size_t relocation_count;
	uint64_t table, module; /* addresses of .gopclntab and .go.module; 0: no such section */
	bool is_go;             /* a section or a note of Go's linker is in it */
};

/* bytes are borrowed. False: not an ELF file, or memory is short. To be closed in any case. */
bool go_image_open(struct go_image *image, const uint8_t *bytes, size_t length);
void go_image_close(struct go_image *image);

/* From the address to the end of its segment's bytes; at NULL: the file has nothing there. */
struct dwarf_bytes go_image_at(const struct go_image *image, uint64_t address);
/* The pointer at that address, relocated. False: the file has none there. */
bool go_image_pointer(const struct go_image *image, uint64_t address, uint64_t *value);

static inline unsigned go_image_word(const struct go_image *image)
{
	return image->is_64 ? 8 : 4;
}

#endif
