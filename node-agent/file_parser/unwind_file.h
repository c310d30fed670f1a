/* SPDX-License-Identifier: Apache-2.0 */
/* One executable's unwind information, from whatever table it has: the rows of any of its pages.
 * What Go's table covers is Go's; the rest has call frame information or nothing. */
#ifndef NODE_AGENT_FILE_PARSER_UNWIND_FILE_H
#define NODE_AGENT_FILE_PARSER_UNWIND_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "common/tls_symbol.h"
#include "node-agent/file_parser/memory_places.h"
#include "node-agent/file_parser/row_builder.h"
#include "node-agent/file_parser/runtime_symbols.h"

struct unwind_file;

/* fd is taken over and closed with the file. Never NULL but for want of memory: a file that cannot
 * be used gives pages that say so. */
struct unwind_file *unwind_file_open(int fd);
void unwind_file_close(struct unwind_file *file);

/* out->executable is the caller's to set. */
void unwind_file_page(struct unwind_file *file, uint32_t page, struct page_rows *out);

/* Where it takes memory: what is known of is added. */
void unwind_file_memory(struct unwind_file *file, struct memory_places *places);

/* The same, and the functions that somebody else told of: each that begins in the file's code, by
 * its own frame information, so that no probe lies within an instruction. The others are counted.
 */
void unwind_file_functions(struct unwind_file *file, const struct memory_functions *functions,
			   struct memory_places *places);

/* As runtime_file_read() and runtime_file_loop(). */
void unwind_file_runtime(struct unwind_file *file, struct runtime_symbols *out);

/* As tls_file_read() and go_labels_find(). */
void unwind_file_tls(struct unwind_file *file, struct tls_symbol *out);

size_t unwind_file_bytes(const struct unwind_file *file);

#endif
