/* SPDX-License-Identifier: Apache-2.0 */
/* Unwind rows of the code that samples meet, page by page: asked of the parser when a page is first
 * met, published when they come. */
#ifndef NODE_AGENT_STACKS_CODE_PAGES_H
#define NODE_AGENT_STACKS_CODE_PAGES_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "node-agent/processes/process_table.h"
#include "node-agent/unwind/row_pages.h"
#include "node-agent/file_parser/file_parser.h"

struct code_pages;

/* The table is borrowed; from now on the parser reads the files it meets. */
struct code_pages *code_pages_new(struct process_table *table,
				  const struct row_pages_options *options, struct error *err);
void code_pages_free(struct code_pages *pages);

/* The clock, CLOCK_MONOTONIC; to be set before a round of the other calls. Also gives back the room
 * of executables that the table has forgotten. */
void code_pages_set_time(struct code_pages *pages, int64_t now_ms);

/* A stack has a frame there: the page is kept. Cheap. */
void code_pages_used(struct code_pages *pages, const struct executable *executable,
		     uint64_t address);

/* What is known of the page. ABSENT: it has been asked for, or will be with the next call. */
enum unwind_page_state code_pages_want(struct code_pages *pages, uint32_t executable,
				       uint32_t page);

/* The next answer of the parser, published. False: none is there. */
bool code_pages_next(struct code_pages *pages);

/* Where a file has its threads' contexts is read by the same parser: file_parser_ask_tls(). The
 * executable has to be open. */
void code_pages_set_tls(struct code_pages *pages, file_parser_tls tls, void *context);
bool code_pages_ask_tls(struct code_pages *pages, const struct executable *executable);

/* The same of whether it is a language's runtime: file_parser_ask_runtime(). */
void code_pages_set_runtime(struct code_pages *pages, file_parser_runtime runtime, void *context);
bool code_pages_ask_runtime(struct code_pages *pages, const struct executable *executable);

/* The parser's descriptor, readable when it has answered; −1: it does not run. */
int code_pages_fd(const struct code_pages *pages);
/* How many workers there have been: a new one may have the descriptor's old number. */
uint64_t code_pages_workers(const struct code_pages *pages);

/* Where a file takes memory, as file_parser_ask_memory(); memory is called during
 * code_pages_next(). */
void code_pages_set_memory(struct code_pages *pages, file_parser_memory memory, void *context);
bool code_pages_ask_memory(struct code_pages *pages, uint32_t number, int fd,
			   const struct memory_functions *functions);

/* What a runtime says of its code, as file_parser_ask_jit(); jit is called during
 * code_pages_next(). */
void code_pages_set_jit(struct code_pages *pages, file_parser_jit jit, void *context);
bool code_pages_ask_jit(struct code_pages *pages, uint32_t number, int fd,
			const struct file_parser_piece *piece);

/* For stack_finish(); borrowed. */
struct row_pages *code_pages_rows(struct code_pages *pages);

struct code_pages_counters {
	struct row_pages_counters rows;
	struct file_parser_counters parser;
};
void code_pages_counters(const struct code_pages *pages, struct code_pages_counters *out);

#endif
