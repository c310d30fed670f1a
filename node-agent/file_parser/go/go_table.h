/* SPDX-License-Identifier: Apache-2.0 */
/* Go's own table: .gopclntab's pcsp tables say for every instruction how far the stack pointer is
 * from the return address. Go has no .eh_frame, and its leaf functions without a frame leave the
 * frame pointer to their caller. Format: runtime/symtab.go of Go 1.2 (magic 0xfffffffb), 1.16
 * (…fa), 1.18 (…f0) and 1.20 (…f1); also in stripped files and in PIEs. */
#ifndef NODE_AGENT_FILE_PARSER_GO_GO_TABLE_H
#define NODE_AGENT_FILE_PARSER_GO_GO_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "node-agent/file_parser/frames/call_frames.h"
#include "node-agent/file_parser/code/code_file.h"

struct go_table;

/* file is borrowed. NULL: not a Go program (*failure NONE), or its table cannot be used. */
struct go_table *go_table_open(const struct code_file *file, enum row_failure *failure);
void go_table_close(struct go_table *table);

/* As call_frames_pieces(). */
enum row_failure go_table_pieces(struct go_table *table, uint64_t start, uint64_t end,
				 call_frames_add add, void *context);

/* The functions of those names, all zero where there is none; a name of GO_NAME_BYTES − 1 bytes and
 * more is never found. Searches until it has all. */
struct go_span {
	uint64_t start, end;
};
void go_table_find(struct go_table *table, const char *const *names, unsigned count,
		   struct go_span *spans);

/* Where the runtime keeps what a thread works on. False: its code does not say. */
struct go_descriptor;
bool go_table_descriptor(struct go_table *table, struct go_descriptor *descriptor);

size_t go_table_bytes(const struct go_table *table);

#endif
