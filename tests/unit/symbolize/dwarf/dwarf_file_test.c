/* SPDX-License-Identifier: Apache-2.0 */
/* Units and sections of strangers, packed or cut off. */
#include <zlib.h>

#include "tests/unit/symbolize/dwarf/dwarf_parts.h"

static void units_of_strangers(void)
{
	static const uint8_t abbreviations[] = {1, DW_TAG_compile_unit, 0, 0, 0};
	static const uint8_t zero[16] = {0};
	static const uint8_t longer[] = {200, 0, 0, 0, 4, 0, 0, 0, 0, 0, 8, 1};
	/* version 261, which is no 5; then a good one */
	static const uint8_t version[] = {8, 0, 0, 0, 5, 1, 1, 8, 0, 0, 0, 0,
					  8, 0, 0, 0, 4, 0, 0, 0, 0, 0, 8, 1};
	/* an abbreviation that is not there, and a table of them that has no end */
	static const uint8_t code[] = {8, 0, 0, 0, 4, 0, 0, 0, 0, 0, 8, 2};
	static const struct {
		const uint8_t *bytes;
		size_t length;
		uint32_t units;
		bool opens;
	} cases[] = {{zero, sizeof(zero), 0, false},
		     {longer, sizeof(longer), 0, false},
		     {version, sizeof(version), 1, true},
		     {code, sizeof(code), 1, false}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct part parts[] = {{".debug_info", cases[i].bytes, cases[i].length, 0},
					     PART(".debug_abbrev", abbreviations)};
		struct opened *opened = open_parts(parts, 2);

		CHECK_NUMBER(opened->units.count, cases[i].units);
		if (opened->units.count)
			CHECK(dwarf_unit_open(opened->units.rows) == cases[i].opens);
		CHECK(opened->units.flags & SYMBOL_TABLE_DAMAGED);
		close_parts(opened);
	}
}

static struct dwarf_bytes packed_section(uint64_t size, uint32_t kind, size_t cut, uint32_t *flags)
{
	static uint8_t bytes[FILE_MAX], packed[4096];
	static struct dwarf_file *file;
	Elf64_Chdr header = {.ch_type = kind, .ch_size = size};
	uint8_t plain[1000];
	uLong room = sizeof(packed) - sizeof(header);
	struct part part = {".debug_info", packed, 0, SHF_COMPRESSED};

	dwarf_file_close(file);
	memset(plain, 'x', sizeof(plain));
	memcpy(packed, &header, sizeof(header));
	compress(packed + sizeof(header), &room, plain, sizeof(plain));
	part.length = sizeof(header) + room - cut;
	file = dwarf_file_open(bytes, build_elf(bytes, &part, 1), &limits, NULL);
	*flags = 0;
	CHECK(file && dwarf_file_has(file, DWARF_INFO) && !dwarf_file_has(file, DWARF_LINE));
	return dwarf_file_section(file, DWARF_INFO, flags);
}

static void compressed_sections(void)
{
	uint32_t flags;
	struct dwarf_bytes bytes = packed_section(1000, ELFCOMPRESS_ZLIB, 0, &flags);

	CHECK(bytes.length == 1000 && bytes.at[999] == 'x' && !flags);
	CHECK(!packed_section(999, ELFCOMPRESS_ZLIB, 0, &flags).at &&
	      flags == SYMBOL_TABLE_DAMAGED);
	CHECK(!packed_section(1001, ELFCOMPRESS_ZLIB, 0, &flags).at &&
	      flags == SYMBOL_TABLE_DAMAGED);
	CHECK(!packed_section(1000, ELFCOMPRESS_ZLIB, 3, &flags).at &&
	      flags == SYMBOL_TABLE_DAMAGED);
	CHECK(!packed_section(1000, 2, 0, &flags).at && flags == SYMBOL_TABLE_DAMAGED);
	CHECK(!packed_section(1000, 77, 0, &flags).at && flags == SYMBOL_TABLE_DAMAGED);
	CHECK(!packed_section(0, ELFCOMPRESS_ZLIB, 0, &flags).at && flags == SYMBOL_TABLE_DAMAGED);
	CHECK(!packed_section(limits.section_bytes + 1, ELFCOMPRESS_ZLIB, 0, &flags).at &&
	      flags == SYMBOL_TABLE_CUT);
	CHECK(!packed_section(UINT64_MAX, ELFCOMPRESS_ZLIB, 0, &flags).at &&
	      flags == SYMBOL_TABLE_CUT);
}

/* Every prefix of a file is refused or read, never past its end (AddressSanitizer sees it). */
static void files_that_are_cut_off(void)
{
	static const uint8_t info[] = {8, 0, 0, 0, 4, 0, 0, 0, 0, 0, 8, 1};
	static const uint8_t abbreviations[] = {1, DW_TAG_compile_unit, 0, 0, 0, 0};
	const struct part parts[] = {PART(".debug_info", info),
				     PART(".debug_abbrev", abbreviations)};
	uint8_t whole[2048];
	size_t length = build_elf(whole, parts, 2);
	unsigned opened = 0;

	for (size_t cut = 0; cut <= length; cut++) {
		uint8_t *bytes = malloc(length - cut + 1);
		struct dwarf_file *file;
		struct dwarf_units units;

		memcpy(bytes, whole, length - cut);
		file = dwarf_file_open(bytes, length - cut, &limits, NULL);
		if (file && dwarf_units_open(&units, file, NULL)) {
			opened += units.count == 1 && dwarf_unit_open(units.rows);
			dwarf_units_close(&units);
		}
		dwarf_file_close(file);
		free(bytes);
	}
	CHECK_NUMBER(opened, 1);
}

int main(void)
{
	units_of_strangers();
	compressed_sections();
	files_that_are_cut_off();
	return checks_done();
}
