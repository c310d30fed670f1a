/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/symbolize/file_section.h"

#include <elf.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SECTIONS_MAX = 65536, NAME_MAX_BYTES = 256, HEADER_64 = 64 };

struct section_reader {
	int fd;
	uint64_t file_bytes;
	bool is_64bit, is_big_endian;
	uint64_t table, entry_bytes, count; /* section headers */
	uint64_t names, names_bytes;        /* .shstrtab */
};

struct section_header {
	uint64_t name, type, flags, offset, bytes, link;
};

static uint64_t number_at(const struct section_reader *reader, const uint8_t *at, unsigned bytes)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < bytes; i++)
		value |= (uint64_t)at[reader->is_big_endian ? bytes - 1 - i : i] << 8 * i;
	return value;
}

static bool read_at(const struct section_reader *reader, uint64_t offset, void *bytes,
		    size_t length)
{
	return offset <= reader->file_bytes && length <= reader->file_bytes - offset &&
	       pread(reader->fd, bytes, length, (off_t)offset) == (ssize_t)length;
}

static bool read_header(const struct section_reader *reader, uint64_t number,
			struct section_header *out)
{
	uint8_t bytes[sizeof(Elf64_Shdr)];
	unsigned word = reader->is_64bit ? 8 : 4;
	size_t length = reader->is_64bit ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr);

	if (!read_at(reader, reader->table + number * reader->entry_bytes, bytes, length))
		return false;
	out->name = number_at(reader, bytes, 4);
	out->type = number_at(reader, bytes + 4, 4);
	out->flags = number_at(reader, bytes + 8, word);
	out->offset = number_at(reader, bytes + 8 + 2 * word, word);
	out->bytes = number_at(reader, bytes + 8 + 3 * word, word);
	out->link = number_at(reader, bytes + 8 + 4 * word, 4);
	return true;
}

/* The file's header, and what of it does not fit there and stands in the first section's. */
static bool reader_open(struct section_reader *reader, int fd)
{
	uint8_t bytes[HEADER_64] = {0};
	struct section_header first, names;
	struct stat stat;
	uint64_t names_at;

	*reader = (struct section_reader){.fd = fd};
	if (fstat(fd, &stat) || stat.st_size < (off_t)sizeof(Elf32_Ehdr))
		return false;
	reader->file_bytes = (uint64_t)stat.st_size;
	if (pread(fd, bytes, sizeof(bytes), 0) < (ssize_t)sizeof(Elf32_Ehdr) ||
	    memcmp(bytes, ELFMAG, SELFMAG) != 0)
		return false;
	reader->is_64bit = bytes[EI_CLASS] == ELFCLASS64;
	reader->is_big_endian = bytes[EI_DATA] == ELFDATA2MSB;
	reader->table = number_at(reader, bytes + (reader->is_64bit ? 40 : 32),
				  reader->is_64bit ? 8 : 4);
	reader->entry_bytes = number_at(reader, bytes + (reader->is_64bit ? 58 : 46), 2);
	reader->count = number_at(reader, bytes + (reader->is_64bit ? 60 : 48), 2);
	names_at = number_at(reader, bytes + (reader->is_64bit ? 62 : 50), 2);
	if (!reader->table || reader->table > reader->file_bytes ||
	    reader->entry_bytes < (reader->is_64bit ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr)) ||
	    !read_header(reader, 0, &first))
		return false;
	if (!reader->count)
		reader->count = first.bytes;
	if (names_at == SHN_XINDEX)
		names_at = first.link;
	if (reader->count > SECTIONS_MAX || names_at >= reader->count ||
	    !read_header(reader, names_at, &names))
		return false;
	reader->names = names.offset;
	reader->names_bytes = names.bytes;
	return names.offset <= reader->file_bytes;
}

static bool is_named(const struct section_reader *reader, const struct section_header *header,
		     const char *name, size_t length)
{
	char found[NAME_MAX_BYTES + 1];

	return header->name < reader->names_bytes &&
	       read_at(reader, reader->names + header->name, found, length + 1) &&
	       !memcmp(found, name, length + 1);
}

bool file_section_find(int fd, const char *name, struct file_section *out)
{
	size_t length = strlen(name);
	struct section_reader reader;
	struct section_header header;

	if (!length || length > NAME_MAX_BYTES || !reader_open(&reader, fd))
		return false;
	for (uint64_t i = 1; i < reader.count && read_header(&reader, i, &header); i++) {
		if (header.type == SHT_NOBITS || header.type == SHT_NULL ||
		    !is_named(&reader, &header, name, length))
			continue;
		if (header.offset > reader.file_bytes ||
		    header.bytes > reader.file_bytes - header.offset)
			return false;
		*out = (struct file_section){header.offset, header.bytes};
		return true;
	}
	return false;
}

bool file_has_code(int fd)
{
	struct section_reader reader;
	struct section_header header;

	if (!reader_open(&reader, fd))
		return false;
	for (uint64_t i = 1; i < reader.count && read_header(&reader, i, &header); i++)
		if (header.type == SHT_PROGBITS && header.bytes &&
		    (header.flags & (SHF_ALLOC | SHF_EXECINSTR)) == (SHF_ALLOC | SHF_EXECINSTR))
			return true;
	return false;
}
