/* SPDX-License-Identifier: Apache-2.0 */
/* Where Go's runtime remembers a piece of memory for its heap profile, and where it forgets it:
 * setprofilebucket() and mProf_Free(), behind the check for room on the stack, with which code
 * begins that the compiler has made (cmd/internal/obj/x86/obj6.go); and where it keeps the rate at
 * which it chooses. Also in stripped files: by the table of functions, and by the code of
 * profilealloc(), which reads the rate. Go 1.12 to 1.26 for x86-64. */
#ifndef NODE_AGENT_FILE_PARSER_GO_GO_MEMORY_H
#define NODE_AGENT_FILE_PARSER_GO_GO_MEMORY_H

#include <stdbool.h>

#include "node-agent/file_parser/go/go_table.h"
#include "node-agent/file_parser/memory_places.h"

/* Adds them, both probes or none; the rate where it is found. */
void go_memory_places(const struct code_file *file, struct go_table *table,
		      struct memory_places *places);

/* The check at a function's begin: how long it is, 0 where it is another or none. is_by_stack: the
 * code is of a Go that passes arguments on the stack. */
unsigned go_stack_check(const uint8_t *code, size_t length, bool *is_by_stack);

/* The address of the last variable of 8 bytes that the code reads before its first call; 0: none.
 * address: the code's. */
uint64_t go_variable_read(const uint8_t *code, size_t length, uint64_t address);

#endif
