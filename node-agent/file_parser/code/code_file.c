/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/file_parser/code/code_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FRONT_BYTES = 1024 }; /* holds the headers of a dozen segments */

bool code_file_read(const struct code_file *file, uint64_t offset, void *to, size_t length)
{
	uint8_t *at = to;

	if (offset > file->bytes || length > file->bytes - offset)
		return false;
	while (length) {
		ssize_t got = pread(file->fd, at, length, (off_t)offset);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return false;
		at += got;
		offset += (uint64_t)got;
		length -= (size_t)got;
	}
	return true;
}

/* Names beyond the limit, or behind the file's end, are nobody's. */
static bool read_names(struct code_file *file, const Elf64_Shdr *names)
{
	uint64_t length = names->sh_size < CODE_NAMES_MAX ? names->sh_size : CODE_NAMES_MAX;

	if (names->sh_type == SHT_NOBITS || !length)
		return false;
	file->names = malloc(length + 1);
	if (!file->names || !code_file_read(file, names->sh_offset, file->names, length))
		return false;
	file->names[length] = '\0';
	file->name_bytes = length;
	return true;
}

static bool read_headers(struct code_file *file, uint64_t offset)
{
	size_t length = file->section_count * sizeof *file->sections;

	file->sections = malloc(length);
	return file->sections && code_file_read(file, offset, file->sections, length);
}

/* Numbers that do not fit the ELF header are in the first section's (System V ABI 4). */
static bool count_sections(struct code_file *file, const Elf64_Ehdr *header, unsigned *name_section)
{
	Elf64_Shdr first;

	file->section_count = header->e_shnum;
	*name_section = header->e_shstrndx;
	if (!header->e_shnum || header->e_shstrndx == SHN_XINDEX) {
		if (!code_file_read(file, header->e_shoff, &first, sizeof first))
			return false;
		if (!header->e_shnum)
			file->section_count = first.sh_size <= CODE_SECTIONS_MAX
						      ? (unsigned)first.sh_size
						      : 0;
		if (header->e_shstrndx == SHN_XINDEX)
			*name_section = first.sh_link;
	}
	return file->section_count <= CODE_SECTIONS_MAX && *name_section < file->section_count;
}

/* Section headers are a convenience: a file whose own are unusable is as good as stripped of them.
 */
static void read_sections(struct code_file *file, const Elf64_Ehdr *header)
{
	unsigned name_section;

	if (header->e_shoff && header->e_shentsize == sizeof *file->sections &&
	    count_sections(file, header, &name_section) && read_headers(file, header->e_shoff) &&
	    read_names(file, &file->sections[name_section]))
		return;
	code_file_close(file);
	file->section_count = 0;
}

static bool is_taken(const Elf64_Ehdr *header)
{
	return memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 &&
	       header->e_ident[EI_CLASS] == ELFCLASS64 && header->e_ident[EI_DATA] == ELFDATA2LSB &&
	       (header->e_machine == EM_X86_64 || header->e_machine == EM_AARCH64) &&
	       header->e_phentsize == sizeof(Elf64_Phdr) && header->e_phnum <= CODE_SEGMENTS_MAX;
}

/* Linkers put the segment headers right behind the ELF header. */
struct front {
	Elf64_Ehdr header;
	Elf64_Phdr segments[CODE_SEGMENTS_MAX];
};

static bool read_segments(struct code_file *file, const struct front *front, size_t front_bytes)
{
	size_t length = front->header.e_phnum * sizeof *file->segments;

	file->machine = front->header.e_machine;
	file->segment_count = front->header.e_phnum;
	if (front->header.e_phoff != offsetof(struct front, segments) ||
	    offsetof(struct front, segments) + length > front_bytes)
		return code_file_read(file, front->header.e_phoff, file->segments, length);
	memcpy(file->segments, front->segments, length);
	return true;
}

bool code_file_open(struct code_file *file, int fd)
{
	struct front front;
	size_t length;
	struct stat st;

	memset(file, 0, sizeof *file);
	file->fd = fd;
	if (fd < 0 || fstat(fd, &st) != 0 || st.st_size <= 0)
		return false;
	file->bytes = (uint64_t)st.st_size;
	length = file->bytes < FRONT_BYTES ? (size_t)file->bytes : FRONT_BYTES;
	if (length < sizeof front.header || !code_file_read(file, 0, &front, length) ||
	    !is_taken(&front.header) || !read_segments(file, &front, length))
		return false;
	read_sections(file, &front.header);
	return true;
}

void code_file_close(struct code_file *file)
{
	free(file->sections);
	free(file->names);
	file->sections = NULL;
	file->names = NULL;
	file->name_bytes = 0;
}

size_t code_file_memory(const struct code_file *file)
{
	return file->sections ? file->section_count * sizeof *file->sections + file->name_bytes : 0;
}

uint64_t code_file_offset(const struct code_file *file, uint64_t address, uint64_t *offset)
{
	for (unsigned i = 0; i < file->segment_count; i++) {
		const Elf64_Phdr *segment = &file->segments[i];
		uint64_t into = address - segment->p_vaddr;

		if (segment->p_type != PT_LOAD || address < segment->p_vaddr ||
		    into >= segment->p_filesz || segment->p_offset > file->bytes ||
		    segment->p_filesz > file->bytes - segment->p_offset)
			continue;
		*offset = segment->p_offset + into;
		return segment->p_filesz - into;
	}
	return 0;
}

bool code_file_section(const struct code_file *file, const char *name, struct code_section *section)
{
	for (unsigned i = 0; file->sections && i < file->section_count; i++) {
		const Elf64_Shdr *header = &file->sections[i];

		if (header->sh_type == SHT_NULL || header->sh_type == SHT_NOBITS ||
		    header->sh_name >= file->name_bytes ||
		    strcmp(file->names + header->sh_name, name) != 0 ||
		    header->sh_offset > file->bytes ||
		    header->sh_size > file->bytes - header->sh_offset)
			continue;
		*section = (struct code_section){
			.address = header->sh_addr,
			.offset = header->sh_offset,
			.size = header->sh_size,
			.type = header->sh_type,
			.flags = header->sh_flags,
		};
		return true;
	}
	return false;
}
