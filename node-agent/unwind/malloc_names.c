/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/unwind/malloc_names.h"

#include <string.h>

#include "node-agent/unwind/probe_place.h"

enum {
	SYMBOLS_MAX = 1 << 20,
	SYMBOLS_AT_ONCE = 256,
	NAME_MAX_BYTES = 32,
	FUNCTION_BYTES_MAX = 1 << 20,
	PLACES_MAX = 24,
};

static const struct {
	const char *name;
	enum memory_place_kind kind;
} functions[] = {
	{"malloc", MEMORY_MALLOC},
	/* operator new and new[]: theirs where they are not malloc()'s */
	{"_Znwm", MEMORY_MALLOC},
	{"_Znam", MEMORY_MALLOC},
	{"_ZnwmRKSt9nothrow_t", MEMORY_MALLOC},
	{"_ZnamRKSt9nothrow_t", MEMORY_MALLOC},
	{"_ZnwmSt11align_val_t", MEMORY_MALLOC},
	{"_ZnamSt11align_val_t", MEMORY_MALLOC},
	{"calloc", MEMORY_CALLOC},
	{"realloc", MEMORY_REALLOC},
	{"memalign", MEMORY_REALLOC},
	{"aligned_alloc", MEMORY_REALLOC},
	{"posix_memalign", MEMORY_POSIX_MEMALIGN},
	{"reallocarray", MEMORY_REALLOCARRAY},
};

static const char *const prefixes[] = {"", "je_", "_rjem_", "mi_", "tc_"};

/* Operators: Itanium C++ ABI, 5.1.5. MEMORY_PLACE_KINDS: none of them. */
static enum memory_place_kind kind_of(const char *name)
{
	for (size_t p = 0; p < sizeof prefixes / sizeof *prefixes; p++) {
		size_t length = strlen(prefixes[p]);

		if (strncmp(name, prefixes[p], length))
			continue;
		for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
			if (!strcmp(name + length, functions[i].name))
				return functions[i].kind;
	}
	return MEMORY_PLACE_KINDS;
}

/* False: a probe there would be dear, and what the function calls has one as well. */
static bool find_place(const struct code_file *file, const Elf64_Sym *symbol,
		       struct memory_place *place)
{
	uint8_t code[PROBE_PLACE_BYTES];
	size_t length = symbol->st_size < sizeof code ? symbol->st_size : sizeof code;

	if (file->machine != EM_X86_64 || !code_file_read(file, place->at, code, length))
		return true;
	place->skip = (uint16_t)probe_place(code, length);
	place->is_cheap = probe_is_cheap(code + place->skip, length - place->skip);
	return place->kind != MEMORY_REALLOCARRAY || place->is_cheap;
}

static void add(const struct code_file *file, const Elf64_Sym *symbol, enum memory_place_kind kind,
		struct memory_places *places)
{
	struct memory_place *place;
	uint64_t offset;

	if (places->count >= PLACES_MAX || !code_file_offset(file, symbol->st_value, &offset))
		return;
	for (uint32_t i = 0; i < places->count; i++)
		if (places->items[i].kind != MEMORY_BASE && places->items[i].at == offset)
			return;
	memory_place_add(places, kind, offset);
	place = &places->items[places->count - 1];
	place->bytes = symbol->st_size < FUNCTION_BYTES_MAX ? (uint32_t)symbol->st_size : 0;
	if (!find_place(file, symbol, place))
		places->count--;
}

/* Names are read where they may be ours only: by their length they are few, and a page of names is
 * mostly in the page cache. */
static void look_at(const struct code_file *file, const Elf64_Shdr *names, const Elf64_Sym *symbol,
		    struct memory_places *places)
{
	char name[NAME_MAX_BYTES + 1] = {0};
	uint64_t left;
	enum memory_place_kind kind;

	if (ELF64_ST_TYPE(symbol->st_info) != STT_FUNC || symbol->st_shndx == SHN_UNDEF ||
	    symbol->st_name >= names->sh_size)
		return;
	left = names->sh_size - symbol->st_name;
	if (!code_file_read(file, names->sh_offset + symbol->st_name, name,
			    left < NAME_MAX_BYTES ? left : NAME_MAX_BYTES))
		return;
	kind = kind_of(name);
	if (kind != MEMORY_PLACE_KINDS)
		add(file, symbol, kind, places);
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
