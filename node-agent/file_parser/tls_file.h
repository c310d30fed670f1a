/* SPDX-License-Identifier: Apache-2.0 */
/* Where a file defines a thread-local symbol and what the dynamic linker fills in for it. Runs in
 * the parser of strangers' files. Formats: System V ABI (symbol and relocation tables), "ELF
 * Handling For Thread-Local Storage" (Drepper), the psABIs of x86-64 and arm64 (relocations). */
#ifndef NODE_AGENT_FILE_PARSER_TLS_FILE_H
#define NODE_AGENT_FILE_PARSER_TLS_FILE_H

#include "common/tls_symbol.h"
#include "node-agent/file_parser/code/code_file.h"

#define TLS_FILE_SYMBOL "otel_thread_ctx_v1" /* OTEP 4947 */

/* All of it is in out, which says so when there is none. */
void tls_file_read(const struct code_file *file, struct tls_symbol *out);

#endif
