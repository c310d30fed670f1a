/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/file_parser/malloc_names.h"

#include <stdio.h>
#include <string.h>

#include "node-agent/file_parser/probe_place.h"

enum {
	SYMBOLS_MAX = 1 << 20,
	SYMBOLS_AT_ONCE = 256,
	FUNCTION_BYTES_MAX = 1 << 20,
	PLACES_MAX = 24,
};

static const struct {
	const char *name;
	enum memory_place_kind kind;
} functions[] = {
	{"malloc", MEMORY_MALLOC},
	{"calloc", MEMORY_CALLOC},
	{"realloc", MEMORY_REALLOC},
	{"memalign", MEMORY_REALLOC},
	{"aligned_alloc", MEMORY_REALLOC},
	{"posix_memalign", MEMORY_POSIX_MEMALIGN},
	{"reallocarray", MEMORY_REALLOCARRAY},
	/* operator new and new[]: theirs where they are not malloc()'s */
	{"_Znwm", MEMORY_MALLOC},
	{"_Znam", MEMORY_MALLOC},
	{"_ZnwmRKSt9nothrow_t", MEMORY_MALLOC},
	{"_ZnamRKSt9nothrow_t", MEMORY_MALLOC},
	{"_ZnwmSt11align_val_t", MEMORY_MALLOC},
	{"_ZnamSt11align_val_t", MEMORY_MALLOC},
};

static const char *const prefixes[] = {"", "je_", "_rjem_", "mi_", "tc_"};

enum {
	PREFIXES = sizeof prefixes / sizeof *prefixes,
	FUNCTIONS = sizeof functions / sizeof *functions,
	C_FUNCTIONS = 7, /* the first: only these get prefixes */
};

bool malloc_name(size_t number, char name[MALLOC_NAME_BYTES], enum memory_place_kind *kind)
{
	const size_t prefix = number < FUNCTIONS ? 0 : 1 + (number - FUNCTIONS) / C_FUNCTIONS;
	const size_t function = number < FUNCTIONS ? number : (number - FUNCTIONS) % C_FUNCTIONS;

	if (prefix >= PREFIXES)
		return false;
	snprintf(name, MALLOC_NAME_BYTES, "%s%s", prefixes[prefix], functions[function].name);
	*kind = functions[function].kind;
	return true;
}

/* Operators: Itanium C++ ABI, 5.1.5. MEMORY_PLACE_KINDS: none of them. */
static enum memory_place_kind kind_of(const char *name)
{
	for (size_t p = 0; p < PREFIXES; p++) {
		size_t length = strlen(prefixes[p]);

		if (strncmp(name, prefixes[p], length))
			continue;
		for (size_t i = 0; i < FUNCTIONS; i++)
			if (!strcmp(name + length, functions[i].name))
				return functions[i].kind;
	}
	return MEMORY_PLACE_KINDS;
}

/* False: a probe there would be dear, and what the function calls has one as well. */
static bool find_place(const struct code_file *file, uint64_t bytes, struct memory_place *place)
{
	uint8_t code[PROBE_PLACE_BYTES];
	size_t length = bytes < sizeof code ? (size_t)bytes : sizeof code;

	if (file->machine != EM_X86_64 || !code_file_read(file, place->at, code, length))
		return true;
	place->skip = (uint16_t)probe_place(code, length);
	place->is_cheap = probe_is_cheap(code + place->skip, length - place->skip);
	return place->kind != MEMORY_REALLOCARRAY || place->is_cheap;
}

/* At an offset in the file. */
static void add(const struct code_file *file, uint64_t offset, uint64_t bytes,
		enum memory_place_kind kind, struct memory_places *places)
{
	struct memory_place *place;

	if (places->count >= PLACES_MAX)
		return;
	for (uint32_t i = 0; i < places->count; i++)
		if (places->items[i].kind != MEMORY_BASE && places->items[i].at == offset)
			return;
	memory_place_add(places, kind, offset);
	place = &places->items[places->count - 1];
	place->bytes = bytes < FUNCTION_BYTES_MAX ? (uint32_t)bytes : 0;
	if (!find_place(file, bytes, place))
		places->count--;
}

/* Names are read where they may be ours only: by their length they are few, and a page of names is
 * mostly in the page cache. */
static void look_at(const struct code_file *file, const Elf64_Shdr *names, const Elf64_Sym *symbol,
		    struct memory_places *places)
{
	char name[MALLOC_NAME_BYTES + 1] = {0};
	uint64_t left, offset;
	enum memory_place_kind kind;

	if (ELF64_ST_TYPE(symbol->st_info) != STT_FUNC || symbol->st_shndx == SHN_UNDEF ||
	    symbol->st_name >= names->sh_size)
		return;
	left = names->sh_size - symbol->st_name;
	if (!code_file_read(file, names->sh_offset + symbol->st_name, name,
			    left < MALLOC_NAME_BYTES ? left : MALLOC_NAME_BYTES))
		return;
	kind = kind_of(name);
	if (kind != MEMORY_PLACE_KINDS && code_file_offset(file, symbol->st_value, &offset))
		add(file, offset, symbol->st_size, kind, places);
}

static void search(const struct code_file *file, const Elf64_Shdr *table,
		   struct memory_places *places)
{
	Elf64_Sym symbols[SYMBOLS_AT_ONCE];
	uint64_t count = table->sh_size / sizeof *symbols;

	if (table->sh_link >= file->section_count || table->sh_entsize != sizeof *symbols)
		return;
	if (count > SYMBOLS_MAX)
		count = SYMBOLS_MAX;
	for (uint64_t at = 0; at < count; at += SYMBOLS_AT_ONCE) {
		size_t now = count - at < SYMBOLS_AT_ONCE ? count - at : SYMBOLS_AT_ONCE;

		if (!code_file_read(file, table->sh_offset + at * sizeof *symbols, symbols,
				    now * sizeof *symbols))
			return;
		for (size_t i = 0; i < now; i++)
			look_at(file, &file->sections[table->sh_link], &symbols[i], places);
	}
}

void malloc_names_find(const struct code_file *file, struct memory_places *places)
{
	for (unsigned i = 0; file->sections && i < file->section_count; i++)
		if (file->sections[i].sh_type == SHT_DYNSYM)
			search(file, &file->sections[i], places);
	for (unsigned i = 0; file->sections && i < file->section_count; i++)
		if (file->sections[i].sh_type == SHT_SYMTAB)
			search(file, &file->sections[i], places);
}

bool malloc_names_are_gone(const struct code_file *file, const struct memory_places *places)
{
	for (uint32_t i = 0; i < places->count; i++)
		if (places->items[i].kind >= MEMORY_MALLOC)
			return false;
	for (unsigned i = 0; file->sections && i < file->section_count; i++)
		if (file->sections[i].sh_type == SHT_SYMTAB)
			return false;
	return true;
}

/* Whether what lies at the address comes from that offset, and may be run. */
static bool is_code(const struct code_file *file, uint64_t address, uint64_t offset)
{
	for (unsigned i = 0; i < file->segment_count; i++) {
		const Elf64_Phdr *segment = &file->segments[i];

		if (segment->p_type == PT_LOAD && segment->p_flags & PF_X &&
		    address >= segment->p_vaddr && address - segment->p_vaddr < segment->p_filesz &&
		    address - segment->p_vaddr + segment->p_offset == offset)
			return true;
	}
	return false;
}

bool malloc_names_add(const struct code_file *file, const struct memory_function *function,
		      uint64_t bytes, struct memory_places *places)
{
	uint64_t offset;

	if (function->kind < MEMORY_MALLOC || function->kind > MEMORY_REALLOCARRAY ||
	    code_file_offset(file, function->address, &offset) < bytes ||
	    !is_code(file, function->address, offset))
		return false;
	add(file, offset, bytes, (enum memory_place_kind)function->kind, places);
	return true;
}
