/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/file_parser/symbol_names.h"

#include <string.h>

enum {
	STRING_BYTES_MAX = 32 << 20,
	NAME_BYTES_MAX = 64,
	CHUNK = 4096,
	CHAIN_MAX = 1024, /* symbols of one bucket; three is usual */
};

/* --- by reading all --- */

void symbol_names_find(const struct code_file *file, const Elf64_Shdr *strings, const char *name,
		       size_t length, struct symbol_names *names)
{
	char bytes[CHUNK + NAME_BYTES_MAX];
	const uint64_t size = strings->sh_size;

	names->count = 0;
	if (size > STRING_BYTES_MAX || length > NAME_BYTES_MAX)
		return;
	for (uint64_t at = 0; at < size; at += CHUNK) {
		const uint64_t left = size - at;
		const size_t now = left < CHUNK + length ? (size_t)left : CHUNK + length;
		const char *found = bytes;

		if (!code_file_read(file, strings->sh_offset + at, bytes, now))
			return;
		while ((found = memmem(found, now - (size_t)(found - bytes), name, length)) &&
		       names->count < SYMBOL_NAMES_MAX) {
			if (found - bytes < CHUNK)
				names->offsets[names->count++] =
					(uint32_t)(at + (uint64_t)(found - bytes));
			found++;
		}
	}
}

bool symbol_names_have(const struct symbol_names *names, uint32_t offset)
{
	for (unsigned i = 0; i < names->count; i++)
		if (names->offsets[i] == offset)
			return true;
	return false;
}

bool symbol_rows_each(const struct code_file *file, const Elf64_Shdr *table, size_t row_bytes,
		      uint64_t limit, symbol_row *each, void *context)
{
	uint64_t rows = table->sh_size / row_bytes;
	_Alignas(8) uint8_t bytes[CHUNK];
	const uint64_t at_once = sizeof bytes / row_bytes;

	if (rows > limit)
		rows = limit;
	for (uint64_t at = 0; at < rows; at += at_once) {
		const uint64_t count = rows - at < at_once ? rows - at : at_once;

		if (!code_file_read(file, table->sh_offset + at * row_bytes, bytes,
				    count * row_bytes))
			return true;
		for (uint64_t i = 0; i < count; i++)
			if (!each(context, bytes + i * row_bytes, (uint32_t)(at + i)))
				return false;
	}
	return true;
}

struct by_name {
	struct symbol_names names;
	Elf64_Sym *symbol;
};

static bool look_at(void *context, const void *row, uint32_t number)
{
	struct by_name *search = context;

	(void)number;
	memcpy(search->symbol, row, sizeof *search->symbol);
	return search->symbol->st_shndx == SHN_UNDEF ||
	       !symbol_names_have(&search->names, search->symbol->st_name);
}

static bool find_by_reading(const struct code_file *file, const Elf64_Shdr *table, const char *name,
			    Elf64_Sym *symbol)
{
	struct by_name search = {.symbol = symbol};

	symbol_names_find(file, &file->sections[table->sh_link], name, strlen(name) + 1,
			  &search.names);
	return search.names.count &&
	       !symbol_rows_each(file, table, sizeof(Elf64_Sym), SYMBOL_ROWS_MAX, look_at, &search);
}

/* --- by the hash table --- */

struct hashed {
	const struct code_file *file;
	const Elf64_Shdr *table, *hash;
	struct {
		uint32_t buckets, first, blooms, shift;
	} head;
};

static uint32_t hash_of(const char *name)
{
	uint32_t hash = 5381;

	for (; *name; name++)
		hash = hash * 33 + (uint8_t)*name;
	return hash;
}

static bool has_hash(const struct code_file *file, const Elf64_Shdr *table, struct hashed *hashed)
{
	for (unsigned i = 0; i < file->section_count; i++) {
		const Elf64_Shdr *hash = &file->sections[i];

		if (hash->sh_type != SHT_GNU_HASH || hash->sh_link >= file->section_count ||
		    &file->sections[hash->sh_link] != table)
			continue;
		*hashed = (struct hashed){.file = file, .table = table, .hash = hash};
		return code_file_read(file, hash->sh_offset, &hashed->head, sizeof hashed->head) &&
		       hashed->head.buckets && hashed->head.blooms;
	}
	return false;
}

static bool may_have(const struct hashed *hashed, uint32_t hash)
{
	const uint64_t at = hash / 64 % hashed->head.blooms;
	uint64_t word;

	return code_file_read(hashed->file,
			      hashed->hash->sh_offset + sizeof hashed->head + at * sizeof word,
			      &word, sizeof word) &&
	       word >> hash % 64 & 1 && word >> (hash >> hashed->head.shift % 32) % 64 & 1;
}

static bool is_named(const struct hashed *hashed, uint64_t number, const char *name,
		     Elf64_Sym *symbol)
{
	const Elf64_Shdr *names = &hashed->file->sections[hashed->table->sh_link];
	const size_t length = strlen(name) + 1;
	char text[NAME_BYTES_MAX];

	return code_file_read(hashed->file, hashed->table->sh_offset + number * sizeof *symbol,
			      symbol, sizeof *symbol) &&
	       symbol->st_shndx != SHN_UNDEF &&
	       code_file_read(hashed->file, names->sh_offset + symbol->st_name, text, length) &&
	       !memcmp(text, name, length);
}

static bool find_by_hash(const struct hashed *hashed, const char *name, Elf64_Sym *symbol)
{
	const uint32_t hash = hash_of(name);
	const uint64_t buckets_at = hashed->hash->sh_offset + sizeof hashed->head +
				    hashed->head.blooms * UINT64_C(8),
		       chain_at = buckets_at + hashed->head.buckets * UINT64_C(4);
	uint32_t number, word = 0;

	if (!may_have(hashed, hash) ||
	    !code_file_read(hashed->file, buckets_at + hash % hashed->head.buckets * UINT64_C(4),
			    &number, sizeof number) ||
	    number < hashed->head.first)
		return false;
	for (int i = 0; i < CHAIN_MAX && !(word & 1); i++, number++) {
		if (!code_file_read(hashed->file,
				    chain_at + (number - hashed->head.first) * UINT64_C(4), &word,
				    sizeof word))
			return false;
		if ((word | 1) == (hash | 1) && is_named(hashed, number, name, symbol))
			return true;
	}
	return false;
}

/* --- either --- */

const Elf64_Shdr *symbol_table(const struct code_file *file, uint32_t type)
{
	for (unsigned i = 0; file->sections && i < file->section_count; i++)
		if (file->sections[i].sh_type == type &&
		    file->sections[i].sh_link < file->section_count)
			return &file->sections[i];
	return NULL;
}

bool symbol_find(const struct code_file *file, const Elf64_Shdr *table, const char *name,
		 Elf64_Sym *symbol)
{
	struct hashed hashed;

	if (strlen(name) >= NAME_BYTES_MAX)
		return false;
	return has_hash(file, table, &hashed) ? find_by_hash(&hashed, name, symbol)
					      : find_by_reading(file, table, name, symbol);
}
