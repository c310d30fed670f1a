/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/symbolize/dwarf/dwarf_file.h"

#include <elf.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "symbol-server/symbolize/dwarf/dwarf_relocate.h"
#include "symbol-server/symbolize/dwarf/section_inflate.h"
#include "symbol-server/symbolize/symbol_table.h"

enum {
	SECTIONS_MAX = 1 << 20,
	RATIO_FREE_BYTES = 64 << 20, /* up to here a section may be packed as well as it can be */
	RATIO_MAX = 100,
	SECTION_NAME_MAX = 64,
	ZDEBUG_HEADER = 12,
};

struct held {            /* what became of one debug section */
	uint32_t number; /* among the file's sections; 0: there is none */
	bool is_tried;
	struct dwarf_bytes bytes;
	uint8_t *mapping; /* NULL: bytes are the file's */
	size_t mapped;
};

struct dwarf_file {
	struct elf_view view;
	bool is_split, is_unrelocated;
	struct dwarf_limits limits;
	size_t total;
	uint64_t *addresses;   /* of sections, in relocatable objects; else NULL */
	uint32_t id, alt, sup; /* section numbers; 0: none */
	struct held held[DWARF_SECTION_COUNT];
};

static const char *const section_names[DWARF_SECTION_COUNT] = {
	[DWARF_INFO] = "info",
	[DWARF_TYPES] = "types",
	[DWARF_ABBREV] = "abbrev",
	[DWARF_LINE] = "line",
	[DWARF_STR] = "str",
	[DWARF_LINE_STR] = "line_str",
	[DWARF_STR_OFFSETS] = "str_offsets",
	[DWARF_ADDR] = "addr",
	[DWARF_RANGES] = "ranges",
	[DWARF_RNGLISTS] = "rnglists",
	[DWARF_CU_INDEX] = "cu_index",
	[DWARF_TU_INDEX] = "tu_index",
};

/* ---- headers ---- */

static struct dwarf_cursor cursor_of(const struct elf_view *view, uint64_t offset)
{
	return dwarf_cursor_at(view->file, offset, view->is_big_endian);
}

static uint64_t word(const struct elf_view *view, struct dwarf_cursor *cursor)
{
	return dwarf_number(cursor, view->is_64 ? 8 : 4);
}

static bool read_section(const struct elf_view *view, uint64_t offset, struct elf_section *row)
{
	struct dwarf_cursor cursor = cursor_of(view, offset);

	row->name = (uint32_t)dwarf_number(&cursor, 4);
	row->type = (uint32_t)dwarf_number(&cursor, 4);
	row->flags = word(view, &cursor);
	row->address = word(view, &cursor);
	row->offset = word(view, &cursor);
	row->size = word(view, &cursor);
	row->link = (uint32_t)dwarf_number(&cursor, 4);
	row->info = (uint32_t)dwarf_number(&cursor, 4);
	row->alignment = word(view, &cursor);
	row->entry_size = word(view, &cursor);
	return !cursor.failed;
}

/* All section headers. Their number and the names' section may be in section 0. */
static bool read_sections(struct elf_view *view, uint64_t at, uint64_t size, uint32_t count,
			  struct error *err)
{
	struct elf_section zero = {0};

	if (!at)
		return true; /* stripped to the segments */
	if (size < (view->is_64 ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr)) ||
	    !read_section(view, at, &zero))
		return error_set(err, ERROR_FORMAT, "its section headers are outside of it");
	if (!count)
		count = zero.size > SECTIONS_MAX ? SECTIONS_MAX + 1 : (uint32_t)zero.size;
	if (view->names == SHN_XINDEX)
		view->names = zero.link;
	if (count > SECTIONS_MAX || count > (view->file.length - at) / size)
		return error_set(err, ERROR_FORMAT, "its section headers are damaged");
	view->sections = calloc((size_t)count + 1, sizeof(*view->sections));
	if (!view->sections)
		return error_set(err, ERROR_MEMORY, "no memory for its section headers");
	view->count = count;
	for (uint32_t i = 0; i < count; i++)
		read_section(view, at + i * size, &view->sections[i]);
	return true;
}

static bool read_header(struct elf_view *view, struct error *err)
{
	const uint8_t *ident = view->file.at;
	struct dwarf_cursor cursor;
	uint64_t at, size;
	uint32_t count;

	if (view->file.length < EI_NIDENT || memcmp(ident, ELFMAG, SELFMAG) != 0 ||
	    (ident[EI_CLASS] != ELFCLASS32 && ident[EI_CLASS] != ELFCLASS64) ||
	    (ident[EI_DATA] != ELFDATA2LSB && ident[EI_DATA] != ELFDATA2MSB))
		return error_set(err, ERROR_FORMAT, "it is not an ELF file");
	view->is_64 = ident[EI_CLASS] == ELFCLASS64;
	view->is_big_endian = ident[EI_DATA] == ELFDATA2MSB;
	cursor = cursor_of(view, EI_NIDENT);
	view->type = (uint16_t)dwarf_number(&cursor, 2);
	view->machine = (uint16_t)dwarf_number(&cursor, 2);
	dwarf_number(&cursor, 4); /* version */
	word(view, &cursor);      /* entry */
	word(view, &cursor);      /* program headers */
	at = word(view, &cursor);
	dwarf_skip(&cursor, 10); /* flags, sizes and count of program headers */
	size = dwarf_number(&cursor, 2);
	count = (uint32_t)dwarf_number(&cursor, 2);
	view->names = (uint32_t)dwarf_number(&cursor, 2);
	if (cursor.failed)
		return error_set(err, ERROR_FORMAT, "its header is cut off");
	return read_sections(view, at, size, count, err);
}

struct dwarf_bytes elf_section_bytes(const struct elf_view *view, uint32_t number)
{
	const struct elf_section *row;

	if (!number || number >= view->count)
		return (struct dwarf_bytes){0};
	row = &view->sections[number];
	if (row->type == SHT_NOBITS || row->offset > view->file.length ||
	    row->size > view->file.length - row->offset)
		return (struct dwarf_bytes){0};
	return (struct dwarf_bytes){view->file.at + row->offset, row->size};
}

static const char *section_name(const struct elf_view *view, const struct elf_section *row)
{
	struct dwarf_cursor cursor = {0};

	if (view->names < view->count)
		cursor = dwarf_cursor_at(elf_section_bytes(view, view->names), row->name, false);
	return cursor.at ? dwarf_text(&cursor) : "";
}

/* ---- which section is which ---- */

/* ".debug_info.dwo" → "info"; NULL: it is none of those. */
static const char *debug_name(const char *name, char base[SECTION_NAME_MAX], bool *is_dwo)
{
	size_t length = strnlen(name, SECTION_NAME_MAX);

	*is_dwo = false;
	if (length >= SECTION_NAME_MAX)
		return NULL;
	if (!strncmp(name, ".debug_", 7))
		memcpy(base, name + 7, length - 7 + 1);
	else if (!strncmp(name, ".zdebug_", 8))
		memcpy(base, name + 8, length - 8 + 1);
	else
		return NULL;
	length = strlen(base);
	if (length > 4 && !strcmp(base + length - 4, ".dwo")) {
		base[length - 4] = '\0';
		*is_dwo = true;
	}
	return base;
}

static void take_section(struct dwarf_file *file, uint32_t number, bool wants_dwo)
{
	const struct elf_section *row = &file->view.sections[number];
	const char *name = section_name(&file->view, row);
	char base[SECTION_NAME_MAX];
	bool is_dwo;

	if (row->type == SHT_NOBITS || !row->size)
		return;
	if (row->type == SHT_NOTE && !file->id && !strcmp(name, ".note.gnu.build-id"))
		file->id = number;
	if (!strcmp(name, ".gnu_debugaltlink"))
		file->alt = number;
	if (!strcmp(name, ".debug_sup"))
		file->sup = number;
	if (!debug_name(name, base, &is_dwo))
		return;
	for (unsigned i = 0; i < DWARF_SECTION_COUNT; i++) {
		bool is_index = i == DWARF_CU_INDEX || i == DWARF_TU_INDEX;

		if (!strcmp(base, section_names[i]) && (is_dwo == wants_dwo || is_index) &&
		    !file->held[i].number)
			file->held[i].number = number;
	}
}

static void find_sections(struct dwarf_file *file)
{
	for (uint32_t i = 1; i < file->view.count; i++)
		take_section(file, i, false);
	if (file->held[DWARF_INFO].number || file->held[DWARF_TYPES].number)
		return;
	for (uint32_t i = 1; i < file->view.count; i++)
		take_section(file, i, true);
	file->is_split = file->held[DWARF_INFO].number || file->held[DWARF_TYPES].number;
	if (!file->is_split)
		return;
	/* Of a file that has both kinds only the index is without ".dwo". */
	for (unsigned i = 0; i < DWARF_CU_INDEX; i++)
		file->held[i].number = 0;
	for (uint32_t i = 1; i < file->view.count; i++)
		take_section(file, i, true);
}

/* A dwz file may call itself relocatable and is not. */
static bool needs_relocation(const struct dwarf_file *file)
{
	for (unsigned i = 0; i < DWARF_SECTION_COUNT; i++)
		if (file->held[i].number && dwarf_is_relocated(&file->view, file->held[i].number))
			return true;
	return false;
}

/* .text at a place that is known, the others behind it. */
static bool place_sections(struct dwarf_file *file, struct error *err)
{
	const struct elf_view *view = &file->view;
	uint64_t next = DWARF_TEXT_BASE;

	file->addresses = calloc((size_t)view->count + 1, sizeof(*file->addresses));
	if (!file->addresses)
		return error_set(err, ERROR_MEMORY, "no memory for its sections");
	for (unsigned pass = 0; pass < 2; pass++)
		for (uint32_t i = 1; i < view->count; i++) {
			const struct elf_section *row = &view->sections[i];
			bool is_text = !strcmp(section_name(view, row), ".text");

			if (!(row->flags & SHF_ALLOC) || is_text != !pass || file->addresses[i] ||
			    row->size > UINT32_MAX)
				continue;
			file->addresses[i] = next;
			next += (row->size + 2 * 4096 - 1) & ~UINT64_C(4095);
		}
	return true;
}

struct dwarf_file *dwarf_file_open(const uint8_t *bytes, size_t length,
				   const struct dwarf_limits *limits, struct error *err)
{
	struct dwarf_file *file = calloc(1, sizeof(*file));

	if (!file) {
		error_set(err, ERROR_MEMORY, "no memory for an ELF file");
		return NULL;
	}
	file->view.file = (struct dwarf_bytes){bytes, length};
	file->limits = *limits;
	if (!read_header(&file->view, err))
		goto failed;
	find_sections(file);
	if (file->view.type == ET_REL && !file->is_split) {
		file->is_unrelocated = needs_relocation(file) && !dwarf_can_relocate(&file->view);
		if (!place_sections(file, err))
			goto failed;
	}
	return file;
failed:
	dwarf_file_close(file);
	return NULL;
}

void dwarf_file_close(struct dwarf_file *file)
{
	if (!file)
		return;
	for (unsigned i = 0; i < DWARF_SECTION_COUNT; i++)
		dwarf_file_drop(file, (enum dwarf_section)i);
	free(file->addresses);
	free(file->view.sections);
	free(file);
}

bool dwarf_file_is_big_endian(const struct dwarf_file *file)
{
	return file->view.is_big_endian;
}

bool dwarf_file_has(const struct dwarf_file *file, enum dwarf_section section)
{
	return file->held[section].number != 0;
}

bool dwarf_file_is_split(const struct dwarf_file *file)
{
	return file->is_split;
}

bool dwarf_file_is_unrelocated(const struct dwarf_file *file)
{
	return file->is_unrelocated;
}

/* ---- who it is ---- */

static size_t take_id(struct dwarf_bytes from, uint64_t offset, uint64_t length,
		      uint8_t id[DWARF_ID_MAX])
{
	if (!from.at || offset > from.length || length > from.length - offset ||
	    length > DWARF_ID_MAX)
		return 0;
	memcpy(id, from.at + offset, length);
	return length;
}

size_t dwarf_file_id(const struct dwarf_file *file, uint8_t id[DWARF_ID_MAX])
{
	struct dwarf_bytes note = {0};
	struct dwarf_cursor cursor;
	uint64_t name, length;

	if (file->id)
		note = elf_section_bytes(&file->view, file->id);
	cursor = dwarf_cursor_at(note, 0, file->view.is_big_endian);
	name = dwarf_number(&cursor, 4);
	length = dwarf_number(&cursor, 4);
	if (cursor.failed || dwarf_number(&cursor, 4) != NT_GNU_BUILD_ID || name != 4)
		return 0;
	return take_id(note, 16, length, id);
}

/* .gnu_debugaltlink: path, id. .debug_sup: DWARF 5, 7.3.6: version, 0, path, length, id. */
size_t dwarf_file_alt_id(const struct dwarf_file *file, uint8_t id[DWARF_ID_MAX])
{
	uint32_t number = file->alt ? file->alt : file->sup;
	struct dwarf_bytes link = {0};
	struct dwarf_cursor cursor;
	uint64_t length;

	if (number)
		link = elf_section_bytes(&file->view, number);
	cursor = dwarf_cursor_at(link, 0, file->view.is_big_endian);
	if (!file->alt && (dwarf_number(&cursor, 2) != 5 || dwarf_u8(&cursor)))
		return 0;
	dwarf_text(&cursor);
	length = file->alt ? dwarf_left(&cursor) : dwarf_uleb(&cursor);
	if (cursor.failed)
		return 0;
	return take_id(link, (uint64_t)(cursor.at - link.at), length, id);
}

/* ---- contents ---- */

static uint8_t *map_memory(struct dwarf_file *file, struct held *held, uint64_t size)
{
	void *at;

	if (!size || size > file->limits.section_bytes ||
	    size > file->limits.total_bytes - file->total)
		return NULL;
	at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		  -1, 0);
	if (at == MAP_FAILED)
		return NULL;
	held->mapping = at;
	held->mapped = size;
	file->total += size;
	return at;
}

struct packed {
	struct dwarf_bytes bytes; /* behind the header */
	uint64_t size;
	enum section_compression kind;
};

/* False: it is not compressed. */
static bool find_packed(const struct dwarf_file *file, const struct elf_section *row,
			struct dwarf_bytes stored, struct packed *packed)
{
	const struct elf_view *view = &file->view;
	struct dwarf_cursor cursor = dwarf_cursor_at(stored, 0, view->is_big_endian);

	if (row->flags & SHF_COMPRESSED) {
		packed->kind = (enum section_compression)dwarf_number(&cursor, 4);
		if (view->is_64)
			dwarf_number(&cursor, 4);
		packed->size = word(view, &cursor);
		word(view, &cursor); /* alignment */
	} else if (!strncmp(section_name(view, row), ".zdebug_", 8) &&
		   stored.length > ZDEBUG_HEADER && !memcmp(stored.at, "ZLIB", 4)) {
		packed->kind = COMPRESSION_ZLIB;
		cursor.is_big_endian = true;
		dwarf_skip(&cursor, 4);
		packed->size = dwarf_number(&cursor, 8);
	} else {
		return false;
	}
	packed->bytes = (struct dwarf_bytes){cursor.at, dwarf_left(&cursor)};
	if (cursor.failed)
		packed->size = packed->bytes.length = 0;
	return true;
}

/* Whole pages only: what shares one with its neighbours stays. */
static void give_back_pages(struct dwarf_bytes bytes)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t start = ((uintptr_t)bytes.at + page - 1) / page * page;
	uintptr_t end = ((uintptr_t)bytes.at + bytes.length) / page * page;

	if (end > start)
		madvise((uint8_t *)bytes.at + (start - (uintptr_t)bytes.at), end - start,
			MADV_DONTNEED);
}

static uint32_t inflate_section(struct dwarf_file *file, struct held *held,
				const struct packed *packed)
{
	uint8_t *to;

	if (!packed->size || !packed->bytes.length)
		return SYMBOL_TABLE_DAMAGED;
	if (packed->size > RATIO_FREE_BYTES && packed->size / RATIO_MAX > packed->bytes.length)
		return SYMBOL_TABLE_CUT;
	to = map_memory(file, held, packed->size);
	if (!to)
		return SYMBOL_TABLE_CUT;
	if (!section_inflate(packed->kind, packed->bytes.at, packed->bytes.length, to,
			     packed->size))
		return SYMBOL_TABLE_DAMAGED;
	held->bytes = (struct dwarf_bytes){to, packed->size};
	if (file->limits.is_mapping)
		give_back_pages(packed->bytes);
	return 0;
}

static uint32_t relocate_section(struct dwarf_file *file, struct held *held)
{
	if (!dwarf_is_relocated(&file->view, held->number))
		return 0;
	if (!held->mapping) {
		uint8_t *to = map_memory(file, held, held->bytes.length);

		if (!to)
			return SYMBOL_TABLE_CUT;
		memcpy(to, held->bytes.at, held->bytes.length);
		held->bytes.at = to;
	}
	if (!dwarf_relocate(&file->view, held->number, file->addresses, held->mapping,
			    held->bytes.length))
		return SYMBOL_TABLE_DAMAGED;
	return 0;
}

static uint32_t load_section(struct dwarf_file *file, struct held *held)
{
	const struct elf_section *row = &file->view.sections[held->number];
	struct dwarf_bytes stored = elf_section_bytes(&file->view, held->number);
	struct packed packed;
	uint32_t failed = 0;

	if (!stored.at || file->is_unrelocated)
		return SYMBOL_TABLE_DAMAGED;
	if (find_packed(file, row, stored, &packed))
		failed = inflate_section(file, held, &packed);
	else if (stored.length > file->limits.section_bytes)
		failed = SYMBOL_TABLE_CUT;
	else
		held->bytes = stored;
	if (!failed && file->addresses)
		failed = relocate_section(file, held);
	return failed;
}

struct dwarf_bytes dwarf_file_section(struct dwarf_file *file, enum dwarf_section section,
				      uint32_t *flags)
{
	struct held *held = &file->held[section];

	if (held->number && !held->is_tried) {
		uint32_t failed = load_section(file, held);

		if (failed) {
			dwarf_file_drop(file, section);
			*flags |= failed;
		}
		held->is_tried = true;
	}
	return held->bytes;
}

void dwarf_file_drop(struct dwarf_file *file, enum dwarf_section section)
{
	struct held *held = &file->held[section];

	if (held->mapping) {
		munmap(held->mapping, held->mapped);
		file->total -= held->mapped;
	} else if (held->bytes.at && file->limits.is_mapping) {
		give_back_pages(held->bytes);
	}
	*held = (struct held){.number = held->number};
}
