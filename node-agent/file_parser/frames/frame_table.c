/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/file_parser/frames/frame_table.h"

#include <stdlib.h>
#include <string.h>

#include "common/array.h"

/* What every linker writes; others' tables are left alone. */
enum { HEADER_VERSION = 1, HEADER_POINTER = 0x1b, HEADER_COUNT = 0x03, HEADER_TABLE = 0x3b };

/* Of a section that is read for an index: twice what FRAME_INDEX_MAX entries mostly take. A file of
 * holes has gigabytes for nothing. */
enum { INDEXED_BYTES_MAX = 128 << 20 };

struct table_header {
	uint8_t version, pointer, count, table;
	int32_t section; /* from its own place */
	uint32_t entries;
};

static bool read_header(const struct code_file *file, const Elf64_Phdr **segment,
			struct table_header *header)
{
	for (unsigned i = 0; i < file->segment_count; i++) {
		*segment = &file->segments[i];
		if ((*segment)->p_type == PT_GNU_EH_FRAME)
			return (*segment)->p_filesz >= sizeof *header &&
			       code_file_read(file, (*segment)->p_offset, header, sizeof *header) &&
			       header->version == HEADER_VERSION &&
			       header->pointer == HEADER_POINTER;
	}
	return false;
}

bool frame_table_section(const struct code_file *file, uint64_t *address)
{
	struct table_header header;
	const Elf64_Phdr *segment;

	if (!read_header(file, &segment, &header))
		return false;
	*address = segment->p_vaddr + offsetof(struct table_header, section) +
		   (uint64_t)(int64_t)header.section;
	return true;
}

bool frame_table_open(struct frame_table *table, const struct code_file *file,
		      const struct frame_section *section)
{
	struct table_header header;
	const Elf64_Phdr *segment;

	*table = (struct frame_table){.file = file};
	if (!read_header(file, &segment, &header) || header.count != HEADER_COUNT ||
	    header.table != HEADER_TABLE || !header.entries ||
	    header.entries > (segment->p_filesz - sizeof header) / sizeof *table->chunk)
		return false;
	table->chunk = malloc(FRAME_TABLE_CHUNK * sizeof *table->chunk);
	table->count = header.entries;
	table->offset = segment->p_offset;
	table->address = segment->p_vaddr;
	table->section_address = section->address;
	return table->chunk != NULL;
}

void frame_table_release(struct frame_table *table)
{
	free(table->chunk);
	free(table->index);
	*table = (struct frame_table){0};
}

size_t frame_table_memory(const struct frame_table *table)
{
	return (table->chunk ? FRAME_TABLE_CHUNK * sizeof *table->chunk : 0) +
	       (table->index ? table->count * sizeof *table->index : 0);
}

/* --- looking it up --- */

/* Makes count entries from number on the chunk. */
static bool read_chunk(struct frame_table *table, uint64_t number, uint64_t count)
{
	if (count > table->count - number)
		count = table->count - number;
	table->chunk_count = 0;
	if (!code_file_read(table->file,
			    table->offset + sizeof(struct table_header) +
				    number * sizeof *table->chunk,
			    table->chunk, count * sizeof *table->chunk))
		return false;
	table->chunk_at = number;
	table->chunk_count = count;
	return true;
}

static bool entry_of(struct frame_table *table, uint64_t number, uint64_t read_count,
		     uint64_t *start, uint64_t *at)
{
	struct frame_place place;

	if (table->index) {
		*start = table->first + table->index[number].start;
		*at = table->index[number].entry;
		return true;
	}
	if (number - table->chunk_at >= table->chunk_count &&
	    !read_chunk(table, number, read_count))
		return false;
	place = table->chunk[number - table->chunk_at];
	*start = table->address + (uint64_t)(int64_t)(int32_t)place.start;
	*at = table->address + (uint64_t)(int64_t)(int32_t)place.entry - table->section_address;
	return true;
}

bool frame_table_entry(struct frame_table *table, uint64_t number, uint64_t *start, uint64_t *at)
{
	return entry_of(table, number, FRAME_TABLE_CHUNK, start, at);
}

bool frame_table_find(struct frame_table *table, uint64_t address, uint64_t *number)
{
	uint64_t low = 0, high = table->count, start, at;

	while (low < high) { /* the first one that starts behind the address */
		uint64_t middle = low + (high - low) / 2, read_count = 1;

		if (high - low <= FRAME_TABLE_CHUNK / 2) { /* and what follows will be wanted */
			if (!entry_of(table, low, FRAME_TABLE_CHUNK, &start, &at))
				return false;
			read_count = FRAME_TABLE_CHUNK;
		}
		if (!entry_of(table, middle, read_count, &start, &at))
			return false;
		if (start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	*number = low ? low - 1 : 0;
	return true;
}

/* --- our own index --- */

static int compare_places(const void *a, const void *b)
{
	const struct frame_place *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->entry < y->entry ? -1 : x->entry > y->entry;
}

static bool is_code(const struct code_file *file, uint64_t address)
{
	for (unsigned i = 0; i < file->segment_count; i++)
		if (file->segments[i].p_type == PT_LOAD && file->segments[i].p_flags & PF_X &&
		    address - file->segments[i].p_vaddr < file->segments[i].p_memsz)
			return true;
	return false;
}

static bool append(struct frame_table *table, size_t *room, uint64_t start, uint64_t at)
{
	if (!ARRAY_GROW(table->index, table->count, *room))
		return false;
	table->index[table->count++] = (struct frame_place){.start = (uint32_t)start,
							    .entry = (uint32_t)at};
	return true;
}

/* The lowest address of code, at which an index begins. */
static uint64_t first_code(const struct code_file *file)
{
	uint64_t first = UINT64_MAX;

	for (unsigned i = 0; i < file->segment_count; i++)
		if (file->segments[i].p_type == PT_LOAD && file->segments[i].p_flags & PF_X &&
		    file->segments[i].p_vaddr < first)
			first = file->segments[i].p_vaddr;
	return first;
}

/* False when there is no room. What a linker has thrown away is at 0 or outside of all code. */
static bool add_entry(struct frame_table *table, size_t *room, const struct frame_entry *entry,
		      uint64_t at)
{
	uint64_t start = entry->start - table->first;

	if (entry->start == 0 || entry->start == entry->end || entry->start < table->first ||
	    start > UINT32_MAX || !is_code(table->file, entry->start))
		return true;
	return table->count < FRAME_INDEX_MAX && append(table, room, start, at);
}

bool frame_table_build(struct frame_table *table, struct frame_section *section,
		       struct frame_commons *commons, enum row_failure *failure)
{
	size_t room = 0;
	uint64_t next;
	bool is_sorted = true;

	*table = (struct frame_table){.file = section->file, .first = first_code(section->file)};
	*failure = ROW_FAILURE_LIMIT;
	if (section->size > UINT32_MAX)
		return false;
	for (uint64_t at = 0; at < section->size; at = next) {
		struct frame_entry entry;
		enum frame_kind kind = frame_entry_read(section, commons, at, &entry, &next);

		if (next == at || (kind == FRAME_END && section->ends_at_zero))
			break;
		if (next > INDEXED_BYTES_MAX)
			return false;
		if (kind == FRAME_FDE && !add_entry(table, &room, &entry, at))
			return false;
		if (table->count > 1 && compare_places(&table->index[table->count - 2],
						       &table->index[table->count - 1]) > 0)
			is_sorted = false;
	}
	if (!is_sorted)
		qsort(table->index, table->count, sizeof *table->index, compare_places);
	*failure = table->count ? ROW_FAILURE_NONE : ROW_FAILURE_DAMAGED;
	return table->count != 0;
}
