/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of one ELF file with code, read with pread(2): a file may shrink while it is read, and
 * it is a stranger's. 64-bit little-endian, x86-64 and arm64. Format: System V ABI, chapter 4
 * and 5. */
#ifndef NODE_AGENT_FILE_PARSER_CODE_CODE_FILE_H
#define NODE_AGENT_FILE_PARSER_CODE_CODE_FILE_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CODE_SEGMENTS_MAX = 64, CODE_SECTIONS_MAX = 4096, CODE_NAMES_MAX = 256 << 10 };

struct code_file {
	int fd; /* borrowed */
	uint16_t machine;
	uint64_t bytes; /* of the file when it was opened */
	unsigned segment_count;
	Elf64_Phdr segments[CODE_SEGMENTS_MAX];
	unsigned section_count;
	Elf64_Shdr *sections; /* NULL: none */
	char *names;          /* of the sections; a '\0' behind the last byte */
	size_t name_bytes;
};

struct code_section {
	uint64_t address, offset, size;
	uint32_t type;
	uint64_t flags; /* SHF_…; with SHF_COMPRESSED the bytes begin with an Elf64_Chdr */
};

/* False: not such a file, or unreadable; nothing needs to be closed then. */
bool code_file_open(struct code_file *file, int fd);
void code_file_close(struct code_file *file); /* fd stays open */
size_t code_file_memory(const struct code_file *file);

/* All of it or false. */
bool code_file_read(const struct code_file *file, uint64_t offset, void *to, size_t length);

/* What is left of the loadable segment's file bytes at the address; 0: none has it. */
uint64_t code_file_offset(const struct code_file *file, uint64_t address, uint64_t *offset);

/* The first section of that name, with file bytes inside the file. */
bool code_file_section(const struct code_file *file, const char *name,
		       struct code_section *section);

#endif
