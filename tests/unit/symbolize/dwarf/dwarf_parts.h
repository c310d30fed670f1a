/* SPDX-License-Identifier: Apache-2.0 */
/* DWARF written byte by byte, as chapter 7 of its versions has it: files of such sections. Whole
 * files against other readers: tests/system/symbols_agree.sh. */
#ifndef TESTS_UNIT_SYMBOLIZE_DWARF_PARTS_H
#define TESTS_UNIT_SYMBOLIZE_DWARF_PARTS_H

#include <elf.h>
#include <stdlib.h>

#include "symbol-server/symbolize/dwarf/dwarf_constants.h"
#include "symbol-server/symbolize/dwarf/dwarf_unit.h"
#include "symbol-server/symbolize/symbol_table.h"
#include "tests/check.h"

enum { PARTS_MAX = 8, FILE_MAX = 64 << 10 };

struct part {
	const char *name;
	const void *bytes;
	size_t length;
	uint64_t flags;
};

#define WORD(low_, high_)   (low_), (high_), 0, 0, 0, 0, 0, 0
#define ONES                0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff
#define MINUS_2             0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff
#define PART(name_, bytes_) ((struct part){(name_), (bytes_), sizeof(bytes_), 0})

static const struct dwarf_limits limits = {.section_bytes = 1 << 20, .total_bytes = 4 << 20};

/* An ELF file of those sections, little-endian, 64 bit. */
static inline size_t build_elf(uint8_t *out, const struct part *parts, size_t count)
{
	Elf64_Ehdr header = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
			     .e_type = ET_DYN,
			     .e_machine = EM_X86_64,
			     .e_shentsize = sizeof(Elf64_Shdr),
			     .e_shnum = (uint16_t)(count + 2),
			     .e_shstrndx = (uint16_t)(count + 1)};
	Elf64_Shdr rows[PARTS_MAX + 2] = {0};
	char names[512] = "";
	size_t at = sizeof(header), name = 1;

	for (size_t i = 0; i < count; i++) {
		rows[i + 1] = (Elf64_Shdr){.sh_name = (uint32_t)name,
					   .sh_type = SHT_PROGBITS,
					   .sh_flags = parts[i].flags,
					   .sh_offset = at,
					   .sh_size = parts[i].length};
		memcpy(out + at, parts[i].bytes, parts[i].length);
		at += parts[i].length;
		memcpy(names + name, parts[i].name, strlen(parts[i].name) + 1);
		name += strlen(parts[i].name) + 1;
	}
	rows[count + 1] = (Elf64_Shdr){.sh_type = SHT_STRTAB, .sh_offset = at, .sh_size = name};
	memcpy(out + at, names, name);
	at += name;
	header.e_shoff = at;
	memcpy(out + at, rows, (count + 2) * sizeof(*rows));
	memcpy(out, &header, sizeof(header));
	return at + (count + 2) * sizeof(*rows);
}

struct opened {
	uint8_t bytes[FILE_MAX];
	struct dwarf_file *file;
	struct dwarf_units units;
};

static inline struct opened *open_parts(const struct part *parts, size_t count)
{
	struct opened *opened = calloc(1, sizeof(*opened));
	size_t length = build_elf(opened->bytes, parts, count);
	struct error err = {0};

	opened->file = dwarf_file_open(opened->bytes, length, &limits, &err);
	CHECK(opened->file && dwarf_units_open(&opened->units, opened->file, &err));
	return opened;
}

static inline void close_parts(struct opened *opened)
{
	dwarf_units_close(&opened->units);
	dwarf_file_close(opened->file);
	free(opened);
}

#endif
