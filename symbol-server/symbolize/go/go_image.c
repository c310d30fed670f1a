/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/symbolize/go/go_image.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

enum {
	SECTIONS_MAX = 65536,
	PROGRAM_HEADERS_MAX = 1024,
	DYNAMIC_MAX = 512,
	NOTES_MAX = 16,
	RELOCATIONS_MAX = 1 << 24,
	NOTE_GO_BUILD_ID = 4, /* cmd/internal/buildid: name "Go" */
};

static struct dwarf_cursor cursor_at(const struct go_image *image, uint64_t offset)
{
	return dwarf_cursor_at(image->file, offset, image->is_big_endian);
}

static uint64_t take_word(const struct go_image *image, struct dwarf_cursor *cursor)
{
	return dwarf_number(cursor, go_image_word(image));
}

static struct dwarf_bytes part_of(struct dwarf_bytes bytes, uint64_t offset, uint64_t length)
{
	if (offset >= bytes.length)
		return (struct dwarf_bytes){0};
	if (length > bytes.length - offset)
		length = bytes.length - offset;
	return (struct dwarf_bytes){bytes.at + offset, (size_t)length};
}

/* ---- segments ---- */

struct program_header {
	uint32_t type, flags;
	uint64_t offset, address, size;
};

static struct program_header read_program_header(const struct go_image *image, uint64_t offset)
{
	struct dwarf_cursor cursor = cursor_at(image, offset);
	struct program_header header;

	header.type = (uint32_t)dwarf_number(&cursor, 4);
	if (image->is_64)
		header.flags = (uint32_t)dwarf_number(&cursor, 4);
	header.offset = take_word(image, &cursor);
	header.address = take_word(image, &cursor);
	take_word(image, &cursor); /* p_paddr */
	header.size = take_word(image, &cursor);
	if (!image->is_64) {
		dwarf_skip(&cursor, 4); /* p_memsz */
		header.flags = (uint32_t)dwarf_number(&cursor, 4);
	}
	if (cursor.failed)
		header.type = PT_NULL;
	return header;
}

static void take_segment(struct go_image *image, const struct program_header *header)
{
	struct dwarf_bytes bytes = part_of(image->file, header->offset, header->size);

	if (!bytes.length || image->segment_count == GO_SEGMENTS_MAX ||
	    header->address + bytes.length < header->address)
		return;
	image->segments[image->segment_count++] = (struct go_segment){
		.address = header->address,
		.bytes = bytes,
		.is_code = header->flags & PF_X,
		.is_writable = header->flags & PF_W,
	};
}

/* Other notes may stand before it. */
static bool has_go_note(const struct go_image *image, const struct program_header *header)
{
	struct dwarf_bytes notes = part_of(image->file, header->offset, header->size);
	struct dwarf_cursor cursor = dwarf_cursor_at(notes, 0, image->is_big_endian);

	for (unsigned i = 0; i < NOTES_MAX && dwarf_left(&cursor) >= 16; i++) {
		uint64_t name = dwarf_number(&cursor, 4), text = dwarf_number(&cursor, 4);
		uint64_t type = dwarf_number(&cursor, 4);

		if (type == NOTE_GO_BUILD_ID && name == 4 && !memcmp(cursor.at, "Go\0", 4))
			return true;
		dwarf_skip(&cursor, ((name + 3) & ~UINT64_C(3)) + ((text + 3) & ~UINT64_C(3)));
	}
	return false;
}

/* ---- relocations ---- */

/* "What is at base + addend": 0 where pointers are in the file's bytes themselves. */
static uint32_t relative_type(uint16_t machine)
{
	switch (machine) {
	case EM_X86_64:
		return R_X86_64_RELATIVE;
	case EM_AARCH64:
		return R_AARCH64_RELATIVE;
	case EM_S390:
		return R_390_RELATIVE;
	case EM_PPC64:
		return R_PPC64_RELATIVE;
	case EM_RISCV:
		return R_RISCV_RELATIVE;
	case EM_LOONGARCH:
		return R_LARCH_RELATIVE;
	default:
		return 0;
	}
}

static int compare_relocations(const void *left, const void *right)
{
	const struct go_relocation *a = left, *b = right;

	return a->address < b->address ? -1 : a->address > b->address;
}

static bool read_relocations(struct go_image *image, uint64_t address, uint64_t size)
{
	struct dwarf_bytes bytes = go_image_at(image, address);
	uint32_t relative = relative_type(image->machine);
	struct dwarf_cursor cursor;
	bool is_sorted = true;
	size_t count;

	bytes = part_of(bytes, 0, size);
	count = bytes.length / sizeof(Elf64_Rela);
	if (!relative || !image->is_64 || !count)
		return true;
	if (count > RELOCATIONS_MAX)
		count = RELOCATIONS_MAX;
	image->relocations = malloc(count * sizeof(*image->relocations));
	if (!image->relocations)
		return false;
	cursor = dwarf_cursor_at(bytes, 0, image->is_big_endian);
	for (size_t i = 0; i < count; i++) {
		struct go_relocation *to = &image->relocations[image->relocation_count];
		uint64_t info;

		to->address = dwarf_number(&cursor, 8);
		info = dwarf_number(&cursor, 8);
		to->value = dwarf_number(&cursor, 8);
		if (ELF64_R_TYPE(info) != relative)
			continue;
		is_sorted &= !image->relocation_count || to[-1].address <= to->address;
		image->relocation_count++;
	}
	if (!is_sorted)
		qsort(image->relocations, image->relocation_count, sizeof(*image->relocations),
		      compare_relocations);
	return true;
}

static bool read_dynamic(struct go_image *image, const struct program_header *header)
{
	struct dwarf_bytes bytes = part_of(image->file, header->offset, header->size);
	struct dwarf_cursor cursor = dwarf_cursor_at(bytes, 0, image->is_big_endian);
	uint64_t address = 0, size = 0;

	for (unsigned i = 0; i < DYNAMIC_MAX && dwarf_left(&cursor); i++) {
		uint64_t tag = take_word(image, &cursor), value = take_word(image, &cursor);

		if (tag == DT_NULL || cursor.failed)
			break;
		if (tag == DT_RELA)
			address = value;
		if (tag == DT_RELASZ)
			size = value;
	}
	return image->relocations || !address || read_relocations(image, address, size);
}

/* ---- headers ---- */

static bool read_segments(struct go_image *image, uint64_t at, uint64_t size, uint64_t count)
{
	if (count > PROGRAM_HEADERS_MAX)
		count = PROGRAM_HEADERS_MAX;
	for (uint64_t i = 0; i < count; i++) {
		struct program_header header = read_program_header(image, at + i * size);

		if (header.type == PT_LOAD)
			take_segment(image, &header);
		if (header.type == PT_NOTE)
			image->is_go |= has_go_note(image, &header);
	}
	for (uint64_t i = 0; i < count && image->is_go; i++) { /* its addresses need the segments */
		struct program_header header = read_program_header(image, at + i * size);

		if (header.type == PT_DYNAMIC && !read_dynamic(image, &header))
			return false;
	}
	return true;
}

struct section_header {
	uint32_t name, type;
	uint64_t flags, address, offset, size;
};

static struct section_header read_section_header(const struct go_image *image, uint64_t offset)
{
	struct dwarf_cursor cursor = cursor_at(image, offset);
	struct section_header header;

	header.name = (uint32_t)dwarf_number(&cursor, 4);
	header.type = (uint32_t)dwarf_number(&cursor, 4);
	header.flags = take_word(image, &cursor);
	header.address = take_word(image, &cursor);
	header.offset = take_word(image, &cursor);
	header.size = take_word(image, &cursor);
	if (cursor.failed)
		header.type = SHT_NULL;
	return header;
}

static void take_section(struct go_image *image, const struct section_header *header,
			 const char *name)
{
	if (header->type == SHT_NOBITS || !(header->flags & SHF_ALLOC))
		return;
	if (!strcmp(name, ".gopclntab") || !strcmp(name, ".data.rel.ro.gopclntab"))
		image->table = header->address;
	if (!strcmp(name, ".go.module"))
		image->module = header->address;
	image->is_go |= image->table || image->module || !strcmp(name, ".go.buildinfo");
}

static void read_sections(struct go_image *image, uint64_t at, uint64_t size, uint64_t count,
			  uint64_t names_number)
{
	struct section_header header;
	struct dwarf_bytes names;

	if (!at || count > SECTIONS_MAX || names_number >= count)
		return;
	header = read_section_header(image, at + names_number * size);
	names = part_of(image->file, header.offset, header.size);
	for (uint64_t i = 1; i < count; i++) {
		struct dwarf_cursor name;

		header = read_section_header(image, at + i * size);
		name = dwarf_cursor_at(names, header.name, false);
		if (header.type != SHT_NULL && !name.failed)
			take_section(image, &header, dwarf_text(&name));
	}
}

bool go_image_open(struct go_image *image, const uint8_t *bytes, size_t length)
{
	uint64_t programs, sections, counts[5];
	struct dwarf_cursor cursor;

	*image = (struct go_image){.file = {bytes, length}};
	if (length < EI_NIDENT || memcmp(bytes, ELFMAG, SELFMAG) != 0)
		return false;
	image->is_64 = bytes[EI_CLASS] == ELFCLASS64;
	image->is_big_endian = bytes[EI_DATA] == ELFDATA2MSB;
	cursor = cursor_at(image, EI_NIDENT + 2);
	image->machine = (uint16_t)dwarf_number(&cursor, 2);
	dwarf_skip(&cursor, 4);
	take_word(image, &cursor); /* e_entry */
	programs = take_word(image, &cursor);
	sections = take_word(image, &cursor);
	dwarf_skip(&cursor, 6); /* e_flags, e_ehsize */
	for (unsigned i = 0; i < 5; i++)
		counts[i] = dwarf_number(&cursor, 2);
	if (cursor.failed)
		return false;
	read_sections(image, sections, counts[2], counts[3], counts[4]);
	return read_segments(image, programs, counts[0], counts[1]);
}

void go_image_close(struct go_image *image)
{
	free(image->relocations);
	image->relocations = NULL;
}

/* ---- bytes by address ---- */

struct dwarf_bytes go_image_at(const struct go_image *image, uint64_t address)
{
	for (unsigned i = 0; i < image->segment_count; i++) {
		const struct go_segment *segment = &image->segments[i];

		if (address >= segment->address &&
		    address - segment->address < segment->bytes.length)
			return part_of(segment->bytes, address - segment->address, UINT64_MAX);
	}
	return (struct dwarf_bytes){0};
}

/* What a relocation puts there, or NULL. */
static const struct go_relocation *find_relocation(const struct go_image *image, uint64_t address)
{
	size_t low = 0, high = image->relocation_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (image->relocations[middle].address < address)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < image->relocation_count && image->relocations[low].address == address)
		return &image->relocations[low];
	return NULL;
}

bool go_image_pointer(const struct go_image *image, uint64_t address, uint64_t *value)
{
	const struct go_relocation *relocation = find_relocation(image, address);
	struct dwarf_cursor cursor;

	if (relocation) {
		*value = relocation->value;
		return true;
	}
	cursor = dwarf_cursor_at(go_image_at(image, address), 0, image->is_big_endian);
	*value = take_word(image, &cursor);
	return !cursor.failed;
}
