/* SPDX-License-Identifier: Apache-2.0 */
/* Where C's functions that take memory lie in a file, by its symbols: libc's, and those of the
 * allocators that take their place under the same names or with a prefix of their own. Prefixes:
 * jemalloc's --with-jemalloc-prefix and Rust's tikv-jemallocator, mimalloc.h, gperftools'
 * tcmalloc.h. */
#ifndef NODE_AGENT_UNWIND_MALLOC_NAMES_H
#define NODE_AGENT_UNWIND_MALLOC_NAMES_H

#include "node-agent/unwind/code_file.h"
#include "node-agent/unwind/memory_places.h"

/* Adds them, each address once. */
void malloc_names_find(const struct code_file *file, struct memory_places *places);

#endif
