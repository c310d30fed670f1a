/* SPDX-License-Identifier: Apache-2.0 */
/* ELF bytes → segments, build-ids, entry; bounds-checked, read by pread (a file that shrinks while
 * it is read gives an error, not SIGBUS). Door to libelf. Any class and byte order. */
#ifndef COMMON_ELF_IMAGE_H
#define COMMON_ELF_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/build_id.h"
#include "common/error.h"

enum { ELF_IMAGE_SEGMENTS = 64, ELF_IMAGE_GO_ID = 128 };

struct elf_segment { /* one PT_LOAD */
	uint64_t offset, file_size;
	uint64_t address, memory_size;
	bool is_executable;
};

struct elf_image {
	bool is_64bit, is_big_endian;
	uint16_t type;    /* ET_EXEC, ET_DYN, ET_REL */
	uint16_t machine; /* EM_* */
	uint64_t entry;
	struct build_id gnu;         /* length 0: none */
	char go_id[ELF_IMAGE_GO_ID]; /* Go's build id text; "" = none */
	unsigned segment_count;
	struct elf_segment segments[ELF_IMAGE_SEGMENTS];
	bool has_symtab, has_dynsym, has_debug_info,
		has_go_pclntab; /* by section names and types */
	bool has_code;          /* executable bytes are in the file, not only their addresses */
	bool has_split_info;    /* .debug_info.dwo: a .dwo or .dwp file */
	bool has_unit_index;    /* .debug_cu_index or .debug_tu_index: a .dwp file */
	bool has_alt_link;      /* .gnu_debugaltlink: some of it is in a dwz file */
	char debuglink[256];    /* .gnu_debuglink's file name; "" = none */
	uint32_t debuglink_crc;
};

/* ERROR_FORMAT: not an ELF file, or headers that point outside of it. ERROR_LIMIT: more than
 * ELF_IMAGE_SEGMENTS loadable segments. The descriptor stays the caller's, its offset may move. */
bool elf_image_read(int fd, struct elf_image *image, struct error *err);
/* The same for bytes in memory (fuzzing, the vDSO). */
bool elf_image_read_bytes(const void *bytes, size_t length, struct elf_image *image,
			  struct error *err);

/* The GNU build-id in bare notes of this machine's own byte order, 4-byte aligned: what the kernel
 * shows in /sys/kernel/notes and /sys/module/NAME/notes/. Other notes may stand before it. */
bool elf_notes_build_id(const void *notes, size_t length, struct build_id *id);

/* File offset → ELF virtual address through the PT_LOADs. False: no segment has that offset. */
bool elf_image_address(const struct elf_image *image, uint64_t file_offset, uint64_t *address);
bool elf_segments_address(const struct elf_segment *segments, unsigned count, uint64_t file_offset,
			  uint64_t *address);

#endif
