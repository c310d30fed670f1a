/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/file_parser/go/go_place.h"

#include <stdlib.h>
#include <string.h>

enum {
	CHUNK_BYTES = 32 << 10,
	FUNCTIONS_MAX = 1 << 24, /* a provider of 700 MB has half a million */
	DYNAMIC_MAX = 512,
	MODULE_WORDS = 64, /* of the runtime's moduledata that are looked at */
	MODULE_TEXT = 22,  /* in Go 1.18 to 1.26 */
	NOTES_MAX = 16,
};
static const uint64_t SEARCH_BYTES_MAX = 512 << 20; /* of one file, for the table */
static const uint64_t RELOCATION_BYTES_MAX = 256 << 20;

/* What is in the file may move in memory: one word that the program loader fills in. */
enum { RELATIVE = R_X86_64_RELATIVE };

static const struct go_layout layouts[] = {
	/* Go 1.2: everything counts from the table's start, and its entries are addresses. */
	{0xfb, 8, false, 0, 0, 0, 0, 8, 20, 0, 40},
	/* Go 1.16: a table for each kind of thing. Flags since 1.17, 0 before. */
	{0xfa, 8, false, 0, 3, 6, 7, 8, 20, 41, 44},
	/* Go 1.18: entries count from the text. */
	{0xf0, 4, true, 3, 4, 7, 8, 4, 16, 37, 40},
	/* Go 1.20: the line a function begins in. The text's word is 0 since 1.26. */
	{0xf1, 4, true, 3, 4, 7, 8, 4, 16, 41, 44},
};

/* The first 8 bytes: magic, two zeros, an instruction's least size, a pointer's size. */
static const struct go_layout *layout_of(uint64_t word)
{
	for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
		if (word == (UINT64_C(0x08010000ffffff00) | layouts[i].magic))
			return &layouts[i];
	return NULL;
}

/* The header's words are counted from 1: 0 stands for the table's start. */
static uint64_t part_of(const struct go_place *place, unsigned word)
{
	return word ? place->words[word - 1] : 0;
}

static bool read_header(struct go_place *place)
{
	const struct go_layout *layout;
	uint64_t first, entries;

	if (place->bytes < sizeof first + sizeof place->words ||
	    !code_file_read(place->file, place->offset, &first, sizeof first) ||
	    !(layout = layout_of(first)) ||
	    !code_file_read(place->file, place->offset + sizeof first, place->words,
			    sizeof place->words) ||
	    place->words[0] == 0 || place->words[0] > FUNCTIONS_MAX)
		return false;
	place->layout = layout;
	place->count = (uint32_t)place->words[0];
	place->names = part_of(place, layout->names_word);
	place->pcs = part_of(place, layout->pcs_word);
	place->functions = part_of(place, layout->functions_word);
	place->ftab = layout->functions_word ? place->functions : 16;
	entries = ((uint64_t)place->count * 2 + 1) * layout->pc_bytes;
	return place->names < place->bytes && place->pcs < place->bytes &&
	       place->ftab < place->bytes && entries <= place->bytes - place->ftab;
}

static bool take_section(struct go_place *place, const char *name)
{
	struct code_section section;

	if (!code_file_section(place->file, name, &section) || section.flags & SHF_COMPRESSED)
		return false;
	place->address = section.address;
	place->offset = section.offset;
	place->bytes = section.size;
	return read_header(place);
}

/* --- without a section of its own --- */

/* A note of Go's linker, type 4, in a segment that may have other notes too. */
static bool has_note(const struct code_file *file, const Elf64_Phdr *segment)
{
	static const char name[4] = "Go";
	struct {
		Elf64_Nhdr header;
		char name[4];
	} note;

	for (uint64_t at = 0, i = 0; i < NOTES_MAX; i++) {
		if (at > segment->p_filesz || segment->p_filesz - at < sizeof note ||
		    !code_file_read(file, segment->p_offset + at, &note, sizeof note))
			return false;
		if (note.header.n_type == 4 && note.header.n_namesz == sizeof name &&
		    memcmp(note.name, name, sizeof name) == 0)
			return true;
		at += sizeof note.header + (((uint64_t)note.header.n_namesz + 3) & ~UINT64_C(3)) +
		      (((uint64_t)note.header.n_descsz + 3) & ~UINT64_C(3));
	}
	return false;
}

/* Another linker may have finished the work and kept the section about the build only. */
static bool is_go(const struct code_file *file)
{
	struct code_section section;

	if (code_file_section(file, ".go.buildinfo", &section) ||
	    code_file_section(file, ".gopclntab", &section))
		return true;
	for (unsigned i = 0; i < file->segment_count; i++)
		if (file->segments[i].p_type == PT_NOTE && has_note(file, &file->segments[i]))
			return true;
	return false;
}

/* Calls found() for each word of the segment's file bytes that may be what is looked for; words
 * aligned as in memory. */
typedef bool (*word_found)(void *context, uint64_t address, uint64_t word);

static bool search_segment(const struct code_file *file, const Elf64_Phdr *segment,
			   uint64_t *budget, word_found found, void *context)
{
	uint64_t *words = malloc(CHUNK_BYTES), at = -segment->p_vaddr & 7;
	bool done = false;

	while (words && !done && at < segment->p_filesz && *budget >= CHUNK_BYTES) {
		uint64_t length = segment->p_filesz - at;

		length = length > CHUNK_BYTES ? CHUNK_BYTES : length & ~UINT64_C(7);
		if (!length || !code_file_read(file, segment->p_offset + at, words, length))
			break;
		for (size_t i = 0; i < length / 8 && !done; i++)
			done = found(context, segment->p_vaddr + at + i * 8, words[i]);
		at += length;
		*budget -= length;
	}
	free(words);
	return done;
}

static bool table_found(void *context, uint64_t address, uint64_t word)
{
	struct go_place *place = context;

	if (!layout_of(word))
		return false;
	place->address = address;
	place->bytes = code_file_offset(place->file, address, &place->offset);
	return place->bytes && read_header(place);
}

/* Read-only data first, then data that is read-only once it is relocated, then what lies with code.
 */
static bool search_table(struct go_place *place)
{
	static const struct {
		uint32_t mask, flags;
	} passes[] = {{PF_X | PF_W, 0}, {PF_X | PF_W, PF_W}, {PF_X, PF_X}};
	uint64_t budget = SEARCH_BYTES_MAX;

	for (size_t pass = 0; pass < sizeof passes / sizeof *passes; pass++)
		for (unsigned i = 0; i < place->file->segment_count; i++) {
			const Elf64_Phdr *segment = &place->file->segments[i];

			if (segment->p_type == PT_LOAD &&
			    (segment->p_flags & passes[pass].mask) == passes[pass].flags &&
			    search_segment(place->file, segment, &budget, table_found, place))
				return true;
		}
	return false;
}

bool go_place_find(const struct code_file *file, struct go_place *place, enum row_failure *failure)
{
	*failure = ROW_FAILURE_NONE;
	memset(place, 0, sizeof *place);
	place->file = file;
	if (file->machine != EM_X86_64 || !is_go(file))
		return false;
	if (take_section(place, ".gopclntab") || take_section(place, ".data.rel.ro.gopclntab") ||
	    search_table(place))
		return true;
	*failure = ROW_FAILURE_DAMAGED;
	return false;
}

/* --- relocations --- */

struct relocations {
	const struct code_file *file;
	uint64_t offset, bytes;
};

static void relocations_find(struct relocations *relocations, const struct code_file *file)
{
	uint64_t address = 0;
	Elf64_Dyn entry;

	*relocations = (struct relocations){.file = file};
	for (unsigned i = 0; i < file->segment_count; i++) {
		const Elf64_Phdr *segment = &file->segments[i];

		if (segment->p_type != PT_DYNAMIC)
			continue;
		for (unsigned j = 0; j < DYNAMIC_MAX && j < segment->p_filesz / sizeof entry; j++) {
			if (!code_file_read(file, segment->p_offset + j * sizeof entry, &entry,
					    sizeof entry) ||
			    entry.d_tag == DT_NULL)
				break;
			if (entry.d_tag == DT_RELA)
				address = entry.d_un.d_ptr;
			if (entry.d_tag == DT_RELASZ)
				relocations->bytes = entry.d_un.d_val;
		}
	}
	if (!address ||
	    relocations->bytes > code_file_offset(file, address, &relocations->offset) ||
	    relocations->bytes > RELOCATION_BYTES_MAX)
		relocations->bytes = 0;
}

/* What relocations put into the count words from the address on; with the address 0, where one puts
 * the value words[0]. */
static bool relocations_read(const struct relocations *relocations, uint64_t *address,
			     uint64_t *words, size_t count)
{
	enum { AT_ONCE = CHUNK_BYTES / sizeof(Elf64_Rela) };
	Elf64_Rela *rela = malloc(AT_ONCE * sizeof *rela);
	uint64_t total = relocations->bytes / sizeof *rela;
	bool found = false, by_value = !*address;

	for (uint64_t at = 0; rela && at < total; at += AT_ONCE) {
		size_t length = total - at > AT_ONCE ? AT_ONCE : (size_t)(total - at);

		if (!code_file_read(relocations->file, relocations->offset + at * sizeof *rela,
				    rela, length * sizeof *rela))
			break;
		for (size_t i = 0; i < length; i++) {
			uint64_t word = (rela[i].r_offset - *address) / 8;

			if (ELF64_R_TYPE(rela[i].r_info) != RELATIVE)
				continue;
			if (by_value && (uint64_t)rela[i].r_addend == words[0]) {
				*address = rela[i].r_offset;
				free(rela);
				return true;
			}
			if (!by_value && rela[i].r_offset >= *address && word < count) {
				words[word] = (uint64_t)rela[i].r_addend;
				found = true;
			}
		}
	}
	free(rela);
	return found;
}

/* --- the start of the text --- */

struct module {
	const struct go_place *place;
	uint64_t address, last;
};

/* Two pointers in a row: to the table and to its names. */
static bool module_found(void *context, uint64_t address, uint64_t word)
{
	struct module *module = context;
	bool found = module->last == module->place->address &&
		     word == module->place->address + module->place->names;

	module->last = word;
	module->address = address - 8;
	return found;
}

/* The runtime's firstmoduledata: its first word points to the table. 0: not found. */
static uint64_t find_module(const struct go_place *place, const struct relocations *relocations)
{
	struct module module = {.place = place};
	uint64_t budget = SEARCH_BYTES_MAX, at = 0, words[1] = {place->address};

	if (relocations_read(relocations, &at, words, 1))
		return at;
	for (unsigned i = 0; i < place->file->segment_count; i++) {
		const Elf64_Phdr *segment = &place->file->segments[i];

		if (segment->p_type == PT_LOAD && segment->p_flags & PF_W &&
		    search_segment(place->file, segment, &budget, module_found, &module))
			return module.address;
	}
	return 0;
}

/* A later version may have the text anywhere in it; the one we know comes first. */
static unsigned module_texts(const uint64_t words[MODULE_WORDS], uint64_t texts[GO_TEXTS_MAX])
{
	unsigned count = 0;

	if (words[MODULE_TEXT])
		texts[count++] = words[MODULE_TEXT];
	for (unsigned i = 0; i < MODULE_WORDS; i++)
		if (words[i] && words[i] != words[MODULE_TEXT])
			texts[count++] = words[i];
	return count;
}

static bool module_read(const struct go_place *place, uint64_t module, uint64_t words[MODULE_WORDS])
{
	uint64_t offset, length = MODULE_WORDS * sizeof *words;

	return code_file_offset(place->file, module, &offset) >= length &&
	       code_file_read(place->file, offset, words, length);
}

unsigned go_place_texts(const struct go_place *place, uint64_t texts[GO_TEXTS_MAX])
{
	unsigned word = place->layout->text_word;
	uint64_t words[MODULE_WORDS] = {0}, module = 0, at = place->address + word * 8;
	struct relocations relocations;
	struct code_section section;

	texts[0] = place->layout->is_relative ? part_of(place, word) : 0;
	if (texts[0] || !place->layout->is_relative)
		return 1;
	if (code_file_section(place->file, ".go.module", &section))
		module = section.address;
	if (module && module_read(place, module, words) && words[MODULE_TEXT])
		return module_texts(words, texts);
	/* Not in the file: the program loader fills them in. */
	relocations_find(&relocations, place->file);
	if (relocations_read(&relocations, &at, texts, 1) && texts[0])
		return 1;
	if (!module)
		module = find_module(place, &relocations);
	if (!module || !module_read(place, module, words))
		return 0;
	relocations_read(&relocations, &module, words, MODULE_WORDS);
	return module_texts(words, texts);
}
