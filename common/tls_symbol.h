/* SPDX-License-Identifier: Apache-2.0 */
/* Where a file has a thread-local symbol, as its reader (node-agent/file_parser/tls_file.h) finds it. */
#ifndef COMMON_TLS_SYMBOL_H
#define COMMON_TLS_SYMBOL_H

#include <stdint.h>

enum { TLS_SLOTS_MAX = 8 };

enum tls_slot_kind {
	TLS_SLOT_OFFSET,     /* a word: from the thread pointer */
	TLS_SLOT_DESCRIPTOR, /* two words: a function and its argument */
	TLS_SLOT_MODULE,     /* a word: the module's number */
	TLS_SLOT_KINDS,
};

/* Where Go's runtime has the labels of the goroutine that a thread runs: g lies at the thread
 * pointer + tls. */
struct go_labels_place {
	uint32_t is_defined; /* else the rest is 0 */
	uint32_t is_list;    /* of labels; or a map */
	int32_t tls;
	uint16_t curg, labels; /* offsets: of the goroutine in m, of the labels in it */
};

struct tls_symbol {
	uint32_t is_defined; /* else the rest is 0, but for go */
	uint32_t is_program; /* the file is a program, whose block is the first */
	uint64_t value;      /* in the file's block */
	uint64_t block_address, block_bytes, block_alignment; /* PT_TLS */
	uint32_t slot_count, reserved;
	struct {
		uint64_t address; /* ELF address of what the dynamic linker fills in */
		uint32_t kind;    /* enum tls_slot_kind */
		uint32_t reserved;
	} slots[TLS_SLOTS_MAX];
	struct go_labels_place go;
};

#endif
