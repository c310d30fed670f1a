/* SPDX-License-Identifier: Apache-2.0 */
/* Where functions lie in an ELF file, by their names in its symbol tables: all of them, also those
 * that a symbol_table leaves out because another one has the same address. ELF64, little-endian,
 * programs and libraries. Reads by pread; every offset is checked against the file's size. Format:
 * System V ABI, "Symbol Table". */
#ifndef SYMBOL_SERVER_SYMBOLIZE_FILE_FUNCTIONS_H
#define SYMBOL_SERVER_SYMBOLIZE_FILE_FUNCTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

enum {
	FILE_FUNCTION_NAMES_MAX = 64,
	FILE_FUNCTION_NAME_BYTES = 256,
	FILE_FUNCTIONS_MAX = 256,
};

struct file_function {
	uint32_t name;    /* index among those asked for */
	uint64_t address; /* as in the file, of the ELF's own numbers */
	uint64_t bytes;   /* 0: not said */
};

/* What one question may take, of all files together. */
struct file_search_limits {
	uint64_t bytes; /* left to be read; a small read counts as 4096 */
	bool (*goes_on)(void *context, struct error *err); /* asked often */
	void *context;
};

/* Functions that are called exactly so, each name at each address once; of longer names none.
 * False: goes_on() said so, or ERROR_LIMIT, the file is larger than limits->bytes. */
bool file_functions_find(int fd, const char *const *names, size_t name_count,
			 struct file_search_limits *limits,
			 struct file_function found[FILE_FUNCTIONS_MAX], size_t *count,
			 struct error *err);

#endif
