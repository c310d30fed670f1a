/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/symbolize/debug_reader.h"

#include <gelf.h>
#include <stdlib.h>
#include <string.h>

#include "symbol-server/symbolize/debug_units.h"
#include "symbol-server/symbolize/kallsyms.h"
#include "symbol-server/symbolize/table_builder.h"

enum { SECTIONS_MAX = 65536, CODE_SECTIONS_MAX = 4096 };

struct elf_file {
	Elf *elf;
	bool is_relocatable;
	uint8_t *is_code; /* by section number */
	size_t section_count;
	bool has_debug_info;
};

struct reader {
	struct elf_file files[DEBUG_INPUTS_MAX];
	size_t count;
	struct table_builder *builder;
	struct symbol_table table; /* flags, quality and bases are filled on the way */
	struct debug_units_result units;
	uint64_t code[CODE_SECTIONS_MAX][2];
	size_t code_count;
};

/* ---- sections ---- */

static bool is_debug_info(const char *name)
{
	return !strcmp(name, ".debug_info") || !strcmp(name, ".zdebug_info");
}

/* Which code a relocatable object has been loaded to is not in the file: of a kernel module,
 * addresses count from .text, and only those can be named. */
static bool is_code_section(const struct elf_file *file, const GElf_Shdr *header, const char *name)
{
	if (!(header->sh_flags & SHF_EXECINSTR) || !(header->sh_flags & SHF_ALLOC) ||
	    !header->sh_size)
		return false;
	return !file->is_relocatable || !strcmp(name, ".text");
}

static void take_section(struct reader *reader, struct elf_file *file, size_t number,
			 const GElf_Shdr *header, const char *name)
{
	struct symbol_base *text = &reader->table.bases[ADDRESS_MODULE_TEXT];

	if (is_debug_info(name) && header->sh_type != SHT_NOBITS)
		file->has_debug_info = true;
	if (!strcmp(name, ".gnu_debugaltlink"))
		reader->table.flags |= SYMBOL_TABLE_ALT_MISSING;
	if (!is_code_section(file, header, name))
		return;
	file->is_code[number] = true;
	if (!strcmp(name, ".text"))
		*text = (struct symbol_base){true, header->sh_addr};
	if (reader->code_count < CODE_SECTIONS_MAX &&
	    header->sh_addr + header->sh_size > header->sh_addr) {
		reader->code[reader->code_count][0] = header->sh_addr;
		reader->code[reader->code_count++][1] = header->sh_addr + header->sh_size;
	}
}

static bool read_sections(struct reader *reader, struct elf_file *file, struct error *err)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	size_t names;

	if (elf_getshdrnum(file->elf, &file->section_count) ||
	    elf_getshdrstrndx(file->elf, &names) || file->section_count > SECTIONS_MAX)
		return error_set(err, ERROR_FORMAT, "its section headers are damaged");
	file->is_code = calloc(file->section_count + 1, 1);
	if (!file->is_code)
		return error_set(err, ERROR_MEMORY, "no memory for its sections");
	while ((section = elf_nextscn(file->elf, section)) != NULL) {
		const char *name;

		if (!gelf_getshdr(section, &header))
			continue;
		name = elf_strptr(file->elf, names, header.sh_name);
		take_section(reader, file, elf_ndxscn(section), &header, name ? name : "");
	}
	return true;
}

static bool open_file(struct reader *reader, const struct debug_input *input, struct error *err)
{
	struct elf_file *file = &reader->files[reader->count];
	GElf_Ehdr header;

	file->elf = elf_memory(input->bytes, input->length);
	if (file->elf)
		reader->count++; /* from here on it is closed with the reader */
	if (!file->elf || elf_kind(file->elf) != ELF_K_ELF || !gelf_getehdr(file->elf, &header))
		return error_set(err, ERROR_FORMAT, "it is not an ELF file");
	file->is_relocatable = header.e_type == ET_REL;
	if (file->is_relocatable)
		reader->table.flags |= SYMBOL_TABLE_UNRELOCATED;
	return read_sections(reader, file, err);
}

/* ---- symbols ---- */

static bool is_name_of_code(const GElf_Sym *symbol, const char *name)
{
	unsigned type = GELF_ST_TYPE(symbol->st_info);

	if (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE)
		return false;
	/* "$x" marks instruction sets on ARM, ".L1" is an assembler's own label. */
	return *name && *name != '$' && strncmp(name, ".L", 2) != 0;
}

static bool is_in_code(const struct elf_file *file, const GElf_Sym *symbol, Elf32_Word extended)
{
	size_t section = symbol->st_shndx == SHN_XINDEX ? extended : symbol->st_shndx;

	if (symbol->st_shndx == SHN_UNDEF ||
	    (symbol->st_shndx >= SHN_LORESERVE && symbol->st_shndx != SHN_XINDEX))
		return false;
	return section < file->section_count && file->is_code[section];
}

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

static bool take_symbol(struct reader *reader, const struct elf_file *file, const GElf_Sym *symbol,
			Elf32_Word extended, const char *name)
{
	if (!name)
		return false;
	if (!strcmp(name, "_text") && !file->is_relocatable)
		reader->table.bases[ADDRESS_KERNEL_TEXT] = (struct symbol_base){true,
										symbol->st_value};
	if (!is_name_of_code(symbol, name) || !is_in_code(file, symbol, extended))
		return false;
	table_builder_symbol(reader->builder,
			     &(struct code_symbol){
				     .address = symbol->st_value,
				     .size = symbol->st_size,
				     .name = table_builder_text(reader->builder, name),
				     .is_function = GELF_ST_TYPE(symbol->st_info) != STT_NOTYPE,
				     .binding = binding_of(symbol),
			     });
	return true;
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

static bool read_symbol_section(struct reader *reader, const struct elf_file *file,
				Elf_Scn *section, const GElf_Shdr *header)
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
		any |= take_symbol(reader, file, &symbol, number,
				   elf_strptr(file->elf, header->sh_link, symbol.st_name));
	}
	return any;
}

static void read_symbols(struct reader *reader, const struct elf_file *file)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;

	while ((section = elf_nextscn(file->elf, section)) != NULL) {
		enum symbol_quality quality = QUALITY_DYNSYM;

		if (!gelf_getshdr(section, &header) ||
		    (header.sh_type != SHT_SYMTAB && header.sh_type != SHT_DYNSYM))
			continue;
		if (header.sh_type == SHT_SYMTAB)
			quality = QUALITY_SYMTAB;
		if (read_symbol_section(reader, file, section, &header) &&
		    reader->table.quality < quality)
			reader->table.quality = quality;
	}
}

/* ---- DWARF ---- */

static bool read_units(struct reader *reader, const struct elf_file *file, struct error *err)
{
	Dwarf *dwarf = dwarf_begin_elf(file->elf, DWARF_C_READ, NULL);
	bool ok;

	if (!dwarf) {
		reader->table.flags |= SYMBOL_TABLE_DAMAGED;
		return true;
	}
	ok = debug_units_read(dwarf, reader->builder, &reader->units, err);
	dwarf_end(dwarf);
	reader->table.flags |= reader->units.flags;
	if (table_builder_has_functions(reader->builder))
		reader->table.quality = QUALITY_DWARF;
	return ok;
}

static bool read_debug_info(struct reader *reader, struct error *err)
{
	for (size_t i = 0; i < reader->count; i++)
		if (reader->files[i].has_debug_info && !reader->files[i].is_relocatable)
			return read_units(reader, &reader->files[i], err);
	return true;
}

/* ---- whole files ---- */

static bool read_files(struct reader *reader, const struct debug_input *inputs, size_t count,
		       bool names_only, struct error *err)
{
	for (size_t i = 0; i < count; i++)
		if (!open_file(reader, &inputs[i], err))
			return false;
	if (!table_builder_sections(reader->builder, reader->code, reader->code_count, err))
		return false;
	reader->table.bases[ADDRESS_ELF].is_known = true;
	for (size_t i = 0; i < reader->count; i++)
		read_symbols(reader, &reader->files[i]);
	table_builder_sort_symbols(reader->builder);
	return names_only || read_debug_info(reader, err);
}

static bool read_kallsyms(struct reader *reader, const struct debug_input *input, struct error *err)
{
	bool is_module;

	if (!kallsyms_read(input->bytes, input->length, reader->builder, &is_module, err))
		return false;
	reader->table.quality = QUALITY_KALLSYMS;
	reader->table.bases[is_module ? ADDRESS_MODULE_TEXT : ADDRESS_KERNEL_TEXT].is_known = true;
	return true;
}

bool debug_reader_convert(const struct debug_input *inputs, size_t count, bool names_only,
			  struct buffer *packed, struct error *err)
{
	struct reader *reader = calloc(1, sizeof(*reader));
	bool ok = false;

	if (!reader || !(reader->builder = table_builder_new())) {
		error_set(err, ERROR_MEMORY, "no memory to convert a file");
		goto out;
	}
	elf_version(EV_CURRENT);
	if (count == 1 && kallsyms_is_one(inputs->bytes, inputs->length)
		    ? !read_kallsyms(reader, inputs, err)
		    : !read_files(reader, inputs, count, names_only, err))
		goto out;
	if (!table_builder_finish(reader->builder, reader->units.pending, &reader->table, err))
		goto out;
	if (table_builder_is_cut(reader->builder))
		reader->table.flags |= SYMBOL_TABLE_CUT;
	ok = symbol_table_pack(&reader->table, packed, err);
out:
	for (size_t i = 0; reader && i < reader->count; i++) {
		elf_end(reader->files[i].elf);
		free(reader->files[i].is_code);
	}
	if (reader) {
		free(reader->units.pending);
		table_builder_free(reader->builder);
	}
	free(reader);
	return ok;
}
