/* SPDX-License-Identifier: Apache-2.0 */
/* Go's own table (.gopclntab) in a file: where it lies, how its version lays it out, where the text
 * is that it counts from, and its functions. The runtime prints its stack traces by it, so that it
 * is in stripped files too. Formats: runtime/symtab.go, runtime/runtime2.go and
 * cmd/link/internal/ld/pcln.go of Go 1.2 to 1.27; magics 0xfffffffb (1.2), …fa (1.16), …f0 (1.18)
 * and …f1 (1.20). */
#ifndef SYMBOL_SERVER_SYMBOLIZE_GO_GO_MODULE_H
#define SYMBOL_SERVER_SYMBOLIZE_GO_GO_MODULE_H

#include <stdbool.h>
#include <stdint.h>

#include "symbol-server/symbolize/go/go_image.h"

enum go_inlining { GO_INLINING_NONE, GO_INLINING_1_16, GO_INLINING_1_20 };

/* Of one version of the table. Words are pointer-sized; the header's count from behind its first 8
 * bytes, 0 standing for the table's own start. */
struct go_layout {
	uint8_t magic;    /* its lowest byte; the others are 0xff */
	bool is_relative; /* functions begin at offsets from the text, of 4 bytes; else addresses */
	uint8_t text_word, names_word, units_word, files_word, pcs_word, functions_word;
	uint8_t fixed_bytes; /* of a function, behind where it begins; the last one counts data */
	enum go_inlining inlining;
};

struct go_module {
	const struct go_image *image;
	const struct go_layout *layout;
	uint64_t address;     /* of the table */
	uint64_t data;        /* of the runtime's moduledata; 0: not found */
	uint64_t text;        /* 0 where functions begin at addresses */
	uint64_t inline_base; /* what offsets of inline trees count from; 0: unknown */
	uint8_t quantum;      /* bytes of the shortest instruction */
	uint32_t count;       /* of functions */
	uint64_t budget;      /* bytes that may still be searched through */
	struct dwarf_bytes table, entries, functions, names, units, files, pcs;
};

struct go_function {
	uint64_t start, limit; /* limit: where the next one begins; this may end before */
	const char *name;
	uint32_t name_at, file_pcs, line_pcs, inline_pcs; /* offsets; 0: none */
	uint32_t unit; /* its first entry among the units' files */
	uint64_t tree; /* where its inline tree is, from inline_base; 0 with inline_pcs 0: none */
};

/* image is borrowed. False: there is no table, or none that can be believed. */
bool go_module_find(const struct go_image *image, struct go_module *module);

/* False: it is damaged. */
bool go_module_function(const struct go_module *module, uint32_t index,
			struct go_function *function);

/* The text at that offset of the function names, which one begins at; NULL: none does. */
const char *go_module_name(const struct go_module *module, uint32_t offset);
/* The name of a file by its number in the unit, or NULL. index: of it among all units' files. */
const char *go_module_file(const struct go_module *module, uint32_t index);

/* The word of that number of moduledata; 0: it is not there. */
uint64_t go_module_word(const struct go_module *module, unsigned number);

#endif
