/* SPDX-License-Identifier: Apache-2.0 */
/* The parser of strangers' files: this program again, as a child without privileges and with
 * limits. Files go to it as descriptors, rows come back and are checked. It is started when there
 * is something to ask, ends when there was nothing for a while, and is killed and started again
 * when it does not answer: the page it had then has failed, and only that one; what a file may cost
 * altogether is bounded (parse_budget.h). */
#ifndef NODE_AGENT_FILE_PARSER_FILE_PARSER_H
#define NODE_AGENT_FILE_PARSER_FILE_PARSER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "common/file_content.h"
#include "common/tls_symbol.h"
#include "node-agent/file_parser/jit/jit_chunk.h"
#include "node-agent/file_parser/memory_places.h"
#include "node-agent/file_parser/row_builder.h"
#include "node-agent/file_parser/runtime_symbols.h"

struct file_parser;

/* To be called first in main(): does the child's work when this process is one, and ends it. −1: it
 * is not, go on. */
int file_parser_main(int argc, char **argv);

struct file_parser *file_parser_new(struct error *err);

/* One page of one file, answered in any order. fd is borrowed (a duplicate is sent); files are told
 * apart by executable, which must not be 0. False: too much is asked for already, the file is new
 * while there is no time for such, or no child could be started; ask again later. */
bool file_parser_ask(struct file_parser *parser, uint32_t executable, int fd, uint32_t page,
		    int64_t now_ms);

/* What a file is that nothing is known of yet. number, 1 to FILE_PARSER_NUMBERS − 1, is the caller's
 * name for the question and comes back with the answer, by file_parser_next(): content NULL when the
 * file was not to be read; is_hung: because that took too long. The rest as above. */
#define FILE_PARSER_NUMBERS 0x80000000u
typedef void (*file_parser_file)(void *context, uint32_t number, const struct file_content *content,
				bool is_hung);
void file_parser_set_file(struct file_parser *parser, file_parser_file file, void *context);
bool file_parser_ask_file(struct file_parser *parser, uint32_t number, int fd, int64_t now_ms);

/* Where a file takes memory; the same, with numbers of its own, below FILE_PARSER_NUMBERS / 2.
 * functions: what somebody else says of it, borrowed until the answer has come; or NULL. */
typedef void (*file_parser_memory)(void *context, uint32_t number,
				  const struct memory_places *places);
void file_parser_set_memory(struct file_parser *parser, file_parser_memory memory, void *context);
bool file_parser_ask_memory(struct file_parser *parser, uint32_t number, int fd,
			   const struct memory_functions *functions, int64_t now_ms);

/* Where that executable has its threads' contexts (file_parser/tls_file.h); tls NULL: its reader failed.
 * The rest as above. */
typedef void (*file_parser_tls)(void *context, uint32_t executable, const struct tls_symbol *tls);
void file_parser_set_tls(struct file_parser *parser, file_parser_tls tls, void *context);
bool file_parser_ask_tls(struct file_parser *parser, uint32_t executable, int fd, int64_t now_ms);

/* Whether that executable is a language's runtime (file_parser/runtime_file.h); runtime NULL: its
 * reader failed. The rest as above. */
typedef void (*file_parser_runtime)(void *context, uint32_t executable,
				    const struct runtime_symbols *runtime);
void file_parser_set_runtime(struct file_parser *parser, file_parser_runtime runtime,
			     void *context);
bool file_parser_ask_runtime(struct file_parser *parser, uint32_t executable, int fd,
			     int64_t now_ms);

/* What a runtime says of its code in that file, from offset to limit, as jit_file_read(); number:
 * as MEMORY's, of its own. chunk NULL: it could not be read. */
typedef void (*file_parser_jit)(void *context, uint32_t number, const struct jit_chunk *chunk);
struct file_parser_piece {
	enum jit_format format;
	uint64_t offset, limit;
};
void file_parser_set_jit(struct file_parser *parser, file_parser_jit jit, void *context);
bool file_parser_ask_jit(struct file_parser *parser, uint32_t number, int fd,
			const struct file_parser_piece *piece, int64_t now_ms);

/* To be polled for reading; −1 while no child runs. It changes when a child is started. */
int file_parser_fd(const struct file_parser *parser);

/* The next page that is there, without waiting; borrowed until the next call. NULL: none. Also
 * gives the failures of pages whose child died or was killed for its silence. Files are told of on
 * the way. */
const struct page_rows *file_parser_next(struct file_parser *parser, int64_t now_ms);

struct file_parser_counters {
	uint64_t asked, answered;
	uint64_t started, killed, died; /* children */
	uint64_t cpu_ns;                /* of all children, the living one too */
	uint32_t waiting;               /* asked and not answered */
};
void file_parser_counters(const struct file_parser *parser, struct file_parser_counters *out);
/* counters.started alone, without asking the kernel for the child's time. */
uint64_t file_parser_started(const struct file_parser *parser);

void file_parser_free(struct file_parser *parser); /* ends the child */

#endif
