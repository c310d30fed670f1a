/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/unwind/row_worker.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/log.h"
#include "common/self_path.h"
#include "node-agent/unwind/parse_budget.h"
#include "node-agent/unwind/row_messages.h"

enum {
	ASKS_MAX = 256,
	FILES_MAX = 64, /* whose pages are asked for at a time */
	SENT_MAX = 4,   /* questions the child has at a time */
	DEADLINE_MS = 2000,
	ENDING_MAX = 8, /* children that are ending: one may hang in a read for some time */
	SOCKET_BYTES = 256 << 10,
	FRUITLESS_MAX = 8, /* children in a row that ended without one answer … */
	PAUSE_MS = 10000,  /* … after which none is started for so long */
	FREE_WAITS = 100,  /* of a ms, for a killed child's end */
};

struct asked_file {
	uint32_t executable, uses; /* uses 0: free */
	int fd;
};

struct ask {
	uint32_t executable, page, file;
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

	struct page_rows *rows; /* while a child runs, and for failures */
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

/* A group of its own, so that a terminal's signals are the agent's alone; no environment; of our
 * descriptors only the socket. */
static int spawn(int socket, pid_t *child)
{
	char name[] = ROW_WORKER_NAME, path[PATH_MAX];
	char *arguments[] = {name, NULL}, *environment[] = {NULL};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none, all;
	int failure;

	sigemptyset(&none);
	sigfillset(&all);
	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
						      POSIX_SPAWN_SETPGROUP);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setsigdefault(&attributes, &all);
	failure = posix_spawn_file_actions_adddup2(&actions, socket, ROW_WORKER_SOCKET);
	for (int fd = 0; fd < ROW_WORKER_SOCKET && !failure; fd++)
		failure = posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDWR, 0);
	if (!failure)
		failure = posix_spawn(child, self_path(path, sizeof path), &actions, &attributes,
				      arguments, environment);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	return failure;
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
	failure = spawn(sockets[1], &worker->child);
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

static uint32_t child_cpu_ms(const struct row_worker *worker)
{
	struct timespec used;
	clockid_t clock;

	if (clock_getcpuclockid(worker->child, &clock) || clock_gettime(clock, &used))
		return 0;
	return (uint32_t)used.tv_sec * 1000 + (uint32_t)used.tv_nsec / 1000000;
}

/* --- asking --- */

/* The executable's descriptor, once for all its pages; −1: no room. */
static int hold_file(struct row_worker *worker, uint32_t executable, int fd)
{
	struct asked_file *unused = NULL;

	for (int i = 0; i < FILES_MAX; i++) {
		struct asked_file *file = &worker->files[i];

		if (!file->uses) {
			unused = file;
		} else if (file->executable == executable) {
			file->uses++;
			return i;
		}
	}
	if (!unused)
		return -1;
	unused->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (unused->fd < 0)
		return -1;
	unused->executable = executable;
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
		enum parse_verdict verdict = parse_budget_verdict(&worker->budget, ask->executable,
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
		const struct row_question question = {ask->executable, ask->page};

		/* A child's end is seen when its answers have been read. */
		if (row_question_send(worker->socket, &question, worker->files[ask->file].fd) !=
		    ROW_SENT)
			return;
		if (!worker->sent++)
			worker->first_ms = now_ms;
	}
}

bool row_worker_ask(struct row_worker *worker, uint32_t executable, int fd, uint32_t page,
		    int64_t now_ms)
{
	int file;

	if (!executable || worker->count == ASKS_MAX ||
	    parse_budget_verdict(&worker->budget, executable, now_ms) == PARSE_LATER)
		return false;
	if (worker->child < 0 && !start_child(worker, now_ms))
		return false;
	file = hold_file(worker, executable, fd);
	if (file < 0)
		return false;
	*ask_at(worker, worker->count++) = (struct ask){executable, page, (uint32_t)file};
	worker->counters.asked++;
	send_questions(worker, now_ms);
	return true;
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

static const struct page_rows *fail_first(struct row_worker *worker, int64_t now_ms)
{
	const struct ask *ask = ask_at(worker, 0);
	struct page_rows *rows = worker->rows;

	rows->executable = ask->executable;
	rows->page = ask->page;
	rows->state = UNWIND_PAGE_FAILED;
	rows->failure = ROW_FAILURE_WORKER;
	rows->count = rows->rule_count = 0;
	pop(worker, now_ms);
	return rows;
}

/* The child ends, and the page it had is the reason: it has failed. NULL: it had none. */
static const struct page_rows *blame_first(struct row_worker *worker, uint64_t *counter,
					   int64_t now_ms)
{
	uint32_t used_ms = cost(worker, child_cpu_ms(worker));
	bool had_one = worker->sent > 0;

	++*counter;
	end_child(worker, now_ms);
	if (!had_one)
		return NULL;
	parse_budget_strike(&worker->budget, ask_at(worker, 0)->executable, used_ms, now_ms);
	return fail_first(worker, now_ms);
}

/* What the child has to say, or its silence; NULL: no answer for now. */
static const struct page_rows *hear_child(struct row_worker *worker, int64_t now_ms)
{
	struct row_worker_counters *counters = &worker->counters;
	char farewell[ROW_FAREWELL_MAX];
	const struct ask *first;
	uint16_t cpu_ms;

	switch (row_answer_receive(worker->socket, worker->rows, &cpu_ms, farewell)) {
	case ROW_RECEIVED_ANSWER:
		first = ask_at(worker, 0);
		if (!worker->sent || worker->rows->executable != first->executable ||
		    worker->rows->page != first->page)
			return blame_first(worker, &counters->killed, now_ms);
		worker->has_answered = true;
		worker->fruitless = 0;
		parse_budget_answered(&worker->budget, first->executable, cost(worker, cpu_ms),
				      now_ms);
		pop(worker, now_ms);
		return worker->rows;
	case ROW_RECEIVED_FAREWELL:
		for (char *at = farewell; *at; at++)
			if (*at < ' ' || *at == '"')
				*at = ' ';
		if (*farewell)
			log_warn("parser of unwind tables gave up", "why=\"%s\"", farewell);
		end_child(worker, now_ms);
		return NULL;
	case ROW_RECEIVED_WRONG:
		return blame_first(worker, &counters->killed, now_ms);
	case ROW_RECEIVED_END:
		return blame_first(worker, &counters->died, now_ms);
	case ROW_RECEIVED_NOTHING:
		break;
	}
	if (worker->sent && now_ms - worker->first_ms >= DEADLINE_MS)
		return blame_first(worker, &counters->killed, now_ms);
	return NULL;
}

static bool has_room_for_rows(struct row_worker *worker)
{
	if (!worker->rows)
		worker->rows = malloc(sizeof *worker->rows);
	return worker->rows;
}

static bool is_refused(struct row_worker *worker, const struct ask *ask, int64_t now_ms)
{
	return parse_budget_verdict(&worker->budget, ask->executable, now_ms) == PARSE_REFUSED;
}

const struct page_rows *row_worker_next(struct row_worker *worker, int64_t now_ms)
{
	const struct page_rows *answer = NULL;

	reap(worker);
	if ((worker->child >= 0 || worker->count) && !has_room_for_rows(worker))
		return NULL;
	if (worker->child >= 0)
		answer = hear_child(worker, now_ms);
	if (!answer && worker->count && !worker->sent) {
		/* Nobody has the first: it fails at once, or somebody gets it, or it waits. */
		bool has_next = find_next(worker, now_ms);

		if (is_refused(worker, ask_at(worker, 0), now_ms) ||
		    (has_next && worker->child < 0 && !start_child(worker, now_ms)))
			answer = fail_first(worker, now_ms);
	}
	send_questions(worker, now_ms);
	if (!answer && worker->child < 0) {
		free(worker->rows); /* 100 KB that may have been written to */
		worker->rows = NULL;
	}
	return answer;
}

void row_worker_counters(const struct row_worker *worker, struct row_worker_counters *out)
{
	*out = worker->counters;
	out->waiting = worker->count;
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
	free(worker->rows);
	free(worker);
}
