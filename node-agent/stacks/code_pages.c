/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/stacks/code_pages.h"

#include <stdlib.h>

enum { RECENT = 256 };

struct recent { /* a page and the second in which its use was last told */
	struct unwind_page_key key;
	uint32_t used_s;
};

struct code_pages {
	struct process_table *table;
	struct row_pages *rows;
	struct file_parser *parser;
	int64_t now_ms;
	uint32_t now_s;
	struct recent recent[RECENT];
};

/* The answer for a file that is not there to be asked about; the rest of it is never looked at. */
static struct page_rows unreadable;

static bool ask_file(void *context, uint32_t number, int fd)
{
	struct code_pages *pages = context;

	return file_parser_ask_file(pages->parser, number, fd, pages->now_ms);
}

bool code_pages_ask_tls(struct code_pages *pages, const struct executable *executable)
{
	return file_parser_ask_tls(pages->parser, executable->index, executable->fd, pages->now_ms);
}

void code_pages_set_tls(struct code_pages *pages, file_parser_tls tls, void *context)
{
	file_parser_set_tls(pages->parser, tls, context);
}

bool code_pages_ask_runtime(struct code_pages *pages, const struct executable *executable)
{
	return file_parser_ask_runtime(pages->parser, executable->index, executable->fd,
				       pages->now_ms);
}

void code_pages_set_runtime(struct code_pages *pages, file_parser_runtime runtime, void *context)
{
	file_parser_set_runtime(pages->parser, runtime, context);
}

static void take_file(void *context, uint32_t number, const struct file_content *content,
		      bool is_hung)
{
	struct code_pages *pages = context;

	process_table_file(pages->table, number, content, is_hung);
}

struct code_pages *code_pages_new(struct process_table *table,
				  const struct row_pages_options *options, struct error *err)
{
	struct code_pages *pages = calloc(1, sizeof(*pages));

	if (!pages) {
		error_set(err, ERROR_MEMORY, "no memory for pages of code");
		return NULL;
	}
	pages->table = table;
	pages->rows = row_pages_new(options, err);
	pages->parser = pages->rows ? file_parser_new(err) : NULL;
	if (!pages->parser) {
		code_pages_free(pages);
		return NULL;
	}
	file_parser_set_file(pages->parser, take_file, pages);
	process_table_set_reader(table, &(struct file_reader){ask_file, pages});
	return pages;
}

void code_pages_free(struct code_pages *pages)
{
	if (!pages)
		return;
	process_table_set_reader(pages->table, &(struct file_reader){0});
	file_parser_free(pages->parser);
	row_pages_free(pages->rows);
	free(pages);
}

void code_pages_set_time(struct code_pages *pages, int64_t now_ms)
{
	uint32_t forgotten;

	pages->now_ms = now_ms;
	pages->now_s = (uint32_t)(now_ms / 1000);
	while ((forgotten = process_table_take_forgotten(pages->table)))
		row_pages_forget(pages->rows, forgotten);
}

void code_pages_used(struct code_pages *pages, const struct executable *executable,
		     uint64_t address)
{
	const struct unwind_page_key key = {executable->index,
					    (uint32_t)(address >> UNWIND_PAGE_BITS)};
	struct recent *recent = &pages->recent[(key.page * 31 + key.executable) % RECENT];
	bool is_asked;

	if (recent->used_s == pages->now_s && recent->key.executable == key.executable &&
	    recent->key.page == key.page)
		return;
	*recent = (struct recent){key, pages->now_s};
	row_pages_state(pages->rows, key.executable, key.page, pages->now_s, &is_asked);
}

static void ask(struct code_pages *pages, uint32_t index, uint32_t page)
{
	const struct executable *executable = process_table_executable(pages->table, index);

	if (executable && process_table_reopen(pages->table, index)) {
		if (file_parser_ask(pages->parser, index, executable->fd, page, pages->now_ms))
			row_pages_asked(pages->rows, index, page, pages->now_s);
		return;
	}
	unreadable.executable = index;
	unreadable.page = page;
	unreadable.state = UNWIND_PAGE_FAILED;
	unreadable.failure = ROW_FAILURE_UNREADABLE;
	row_pages_put(pages->rows, &unreadable, pages->now_s);
}

enum unwind_page_state code_pages_want(struct code_pages *pages, uint32_t executable, uint32_t page)
{
	bool is_asked;
	enum unwind_page_state state = row_pages_state(pages->rows, executable, page, pages->now_s,
						       &is_asked);

	if (state != UNWIND_PAGE_ABSENT || is_asked)
		return state;
	ask(pages, executable, page);
	return row_pages_state(pages->rows, executable, page, pages->now_s, &is_asked);
}

bool code_pages_next(struct code_pages *pages)
{
	const struct page_rows *rows = file_parser_next(pages->parser, pages->now_ms);

	if (!rows)
		return false;
	row_pages_put(pages->rows, rows, pages->now_s);
	return true;
}

int code_pages_fd(const struct code_pages *pages)
{
	return file_parser_fd(pages->parser);
}

uint64_t code_pages_workers(const struct code_pages *pages)
{
	return file_parser_started(pages->parser);
}

void code_pages_set_memory(struct code_pages *pages, file_parser_memory memory, void *context)
{
	file_parser_set_memory(pages->parser, memory, context);
}

bool code_pages_ask_memory(struct code_pages *pages, uint32_t number, int fd,
			   const struct memory_functions *functions)
{
	return file_parser_ask_memory(pages->parser, number, fd, functions, pages->now_ms);
}

void code_pages_set_jit(struct code_pages *pages, file_parser_jit jit, void *context)
{
	file_parser_set_jit(pages->parser, jit, context);
}

bool code_pages_ask_jit(struct code_pages *pages, uint32_t number, int fd,
			const struct file_parser_piece *piece)
{
	return file_parser_ask_jit(pages->parser, number, fd, piece, pages->now_ms);
}

struct row_pages *code_pages_rows(struct code_pages *pages)
{
	return pages->rows;
}

void code_pages_counters(const struct code_pages *pages, struct code_pages_counters *out)
{
	row_pages_counters(pages->rows, &out->rows);
	file_parser_counters(pages->parser, &out->parser);
}
