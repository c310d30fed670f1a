/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/file_parser/file_parser.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "node-agent/kernel/own_child.h"
#include "node-agent/file_parser/parse_budget.h"
#include "node-agent/file_parser/parser_messages.h"

enum {
	ASKS_MAX = 256,
	FILES_MAX = 128, /* that are asked about at a time */
	SENT_MAX = 4,    /* questions the child has at a time */
	DEADLINE_MS = 2000,
	/* Of one that nothing is known of: others' stacks wait behind it. Only a child that does
	 * not run holds the file to blame; where CPUs are short it waits for one of those. */
	FILE_DEADLINE_MS = 750,
	ENDING_MAX = 8, /* children that are ending: one may hang in a read for some time */
	SOCKET_BYTES = 256 << 10,
	FRUITLESS_MAX = 8, /* children in a row that ended without one answer … */
	PAUSE_MS = 10000,  /* … after which none is started for so long */
	FREE_WAITS = 100,  /* of a ms, for a killed child's end */
};

struct asked_file {
	uint32_t key, uses; /* key_of(); uses 0: free */
	int fd;
};

struct ask {
	uint32_t kind; /* enum row_message */
	uint32_t executable, page, file;
	const struct memory_functions *functions; /* or NULL */
	uint64_t offset, limit;                   /* JIT; page is its format */
};

struct file_parser {
	pid_t child;              /* −1: none */
	int socket;               /* −1: no child */
	pid_t ending[ENDING_MAX]; /* 0: free */
	uint32_t fruitless;
	int64_t paused_until_ms;
	bool has_answered; /* this child */
	uint32_t cpu_ms;   /* its own, as of its last answer */

	struct ask asks[ASKS_MAX]; /* a ring; from first on sent are with the child */
	uint32_t first, count, sent;
	int64_t first_ms; /* when the child began with the first */
	struct asked_file files[FILES_MAX];
	struct parse_budget budget;

	struct row_reply *reply; /* while a child runs, and for failures */
	file_parser_file on_file; /* NULL: nobody asks */
	void *context;
	file_parser_memory on_memory; /* the same */
	void *memory_context;
	file_parser_tls on_tls; /* likewise */
	void *tls_context;
	file_parser_runtime on_runtime; /* likewise */
	void *runtime_context;
	file_parser_jit on_jit;
	void *jit_context;
	struct file_parser_counters counters;
};

struct file_parser *file_parser_new(struct error *err)
{
	struct file_parser *parser = calloc(1, sizeof *parser);

	if (!parser) {
		error_set(err, ERROR_MEMORY, "no memory for the parser of unwind tables");
		return NULL;
	}
	parser->child = parser->socket = -1;
	return parser;
}

/* --- children --- */

static void reap(struct file_parser *parser)
{
	struct rusage used = {0};

	for (int i = 0; i < ENDING_MAX; i++) {
		if (!parser->ending[i] || wait4(parser->ending[i], NULL, WNOHANG, &used) == 0)
			continue;
		parser->ending[i] = 0;
		parser->counters.cpu_ns +=
			(uint64_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000000 +
			(uint64_t)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1000;
	}
}

static int place_to_end(const struct file_parser *parser)
{
	for (int i = 0; i < ENDING_MAX; i++)
		if (!parser->ending[i])
			return i;
	return -1;
}

/* Its questions are unanswered again. It is not waited for: a read may hold it. */
static void end_child(struct file_parser *parser, int64_t now_ms)
{
	if (parser->child < 0)
		return;
	kill(parser->child, SIGKILL);
	close(parser->socket);
	parser->ending[place_to_end(parser)] = parser->child;
	parser->child = parser->socket = -1;
	parser->sent = 0;
	if (!parser->has_answered && ++parser->fruitless >= FRUITLESS_MAX) {
		parser->fruitless = 0;
		parser->paused_until_ms = now_ms + PAUSE_MS;
		log_warn("no rows from unwind tables", "children_ended_without_an_answer=%d",
			 FRUITLESS_MAX);
	}
	reap(parser);
}

static bool start_child(struct file_parser *parser, int64_t now_ms)
{
	int sockets[2], size = SOCKET_BYTES, failure;

	reap(parser);
	if (now_ms < parser->paused_until_ms || place_to_end(parser) < 0)
		return false;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0)
		return false;
	setsockopt(sockets[1], SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
	failure = own_child_start(FILE_PARSER_NAME, sockets[1], NULL, &parser->child);
	close(sockets[1]);
	if (failure) {
		close(sockets[0]);
		parser->child = -1;
		log_warn("parser of unwind tables not started", "why=\"%s\"", strerror(failure));
		return false;
	}
	parser->socket = sockets[0];
	parser->has_answered = false;
	parser->cpu_ms = 0;
	parser->counters.started++;
	return true;
}

/* --- what files cost --- */

/* The child's CPU time since its last answer; it says it with an answer, else the kernel does. */
static uint32_t cost(struct file_parser *parser, uint32_t cpu_ms)
{
	uint32_t used_ms = cpu_ms > parser->cpu_ms ? cpu_ms - parser->cpu_ms : 0;

	parser->cpu_ms += used_ms;
	return used_ms;
}

static uint32_t child_cpu_ms(const struct file_parser *parser)
{
	return (uint32_t)(process_cpu_ns((uint32_t)parser->child) / 1000000);
}

/* --- asking --- */

/* What a question is told by from others, and its cost is on: an executable, or a number. */
static uint32_t key_of(const struct ask *ask)
{
	if (ask->kind == PARSER_MESSAGE_MEMORY)
		return ask->executable | FILE_PARSER_NUMBERS | FILE_PARSER_NUMBERS / 2;
	if (ask->kind == PARSER_MESSAGE_JIT)
		return ask->executable | FILE_PARSER_NUMBERS / 2;
	return ask->kind == PARSER_MESSAGE_FILE ? ask->executable | FILE_PARSER_NUMBERS
					     : ask->executable;
}

/* The file's descriptor, once for all its pages; −1: no room. */
static int hold_file(struct file_parser *parser, uint32_t key, int fd)
{
	struct asked_file *unused = NULL;

	for (int i = 0; i < FILES_MAX; i++) {
		struct asked_file *file = &parser->files[i];

		if (!file->uses) {
			unused = file;
		} else if (file->key == key) {
			file->uses++;
			return i;
		}
	}
	if (!unused)
		return -1;
	unused->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (unused->fd < 0)
		return -1;
	unused->key = key;
	unused->uses = 1;
	return (int)(unused - parser->files);
}

static struct ask *ask_at(struct file_parser *parser, uint32_t at)
{
	return &parser->asks[(parser->first + at) % ASKS_MAX];
}

/* The next one that may be sent comes next; those that have to wait are passed. A refused one is
 * not: it fails when it is the first. */
static bool find_next(struct file_parser *parser, int64_t now_ms)
{
	for (uint32_t at = parser->sent; at < parser->count; at++) {
		struct ask *next = ask_at(parser, parser->sent), *ask = ask_at(parser, at);
		const struct ask passed = *next;
		enum parse_verdict verdict = parse_budget_verdict(&parser->budget, key_of(ask),
								  now_ms);

		if (verdict == PARSE_LATER)
			continue;
		*next = *ask;
		*ask = passed;
		return verdict == PARSE_NOW;
	}
	return false;
}

static void send_questions(struct file_parser *parser, int64_t now_ms)
{
	while (parser->child >= 0 && parser->sent < SENT_MAX && find_next(parser, now_ms)) {
		const struct ask *ask = ask_at(parser, parser->sent);
		struct row_question question = {.kind = ask->kind,
						.executable = ask->executable,
						.page = ask->page,
						.offset = ask->offset,
						.limit = ask->limit};

		if (ask->functions)
			question.functions = *ask->functions;
		/* A child's end is seen when its answers have been read. */
		if (row_question_send(parser->socket, &question, parser->files[ask->file].fd) !=
		    ROW_SENT)
			return;
		if (!parser->sent++)
			parser->first_ms = now_ms;
	}
}

static bool add_ask(struct file_parser *parser, struct ask *ask, int fd, int64_t now_ms)
{
	uint32_t key = key_of(ask);
	int file;

	if (!ask->executable || parser->count == ASKS_MAX ||
	    parse_budget_verdict(&parser->budget, key, now_ms) == PARSE_LATER)
		return false;
	if (parser->child < 0 && !start_child(parser, now_ms))
		return false;
	file = hold_file(parser, key, fd);
	if (file < 0)
		return false;
	ask->file = (uint32_t)file;
	*ask_at(parser, parser->count++) = *ask;
	parser->counters.asked++;
	send_questions(parser, now_ms);
	return true;
}

bool file_parser_ask(struct file_parser *parser, uint32_t executable, int fd, uint32_t page,
		    int64_t now_ms)
{
	struct ask ask = {.kind = PARSER_MESSAGE_PAGE, .executable = executable, .page = page};

	return add_ask(parser, &ask, fd, now_ms);
}

void file_parser_set_file(struct file_parser *parser, file_parser_file file, void *context)
{
	parser->on_file = file;
	parser->context = context;
}

bool file_parser_ask_file(struct file_parser *parser, uint32_t number, int fd, int64_t now_ms)
{
	struct ask ask = {.kind = PARSER_MESSAGE_FILE, .executable = number};

	return number < FILE_PARSER_NUMBERS && add_ask(parser, &ask, fd, now_ms);
}

void file_parser_set_memory(struct file_parser *parser, file_parser_memory memory, void *context)
{
	parser->on_memory = memory;
	parser->memory_context = context;
}

bool file_parser_ask_memory(struct file_parser *parser, uint32_t number, int fd,
			   const struct memory_functions *functions, int64_t now_ms)
{
	struct ask ask = {.kind = PARSER_MESSAGE_MEMORY, .executable = number, .functions = functions};

	return number < FILE_PARSER_NUMBERS / 2 && add_ask(parser, &ask, fd, now_ms);
}

void file_parser_set_tls(struct file_parser *parser, file_parser_tls tls, void *context)
{
	parser->on_tls = tls;
	parser->tls_context = context;
}

bool file_parser_ask_tls(struct file_parser *parser, uint32_t executable, int fd, int64_t now_ms)
{
	struct ask ask = {.kind = PARSER_MESSAGE_TLS, .executable = executable};

	return add_ask(parser, &ask, fd, now_ms);
}

void file_parser_set_runtime(struct file_parser *parser, file_parser_runtime runtime, void *context)
{
	parser->on_runtime = runtime;
	parser->runtime_context = context;
}

bool file_parser_ask_runtime(struct file_parser *parser, uint32_t executable, int fd,
			     int64_t now_ms)
{
	struct ask ask = {.kind = PARSER_MESSAGE_RUNTIME, .executable = executable};

	return add_ask(parser, &ask, fd, now_ms);
}

void file_parser_set_jit(struct file_parser *parser, file_parser_jit jit, void *context)
{
	parser->on_jit = jit;
	parser->jit_context = context;
}

bool file_parser_ask_jit(struct file_parser *parser, uint32_t number, int fd,
			const struct file_parser_piece *piece, int64_t now_ms)
{
	struct ask ask = {.kind = PARSER_MESSAGE_JIT,
			  .executable = number,
			  .page = piece->format,
			  .offset = piece->offset,
			  .limit = piece->limit};

	return number < FILE_PARSER_NUMBERS / 2 && add_ask(parser, &ask, fd, now_ms);
}

int file_parser_fd(const struct file_parser *parser)
{
	return parser->socket;
}

/* --- answers --- */

static void pop(struct file_parser *parser, int64_t now_ms)
{
	struct asked_file *file = &parser->files[ask_at(parser, 0)->file];

	if (!--file->uses)
		close(file->fd);
	parser->first = (parser->first + 1) % ASKS_MAX;
	parser->count--;
	if (parser->sent)
		parser->sent--;
	parser->first_ms = now_ms;
	parser->counters.answered++;
}

enum heard { HEARD_NOTHING, HEARD_PAGE, HEARD_FILE /* and told of */ };

static void tell_file(struct file_parser *parser, uint32_t number,
		      const struct file_content *content, bool is_hung)
{
	if (parser->on_file)
		parser->on_file(parser->context, number, content, is_hung);
}

static void tell_memory(struct file_parser *parser, uint32_t number,
			const struct memory_places *places)
{
	if (parser->on_memory)
		parser->on_memory(parser->memory_context, number, places);
}

static void tell_tls(struct file_parser *parser, uint32_t executable, const struct tls_symbol *tls)
{
	if (parser->on_tls)
		parser->on_tls(parser->tls_context, executable, tls);
}

static void tell_runtime(struct file_parser *parser, uint32_t executable,
			 const struct runtime_symbols *runtime)
{
	if (parser->on_runtime)
		parser->on_runtime(parser->runtime_context, executable, runtime);
}

static void tell_jit(struct file_parser *parser, uint32_t number, const struct jit_chunk *chunk)
{
	if (parser->on_jit)
		parser->on_jit(parser->jit_context, number, chunk);
}

static enum heard fail_first(struct file_parser *parser, bool is_hung, int64_t now_ms)
{
	const struct ask ask = *ask_at(parser, 0);
	struct page_rows *rows = &parser->reply->rows;

	pop(parser, now_ms);
	if (ask.kind == PARSER_MESSAGE_FILE) {
		tell_file(parser, ask.executable, NULL, is_hung);
		return HEARD_FILE;
	}
	if (ask.kind == PARSER_MESSAGE_MEMORY) {
		tell_memory(parser, ask.executable, NULL);
		return HEARD_FILE;
	}
	if (ask.kind == PARSER_MESSAGE_TLS) {
		tell_tls(parser, ask.executable, NULL);
		return HEARD_FILE;
	}
	if (ask.kind == PARSER_MESSAGE_RUNTIME) {
		tell_runtime(parser, ask.executable, NULL);
		return HEARD_FILE;
	}
	if (ask.kind == PARSER_MESSAGE_JIT) {
		tell_jit(parser, ask.executable, NULL);
		return HEARD_FILE;
	}
	rows->executable = ask.executable;
	rows->page = ask.page;
	rows->state = UNWIND_PAGE_FAILED;
	rows->failure = ROW_FAILURE_WORKER;
	rows->count = rows->rule_count = 0;
	return HEARD_PAGE;
}

/* The child ends, and what it had is the reason: that has failed. */
static enum heard blame_first(struct file_parser *parser, uint64_t *counter, bool is_hung,
			      int64_t now_ms)
{
	uint32_t used_ms = cost(parser, child_cpu_ms(parser));
	bool had_one = parser->sent > 0;

	++*counter;
	end_child(parser, now_ms);
	if (!had_one)
		return HEARD_NOTHING;
	parse_budget_strike(&parser->budget, key_of(ask_at(parser, 0)), used_ms, now_ms);
	return fail_first(parser, is_hung, now_ms);
}

/* Questions are answered in their order. */
static bool is_asked(struct file_parser *parser, enum row_received kind)
{
	const struct row_reply *reply = parser->reply;
	const struct ask *first = ask_at(parser, 0);

	if (!parser->sent)
		return false;
	if (kind == ROW_RECEIVED_FILE)
		return first->kind == PARSER_MESSAGE_FILE && first->executable == reply->file;
	if (kind == ROW_RECEIVED_MEMORY)
		return first->kind == PARSER_MESSAGE_MEMORY && first->executable == reply->file;
	if (kind == ROW_RECEIVED_JIT)
		return first->kind == PARSER_MESSAGE_JIT && first->executable == reply->file;
	if (kind == ROW_RECEIVED_TLS)
		return first->kind == PARSER_MESSAGE_TLS && first->executable == reply->file;
	if (kind == ROW_RECEIVED_RUNTIME)
		return first->kind == PARSER_MESSAGE_RUNTIME && first->executable == reply->file;
	return first->kind == PARSER_MESSAGE_PAGE && first->executable == reply->rows.executable &&
	       first->page == reply->rows.page;
}

static enum heard take_answer(struct file_parser *parser, enum row_received kind, int64_t now_ms)
{
	const struct row_reply *reply = parser->reply;

	if (!is_asked(parser, kind))
		return blame_first(parser, &parser->counters.killed, false, now_ms);
	parser->has_answered = true;
	parser->fruitless = 0;
	parse_budget_answered(&parser->budget, key_of(ask_at(parser, 0)),
			      cost(parser, reply->cpu_ms), now_ms);
	pop(parser, now_ms);
	if (kind == ROW_RECEIVED_MEMORY) {
		tell_memory(parser, reply->file, reply->is_readable ? &reply->places : NULL);
		return HEARD_FILE;
	}
	if (kind == ROW_RECEIVED_ANSWER)
		return HEARD_PAGE;
	if (kind == ROW_RECEIVED_TLS)
		tell_tls(parser, reply->file, &reply->tls);
	else if (kind == ROW_RECEIVED_RUNTIME)
		tell_runtime(parser, reply->file, &reply->runtime);
	else if (kind == ROW_RECEIVED_JIT)
		tell_jit(parser, reply->file, reply->is_readable ? &reply->jit : NULL);
	else
		tell_file(parser, reply->file, reply->is_readable ? &reply->content : NULL, false);
	return HEARD_FILE;
}

static void say_farewell(char *text)
{
	for (char *at = text; *at; at++)
		if (*at < ' ' || *at == '"')
			*at = ' ';
	if (*text)
		log_warn("parser of unwind tables gave up", "why=\"%s\"", text);
}

static bool is_late(struct file_parser *parser, int64_t now_ms)
{
	int64_t passed_ms = now_ms - parser->first_ms;

	if (!parser->sent || passed_ms < FILE_DEADLINE_MS)
		return false;
	return passed_ms >= DEADLINE_MS ||
	       (ask_at(parser, 0)->kind == PARSER_MESSAGE_FILE && own_child_sleeps(parser->child));
}

/* What the child has to say, or its silence. */
static enum heard hear_child(struct file_parser *parser, int64_t now_ms)
{
	struct file_parser_counters *counters = &parser->counters;
	enum row_received received = row_reply_receive(parser->socket, parser->reply);

	switch (received) {
	case ROW_RECEIVED_ANSWER:
	case ROW_RECEIVED_FILE:
	case ROW_RECEIVED_MEMORY:
	case ROW_RECEIVED_TLS:
	case ROW_RECEIVED_RUNTIME:
	case ROW_RECEIVED_JIT:
		return take_answer(parser, received, now_ms);
	case ROW_RECEIVED_FAREWELL:
		say_farewell(parser->reply->farewell);
		end_child(parser, now_ms);
		return HEARD_NOTHING;
	case ROW_RECEIVED_WRONG:
		return blame_first(parser, &counters->killed, false, now_ms);
	case ROW_RECEIVED_END:
		return blame_first(parser, &counters->died, false, now_ms);
	case ROW_RECEIVED_NOTHING:
		break;
	}
	if (!is_late(parser, now_ms))
		return HEARD_NOTHING;
	return blame_first(parser, &counters->killed, own_child_sleeps(parser->child), now_ms);
}

static bool has_room_for_reply(struct file_parser *parser)
{
	if (!parser->reply)
		parser->reply = malloc(sizeof *parser->reply);
	return parser->reply;
}

static bool is_refused(struct file_parser *parser, const struct ask *ask, int64_t now_ms)
{
	return parse_budget_verdict(&parser->budget, key_of(ask), now_ms) == PARSE_REFUSED;
}

/* Nobody has the first: it fails at once, or somebody gets it, or it waits. */
static enum heard look_at_first(struct file_parser *parser, int64_t now_ms)
{
	bool has_next;

	if (!parser->count || parser->sent)
		return HEARD_NOTHING;
	has_next = find_next(parser, now_ms);
	if (is_refused(parser, ask_at(parser, 0), now_ms) ||
	    (has_next && parser->child < 0 && !start_child(parser, now_ms)))
		return fail_first(parser, false, now_ms);
	return HEARD_NOTHING;
}

const struct page_rows *file_parser_next(struct file_parser *parser, int64_t now_ms)
{
	enum heard heard;

	reap(parser);
	do {
		heard = HEARD_NOTHING;
		if ((parser->child >= 0 || parser->count) && !has_room_for_reply(parser))
			return NULL;
		if (parser->child >= 0)
			heard = hear_child(parser, now_ms);
		if (heard == HEARD_NOTHING)
			heard = look_at_first(parser, now_ms);
		send_questions(parser, now_ms);
	} while (heard == HEARD_FILE);
	if (heard == HEARD_PAGE)
		return &parser->reply->rows;
	if (parser->child < 0) {
		free(parser->reply); /* 100 KB that may have been written to */
		parser->reply = NULL;
	}
	return NULL;
}

void file_parser_counters(const struct file_parser *parser, struct file_parser_counters *out)
{
	*out = parser->counters;
	out->cpu_ns += parser->child < 0 ? 0 : process_cpu_ns((uint32_t)parser->child);
	for (int i = 0; i < ENDING_MAX; i++)
		out->cpu_ns += parser->ending[i] ? process_cpu_ns((uint32_t)parser->ending[i]) : 0;
	out->waiting = parser->count;
}

uint64_t file_parser_started(const struct file_parser *parser)
{
	return parser->counters.started;
}

void file_parser_free(struct file_parser *parser)
{
	static const struct timespec one_ms = {.tv_nsec = 1000000};
	bool is_waiting = true;

	if (!parser)
		return;
	end_child(parser, 0);
	for (int i = 0; i < FREE_WAITS && is_waiting; i++) {
		reap(parser);
		is_waiting = false;
		for (int j = 0; j < ENDING_MAX; j++)
			is_waiting = is_waiting || parser->ending[j];
		if (is_waiting)
			nanosleep(&one_ms, NULL);
	}
	for (int i = 0; i < FILES_MAX; i++)
		if (parser->files[i].uses)
			close(parser->files[i].fd);
	free(parser->reply);
	free(parser);
}
