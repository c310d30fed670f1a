/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/unwind/code_file.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEADERS_AT_ONCE = 32, NAME_MAX_BYTES = 64 };

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

/* Section headers are a convenience: a file whose own are unusable is as good as stripped of them.
 */
static void read_section_place(struct code_file *file, const Elf64_Ehdr *header)
{
	Elf64_Shdr first;

	if (!header->e_shoff || header->e_shentsize != sizeof first ||
	    !code_file_read(file, header->e_shoff, &first, sizeof first))
		return;
	/* Numbers that do not fit the ELF header are in the first section's (System V ABI 4). */
	file->section_count = header->e_shnum;
	if (!header->e_shnum)
		file->section_count = first.sh_size <= CODE_SECTIONS_MAX ? (unsigned)first.sh_size
									 : 0;
	file->name_section = header->e_shstrndx == SHN_XINDEX ? first.sh_link : header->e_shstrndx;
	if (file->section_count && file->section_count <= CODE_SECTIONS_MAX &&
	    file->name_section < file->section_count)
		file->section_offset = header->e_shoff;
	else
		file->section_count = 0;
}

bool code_file_open(struct code_file *file, int fd)
{
	Elf64_Ehdr header;
	struct stat st;

	memset(file, 0, sizeof *file);
	file->fd = fd;
	if (fd < 0 || fstat(fd, &st) != 0 || st.st_size <= 0)
		return false;
	file->bytes = (uint64_t)st.st_size;
	if (!code_file_read(file, 0, &header, sizeof header) ||
	    memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
	    header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB ||
	    (header.e_machine != EM_X86_64 && header.e_machine != EM_AARCH64) ||
	    header.e_phentsize != sizeof file->segments[0] || header.e_phnum > CODE_SEGMENTS_MAX)
		return false;
	file->machine = header.e_machine;
	file->segment_count = header.e_phnum;
	read_section_place(file, &header);
	return code_file_read(file, header.e_phoff, file->segments,
			      file->segment_count * sizeof file->segments[0]);
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

static bool has_name(const struct code_file *file, const Elf64_Shdr *names,
		     const Elf64_Shdr *section, const char *name, size_t length)
{
	char got[NAME_MAX_BYTES];

	return section->sh_name < names->sh_size && length <= names->sh_size - section->sh_name &&
	       names->sh_offset <= file->bytes &&
	       code_file_read(file, names->sh_offset + section->sh_name, got, length) &&
	       memcmp(got, name, length) == 0;
}

bool code_file_section(const struct code_file *file, const char *name, struct code_section *section)
{
	size_t length = strlen(name) + 1;
	Elf64_Shdr headers[HEADERS_AT_ONCE], names;

	if (!file->section_offset || length > NAME_MAX_BYTES ||
	    !code_file_read(file, file->section_offset + file->name_section * sizeof names, &names,
			    sizeof names))
		return false;
	for (unsigned i = 0; i < file->section_count; i++) {
		const Elf64_Shdr *header = &headers[i % HEADERS_AT_ONCE];
		unsigned left = file->section_count - i;

		if (left > HEADERS_AT_ONCE)
			left = HEADERS_AT_ONCE;
		if (i % HEADERS_AT_ONCE == 0 &&
		    !code_file_read(file, file->section_offset + i * sizeof *header, headers,
				    left * sizeof *header))
			return false;
		if (header->sh_type == SHT_NULL || header->sh_type == SHT_NOBITS ||
		    header->sh_offset > file->bytes ||
		    header->sh_size > file->bytes - header->sh_offset ||
		    !has_name(file, &names, header, name, length))
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
