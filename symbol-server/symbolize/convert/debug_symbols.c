/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/symbolize/convert/debug_symbols.h"

#include <stdlib.h>
#include <string.h>

#include "common/array.h"

enum { INDIRECT_MAX = 65536, ARM_THUMB_FUNCTION = STT_LOPROC, DESCRIPTOR_BYTES = 24 };

/* ---- which names are of code ---- */

static bool has_mapping_symbols(unsigned machine)
{
	return machine == EM_ARM || machine == EM_AARCH64 || machine == EM_RISCV ||
	       machine == EM_CSKY;
}

/* "$x", "$d.17", "$xrv64i2p1": where instructions and data begin (ELF for the ARM architecture,
 * RISC-V psABI). Other names may well begin with "$": Swift's do. */
static bool is_mapping_symbol(unsigned machine, const char *name)
{
	return has_mapping_symbols(machine) && name[0] == '$' && name[1] &&
	       strchr("adtx", name[1]) &&
	       (!name[2] || name[2] == '.' || (machine == EM_RISCV && name[1] == 'x'));
}

/* ".L1" is an assembler's own label, and so is what has a control character: "L0\001". A label that
 * begins with a dot is a tool's: annobin puts ".annobin_…" between functions. */
static bool is_name(unsigned machine, const char *name, bool of_function)
{
	return *name && strncmp(name, ".L", 2) != 0 && (of_function || *name != '.') &&
	       !strpbrk(name, "\001\002") && !is_mapping_symbol(machine, name);
}

static bool is_function(const struct elf_file *file, const GElf_Sym *symbol)
{
	unsigned type = GELF_ST_TYPE(symbol->st_info);

	return type == STT_FUNC || type == STT_GNU_IFUNC ||
	       (type == ARM_THUMB_FUNCTION && file->header.e_machine == EM_ARM);
}

/* ---- where they are ---- */

static bool is_in(const struct code_section *section, uint64_t address)
{
	return address >= section->start && address < section->end;
}

Elf_Scn *debug_section_named(const struct elf_file *file, const char *wanted, GElf_Shdr *header)
{
	Elf_Scn *section = NULL;
	size_t names;

	if (elf_getshdrstrndx(file->elf, &names))
		return NULL;
	while ((section = elf_nextscn(file->elf, section)) != NULL) {
		const char *name;

		if (gelf_getshdr(section, header) && header->sh_type == SHT_PROGBITS &&
		    (name = elf_strptr(file->elf, names, header->sh_name)) != NULL &&
		    !strcmp(name, wanted))
			return section;
	}
	return NULL;
}

/* What reads .opd: 64-bit PowerPC's first ABI calls functions by descriptors, whose first word is
 * the address of the code. */
struct descriptors {
	uint64_t start;
	size_t number; /* of their section in the file that is read */
	const uint8_t *bytes;
	size_t length;
	bool is_big_endian;
	const struct elf_file *relocated; /* in an object the words are still relocations */
};

static void find_descriptors(struct descriptors *found, const struct elf_file *file,
			     const struct elf_file *others, size_t count)
{
	GElf_Shdr header;
	Elf_Scn *section = NULL;
	Elf_Data *data;

	*found = (struct descriptors){.start = 0};
	if (file->header.e_machine != EM_PPC64)
		return;
	section = debug_section_named(file, ".opd", &header);
	for (size_t i = 0; i < count && !section; i++)
		section = debug_section_named(&others[i], ".opd", &header);
	data = section ? elf_rawdata(section, NULL) : NULL;
	if (!data || !data->d_buf)
		return;
	found->start = header.sh_addr;
	found->bytes = data->d_buf;
	found->length = data->d_size;
	found->is_big_endian = file->header.e_ident[EI_DATA] == ELFDATA2MSB;
	if (file->is_relocatable) {
		found->relocated = file;
		found->number = elf_ndxscn(section);
	}
}

/* The relocation at that offset, of a table in ascending order. */
static bool find_relocation(Elf_Data *rows, size_t count, uint64_t offset, GElf_Rela *row)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (!gelf_getrela(rows, (int)middle, row))
			return false;
		if (row->r_offset == offset)
			return true;
		if (row->r_offset < offset)
			low = middle + 1;
		else
			high = middle;
	}
	return false;
}

static bool relocated_entry(const struct descriptors *descriptors, uint64_t offset,
			    uint64_t *address)
{
	Elf *elf = descriptors->relocated->elf;
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	GElf_Rela row;
	GElf_Sym symbol;

	while ((section = elf_nextscn(elf, section)) != NULL) {
		Elf_Data *rows, *symbols;

		if (!gelf_getshdr(section, &header) || header.sh_type != SHT_RELA ||
		    header.sh_info != descriptors->number || !header.sh_entsize)
			continue;
		rows = elf_getdata(section, NULL);
		symbols = elf_getdata(elf_getscn(elf, header.sh_link), NULL);
		if (!rows || !symbols ||
		    !find_relocation(rows, header.sh_size / header.sh_entsize, offset, &row) ||
		    !gelf_getsym(symbols, (int)GELF_R_SYM(row.r_info), &symbol) ||
		    symbol.st_shndx >= descriptors->relocated->section_count)
			return false;
		*address = symbol.st_value + (uint64_t)row.r_addend;
		return descriptors->relocated->code[symbol.st_shndx].end != 0;
	}
	return false;
}

static bool read_descriptor(const struct descriptors *descriptors, uint64_t at, uint64_t *address)
{
	uint64_t offset = at - descriptors->start, value = 0;

	if (!descriptors->bytes || at < descriptors->start || offset > descriptors->length ||
	    descriptors->length - offset < 8)
		return false;
	if (descriptors->relocated)
		return relocated_entry(descriptors, offset, address);
	for (unsigned i = 0; i < 8; i++) {
		unsigned place = descriptors->is_big_endian ? i : 7 - i;

		value = value << 8 | descriptors->bytes[offset + place];
	}
	*address = value;
	return true;
}

/* In whichever section. */
static bool is_in_code(const struct elf_file *file, uint64_t address)
{
	for (size_t i = 0; i < file->section_count; i++)
		if (is_in(&file->code[i], address))
			return true;
	return false;
}

static bool place_of(const struct elf_file *file, const struct descriptors *descriptors,
		     const GElf_Sym *symbol, Elf32_Word extended, uint64_t *address,
		     bool *is_descriptor)
{
	size_t section = symbol->st_shndx == SHN_XINDEX ? extended : symbol->st_shndx;
	unsigned machine = file->header.e_machine;
	uint64_t value = symbol->st_value;

	if (symbol->st_shndx == SHN_UNDEF || section >= file->section_count ||
	    (symbol->st_shndx >= SHN_LORESERVE && symbol->st_shndx != SHN_XINDEX))
		return false;
	/* The lowest bit says in which instruction set a function is: Thumb, microMIPS. */
	if ((machine == EM_ARM || machine == EM_MIPS) && is_function(file, symbol))
		value &= ~UINT64_C(1);
	*address = value + elf_file_base(file);
	if (is_in(&file->code[section], *address))
		return true;
	if (!is_function(file, symbol))
		return false;
	*is_descriptor = read_descriptor(descriptors, value, address);
	if (*is_descriptor)
		*address += elf_file_base(file);
	/* Where sections were removed after linking, .dynsym has the old numbers. */
	return (*is_descriptor || !file->is_relocatable) && is_in_code(file, *address);
}

/* ---- symbols ---- */

static enum symbol_binding binding_of(const GElf_Sym *symbol)
{
	switch (GELF_ST_BIND(symbol->st_info)) {
	case STB_LOCAL:
		return BINDING_LOCAL;
	case STB_WEAK:
		return BINDING_WEAK;
	default:
		return BINDING_GLOBAL;
	}
}

static void note_indirect(struct debug_symbols *symbols, const struct code_symbol *symbol)
{
	if (symbols->indirect_count == INDIRECT_MAX ||
	    !ARRAY_GROW(symbols->indirect, symbols->indirect_count, symbols->indirect_room))
		return;
	symbols->indirect[symbols->indirect_count] = *symbol;
	symbols->indirect[symbols->indirect_count++].size = 0;
}

static bool take_symbol(struct debug_symbols *symbols, const struct elf_file *file,
			const struct descriptors *descriptors, const GElf_Sym *symbol,
			Elf32_Word extended, const char *name)
{
	unsigned type = GELF_ST_TYPE(symbol->st_info);
	struct code_symbol row = {.size = symbol->st_size, .binding = binding_of(symbol)};
	bool is_descriptor = false;

	if (!name)
		return false;
	if (!strcmp(name, "_text") && !file->is_relocatable)
		symbols->kernel_text = (struct symbol_base){true, symbol->st_value};
	row.is_function = is_function(file, symbol);
	if (!is_name(file->header.e_machine, name, row.is_function) ||
	    !place_of(file, descriptors, symbol, extended, &row.address, &is_descriptor))
		return false;
	/* Old compilers gave "foo" the descriptor's size and ".foo" the code's; new ones have no
	 * ".foo" and give "foo" the code's. */
	if (is_descriptor && row.size == DESCRIPTOR_BYTES)
		row.size = 0;
	if (file->header.e_machine == EM_PPC64 && row.is_function && name[0] == '.' && name[1])
		name++;
	if (row.is_function || type == STT_NOTYPE)
		row.name = table_builder_text(symbols->builder, name);
	else if (type != STT_OBJECT) /* data among the code has no name, and ends what is before */
		return false;
	if (!row.name && type != STT_OBJECT) /* memory */
		return false;
	table_builder_symbol(symbols->builder, &row);
	if (type == STT_GNU_IFUNC)
		note_indirect(symbols, &row);
	return row.name != 0;
}

/* Section numbers beyond 65279 of that symbol table, or NULL. */
static Elf_Data *extended_numbers(Elf *elf, size_t symbols)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;

	while ((section = elf_nextscn(elf, section)) != NULL)
		if (gelf_getshdr(section, &header) && header.sh_type == SHT_SYMTAB_SHNDX &&
		    header.sh_link == symbols)
			return elf_getdata(section, NULL);
	return NULL;
}

static bool read_section(struct debug_symbols *symbols, const struct elf_file *file,
			 const struct descriptors *descriptors, Elf_Scn *section,
			 const GElf_Shdr *header)
{
	Elf_Data *data = elf_getdata(section, NULL);
	Elf_Data *extended = extended_numbers(file->elf, elf_ndxscn(section));
	size_t size = gelf_fsize(file->elf, ELF_T_SYM, 1, EV_CURRENT);
	bool any = false;

	for (size_t i = 1; data && size && i < data->d_size / size; i++) {
		Elf32_Word number = 0;
		GElf_Sym symbol;

		if (!gelf_getsymshndx(data, extended, (int)i, &symbol, &number))
			break;
		any |= take_symbol(symbols, file, descriptors, &symbol, number,
				   elf_strptr(file->elf, header->sh_link, symbol.st_name));
	}
	return any;
}

void debug_symbols_read(struct debug_symbols *symbols, const struct elf_file *file,
			const struct elf_file *others, size_t count)
{
	struct descriptors descriptors;
	Elf_Scn *section = NULL;
	GElf_Shdr header;

	find_descriptors(&descriptors, file, others, count);
	while ((section = elf_nextscn(file->elf, section)) != NULL) {
		enum symbol_quality quality = QUALITY_DYNSYM;

		if (!gelf_getshdr(section, &header) ||
		    (header.sh_type != SHT_SYMTAB && header.sh_type != SHT_DYNSYM))
			continue;
		if (header.sh_type == SHT_SYMTAB)
			quality = file->is_minidebug ? QUALITY_MINIDEBUG : QUALITY_SYMTAB;
		if (read_section(symbols, file, &descriptors, section, &header) &&
		    symbols->quality < quality)
			symbols->quality = quality;
	}
}

void debug_symbols_release(struct debug_symbols *symbols)
{
	free(symbols->indirect);
}
