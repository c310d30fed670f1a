/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/kernel/stranger_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/hash_table.h"
#include "common/log.h"
#include "node-agent/kernel/own_child.h"
#include "node-agent/kernel/stranger_work.h"

enum {
	RUNS_MOST_MS = 2000, /* a child that gets no CPU is not held by a stranger */
	SHUT_MAX = 64,
	SHUT_FIRST_MS = 2000,      /* twice that each time, up to … */
	SHUT_DOUBLINGS = 9,        /* … 17 minutes */
	SHUT_DEVICE_DOUBLINGS = 4, /* of a file system, with many users' files, and of root: 32 s */
	SHUT_FORGOTTEN_MS = 3600 * 1000,
	STALL_REFILL = 50, /* one millisecond in so many */
	PAUSE_MS = 10000,  /* after a child could not be started */
	DIED_PAUSE_MS = 1000,
};

enum kind { KIND_MEMORY, KIND_FILES, KIND_MAPS, KINDS };

static const uint32_t held_most[KINDS] = {STRANGER_HELD_MEMORY, STRANGER_HELD_FILES,
					  STRANGER_HELD_MAPS};

/* Whom a question is about. */
struct subject {
	enum kind kind;
	uint64_t key, user; /* hashes; 0: none */
	uint32_t pid;       /* for the log; 0: not a process, or by its directory */
	int directory;
};

struct shut_out {
	uint64_t key; /* 0: free */
	int64_t until_ms;
	uint32_t times;
};

static struct reader {
	bool is_started;
	pid_t child; /* 0: none */
	int socket;
	struct stranger_room *room;
	pid_t held[STRANGER_HELD_MAPS]; /* killed, and not gone; 0: free */
	struct shut_out shut[SHUT_MAX];
	int64_t stalled_ms[KINDS], stalled_at_ms, paused_until_ms;
	uint64_t past_cpu_ns; /* of children before */
	struct log_fault hangs, refusals[KINDS];
	struct stranger_reader_counters counters;
} reader = {.socket = -1};

/* --- children --- */

static uint32_t held(void)
{
	uint32_t count = 0;

	for (int i = 0; i < STRANGER_HELD_MAPS; i++) {
		if (reader.held[i] && waitpid(reader.held[i], NULL, WNOHANG) != 0)
			reader.held[i] = 0;
		count += reader.held[i] != 0;
	}
	return count;
}

/* It is not waited for, and writes into memory that nobody reads any more. */
static void give_up(void)
{
	int at = 0;

	if (!reader.child)
		return;
	while (at < STRANGER_HELD_MAPS - 1 && reader.held[at])
		at++;
	kill(reader.child, SIGKILL);
	reader.held[at] = reader.child;
	reader.past_cpu_ns += reader.room->cpu_ns;
	close(reader.socket);
	munmap(reader.room, sizeof *reader.room);
	reader.child = 0;
	reader.socket = -1;
	reader.room = NULL;
	held();
}

static bool share_room(void)
{
	int shared = memfd_create("strangers", MFD_CLOEXEC);
	void *room = MAP_FAILED;
	bool ok;

	if (shared >= 0 && !ftruncate(shared, sizeof *reader.room))
		room = mmap(NULL, sizeof *reader.room, PROT_READ | PROT_WRITE, MAP_SHARED, shared,
			    0);
	ok = room != MAP_FAILED && own_child_send(reader.socket, shared);
	if (shared >= 0)
		close(shared);
	if (room != MAP_FAILED)
		reader.room = room;
	return ok;
}

static bool start(struct error *err)
{
	const struct timeval deadline = {.tv_usec = STRANGER_DEADLINE_MS * 1000};
	int sockets[2], failure;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets))
		return error_set_system(err, errno, "a socket for the reader of strangers");
	setsockopt(sockets[0], SOL_SOCKET, SO_RCVTIMEO, &deadline, sizeof deadline);
	failure = own_child_start(STRANGER_READER_NAME, sockets[1], NULL, &reader.child);
	close(sockets[1]);
	if (failure) {
		close(sockets[0]);
		reader.child = 0;
		return error_set_system(err, failure, "start the reader of strangers");
	}
	reader.socket = sockets[0];
	if (share_room())
		return true;
	kill(reader.child, SIGKILL);
	waitpid(reader.child, NULL, 0);
	close(reader.socket);
	if (reader.room)
		munmap(reader.room, sizeof *reader.room);
	reader.room = NULL;
	reader.child = 0;
	reader.socket = -1;
	return error_set(err, ERROR_MEMORY, "no memory for the reader of strangers");
}

bool stranger_reader_start(struct error *err)
{
	if (reader.is_started)
		return true;
	if (reader.room) { /* of what was done here and now */
		free(reader.room);
		reader.room = NULL;
	}
	reader.is_started = start(err);
	return reader.is_started;
}

void stranger_reader_stop(void)
{
	give_up();
	reader.is_started = false;
}

static bool has_child(int64_t now)
{
	struct error err = {0};

	if (reader.child)
		return true;
	if (now < reader.paused_until_ms || held() >= STRANGER_HELD_MAPS)
		return false;
	if (start(&err))
		return true;
	reader.paused_until_ms = now + PAUSE_MS;
	log_warn("strangers not read", "why=\"%s\"", err.message);
	return false;
}

/* --- who is shut out --- */

static struct shut_out *shut_find(uint64_t key)
{
	for (int i = 0; key && i < SHUT_MAX; i++)
		if (reader.shut[i].key == key)
			return &reader.shut[i];
	return NULL;
}

/* first: that many times it is only remembered. */
static void shut(uint64_t key, uint32_t first, uint32_t doublings_most, int64_t now)
{
	struct shut_out *shut = shut_find(key);
	uint32_t doublings;

	if (!key)
		return;
	if (!shut) {
		shut = &reader.shut[0];
		for (int i = 1; i < SHUT_MAX; i++)
			if (reader.shut[i].until_ms < shut->until_ms)
				shut = &reader.shut[i];
	}
	if (shut->key != key || now - shut->until_ms > SHUT_FORGOTTEN_MS)
		*shut = (struct shut_out){.key = key, .until_ms = now};
	if (shut->times++ < first)
		return;
	doublings = shut->times - 1 - first;
	shut->until_ms = now + ((int64_t)SHUT_FIRST_MS
				<< (doublings < doublings_most ? doublings : doublings_most));
}

static bool is_shut(uint64_t key, int64_t now)
{
	const struct shut_out *shut = shut_find(key);

	return shut && now < shut->until_ms;
}

static bool has_stalled(enum kind kind, int64_t now)
{
	const int64_t back = (now - reader.stalled_at_ms) / STALL_REFILL;

	if (back > 0) {
		reader.stalled_at_ms += back * STALL_REFILL;
		for (int i = 0; i < KINDS; i++)
			reader.stalled_ms[i] -= reader.stalled_ms[i] < back ? reader.stalled_ms[i]
									    : back;
	}
	return reader.stalled_ms[kind] >= STRANGER_STALL_MS;
}

static const char *const names[KINDS] = {"memory", "files", "maps"};

static bool is_refused(const struct subject *of, int64_t now)
{
	struct log_fault *refusals = &reader.refusals[of->kind];

	if (is_shut(of->key, now) || is_shut(of->user, now)) {
		reader.counters.refused++;
		return true;
	}
	if (!has_stalled(of->kind, now) &&
	    (!reader.counters.hung || held() < held_most[of->kind])) {
		log_fault_over(refusals, "strangers not read");
		return false;
	}
	reader.counters.refused++;
	log_fault_write(refusals, 0, LOG_WARN, "strangers not read",
			"kind=%s why=\"too much of what strangers have is never served\" held=%u "
			"stalled_ms=%" PRIu64,
			names[of->kind], held(), reader.counters.stalled_ms);
	return true;
}

static void note_hang(const struct subject *of, int64_t began)
{
	const int64_t now = monotonic_ms();

	reader.counters.hung++;
	reader.counters.stalled_ms += (uint64_t)(now - began);
	if (!reader.stalled_at_ms)
		reader.stalled_at_ms = began;
	reader.stalled_ms[of->kind] += now - began;
	shut(of->key, 0, of->user ? SHUT_DOUBLINGS : SHUT_DEVICE_DOUBLINGS, now);
	shut(of->user, 1, SHUT_DOUBLINGS, now);
	log_fault_write(&reader.hangs, 0, LOG_WARN, "a stranger keeps the agent waiting",
			"kind=%s pid=%u waited_ms=%" PRId64 " held=%u refused=%" PRIu64,
			names[of->kind], of->pid ? of->pid : stranger_pid(of->directory),
			now - began, held(), reader.counters.refused);
}

static uint64_t key_of(uint64_t kind, uint64_t a, uint64_t b)
{
	return hash_word(hash_word(kind, a), b) | 1;
}

static uint64_t user_of(uid_t uid)
{
	return uid && uid != READER_ANYBODY ? key_of('u', uid, 0) : 0;
}

static struct subject thread_of(const struct stranger_thread *thread)
{
	return (struct subject){
		.kind = KIND_MEMORY,
		.key = key_of('t', thread->tgid, thread->start_time_ns),
		.pid = thread->tgid,
	};
}

/* With its user. */
static struct subject thread_of_user(const struct stranger_thread *thread)
{
	struct subject of = thread_of(thread);
	char path[32];
	struct stat st;

	snprintf(path, sizeof path, "/proc/%u", thread->tgid);
	if (stranger_file_stat_at(AT_FDCWD, path, 0, &st))
		of.user = user_of(st.st_uid);
	return of;
}

/* The one that the child was at. */
static struct subject blamed_thread(void)
{
	return thread_of_user(&reader.room->threads[reader.room->now % STRANGER_THREADS_MAX]);
}

/* --- a question --- */

/* Here and now: a room for it. */
static bool has_own_room(void)
{
	if (!reader.room)
		reader.room = calloc(1, sizeof *reader.room);
	return reader.room;
}

/* One that sleeps may have answered just now. */
static bool is_held(void)
{
	struct pollfd answer = {.fd = reader.socket, .events = POLLIN};

	return own_child_sleeps(reader.child) && poll(&answer, 1, 0) <= 0;
}

static bool wait_for_answer(const struct subject *of, int64_t began, int *answer)
{
	struct subject blamed = *of;
	bool is_late;
	int got;

	do {
		got = own_child_receive(reader.socket, answer);
		is_late = got < 0 && errno == EAGAIN;
	} while (is_late && monotonic_ms() - began < RUNS_MOST_MS && !is_held());
	if (got == 1)
		return true;
	if (!is_late)
		return false;
	if (reader.room->question == STRANGER_THREADS)
		blamed = blamed_thread();
	note_hang(&blamed, began);
	return false;
}

/* Whether the question may be asked: with room to write it into. */
static bool prepare(const struct subject *of)
{
	const int64_t now = monotonic_ms();

	errno = EBUSY;
	if (!reader.is_started)
		return has_own_room();
	if (is_refused(of, now))
		return false;
	if (has_child(now))
		return true;
	reader.counters.refused++;
	return false;
}

/* False: there is no answer, nor a room any more. */
static bool ask(const struct subject *of, enum stranger_question question, int fd, int *answer)
{
	const int64_t began = monotonic_ms();
	uint64_t hung;
	int none = -1;

	answer = answer ? answer : &none;
	reader.room->question = question;
	reader.counters.asked++;
	if (!reader.is_started) {
		*answer = stranger_work(reader.room, fd);
		return true;
	}
	hung = reader.counters.hung;
	if (own_child_send(reader.socket, fd) && wait_for_answer(of, began, answer))
		return true;
	if (hung == reader.counters.hung) { /* it has ended */
		reader.counters.died++;
		reader.paused_until_ms = began + DIED_PAUSE_MS;
	}
	give_up();
	errno = EBUSY;
	return false;
}

/* By its directory in /proc, whose number no other process has while it runs; it is its user's. */
static struct subject process_of(int directory, enum kind kind)
{
	struct stat st;

	if (!reader.is_started || !stranger_file_stat(directory, &st))
		return (struct subject){.kind = kind};
	return (struct subject){.kind = kind,
				.key = key_of('p', st.st_ino, 0),
				.user = user_of(st.st_uid),
				.directory = directory};
}

static struct subject file_of(int fd)
{
	struct stat st;

	if (!reader.is_started || !stranger_file_stat(fd, &st))
		return (struct subject){.kind = KIND_FILES};
	return (struct subject){.kind = KIND_FILES, .key = key_of('d', st.st_dev, 0)};
}

static int answered(int answer)
{
	errno = reader.room->error;
	return answer;
}

/* --- memory --- */

/* False: it is too long. */
static bool put_text(const char *text)
{
	if (strlen(text) < sizeof reader.room->text) {
		strcpy(reader.room->text, text);
		return true;
	}
	errno = ENAMETOOLONG;
	return false;
}

bool stranger_memory_read(int directory, uint64_t address, void *to, size_t bytes)
{
	const struct subject of = process_of(directory, KIND_MEMORY);

	if (bytes > sizeof reader.room->text || !prepare(&of))
		return false;
	reader.room->at = address;
	reader.room->bytes = bytes;
	if (!ask(&of, STRANGER_MEMORY, directory, NULL) || reader.room->got != bytes)
		return false;
	memcpy(to, reader.room->text, bytes);
	return true;
}

bool stranger_code_read(int directory, const struct runtime_layout *layout,
			struct runtime_code_event *told)
{
	const struct subject of = process_of(directory, KIND_MEMORY);

	if (!prepare(&of))
		return false;
	reader.room->code.layout = *layout;
	reader.room->code.told = (struct runtime_code_event){.address = told->address};
	if (!ask(&of, STRANGER_CODE, directory, NULL) || !reader.room->got)
		return false;
	*told = reader.room->code.told;
	return true;
}

size_t stranger_text_read(int directory, const char *name, void *to, size_t room)
{
	const struct subject of = process_of(directory, KIND_MEMORY);

	if (!prepare(&of) || !put_text(name))
		return 0;
	reader.room->bytes = room;
	if (!ask(&of, STRANGER_TEXT, directory, NULL) || reader.room->got > room)
		return 0;
	memcpy(to, reader.room->text, reader.room->got);
	return reader.room->got;
}

static void take_thread(struct stranger_thread *thread, uint32_t i)
{
	const struct stranger_thread *from = &reader.room->threads[i];

	thread->has_code = from->has_code;
	memcpy(thread->code, from->code, sizeof thread->code);
	thread->stack_bytes = from->stack_bytes <= STACK_COPY_BYTES_MAX ? from->stack_bytes : 0;
	thread->context_bytes = from->context_bytes <= THREAD_CONTEXT_MAX ? from->context_bytes : 0;
	thread->is_missing = from->is_missing;
	if (thread->stack)
		memcpy(thread->stack, reader.room->of[i].stack, thread->stack_bytes);
	if (thread->published)
		memcpy(thread->published, reader.room->of[i].context, thread->context_bytes);
	if (!from->has_runtime || from->runtime_words > RUNTIME_WORDS_MAX)
		return;
	thread->runtime_words = from->runtime_words;
	memcpy(thread->runtime_frames, reader.room->of[i].runtime,
	       thread->runtime_words * sizeof(uint64_t));
}

/* Nothing of it is known yet, which is said of what would else look as if it were not there. */
static void begin_thread(struct stranger_thread *thread)
{
	thread->has_code = false;
	thread->stack_bytes = thread->context_bytes = thread->runtime_words = 0;
	thread->is_missing = thread->has_place;
	if (thread->has_runtime)
		thread->runtime_frames[thread->runtime_words++] =
			runtime_frame_end(RUNTIME_END_UNREAD);
}

/* Nobody is before the first hang: whose thread it is does not matter then. */
static bool is_thread_shut(const struct stranger_thread *thread, int64_t now)
{
	struct subject of;

	if (!reader.is_started || !reader.counters.hung)
		return false;
	of = thread_of_user(thread);
	return is_shut(of.key, now) || is_shut(of.user, now);
}

/* Those that are shut out have nothing, as if it could not be read. */
static void put_thread(struct stranger_thread *thread, uint32_t i, int64_t now)
{
	const bool is_out = is_thread_shut(thread, now);
	struct stranger_thread *to = &reader.room->threads[i];

	*to = *thread;
	to->has_stack &= !is_out;
	to->has_place &= !is_out;
	to->is_missing = is_out && thread->has_place;
	to->has_runtime &= !is_out;
	reader.counters.refused += is_out;
}

void stranger_threads_read(struct stranger_thread *threads, uint32_t count, uint64_t *cost_ns)
{
	const struct subject nobody = {.kind = KIND_MEMORY};
	const int64_t now = monotonic_ms();
	uint64_t before_ns;

	*cost_ns = 0;
	for (uint32_t i = 0; i < count; i++)
		begin_thread(&threads[i]);
	if (count > STRANGER_THREADS_MAX || !prepare(&nobody))
		return;
	for (uint32_t i = 0; i < count; i++)
		put_thread(&threads[i], i, now);
	reader.room->count = count;
	before_ns = reader.room->cpu_ns;
	if (!ask(&nobody, STRANGER_THREADS, -1, NULL))
		return;
	*cost_ns = reader.room->cpu_ns - before_ns;
	for (uint32_t i = 0; i < count; i++)
		take_thread(&threads[i], i);
}

/* --- files --- */

int stranger_open_at(int directory, const char *name)
{
	const struct subject of = process_of(directory, KIND_MAPS);
	int fd;

	if (!prepare(&of) || !put_text(name) || !ask(&of, STRANGER_OPEN_AT, directory, &fd))
		return -1;
	return answered(fd);
}

bool stranger_stat_at(int directory, const char *name, struct stat *st)
{
	const struct subject of = process_of(directory, KIND_MAPS);

	if (!prepare(&of) || !put_text(name) || !ask(&of, STRANGER_STAT_AT, directory, NULL))
		return false;
	*st = reader.room->st;
	return !answered(reader.room->error);
}

bool stranger_link_at(int directory, const char *name, char *text, size_t room)
{
	const struct subject of = process_of(directory, KIND_MAPS);
	size_t length;

	if (!prepare(&of) || !put_text(name) || !ask(&of, STRANGER_LINK_AT, directory, NULL))
		return false;
	length = reader.room->got;
	if (!length || length >= room)
		return false;
	memcpy(text, reader.room->text, length);
	text[length] = '\0';
	return true;
}

int stranger_reopen(int path_fd)
{
	const struct subject of = file_of(path_fd);
	int fd;

	if (!prepare(&of) || !ask(&of, STRANGER_REOPEN, path_fd, &fd))
		return -1;
	return answered(fd);
}

/* By its folder: what hangs there may do so in another root, and not elsewhere. */
int stranger_find(int folder, const char *path, const struct file_search *search)
{
	const char *slash = strrchr(path, '/');
	struct subject of = file_of(folder);
	int fd;

	of.user = user_of(search->reader);
	of.key = key_of('f', of.key, hash_bytes(path, slash ? (size_t)(slash - path) : 0, 0));
	if (!prepare(&of) || !put_text(path))
		return -1;
	reader.room->search = *search;
	if (!ask(&of, STRANGER_FIND, folder, &fd))
		return -1;
	return answered(fd);
}

bool stranger_file_read(int fd, uint64_t offset, void *to, size_t bytes)
{
	const struct subject of = file_of(fd);

	if (bytes > sizeof reader.room->text || !prepare(&of))
		return false;
	reader.room->at = offset;
	reader.room->bytes = bytes;
	if (!ask(&of, STRANGER_PREAD, fd, NULL) || reader.room->got != bytes)
		return false;
	memcpy(to, reader.room->text, bytes);
	return true;
}

uint64_t stranger_file_system(int fd)
{
	const struct subject of = file_of(fd);

	return prepare(&of) && ask(&of, STRANGER_STATFS, fd, NULL) ? reader.room->got : 0;
}

/* --- maps --- */

size_t stranger_maps_piece(int directory, bool is_first, char *to, size_t bytes, int *error)
{
	const struct subject of = process_of(directory, KIND_MAPS);

	*error = EBUSY;
	if (!prepare(&of))
		return 0;
	reader.room->bytes = bytes;
	if (!ask(&of, STRANGER_MAPS, is_first ? directory : -1, NULL))
		return 0;
	*error = reader.room->error;
	if (*error || reader.room->got > bytes)
		return 0;
	memcpy(to, reader.room->text, reader.room->got);
	return reader.room->got;
}

/* --- what became of it --- */

void stranger_reader_counters(struct stranger_reader_counters *out)
{
	*out = reader.counters;
	out->cpu_ns = reader.past_cpu_ns + (reader.child ? reader.room->cpu_ns : 0);
	out->maps_cut = stranger_maps_cut();
	out->held = held();
}
