/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/symbolize/convert/debug_reader.h"

#include <stdlib.h>
#include <string.h>

#include "symbol-server/symbolize/convert/debug_file.h"
#include "symbol-server/symbolize/convert/debug_symbols.h"
#include "symbol-server/symbolize/convert/debug_units.h"
#include "symbol-server/symbolize/convert/gnu_debugdata.h"
#include "symbol-server/symbolize/go/go_pclntab.h"
#include "symbol-server/symbolize/convert/kallsyms.h"
#include "symbol-server/symbolize/convert/table_builder.h"

enum {
	SECTIONS_MAX = 65536,
	CODE_SECTIONS_MAX = 4096,
	PROGRAM_HEADERS_MAX = 65536,
	FILES_MAX = 2 * DEBUG_INPUTS_MAX, /* each may have one inside */
};

static const struct dwarf_limits dwarf_limits = {
	.section_bytes = (size_t)4 << 30,
	.total_bytes = (size_t)12 << 30, /* the worker's own limit is by the files' size */
};

struct reader {
	struct elf_file files[FILES_MAX];
	size_t count;
	struct table_builder *builder;
	struct debug_symbols symbols;
	struct symbol_table table; /* flags, quality and bases are filled on the way */
	struct debug_units_result units;
	uint64_t code[CODE_SECTIONS_MAX][2];
	size_t code_count;
};

/* ---- sections ---- */

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
	uint64_t start = header->sh_addr + elf_file_base(file);

	if (!is_code_section(file, header, name))
		return;
	if (start + header->sh_size < start)
		return;
	file->code[number] = (struct code_section){start, start + header->sh_size};
	if (!strcmp(name, ".text"))
		*text = (struct symbol_base){true, start};
	if (file->is_relocatable)
		reader->table.bases[ADDRESS_ELF].address = start;
	if (reader->code_count < CODE_SECTIONS_MAX) {
		reader->code[reader->code_count][0] = start;
		reader->code[reader->code_count++][1] = start + header->sh_size;
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
	file->code = calloc(file->section_count + 1, sizeof(*file->code));
	if (!file->code)
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

/* Where the file's image begins: what "relative to the module" counts from. */
static void take_load_base(struct reader *reader, Elf *elf)
{
	size_t count = 0;
	GElf_Phdr header;

	if (reader->table.load.is_known || elf_getphdrnum(elf, &count))
		return;
	for (size_t i = 0; i < count && i < PROGRAM_HEADERS_MAX; i++) {
		if (!gelf_getphdr(elf, (int)i, &header) || header.p_type != PT_LOAD)
			continue;
		reader->table.load = (struct symbol_base){true, header.p_vaddr};
		return;
	}
}

static void close_file(struct elf_file *file)
{
	elf_end(file->elf);
	if (file->has_units)
		dwarf_units_close(&file->units);
	dwarf_file_close(file->dwarf);
	free(file->code);
	buffer_release(&file->unpacked);
	*file = (struct elf_file){.elf = NULL};
}

static bool open_file(struct reader *reader, const struct debug_input *input, struct error *err)
{
	struct elf_file *file = &reader->files[reader->count];
	struct dwarf_limits limits = dwarf_limits;

	file->elf = elf_memory(input->bytes, input->length);
	if (file->elf)
		reader->count++; /* from here on it is closed with the reader */
	if (!file->elf || elf_kind(file->elf) != ELF_K_ELF ||
	    !gelf_getehdr(file->elf, &file->header))
		return error_set(err, ERROR_FORMAT, "it is not an ELF file");
	file->is_relocatable = file->header.e_type == ET_REL;
	limits.is_mapping = input->is_mapping;
	file->dwarf = dwarf_file_open(input->bytes, input->length, &limits, err);
	if (!file->dwarf)
		return false;
	if (dwarf_file_is_unrelocated(file->dwarf))
		reader->table.flags |= SYMBOL_TABLE_UNRELOCATED;
	file->is_relocatable &= !dwarf_file_is_split(file->dwarf);
	take_load_base(reader, file->elf);
	return read_sections(reader, file, err);
}

/* ---- symbols ---- */

/* The file inside of .gnu_debugdata is one more file with symbols. One that cannot be read is a
 * flag: the others' names are good. */
static struct elf_file *open_minidebug(struct reader *reader, const struct elf_file *outer)
{
	GElf_Shdr header;
	Elf_Scn *section = debug_section_named(outer, ".gnu_debugdata", &header);
	Elf_Data *data = section ? elf_rawdata(section, NULL) : NULL;
	struct elf_file *file = &reader->files[reader->count];
	size_t count = reader->count;
	struct debug_input inside = {0};
	struct error err = {0};

	if (!data || !data->d_buf || !data->d_size || count == FILES_MAX)
		return NULL;
	buffer_init(&file->unpacked, GNU_DEBUGDATA_BYTES_MAX);
	file->is_minidebug = true;
	if (gnu_debugdata_unpack(data->d_buf, data->d_size, &file->unpacked, &err)) {
		inside.bytes = file->unpacked.bytes;
		inside.length = file->unpacked.length;
		if (open_file(reader, &inside, &err))
			return file;
	}
	reader->table.flags |= err.kind == ERROR_FORMAT ? SYMBOL_TABLE_DAMAGED : SYMBOL_TABLE_CUT;
	reader->count = count;
	close_file(file);
	return NULL;
}

static void read_symbols(struct reader *reader)
{
	struct debug_symbols *symbols = &reader->symbols;
	size_t inputs = reader->count;

	symbols->builder = reader->builder;
	for (size_t i = 0; i < inputs; i++)
		debug_symbols_read(symbols, &reader->files[i], reader->files, reader->count);
	/* What is inside is a part of .symtab. */
	for (size_t i = 0; i < inputs && symbols->quality < QUALITY_SYMTAB; i++) {
		const struct elf_file *inside = open_minidebug(reader, &reader->files[i]);

		if (inside)
			debug_symbols_read(symbols, inside, reader->files, reader->count);
	}
	for (size_t i = 0; i < inputs; i++)
		debug_plt_read(symbols, &reader->files[i]);
	reader->table.quality = symbols->quality;
	reader->table.bases[ADDRESS_KERNEL_TEXT] = symbols->kernel_text;
	table_builder_sort_symbols(reader->builder);
}

/* ---- DWARF ---- */

static bool open_units(struct reader *reader, struct elf_file *file, struct error *err)
{
	if (file->has_units)
		return true;
	file->has_units = dwarf_units_open(&file->units, file->dwarf, err);
	file->units.number = (uint32_t)(file - reader->files);
	return file->has_units;
}

/* The dwz file that is meant, among the others; NULL: it is not there. */
static struct elf_file *alt_of(struct reader *reader, const struct elf_file *file)
{
	uint8_t wanted[DWARF_ID_MAX], id[DWARF_ID_MAX];
	size_t length = dwarf_file_alt_id(file->dwarf, wanted);

	for (size_t i = 0; i < reader->count && length; i++)
		if (&reader->files[i] != file &&
		    dwarf_file_id(reader->files[i].dwarf, id) == length &&
		    !memcmp(id, wanted, length))
			return &reader->files[i];
	return NULL;
}

static bool is_alt(struct reader *reader, const struct elf_file *file)
{
	for (size_t i = 0; i < reader->count; i++)
		if (alt_of(reader, &reader->files[i]) == file)
			return true;
	return false;
}

/* The first file with units of its own. */
static struct elf_file *main_file(struct reader *reader)
{
	for (size_t i = 0; i < reader->count; i++) {
		struct elf_file *file = &reader->files[i];

		if (dwarf_file_has(file->dwarf, DWARF_INFO) && !dwarf_file_is_split(file->dwarf) &&
		    !dwarf_file_is_unrelocated(file->dwarf) && !is_alt(reader, file))
			return file;
	}
	return NULL;
}

/* The files that belong to the main one. */
static bool gather_files(struct reader *reader, struct elf_file *file, struct debug_files *files,
			 struct error *err)
{
	struct elf_file *alt = alt_of(reader, file);
	uint8_t id[DWARF_ID_MAX];

	if (!open_units(reader, file, err) || (alt && !open_units(reader, alt, err)))
		return false;
	files->main = &file->units;
	file->units.alt = alt ? &alt->units : NULL;
	if (!alt && dwarf_file_alt_id(file->dwarf, id))
		reader->table.flags |= SYMBOL_TABLE_ALT_MISSING;
	for (size_t i = 0; i < reader->count; i++) {
		struct elf_file *other = &reader->files[i];

		if (!dwarf_file_is_split(other->dwarf) || files->split_count == DEBUG_SPLITS_MAX)
			continue;
		if (!open_units(reader, other, err))
			return false;
		other->units.alt = file->units.alt;
		files->splits[files->split_count++] = &other->units;
	}
	return true;
}

static bool read_debug_info(struct reader *reader, struct error *err)
{
	struct elf_file *file = main_file(reader);
	struct debug_files files = {0};

	if (!file)
		return true;
	if (!gather_files(reader, file, &files, err) ||
	    !debug_units_read(&files, reader->builder, &reader->units, err))
		return false;
	reader->table.flags |= reader->units.flags;
	if (table_builder_has_functions(reader->builder))
		reader->table.quality = QUALITY_DWARF;
	return true;
}

/* Go's own table, for what has no DWARF. */
static void read_go_tables(struct reader *reader, const struct debug_input *inputs, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (go_pclntab_read(inputs[i].bytes, inputs[i].length, reader->builder,
				    &reader->table.flags) &&
		    reader->table.quality < QUALITY_PCLNTAB)
			reader->table.quality = QUALITY_PCLNTAB;
}

/* ---- whole files ---- */

/* Stripped of its section headers: what is loaded as code. */
static void take_code_segments(struct reader *reader, Elf *elf)
{
	size_t count = 0;
	GElf_Phdr header;

	if (elf_getphdrnum(elf, &count))
		return;
	for (size_t i = 0; i < count && i < PROGRAM_HEADERS_MAX; i++)
		if (gelf_getphdr(elf, (int)i, &header) && header.p_type == PT_LOAD &&
		    header.p_flags & PF_X && header.p_vaddr + header.p_filesz > header.p_vaddr &&
		    reader->code_count < CODE_SECTIONS_MAX) {
			reader->code[reader->code_count][0] = header.p_vaddr;
			reader->code[reader->code_count++][1] = header.p_vaddr + header.p_filesz;
		}
}

static bool read_files(struct reader *reader, const struct debug_input *inputs, size_t count,
		       bool names_only, struct error *err)
{
	for (size_t i = 0; i < count; i++)
		if (!open_file(reader, &inputs[i], err))
			return false;
	if (!reader->code_count && count)
		take_code_segments(reader, reader->files[0].elf);
	if (!table_builder_sections(reader->builder, reader->code, reader->code_count, err))
		return false;
	reader->table.bases[ADDRESS_ELF].is_known = true;
	read_symbols(reader);
	if (!names_only && !read_debug_info(reader, err))
		return false;
	read_go_tables(reader, inputs, count);
	return true;
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

/* No names at all: not for a want of debug information where that could not be read. */
static void explain_nothing(uint32_t flags, struct error *err)
{
	if (!err || err->kind != ERROR_NOT_FOUND)
		return;
	if (flags & SYMBOL_TABLE_CUT)
		error_set(err, ERROR_LIMIT, "its debug information passes a limit of size");
	else if (flags & SYMBOL_TABLE_DAMAGED)
		error_set(err, ERROR_FORMAT, "its debug information is damaged");
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
	if (!table_builder_finish(reader->builder, reader->units.pending, &reader->table, err)) {
		explain_nothing(reader->table.flags, err);
		goto out;
	}
	if (table_builder_is_cut(reader->builder))
		reader->table.flags |= SYMBOL_TABLE_CUT;
	ok = symbol_table_pack(&reader->table, packed, err);
out:
	while (reader && reader->count)
		close_file(&reader->files[--reader->count]);
	if (reader) {
		free(reader->units.pending);
		debug_symbols_release(&reader->symbols);
		table_builder_free(reader->builder);
	}
	free(reader);
	return ok;
}
