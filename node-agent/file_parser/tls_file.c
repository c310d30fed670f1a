/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/file_parser/tls_file.h"

#include <string.h>

#include "node-agent/file_parser/symbol_names.h"

enum {
	RELOCATIONS_MAX = 4 << 20,
	DYNAMIC_MAX = 1024,
};

/* --- symbols --- */

struct symbol_search {
	struct symbol_names names;
	struct tls_symbol *out;
	uint32_t number; /* of the symbol */
};

static bool look_at_symbol(void *context, const void *row, uint32_t number)
{
	struct symbol_search *search = context;
	Elf64_Sym symbol;

	memcpy(&symbol, row, sizeof symbol);
	if (ELF64_ST_TYPE(symbol.st_info) != STT_TLS || symbol.st_shndx == SHN_UNDEF ||
	    !symbol_names_have(&search->names, symbol.st_name))
		return true;
	search->out->is_defined = 1;
	search->out->value = symbol.st_value;
	search->number = number;
	return false;
}

/* Returns the table that has it. */
static const Elf64_Shdr *find_symbol(const struct code_file *file, uint32_t type,
				     struct symbol_search *search)
{
	for (unsigned i = 0; i < file->section_count; i++) {
		const Elf64_Shdr *table = &file->sections[i];

		if (table->sh_type != type || table->sh_link >= file->section_count)
			continue;
		symbol_names_find(file, &file->sections[table->sh_link], TLS_FILE_SYMBOL,
				  sizeof TLS_FILE_SYMBOL, &search->names);
		if (search->names.count && !symbol_rows_each(file, table, sizeof(Elf64_Sym),
							     SYMBOL_ROWS_MAX, look_at_symbol,
							     search))
			return table;
	}
	return NULL;
}

/* --- what the dynamic linker fills in --- */

struct slot_search {
	struct tls_symbol *out;
	uint32_t number;
	uint16_t machine;
};

static int slot_kind(uint16_t machine, uint32_t type)
{
	if (machine == EM_X86_64)
		return type == R_X86_64_TPOFF64    ? TLS_SLOT_OFFSET
		       : type == R_X86_64_TLSDESC  ? TLS_SLOT_DESCRIPTOR
		       : type == R_X86_64_DTPMOD64 ? TLS_SLOT_MODULE
						   : -1;
	return type == R_AARCH64_TLS_TPREL    ? TLS_SLOT_OFFSET
	       : type == R_AARCH64_TLSDESC    ? TLS_SLOT_DESCRIPTOR
	       : type == R_AARCH64_TLS_DTPMOD ? TLS_SLOT_MODULE
					      : -1;
}

/* A relocation without a symbol is of the file's own block: at the addend, but for a module's
 * number, which is the same for all of it. */
static bool look_at_relocation(void *context, const void *row, uint32_t number)
{
	struct slot_search *search = context;
	struct tls_symbol *out = search->out;
	Elf64_Rela relocation;
	uint32_t symbol;
	int kind;

	(void)number;
	memcpy(&relocation, row, sizeof relocation);
	symbol = (uint32_t)ELF64_R_SYM(relocation.r_info);
	kind = slot_kind(search->machine, (uint32_t)ELF64_R_TYPE(relocation.r_info));
	if (kind < 0 ||
	    (symbol ? symbol != search->number
		    : kind != TLS_SLOT_MODULE && (uint64_t)relocation.r_addend != out->value))
		return true;
	out->slots[out->slot_count].address = relocation.r_offset;
	out->slots[out->slot_count].kind = (uint32_t)kind;
	return ++out->slot_count < TLS_SLOTS_MAX;
}

static void find_slots(const struct code_file *file, const Elf64_Shdr *symbols,
		       struct slot_search *search)
{
	for (unsigned i = 0; i < file->section_count; i++) {
		const Elf64_Shdr *table = &file->sections[i];

		if (table->sh_type == SHT_RELA && table->sh_link < file->section_count &&
		    &file->sections[table->sh_link] == symbols &&
		    !symbol_rows_each(file, table, sizeof(Elf64_Rela), RELOCATIONS_MAX,
				  look_at_relocation, search))
			return;
	}
}

/* --- the file --- */

struct dynamic_facts {
	bool has_name, is_pie;
};

static bool look_at_dynamic(void *context, const void *row, uint32_t number)
{
	struct dynamic_facts *facts = context;
	Elf64_Dyn entry;

	(void)number;
	memcpy(&entry, row, sizeof entry);
	facts->has_name |= entry.d_tag == DT_SONAME;
	facts->is_pie |= entry.d_tag == DT_FLAGS_1 && entry.d_un.d_val & DF_1_PIE;
	return entry.d_tag != DT_NULL;
}

/* Libraries may have an interpreter too, and before 2018 no program said what it is. */
static bool is_program(const struct code_file *file)
{
	struct dynamic_facts facts = {0};
	bool has_dynamic = false, has_interpreter = false;

	for (unsigned i = 0; i < file->section_count; i++)
		if (file->sections[i].sh_type == SHT_DYNAMIC) {
			has_dynamic = true;
			symbol_rows_each(file, &file->sections[i], sizeof(Elf64_Dyn), DYNAMIC_MAX,
				     look_at_dynamic, &facts);
		}
	for (unsigned i = 0; i < file->segment_count; i++)
		has_interpreter |= file->segments[i].p_type == PT_INTERP;
	return !has_dynamic || facts.is_pie || (has_interpreter && !facts.has_name);
}

static bool read_block(const struct code_file *file, struct tls_symbol *out)
{
	for (unsigned i = 0; i < file->segment_count; i++) {
		const Elf64_Phdr *segment = &file->segments[i];

		if (segment->p_type != PT_TLS)
			continue;
		out->block_address = segment->p_vaddr;
		out->block_bytes = segment->p_memsz;
		out->block_alignment = segment->p_align ? segment->p_align : 1;
		return segment->p_memsz < 1 << 30 && out->block_alignment < 1 << 30 &&
		       !(out->block_alignment & (out->block_alignment - 1)) &&
		       out->value < segment->p_memsz;
	}
	return false;
}

void tls_file_read(const struct code_file *file, struct tls_symbol *out)
{
	struct symbol_search search = {.out = out};
	const Elf64_Shdr *symbols;

	memset(out, 0, sizeof *out);
	symbols = find_symbol(file, SHT_DYNSYM, &search);
	if (symbols) {
		struct slot_search slots = {out, search.number, file->machine};

		find_slots(file, symbols, &slots);
	} else {
		find_symbol(file, SHT_SYMTAB, &search);
	}
	if (!out->is_defined)
		return;
	out->is_program = is_program(file);
	if (!read_block(file, out))
		memset(out, 0, sizeof *out);
}
