/* SPDX-License-Identifier: Apache-2.0 */
/* The child of file_parser/file_parser.h: parses strangers' files with nothing to lose. */
#include "node-agent/file_parser/file_parser.h"

#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/sandbox.h"
#include "node-agent/file_parser/jit/jit_file.h"
#include "node-agent/file_parser/parser_messages.h"
#include "node-agent/file_parser/unwind_file.h"

enum {
	FILES_MAX = 16,            /* open at a time */
	FILES_BYTES_MAX = 1 << 20, /* what they hold together; one may have more while it is used */
	IDLE_SECONDS = 30,         /* then it ends */
	FILE_IDLE_SECONDS = 5,     /* then it is closed: it keeps its file system busy */
	NICE = -5, /* stacks wait for what it finds; less than the agent's own, it reads strangers'
		    */
	WORK_SECONDS = 10, /* of CPU time; then another child goes on */
	CPU_SECONDS_MAX = WORK_SECONDS + 10,
	MEMORY_BYTES_MAX = 192 << 20,
	DESCRIPTORS_MAX = FILES_MAX + 16,
};

struct open_file {
	uint32_t executable; /* 0: none */
	uint32_t used_at;
	int64_t used_s;
	struct unwind_file *file;
};

struct parser {
	struct open_file files[FILES_MAX];
	uint32_t clock;
	size_t bytes;     /* that the files held after the last question */
	uint16_t used_ms; /* of CPU time */
	union { /* what is answered next */
		struct page_rows rows;
		struct jit_chunk jit;
	};
};

/* In the agent itself these pages are never touched. */
static struct parser the_worker;

static void close_file(struct open_file *at)
{
	unwind_file_close(at->file);
	*at = (struct open_file){0};
}

/* The one with that executable; else the one that was not used for the longest. */
static struct open_file *find_file(struct parser *parser, uint32_t executable)
{
	struct open_file *oldest = &parser->files[0];

	for (int i = 0; i < FILES_MAX; i++) {
		if (parser->files[i].executable == executable)
			return &parser->files[i];
		if (parser->files[i].used_at < oldest->used_at)
			oldest = &parser->files[i];
	}
	return oldest;
}

/* Takes fd. NULL: there was none, or no memory. */
static struct unwind_file *file_of(struct parser *parser, uint32_t executable, int fd)
{
	struct open_file *at = find_file(parser, executable);

	if (fd < 0)
		return NULL;
	if (at->executable == executable) {
		close(fd);
	} else {
		close_file(at);
		at->file = unwind_file_open(fd);
		if (!at->file)
			return NULL;
		at->executable = executable;
	}
	at->used_at = ++parser->clock;
	at->used_s = monotonic_ms() / 1000;
	return at->file;
}

static size_t bytes_held(const struct parser *parser)
{
	size_t bytes = 0;

	for (int i = 0; i < FILES_MAX; i++)
		if (parser->files[i].executable)
			bytes += unwind_file_bytes(parser->files[i].file);
	return bytes;
}

/* Closes all but the last used one, the oldest first, until the rest is small. */
static void keep_small(struct parser *parser)
{
	size_t before = parser->bytes;

	while (bytes_held(parser) > FILES_BYTES_MAX) {
		struct open_file *oldest = NULL;

		for (int i = 0; i < FILES_MAX; i++) {
			struct open_file *at = &parser->files[i];

			if (at->executable && (!oldest || at->used_at < oldest->used_at))
				oldest = at;
		}
		if (oldest->used_at == parser->clock)
			break;
		close_file(oldest);
	}
	parser->bytes = bytes_held(parser);
	if (parser->bytes != before)
		malloc_trim(0);
}

static void close_idle(struct parser *parser)
{
	int64_t before_s = monotonic_ms() / 1000 - FILE_IDLE_SECONDS;

	for (int i = 0; i < FILES_MAX; i++)
		if (parser->files[i].executable && parser->files[i].used_s <= before_s)
			close_file(&parser->files[i]);
}

static void make_rows(struct parser *parser, const struct row_question *question, int fd)
{
	struct unwind_file *file = file_of(parser, question->executable, fd);
	struct page_rows *rows = &parser->rows;

	if (file) {
		unwind_file_page(file, question->page, rows);
	} else {
		rows->state = UNWIND_PAGE_FAILED;
		rows->failure = fd < 0 ? ROW_FAILURE_UNREADABLE : ROW_FAILURE_LIMIT;
	}
	rows->executable = question->executable;
	rows->page = question->page;
}

static uint16_t cpu_ms(void)
{
	uint64_t ms = clock_ns(CLOCK_PROCESS_CPUTIME_ID) / 1000000;

	return ms < UINT16_MAX ? (uint16_t)ms : UINT16_MAX;
}

static bool answer_page(struct parser *parser, const struct row_question *question, int fd)
{
	make_rows(parser, question, fd);
	parser->used_ms = cpu_ms();
	return row_answer_send(FILE_PARSER_SOCKET, &parser->rows, parser->used_ms);
}

static bool answer_file(struct parser *parser, const struct row_question *question, int fd)
{
	struct file_content content;
	bool is_readable = fd >= 0 && file_content_read(fd, &content, NULL);

	if (fd >= 0)
		close(fd);
	parser->used_ms = cpu_ms();
	return row_file_send(FILE_PARSER_SOCKET, question->executable, is_readable ? &content : NULL,
			     parser->used_ms);
}

/* Once for each file, so that it is opened for it alone. */
static bool answer_memory(struct parser *parser, const struct row_question *question, int fd)
{
	struct unwind_file *file = fd >= 0 ? unwind_file_open(fd) : NULL; /* takes fd */
	struct memory_places places = {0};

	if (file)
		unwind_file_memory(file, &places);
	if (file && question->functions.count <= MEMORY_FUNCTIONS_MAX)
		unwind_file_functions(file, &question->functions, &places);
	parser->used_ms = cpu_ms();
	if (!row_memory_send(FILE_PARSER_SOCKET, question->executable, file ? &places : NULL,
			     parser->used_ms)) {
		unwind_file_close(file);
		return false;
	}
	unwind_file_close(file);
	return true;
}

static bool answer_tls(struct parser *parser, const struct row_question *question, int fd)
{
	struct unwind_file *file = file_of(parser, question->executable, fd);
	struct tls_symbol tls = {0};

	if (file)
		unwind_file_tls(file, &tls);
	parser->used_ms = cpu_ms();
	return row_tls_send(FILE_PARSER_SOCKET, question->executable, &tls, parser->used_ms);
}

static bool answer_runtime(struct parser *parser, const struct row_question *question, int fd)
{
	struct unwind_file *file = file_of(parser, question->executable, fd);
	struct runtime_symbols runtime = {0};

	if (file)
		unwind_file_runtime(file, &runtime);
	parser->used_ms = cpu_ms();
	return row_runtime_send(FILE_PARSER_SOCKET, question->executable, &runtime,
				parser->used_ms);
}

/* A file that is being written: read piece by piece, and never kept open. */
static bool answer_jit(struct parser *parser, const struct row_question *question, int fd)
{
	if (fd >= 0) {
		jit_file_read(fd, (enum jit_format)question->page, question->offset, question->limit,
			      &parser->jit);
		close(fd);
	}
	parser->used_ms = cpu_ms();
	return row_jit_send(FILE_PARSER_SOCKET, question->executable, fd >= 0 ? &parser->jit : NULL,
			    parser->used_ms);
}

static bool answer(struct parser *parser, const struct row_question *question, int fd)
{
	switch (question->kind) {
	case PARSER_MESSAGE_FILE:
		return answer_file(parser, question, fd);
	case PARSER_MESSAGE_MEMORY:
		return answer_memory(parser, question, fd);
	case PARSER_MESSAGE_TLS:
		return answer_tls(parser, question, fd);
	case PARSER_MESSAGE_RUNTIME:
		return answer_runtime(parser, question, fd);
	case PARSER_MESSAGE_JIT:
		return answer_jit(parser, question, fd);
	default:
		return answer_page(parser, question, fd);
	}
}

static bool enter_sandbox(struct error *err)
{
	const struct sandbox_limits limits = {.memory_bytes = MEMORY_BYTES_MAX,
					      .cpu_seconds = CPU_SECONDS_MAX,
					      .open_files = DESCRIPTORS_MAX,
					      .has_socket = true};
	const struct timeval idle = {.tv_sec = FILE_IDLE_SECONDS};

	prctl(PR_SET_NAME, FILE_PARSER_NAME);
	if (getpriority(PRIO_PROCESS, 0) < NICE)
		setpriority(PRIO_PROCESS, 0, NICE);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	close_range(FILE_PARSER_SOCKET + 1, ~0U, 0);
	mallopt(M_MMAP_THRESHOLD, 64 << 10);
	mallopt(M_TRIM_THRESHOLD, 64 << 10);
	setsockopt(FILE_PARSER_SOCKET, SOL_SOCKET, SO_RCVTIMEO, &idle, sizeof idle);
	if (!sandbox_enter(&limits, err))
		return false;
	malloc_trim(0); /* the filter was made of it */
	return true;
}

/* False: it is to end. */
static bool next_question(struct parser *parser, struct row_question *question, int *fd)
{
	for (int idle_s = 0; idle_s < IDLE_SECONDS; idle_s += FILE_IDLE_SECONDS) {
		if (row_question_receive(FILE_PARSER_SOCKET, question, fd))
			return true;
		if (errno != EAGAIN)
			return false;
		close_idle(parser);
		keep_small(parser);
	}
	return false;
}

/* Ends by _exit(): what libraries do at exit wants system calls that the filter forbids. */
int file_parser_main(int argc, char **argv)
{
	struct row_question question;
	struct error err = {0};
	int fd;

	if (argc != 1 || strcmp(argv[0], FILE_PARSER_NAME) != 0)
		return -1;
	if (!enter_sandbox(&err)) {
		row_farewell_send(FILE_PARSER_SOCKET, err.message);
		_exit(EXIT_FAILURE);
	}
	while (the_worker.used_ms < WORK_SECONDS * 1000 &&
	       next_question(&the_worker, &question, &fd)) {
		if (!answer(&the_worker, &question, fd))
			_exit(EXIT_FAILURE);
		close_idle(&the_worker);
		keep_small(&the_worker);
	}
	row_farewell_send(FILE_PARSER_SOCKET, "");
	_exit(EXIT_SUCCESS);
}
