/* SPDX-License-Identifier: Apache-2.0 */
/* Asking the file parser, and waiting for what it says. The child is the test itself. */
#ifndef TESTS_UNIT_FILE_PARSER_ASKING_H
#define TESTS_UNIT_FILE_PARSER_ASKING_H

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/clock.h"
#include "node-agent/file_parser/file_parser.h"
#include "node-agent/file_parser/parser_messages.h"
#include "tests/check.h"

/* Numbers of executables: of the child as it is; from FAKE on of one that is not sound. */
enum { PATIENCE_MS = 20000, REAL = 1, FAKE = 1000 };

static int own_file = -1;

/* NULL: nothing came for a long time. */
static inline const struct page_rows *wait_answer(struct file_parser *parser)
{
	int64_t end = monotonic_ms() + PATIENCE_MS;
	const struct page_rows *rows;

	while (!(rows = file_parser_next(parser, monotonic_ms())) && monotonic_ms() < end) {
		struct pollfd wait = {.fd = file_parser_fd(parser), .events = POLLIN};

		poll(&wait, 1, 20);
	}
	return rows;
}

static inline bool ask(struct file_parser *parser, uint32_t executable, uint32_t page)
{
	return file_parser_ask(parser, executable, own_file, page, monotonic_ms());
}

static inline bool is_failure(const struct page_rows *rows, uint32_t executable, uint32_t page,
			      enum row_failure failure)
{
	return rows && rows->executable == executable && rows->page == page &&
	       rows->state == UNWIND_PAGE_FAILED && rows->failure == failure;
}

static inline bool is_answer(const struct page_rows *rows, uint32_t executable, uint32_t page,
			     enum unwind_page_state state)
{
	return rows && rows->executable == executable && rows->page == page && rows->state == state;
}

static inline struct file_parser_counters counters_of(const struct file_parser *parser)
{
	struct file_parser_counters counters;

	file_parser_counters(parser, &counters);
	return counters;
}

static inline pid_t child_of(void)
{
	char path[64], text[64] = "";
	FILE *file;

	snprintf(path, sizeof path, "/proc/self/task/%d/children", getpid());
	file = fopen(path, "r");
	text[file ? fread(text, 1, sizeof text - 1, file) : 0] = '\0';
	if (file)
		fclose(file);
	return (pid_t)strtol(text, NULL, 10);
}

/* --- of what files are --- */

static struct {
	unsigned count, failed, hung;
	uint32_t number; /* the last one's */
	struct file_content content;
} told;

static inline void take_told(void *context, uint32_t number, const struct file_content *content,
			     bool is_hung)
{
	(void)context;
	told.count++;
	told.failed += !content;
	told.hung += is_hung;
	told.number = number;
	if (content)
		told.content = *content;
}

static inline struct file_parser *new_file_worker(void)
{
	struct file_parser *parser = file_parser_new(NULL);

	memset(&told, 0, sizeof told);
	file_parser_set_file(parser, take_told, NULL);
	return parser;
}

static inline bool ask_file(struct file_parser *parser, uint32_t number, int fd)
{
	return file_parser_ask_file(parser, number, fd, monotonic_ms());
}

static inline bool wait_told(struct file_parser *parser, unsigned count)
{
	int64_t end = monotonic_ms() + PATIENCE_MS;

	while (told.count < count && monotonic_ms() < end) {
		struct pollfd wait = {.fd = file_parser_fd(parser), .events = POLLIN};

		CHECK(!file_parser_next(parser, monotonic_ms()));
		if (told.count < count)
			poll(&wait, 1, 20);
	}
	return told.count == count;
}

#endif
