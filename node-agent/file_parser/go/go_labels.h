/* SPDX-License-Identifier: Apache-2.0 */
/* Where Go's runtime keeps the labels that a goroutine has for profiles (runtime/pprof.Do), as the
 * runtime's own code has it: runtime_setProfLabel() stores them in g, morestack() and systemstack()
 * say how a thread finds its g, and its m the goroutine. Also in stripped files, by the table of
 * functions. Go 1.16 to 1.27 for x86-64. */
#ifndef NODE_AGENT_FILE_PARSER_GO_GO_LABELS_H
#define NODE_AGENT_FILE_PARSER_GO_GO_LABELS_H

#include "common/tls_symbol.h"
#include "node-agent/file_parser/go/go_table.h"

/* All zero where the program never sets any, or the code is another. */
void go_labels_find(const struct code_file *file, struct go_table *table,
		    struct go_labels_place *place);

/* The offset at which the code stores a pointer into the goroutine's descriptor; 0: nowhere. */
uint16_t go_label_store(const uint8_t *code, size_t length);

#endif
