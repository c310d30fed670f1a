/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/unwind/row_worker.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/log.h"
#include "node-agent/kernel/own_child.h"
#include "node-agent/unwind/parse_budget.h"
#include "node-agent/unwind/row_messages.h"

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
};

struct row_worker {
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
	row_worker_file on_file; /* NULL: nobody asks */
	void *context;
	row_worker_memory on_memory; /* the same */
	void *memory_context;
	row_worker_tls on_tls; /* likewise */
	void *tls_context;
	struct row_worker_counters counters;
};

struct row_worker *row_worker_new(struct error *err)
{
	struct row_worker *worker = calloc(1, sizeof *worker);

	if (!worker) {
		error_set(err, ERROR_MEMORY, "no memory for the parser of unwind tables");
		return NULL;
	}
	worker->child = worker->socket = -1;
	return worker;
}

/* --- children --- */

static void reap(struct row_worker *worker)
{
	struct rusage used = {0};

	for (int i = 0; i < ENDING_MAX; i++) {
		if (!worker->ending[i] || wait4(worker->ending[i], NULL, WNOHANG, &used) == 0)
			continue;
		worker->ending[i] = 0;
		worker->counters.cpu_ns +=
			(uint64_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000000 +
			(uint64_t)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1000;
	}
}

static int place_to_end(const struct row_worker *worker)
{
	for (int i = 0; i < ENDING_MAX; i++)
		if (!worker->ending[i])
			return i;
	return -1;
}

/* Its questions are unanswered again. It is not waited for: a read may hold it. */
static void end_child(struct row_worker *worker, int64_t now_ms)
{
	if (worker->child < 0)
		return;
	kill(worker->child, SIGKILL);
	close(worker->socket);
	worker->ending[place_to_end(worker)] = worker->child;
	worker->child = worker->socket = -1;
	worker->sent = 0;
	if (!worker->has_answered && ++worker->fruitless >= FRUITLESS_MAX) {
		worker->fruitless = 0;
		worker->paused_until_ms = now_ms + PAUSE_MS;
		log_warn("no rows from unwind tables", "children_ended_without_an_answer=%d",
			 FRUITLESS_MAX);
	}
	reap(worker);
}

static bool start_child(struct row_worker *worker, int64_t now_ms)
{
	int sockets[2], size = SOCKET_BYTES, failure;

	reap(worker);
	if (now_ms < worker->paused_until_ms || place_to_end(worker) < 0)
		return false;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0)
		return false;
	setsockopt(sockets[1], SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
	failure = own_child_start(ROW_WORKER_NAME, sockets[1], &worker->child);
	close(sockets[1]);
	if (failure) {
		close(sockets[0]);
		worker->child = -1;
		log_warn("parser of unwind tables not started", "why=\"%s\"", strerror(failure));
		return false;
	}
	worker->socket = sockets[0];
	worker->has_answered = false;
	worker->cpu_ms = 0;
	worker->counters.started++;
	return true;
}

/* --- what files cost --- */

/* The child's CPU time since its last answer; it says it with an answer, else the kernel does. */
static uint32_t cost(struct row_worker *worker, uint32_t cpu_ms)
{
	uint32_t used_ms = cpu_ms > worker->cpu_ms ? cpu_ms - worker->cpu_ms : 0;

	worker->cpu_ms += used_ms;
	return used_ms;
}

static uint64_t child_cpu_ns(pid_t child)
{
	struct timespec used;
	clockid_t clock;

	if (clock_getcpuclockid(child, &clock) || clock_gettime(clock, &used))
		return 0;
	return (uint64_t)used.tv_sec * 1000000000 + (uint64_t)used.tv_nsec;
}

static uint32_t child_cpu_ms(const struct row_worker *worker)
{
	return (uint32_t)(child_cpu_ns(worker->child) / 1000000);
}

/* --- asking --- */

/* What a question is told by from others, and its cost is on: an executable, or a number. */
static uint32_t key_of(const struct ask *ask)
{
	if (ask->kind == ROW_MESSAGE_MEMORY)
		return ask->executable | ROW_WORKER_NUMBERS | ROW_WORKER_NUMBERS / 2;
	return ask->kind == ROW_MESSAGE_FILE ? ask->executable | ROW_WORKER_NUMBERS
					     : ask->executable;
}

/* The file's descriptor, once for all its pages; −1: no room. */
static int hold_file(struct row_worker *worker, uint32_t key, int fd)
{
	struct asked_file *unused = NULL;

	for (int i = 0; i < FILES_MAX; i++) {
		struct asked_file *file = &worker->files[i];

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
	return (int)(unused - worker->files);
}

static struct ask *ask_at(struct row_worker *worker, uint32_t at)
{
	return &worker->asks[(worker->first + at) % ASKS_MAX];
}

/* The next one that may be sent comes next; those that have to wait are passed. A refused one is
 * not: it fails when it is the first. */
static bool find_next(struct row_worker *worker, int64_t now_ms)
{
	for (uint32_t at = worker->sent; at < worker->count; at++) {
		struct ask *next = ask_at(worker, worker->sent), *ask = ask_at(worker, at);
		const struct ask passed = *next;
		enum parse_verdict verdict = parse_budget_verdict(&worker->budget, key_of(ask),
								  now_ms);

		if (verdict == PARSE_LATER)
			continue;
		*next = *ask;
		*ask = passed;
		return verdict == PARSE_NOW;
	}
	return false;
}

static void send_questions(struct row_worker *worker, int64_t now_ms)
{
	while (worker->child >= 0 && worker->sent < SENT_MAX && find_next(worker, now_ms)) {
		const struct ask *ask = ask_at(worker, worker->sent);
		struct row_question question = {ask->kind, ask->executable, ask->page, {0}};

		if (ask->functions)
			question.functions = *ask->functions;
		/* A child's end is seen when its answers have been read. */
		if (row_question_send(worker->socket, &question, worker->files[ask->file].fd) !=
		    ROW_SENT)
			return;
		if (!worker->sent++)
			worker->first_ms = now_ms;
	}
}

static bool add_ask(struct row_worker *worker, struct ask *ask, int fd, int64_t now_ms)
{
	uint32_t key = key_of(ask);
	int file;

	if (!ask->executable || worker->count == ASKS_MAX ||
	    parse_budget_verdict(&worker->budget, key, now_ms) == PARSE_LATER)
		return false;
	if (worker->child < 0 && !start_child(worker, now_ms))
		return false;
	file = hold_file(worker, key, fd);
	if (file < 0)
		return false;
	ask->file = (uint32_t)file;
	*ask_at(worker, worker->count++) = *ask;
	worker->counters.asked++;
	send_questions(worker, now_ms);
	return true;
}

bool row_worker_ask(struct row_worker *worker, uint32_t executable, int fd, uint32_t page,
		    int64_t now_ms)
{
	struct ask ask = {.kind = ROW_MESSAGE_PAGE, .executable = executable, .page = page};

	return add_ask(worker, &ask, fd, now_ms);
}

void row_worker_set_file(struct row_worker *worker, row_worker_file file, void *context)
{
	worker->on_file = file;
	worker->context = context;
}

bool row_worker_ask_file(struct row_worker *worker, uint32_t number, int fd, int64_t now_ms)
{
	struct ask ask = {.kind = ROW_MESSAGE_FILE, .executable = number};

	return number < ROW_WORKER_NUMBERS && add_ask(worker, &ask, fd, now_ms);
}

void row_worker_set_memory(struct row_worker *worker, row_worker_memory memory, void *context)
{
	worker->on_memory = memory;
	worker->memory_context = context;
}

bool row_worker_ask_memory(struct row_worker *worker, uint32_t number, int fd,
			   const struct memory_functions *functions, int64_t now_ms)
{
	struct ask ask = {.kind = ROW_MESSAGE_MEMORY, .executable = number, .functions = functions};

	return number < ROW_WORKER_NUMBERS / 2 && add_ask(worker, &ask, fd, now_ms);
}

void row_worker_set_tls(struct row_worker *worker, row_worker_tls tls, void *context)
{
	worker->on_tls = tls;
	worker->tls_context = context;
}

bool row_worker_ask_tls(struct row_worker *worker, uint32_t executable, int fd, int64_t now_ms)
{
	struct ask ask = {.kind = ROW_MESSAGE_TLS, .executable = executable};

	return add_ask(worker, &ask, fd, now_ms);
}

int row_worker_fd(const struct row_worker *worker)
{
	return worker->socket;
}

/* --- answers --- */

static void pop(struct row_worker *worker, int64_t now_ms)
{
	struct asked_file *file = &worker->files[ask_at(worker, 0)->file];

	if (!--file->uses)
		close(file->fd);
	worker->first = (worker->first + 1) % ASKS_MAX;
	worker->count--;
	if (worker->sent)
		worker->sent--;
	worker->first_ms = now_ms;
	worker->counters.answered++;
}

enum heard { HEARD_NOTHING, HEARD_PAGE, HEARD_FILE /* and told of */ };

static void tell_file(struct row_worker *worker, uint32_t number,
		      const struct file_content *content, bool is_hung)
{
	if (worker->on_file)
		worker->on_file(worker->context, number, content, is_hung);
}

static void tell_memory(struct row_worker *worker, uint32_t number,
			const struct memory_places *places)
{
	if (worker->on_memory)
		worker->on_memory(worker->memory_context, number, places);
}

static void tell_tls(struct row_worker *worker, uint32_t executable, const struct tls_symbol *tls)
{
	if (worker->on_tls)
		worker->on_tls(worker->tls_context, executable, tls);
}

static enum heard fail_first(struct row_worker *worker, bool is_hung, int64_t now_ms)
{
	const struct ask ask = *ask_at(worker, 0);
	struct page_rows *rows = &worker->reply->rows;

	pop(worker, now_ms);
	if (ask.kind == ROW_MESSAGE_FILE) {
		tell_file(worker, ask.executable, NULL, is_hung);
		return HEARD_FILE;
	}
	if (ask.kind == ROW_MESSAGE_MEMORY) {
		tell_memory(worker, ask.executable, NULL);
		return HEARD_FILE;
	}
	if (ask.kind == ROW_MESSAGE_TLS) {
		tell_tls(worker, ask.executable, NULL);
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
static enum heard blame_first(struct row_worker *worker, uint64_t *counter, bool is_hung,
			      int64_t now_ms)
{
	uint32_t used_ms = cost(worker, child_cpu_ms(worker));
	bool had_one = worker->sent > 0;

	++*counter;
	end_child(worker, now_ms);
	if (!had_one)
		return HEARD_NOTHING;
	parse_budget_strike(&worker->budget, key_of(ask_at(worker, 0)), used_ms, now_ms);
	return fail_first(worker, is_hung, now_ms);
}

/* Questions are answered in their order. */
static bool is_asked(struct row_worker *worker, enum row_received kind)
{
	const struct row_reply *reply = worker->reply;
	const struct ask *first = ask_at(worker, 0);

	if (!worker->sent)
		return false;
	if (kind == ROW_RECEIVED_FILE)
		return first->kind == ROW_MESSAGE_FILE && first->executable == reply->file;
	if (kind == ROW_RECEIVED_MEMORY)
		return first->kind == ROW_MESSAGE_MEMORY && first->executable == reply->file;
	if (kind == ROW_RECEIVED_TLS)
		return first->kind == ROW_MESSAGE_TLS && first->executable == reply->file;
	return first->kind == ROW_MESSAGE_PAGE && first->executable == reply->rows.executable &&
	       first->page == reply->rows.page;
}

static enum heard take_answer(struct row_worker *worker, enum row_received kind, int64_t now_ms)
{
	const struct row_reply *reply = worker->reply;

	if (!is_asked(worker, kind))
		return blame_first(worker, &worker->counters.killed, false, now_ms);
	worker->has_answered = true;
	worker->fruitless = 0;
	parse_budget_answered(&worker->budget, key_of(ask_at(worker, 0)),
			      cost(worker, reply->cpu_ms), now_ms);
	pop(worker, now_ms);
	if (kind == ROW_RECEIVED_MEMORY) {
		tell_memory(worker, reply->file, reply->is_readable ? &reply->places : NULL);
		return HEARD_FILE;
	}
	if (kind == ROW_RECEIVED_ANSWER)
		return HEARD_PAGE;
	if (kind == ROW_RECEIVED_TLS)
		tell_tls(worker, reply->file, &reply->tls);
	else
		tell_file(worker, reply->file, reply->is_readable ? &reply->content : NULL, false);
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

static bool is_late(struct row_worker *worker, int64_t now_ms)
{
	int64_t passed_ms = now_ms - worker->first_ms;

	if (!worker->sent || passed_ms < FILE_DEADLINE_MS)
		return false;
	return passed_ms >= DEADLINE_MS ||
	       (ask_at(worker, 0)->kind == ROW_MESSAGE_FILE && own_child_sleeps(worker->child));
}

/* What the child has to say, or its silence. */
static enum heard hear_child(struct row_worker *worker, int64_t now_ms)
{
	struct row_worker_counters *counters = &worker->counters;
	enum row_received received = row_reply_receive(worker->socket, worker->reply);

	switch (received) {
	case ROW_RECEIVED_ANSWER:
	case ROW_RECEIVED_FILE:
	case ROW_RECEIVED_MEMORY:
	case ROW_RECEIVED_TLS:
		return take_answer(worker, received, now_ms);
	case ROW_RECEIVED_FAREWELL:
		say_farewell(worker->reply->farewell);
		end_child(worker, now_ms);
		return HEARD_NOTHING;
	case ROW_RECEIVED_WRONG:
		return blame_first(worker, &counters->killed, false, now_ms);
	case ROW_RECEIVED_END:
		return blame_first(worker, &counters->died, false, now_ms);
	case ROW_RECEIVED_NOTHING:
		break;
	}
	if (!is_late(worker, now_ms))
		return HEARD_NOTHING;
	return blame_first(worker, &counters->killed, own_child_sleeps(worker->child), now_ms);
}

static bool has_room_for_reply(struct row_worker *worker)
{
	if (!worker->reply)
		worker->reply = malloc(sizeof *worker->reply);
	return worker->reply;
}

static bool is_refused(struct row_worker *worker, const struct ask *ask, int64_t now_ms)
{
	return parse_budget_verdict(&worker->budget, key_of(ask), now_ms) == PARSE_REFUSED;
}

/* Nobody has the first: it fails at once, or somebody gets it, or it waits. */
static enum heard look_at_first(struct row_worker *worker, int64_t now_ms)
{
	bool has_next;

	if (!worker->count || worker->sent)
		return HEARD_NOTHING;
	has_next = find_next(worker, now_ms);
	if (is_refused(worker, ask_at(worker, 0), now_ms) ||
	    (has_next && worker->child < 0 && !start_child(worker, now_ms)))
		return fail_first(worker, false, now_ms);
	return HEARD_NOTHING;
}

const struct page_rows *row_worker_next(struct row_worker *worker, int64_t now_ms)
{
	enum heard heard;

	reap(worker);
	do {
		heard = HEARD_NOTHING;
		if ((worker->child >= 0 || worker->count) && !has_room_for_reply(worker))
			return NULL;
		if (worker->child >= 0)
			heard = hear_child(worker, now_ms);
		if (heard == HEARD_NOTHING)
			heard = look_at_first(worker, now_ms);
		send_questions(worker, now_ms);
	} while (heard == HEARD_FILE);
	if (heard == HEARD_PAGE)
		return &worker->reply->rows;
	if (worker->child < 0) {
		free(worker->reply); /* 100 KB that may have been written to */
		worker->reply = NULL;
	}
	return NULL;
}

void row_worker_counters(const struct row_worker *worker, struct row_worker_counters *out)
{
	*out = worker->counters;
	out->cpu_ns += worker->child < 0 ? 0 : child_cpu_ns(worker->child);
	for (int i = 0; i < ENDING_MAX; i++)
		out->cpu_ns += worker->ending[i] ? child_cpu_ns(worker->ending[i]) : 0;
	out->waiting = worker->count;
}

uint64_t row_worker_started(const struct row_worker *worker)
{
	return worker->counters.started;
}

void row_worker_free(struct row_worker *worker)
{
	static const struct timespec one_ms = {.tv_nsec = 1000000};
	bool is_waiting = true;

	if (!worker)
		return;
	end_child(worker, 0);
	for (int i = 0; i < FREE_WAITS && is_waiting; i++) {
		reap(worker);
		is_waiting = false;
		for (int j = 0; j < ENDING_MAX; j++)
			is_waiting = is_waiting || worker->ending[j];
		if (is_waiting)
			nanosleep(&one_ms, NULL);
	}
	for (int i = 0; i < FILES_MAX; i++)
		if (worker->files[i].uses)
			close(worker->files[i].fd);
	free(worker->reply);
	free(worker);
}
