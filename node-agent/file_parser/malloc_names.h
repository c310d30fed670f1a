/* SPDX-License-Identifier: Apache-2.0 */
/* Where C's functions that take memory lie in a file, by its symbols: libc's, and those of the
 * allocators that take their place under the same names or with a prefix of their own. Prefixes:
 * jemalloc's --with-jemalloc-prefix and Rust's tikv-jemallocator, mimalloc.h, gperftools'
 * tcmalloc.h. */
#ifndef NODE_AGENT_FILE_PARSER_MALLOC_NAMES_H
#define NODE_AGENT_FILE_PARSER_MALLOC_NAMES_H

#include "node-agent/file_parser/code/code_file.h"
#include "node-agent/file_parser/memory_places.h"

enum { MALLOC_NAME_BYTES = 32 };

/* The names that are looked for, by number from 0 on. False: there are fewer. */
bool malloc_name(size_t number, char name[MALLOC_NAME_BYTES], enum memory_place_kind *kind);

/* Adds them, each address once. */
void malloc_names_find(const struct code_file *file, struct memory_places *places);

/* Nothing was found, and the file may have had names of more than its dynamic symbols. */
bool malloc_names_are_gone(const struct code_file *file, const struct memory_places *places);

/* Adds one that is known from elsewhere, of so many bytes. False: it is not in the file's code, or
 * of no kind of ours. */
bool malloc_names_add(const struct code_file *file, const struct memory_function *function,
		      uint64_t bytes, struct memory_places *places);

#endif
