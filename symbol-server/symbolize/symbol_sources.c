/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/symbolize/symbol_sources.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/elf_image.h"
#include "common/hash_table.h"
#include "common/log.h"
#include "symbol-server/symbolize/source_request.h"

enum {
	URL_ROOM = 1024,
	/* Questions to one server at a time, and threads left over when some servers stall. */
	SLOTS = 4,
	THREADS_SPARE = 2,
	THREADS_MOST = 16,
	/* A question that brought less than this since it was asked does not keep others waiting.
	 */
	SLOW_MS = 2000,
	SLOW_BYTES_PER_MS = 64,
	/* A server that failed is asked whether it is back after a pause that doubles. */
	CLOSED_FIRST_MS = 2 * 1000,
	CLOSED_MAX_MS = 60 * 1000,
	/* A file that a server fails at again and again while it answers else. */
	HELD_QUESTIONS = 64,
	HELD_FIRST_MS = 60 * 1000,
	HELD_MAX_MS = 24 * 60 * 60 * 1000,
	NO_ROOM_MS = 5 * 1000,
	/* Modules that are turned away come back one after the other, so that a hundred thousand of
	 * them keep nobody busy. */
	RETURN_MS = 50,
	RETURN_FIRST_MS = 5000,
	WAIT_MS = 250,
};

struct slot {
	bool is_taken;
	int64_t since_ms; /* monotonic */
	int output;
};

struct held_question {
	uint64_t id_hash; /* 0: none */
	unsigned failures;
	int64_t until_ms;
};

struct server {
	char *url;
	char shown[160]; /* without user and password */
	struct slot slots[SLOTS];
	struct held_question held[HELD_QUESTIONS];
	unsigned next_held;
	bool is_closed;
	bool is_awaited;         /* somebody was turned away since it closed */
	unsigned failures;       /* in a row */
	int64_t closed_until_ms; /* then it is asked whether it is back */
	char sentence[200];
	uint64_t questions, found, not_found, failed, turned_away, bytes;
};

struct symbol_sources {
	pthread_mutex_t lock;   /* of the servers' states and what follows */
	pthread_cond_t changed; /* a slot is free, a server closed or is awaited, the end */
	struct server servers[SOURCES_MAX];
	size_t count;
	int64_t no_room_until_ms, last_return_ms;
	struct source_limits limits;
	char cache[PATH_MAX];
	void (*is_back)(void *context);
	void *context;
	pthread_t prober;
	bool has_prober, stops;
	int stop_fd;
};

static int64_t clock_ms(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
}

static int64_t now_ms(void)
{
	return clock_ms(CLOCK_REALTIME);
}

const char *source_answer_text(enum source_answer answer)
{
#define SOURCE_ANSWER_TEXT(upper_, lower_, meaning_) #lower_,
	static const char *const texts[] = {SOURCE_ANSWERS(SOURCE_ANSWER_TEXT)};
#undef SOURCE_ANSWER_TEXT

	return (size_t)answer < sizeof(texts) / sizeof(*texts) ? texts[answer] : "";
}

/* ---- start and stop ---- */

static void *probe_thread(void *context);

static bool check_url(const char *url, struct error *err)
{
	if (strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0)
		return error_set(err, ERROR_OPTION,
				 "debuginfod server '%.200s' is not an http:// or https:// URL",
				 url);
	if (strlen(url) > URL_ROOM || strpbrk(url, " \t\r\n?#\"\\"))
		return error_set(err, ERROR_OPTION,
				 "debuginfod server '%.200s' is too long, or has a blank, quote, "
				 "'\\', '?' or '#' in it",
				 url);
	return true;
}

/* scheme://user:password@host/ is shown as scheme://host/. */
static void show_url(const char *url, char *shown, size_t room)
{
	const char *host = strstr(url, "://") + 3;
	size_t scheme = (size_t)(host - url), authority = strcspn(host, "/");
	const char *end = host + authority;

	while (end > host && end[-1] != '@')
		end--;
	snprintf(shown, room, "%.*s%s", (int)scheme, url, end);
}

static bool add_server(struct symbol_sources *sources, const char *url, struct error *err)
{
	struct server *server = &sources->servers[sources->count];

	if (!check_url(url, err))
		return false;
	if (sources->count == SOURCES_MAX)
		return error_set(err, ERROR_OPTION, "more than %d debuginfod servers", SOURCES_MAX);
	server->url = strdup(url);
	if (!server->url)
		return error_set(err, ERROR_MEMORY, "no memory for symbol sources");
	show_url(url, server->shown, sizeof(server->shown));
	sources->count++;
	return true;
}

static bool start_prober(struct symbol_sources *sources, struct error *err)
{
	int rc;

	sources->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (sources->stop_fd < 0)
		return error_set_system(err, errno, "descriptor for symbol sources");
	rc = pthread_create(&sources->prober, NULL, probe_thread, sources);
	sources->has_prober = !rc;
	return !rc || error_set_system(err, rc, "start a thread for symbol sources");
}

struct symbol_sources *symbol_sources_open(const char *const *urls, size_t count,
					   const char *cache_directory, struct error *err)
{
	struct symbol_sources *sources = calloc(1, sizeof(*sources));
	bool ok = sources || error_set(err, ERROR_MEMORY, "no memory for symbol sources");

	if (!ok)
		return NULL;
	sources->stop_fd = -1;
	pthread_mutex_init(&sources->lock, NULL);
	pthread_cond_init(&sources->changed, NULL);
	source_limits_read(&sources->limits);
	ok = (size_t)snprintf(sources->cache, sizeof(sources->cache), "%s", cache_directory) <
		     sizeof(sources->cache) ||
	     error_set(err, ERROR_LIMIT, "path of the cache directory is too long");
	for (size_t i = 0; ok && i < count; i++)
		ok = add_server(sources, urls[i], err);
	if (ok && (!count || start_prober(sources, err)))
		return sources;
	symbol_sources_close(sources);
	return NULL;
}

void symbol_sources_close(struct symbol_sources *sources)
{
	if (!sources)
		return;
	pthread_mutex_lock(&sources->lock);
	sources->stops = true;
	pthread_cond_broadcast(&sources->changed);
	pthread_mutex_unlock(&sources->lock);
	if (sources->has_prober && eventfd_write(sources->stop_fd, 1))
		log_error("symbol sources cannot be stopped", "reason=\"%s\"", strerror(errno));
	if (sources->has_prober)
		pthread_join(sources->prober, NULL);
	if (sources->stop_fd >= 0)
		close(sources->stop_fd);
	for (size_t i = 0; i < sources->count; i++)
		free(sources->servers[i].url);
	pthread_cond_destroy(&sources->changed);
	pthread_mutex_destroy(&sources->lock);
	free(sources);
}

void symbol_sources_watch(struct symbol_sources *sources, void (*is_back)(void *context),
			  void *context)
{
	sources->is_back = is_back;
	sources->context = context;
}

size_t symbol_sources_count(const struct symbol_sources *sources)
{
	return sources->count;
}

unsigned symbol_sources_threads(const struct symbol_sources *sources)
{
	size_t threads = sources->count * SLOTS + THREADS_SPARE;

	if (!sources->count)
		return 0;
	return threads < THREADS_MOST ? (unsigned)threads : THREADS_MOST;
}

size_t symbol_sources_states(struct symbol_sources *sources, struct source_state *states,
			     size_t room)
{
	pthread_mutex_lock(&sources->lock);
	for (size_t i = 0; i < sources->count && i < room; i++) {
		const struct server *server = &sources->servers[i];
		struct source_state *state = &states[i];

		*state = (struct source_state){
			.is_closed = server->is_closed,
			.failures = server->failures,
			.closed_until_ms = server->closed_until_ms,
			.questions = server->questions,
			.found = server->found,
			.not_found = server->not_found,
			.failed = server->failed,
			.turned_away = server->turned_away,
			.bytes = server->bytes,
		};
		memcpy(state->url, server->shown, sizeof(state->url));
		memcpy(state->sentence, server->sentence, sizeof(state->sentence));
	}
	pthread_mutex_unlock(&sources->lock);
	return sources->count;
}

/* ---- files that one server cannot give; lock held ---- */

static uint64_t hash_of(const struct build_id *id)
{
	return hash_bytes(id->bytes, id->length, 1) | 1;
}

static struct held_question *held_find(struct server *server, const struct build_id *id)
{
	for (size_t i = 0; i < HELD_QUESTIONS; i++)
		if (server->held[i].id_hash == hash_of(id))
			return &server->held[i];
	return NULL;
}

/* Once may have been the server's fault; from the second time on it is this file that it fails at,
 * and others do not wait for it. */
static void held_add(struct server *server, const struct build_id *id)
{
	struct held_question *held = held_find(server, id);
	int64_t pause = HELD_FIRST_MS;

	if (!held) {
		held = &server->held[server->next_held++ % HELD_QUESTIONS];
		*held = (struct held_question){.id_hash = hash_of(id)};
	}
	held->failures++;
	for (unsigned i = 2; i < held->failures && pause < HELD_MAX_MS; i++)
		pause *= 2;
	if (held->failures >= 2)
		held->until_ms = now_ms() + (pause < HELD_MAX_MS ? pause : HELD_MAX_MS);
}

static void held_remove(struct server *server, const struct build_id *id)
{
	struct held_question *held = held_find(server, id);

	if (held)
		*held = (struct held_question){0};
}

/* ---- may a server be asked now? ---- */

/* The next moment at which a module that was turned away may come back; lock held. */
static int64_t return_time(struct symbol_sources *sources, int64_t not_before_ms)
{
	int64_t when = sources->last_return_ms + RETURN_MS;

	if (when < not_before_ms)
		when = not_before_ms;
	sources->last_return_ms = when;
	return when;
}

static bool is_slow(const struct slot *slot)
{
	int64_t elapsed_ms = clock_ms(CLOCK_MONOTONIC) - slot->since_ms;
	struct stat stat;

	return elapsed_ms > SLOW_MS && !fstat(slot->output, &stat) &&
	       stat.st_size < elapsed_ms * SLOW_BYTES_PER_MS;
}

enum admission { ADMITTED, TURNED_AWAY, FULL };

static enum admission turn_away(struct symbol_sources *sources, struct server *server,
				int64_t not_before_ms, int64_t *retry_at_ms)
{
	server->turned_away++;
	*retry_at_ms = return_time(sources, not_before_ms);
	return TURNED_AWAY;
}

static enum admission try_slots(struct symbol_sources *sources, struct server *server, int output,
				struct slot **slot, int64_t *retry_at_ms, struct error *err)
{
	unsigned slow = 0;

	for (size_t i = 0; i < SLOTS; i++) {
		struct slot *one = &server->slots[i];

		if (!one->is_taken) {
			*one = (struct slot){true, clock_ms(CLOCK_MONOTONIC), output};
			*slot = one;
			server->questions++;
			return ADMITTED;
		}
		slow += is_slow(one);
	}
	if (slow < SLOTS)
		return FULL;
	error_set(err, ERROR_BUSY, "it is slow to answer %d other questions", SLOTS);
	return turn_away(sources, server, now_ms() + RETURN_FIRST_MS, retry_at_ms);
}

/* Lock held. */
static enum admission admit(struct symbol_sources *sources, struct server *server,
			    const struct build_id *id, int output, struct slot **slot,
			    int64_t *retry_at_ms, struct error *err)
{
	const struct held_question *held = held_find(server, id);

	if (server->is_closed) {
		error_set(err, ERROR_REMOTE, "not asked again yet after: %s", server->sentence);
		server->is_awaited = true;
		pthread_cond_broadcast(&sources->changed);
		return turn_away(sources, server, server->closed_until_ms, retry_at_ms);
	}
	if (held && held->until_ms > now_ms()) {
		error_set(err, ERROR_REMOTE, "it failed at this file %u times, and answers else",
			  held->failures);
		*retry_at_ms = held->until_ms;
		server->turned_away++;
		return TURNED_AWAY;
	}
	return try_slots(sources, server, output, slot, retry_at_ms, err);
}

static bool is_readable(int fd)
{
	struct pollfd wait = {.fd = fd, .events = POLLIN};

	return poll(&wait, 1, 0) > 0;
}

/* Waits for its turn at a server whose answers flow; lock held. */
static enum source_answer wait_for_turn(struct symbol_sources *sources, struct server *server,
					const struct source_question *question, int output,
					struct slot **slot, int64_t *retry_at_ms, struct error *err)
{
	enum admission admission;

	while ((admission = admit(sources, server, question->id, output, slot, retry_at_ms, err)) ==
	       FULL) {
		int64_t until = now_ms() + WAIT_MS;
		struct timespec when = {.tv_sec = until / 1000, .tv_nsec = until % 1000 * 1000000};

		if (is_readable(question->stop_fd))
			return SOURCE_STOPPED;
		pthread_cond_timedwait(&sources->changed, &sources->lock, &when);
	}
	return admission == ADMITTED ? SOURCE_FOUND : SOURCE_CLOSED;
}

/* ---- what its answers say about a server; lock held ---- */

static void close_server(struct symbol_sources *sources, struct server *server,
			 const struct source_reply *reply)
{
	int64_t pause = CLOSED_FIRST_MS;

	for (unsigned i = 0; i < server->failures && pause < CLOSED_MAX_MS; i++)
		pause *= 2;
	if (pause > CLOSED_MAX_MS)
		pause = CLOSED_MAX_MS;
	if (pause < reply->retry_after_s * INT64_C(1000))
		pause = reply->retry_after_s * INT64_C(1000);
	if (!server->failures)
		log_warn("debuginfod server does not answer",
			 "url=%s reason=\"%s\" pause_s=%" PRId64, server->shown, reply->sentence,
			 pause / 1000);
	/* Questions asked together that fail together are one failure. */
	if (!server->is_closed) {
		server->failures++;
		server->closed_until_ms = now_ms() + pause;
	}
	server->is_closed = true;
	memcpy(server->sentence, reply->sentence, sizeof(server->sentence));
	pthread_cond_broadcast(&sources->changed);
}

static bool is_failure(const struct source_reply *reply)
{
	return reply->answer == SOURCE_DOWN ||
	       (reply->answer == SOURCE_WRONG_FILE && reply->is_no_elf);
}

/* An answer to a question about a file. */
static void judge(struct symbol_sources *sources, struct server *server, const struct build_id *id,
		  const struct source_reply *reply)
{
	server->bytes += reply->bytes;
	server->found += reply->answer == SOURCE_FOUND;
	server->not_found += reply->answer == SOURCE_NOT_FOUND;
	server->failed += is_failure(reply);
	if (reply->answer == SOURCE_NO_ROOM)
		sources->no_room_until_ms = now_ms() + NO_ROOM_MS;
	if (reply->answer == SOURCE_STOPPED || reply->answer == SOURCE_NO_ROOM)
		return;
	if (is_failure(reply)) {
		if (reply->is_reached && !reply->retry_after_s)
			held_add(server, id);
		server->is_awaited = true; /* by this one */
		close_server(sources, server, reply);
		return;
	}
	held_remove(server, id);
	if (server->failures && !server->is_closed)
		log_info("debuginfod server answers again", "url=%s", server->shown);
	if (!server->is_closed) {
		server->failures = 0;
		*server->sentence = '\0';
	}
}

/* ---- the thread that asks servers that are closed whether they are back ---- */

/* The first whose time has come; NULL and how long to wait; lock held. */
static struct server *next_to_probe(struct symbol_sources *sources, int64_t *wait_ms)
{
	*wait_ms = INT_MAX;
	for (size_t i = 0; i < sources->count; i++) {
		struct server *server = &sources->servers[i];
		int64_t left = server->closed_until_ms - now_ms();

		if (!server->is_closed || !server->is_awaited)
			continue;
		if (left <= 0)
			return server;
		if (left < *wait_ms)
			*wait_ms = left;
	}
	return NULL;
}

/* Asks with no lock held; true: it is back. Its failures are counted on until it has answered a
 * real question. */
static bool probe(struct symbol_sources *sources, struct server *server)
{
	struct source_reply reply = {.answer = SOURCE_DOWN, .sentence = "no descriptor to ask it"};
	int output = memfd_create("probe", MFD_CLOEXEC);
	bool is_back;

	pthread_mutex_unlock(&sources->lock);
	if (output >= 0)
		source_request_run(server->url, NULL, SOURCE_DEBUGINFO, &sources->limits, output,
				   sources->stop_fd, &reply);
	if (output >= 0)
		close(output);
	pthread_mutex_lock(&sources->lock);
	is_back = reply.answer == SOURCE_FOUND || reply.answer == SOURCE_NOT_FOUND ||
		  reply.answer == SOURCE_TOO_LARGE;
	server->is_closed = false;
	if (!is_back && !sources->stops) {
		close_server(sources, server, &reply);
		return false;
	}
	server->is_awaited = false;
	return is_back;
}

static void *probe_thread(void *context)
{
	struct symbol_sources *sources = context;

	pthread_mutex_lock(&sources->lock);
	while (!sources->stops) {
		int64_t wait_ms, until;
		struct server *server = next_to_probe(sources, &wait_ms);
		struct timespec when;

		if (server && probe(sources, server)) {
			pthread_cond_broadcast(&sources->changed);
			pthread_mutex_unlock(&sources->lock);
			if (sources->is_back)
				sources->is_back(sources->context);
			pthread_mutex_lock(&sources->lock);
		}
		if (server)
			continue;
		until = now_ms() + wait_ms;
		when = (struct timespec){.tv_sec = until / 1000, .tv_nsec = until % 1000 * 1000000};
		pthread_cond_timedwait(&sources->changed, &sources->lock, &when);
	}
	pthread_mutex_unlock(&sources->lock);
	return NULL;
}

/* ---- one module ---- */

/* Nothing has to be removed later, also after kill -9. */
static int open_output(const struct symbol_sources *sources)
{
	char path[PATH_MAX + 32];
	int fd = open(sources->cache, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd >= 0)
		return fd;
	snprintf(path, sizeof(path), "%s/download-XXXXXX", sources->cache); /* an old file system */
	fd = mkostemp(path, O_CLOEXEC);
	if (fd >= 0)
		unlink(path);
	return fd;
}

/* What came is what was asked for: servers have answered with other builds. */
static void verify(int fd, const struct build_id *id, struct source_reply *reply)
{
	struct elf_image *image = malloc(sizeof(*image));
	struct error err = {0};

	if (!image) {
		reply->answer = SOURCE_NO_ROOM;
		snprintf(reply->sentence, sizeof(reply->sentence), "no memory to check the file");
	} else if (!elf_image_read(fd, image, &err)) {
		reply->answer = SOURCE_WRONG_FILE;
		snprintf(reply->sentence, sizeof(reply->sentence), "it sent a damaged file: %.150s",
			 err.message);
	} else if (!build_id_equal(&image->gnu, id)) {
		reply->answer = SOURCE_WRONG_FILE;
		snprintf(reply->sentence, sizeof(reply->sentence),
			 "it sent a file with another build-id");
	}
	free(image);
}

/* Whatever the one before left. */
static bool empty_file(int output)
{
	return lseek(output, 0, SEEK_SET) == 0 && !ftruncate(output, 0);
}

/* The server's slot is held meanwhile. */
static void ask_server(struct symbol_sources *sources, struct server *server,
		       const struct source_question *question, enum source_kind kind, int output,
		       struct slot *slot, int64_t *retry_at_ms, struct source_reply *reply)
{
	if (empty_file(output))
		source_request_run(server->url, question->id, kind, &sources->limits, output,
				   question->stop_fd, reply);
	else
		reply->answer = SOURCE_NO_ROOM;
	if (reply->answer == SOURCE_FOUND)
		verify(output, question->id, reply);
	if (reply->answer == SOURCE_WRONG_FILE)
		log_warn("debuginfod server sent a wrong file", "url=%s reason=\"%s\"",
			 server->shown, reply->sentence);
	pthread_mutex_lock(&sources->lock);
	slot->is_taken = false;
	judge(sources, server, question->id, reply);
	*retry_at_ms = is_failure(reply) ? server->closed_until_ms : now_ms() + NO_ROOM_MS;
	pthread_cond_broadcast(&sources->changed);
	pthread_mutex_unlock(&sources->lock);
}

/* What one server said, or why it was passed over. */
struct asked {
	struct source_attempt attempt;
	struct source_reply reply;
	int64_t retry_at_ms; /* from when asking it again is of use */
};

static void try_server(struct symbol_sources *sources, struct server *server,
		       const struct source_question *question, enum source_kind kind, int output,
		       struct asked *asked)
{
	struct source_attempt *attempt = &asked->attempt;
	int64_t begin_ms;
	struct error err = {0};
	struct slot *slot = NULL;

	*asked = (struct asked){.attempt = {.source = server->shown}};
	pthread_mutex_lock(&sources->lock);
	attempt->answer = wait_for_turn(sources, server, question, output, &slot,
					&asked->retry_at_ms, &err);
	pthread_mutex_unlock(&sources->lock);
	attempt->at_ms = now_ms();
	attempt->sentence = asked->reply.sentence;
	if (!slot) {
		snprintf(asked->reply.sentence, sizeof(asked->reply.sentence), "%.199s",
			 err.message);
		return;
	}
	begin_ms = clock_ms(CLOCK_MONOTONIC);
	ask_server(sources, server, question, kind, output, slot, &asked->retry_at_ms,
		   &asked->reply);
	attempt->answer = asked->reply.answer;
	attempt->bytes = asked->reply.bytes;
	attempt->ms = (uint32_t)(clock_ms(CLOCK_MONOTONIC) - begin_ms);
}

/* What matters more about all of them: higher. */
static int weight_of(enum source_answer answer)
{
	static const int weights[] = {
		[SOURCE_NOT_FOUND] = 0, [SOURCE_WRONG_FILE] = 1, [SOURCE_TOO_LARGE] = 2,
		[SOURCE_DOWN] = 3,      [SOURCE_CLOSED] = 3,     [SOURCE_NO_ROOM] = 4,
		[SOURCE_FOUND] = 5,     [SOURCE_STOPPED] = 6,
	};

	return weights[answer];
}

/* A server that sends pages instead of files is as good as down. */
static enum source_answer answer_for_all(const struct asked *asked)
{
	if (asked->attempt.answer == SOURCE_CLOSED || asked->reply.is_no_elf)
		return SOURCE_DOWN;
	return asked->attempt.answer;
}

/* The debug file of the first server that has one: a program's own file is no reason not to ask
 * the next server for better. False: it ends here, with the last of them. */
static bool ask_for_debuginfo(struct symbol_sources *sources,
			      const struct source_question *question, int output,
			      struct asked *asked, size_t *count)
{
	for (*count = 0; *count < sources->count; ++*count) {
		enum source_answer answer;

		try_server(sources, &sources->servers[*count], question, SOURCE_DEBUGINFO, output,
			   &asked[*count]);
		answer = asked[*count].attempt.answer;
		if (answer == SOURCE_FOUND || answer == SOURCE_STOPPED) {
			++*count;
			return false;
		}
	}
	return true;
}

/* Nobody has a debug file: the executable of those that answered. A better answer replaces the one
 * about the debug file. */
static void ask_for_executable(struct symbol_sources *sources,
			       const struct source_question *question, int output,
			       struct asked *asked)
{
	for (size_t i = 0; i < sources->count; i++) {
		struct asked *first = &asked[i], again;
		enum source_answer answer = answer_for_all(first);

		if (weight_of(answer) > weight_of(SOURCE_TOO_LARGE))
			continue;
		try_server(sources, &sources->servers[i], question, SOURCE_EXECUTABLE, output,
			   &again);
		if (weight_of(answer_for_all(&again)) <= weight_of(answer))
			continue;
		if (again.attempt.answer == SOURCE_FOUND)
			snprintf(again.reply.sentence, sizeof(again.reply.sentence),
				 "the executable; of its debug file: %.150s",
				 first->reply.sentence);
		again.attempt.ms += first->attempt.ms;
		*first = again;
		first->attempt.sentence = first->reply.sentence;
		if (again.attempt.answer == SOURCE_FOUND || again.attempt.answer == SOURCE_STOPPED)
			return;
	}
}

static enum source_answer sum_up(const struct source_question *question, const struct asked *asked,
				 size_t count, struct source_result *result)
{
	enum source_answer all = SOURCE_NOT_FOUND;

	for (size_t i = 0; i < count; i++) {
		enum source_answer one = answer_for_all(&asked[i]);

		if (one == SOURCE_STOPPED)
			return one;
		if (question->note)
			question->note(question->context, &asked[i].attempt);
		if ((one == SOURCE_DOWN || one == SOURCE_NO_ROOM) &&
		    asked[i].retry_at_ms < result->retry_at_ms)
			result->retry_at_ms = asked[i].retry_at_ms;
		if (result->url && weight_of(one) <= weight_of(all))
			continue;
		all = one;
		result->url = asked[i].attempt.source;
		if (one != SOURCE_NOT_FOUND)
			snprintf(result->sentence, sizeof(result->sentence),
				 "debuginfod server %.90s: %.85s", result->url,
				 asked[i].reply.sentence);
	}
	return all;
}

static enum source_answer ask_in_order(struct symbol_sources *sources,
				       const struct source_question *question, int output,
				       struct source_result *result)
{
	struct asked *asked = calloc(sources->count, sizeof(*asked));
	enum source_answer answer;
	size_t count;

	if (!asked) {
		result->retry_at_ms = now_ms() + NO_ROOM_MS;
		snprintf(result->sentence, sizeof(result->sentence), "no memory to ask servers");
		return SOURCE_NO_ROOM;
	}
	if (ask_for_debuginfo(sources, question, output, asked, &count))
		ask_for_executable(sources, question, output, asked);
	answer = sum_up(question, asked, count, result);
	free(asked);
	return answer;
}

/* While the disk is full nothing is downloaded to find that out again. */
static bool has_room(struct symbol_sources *sources, struct source_result *result)
{
	bool has;

	pthread_mutex_lock(&sources->lock);
	has = sources->no_room_until_ms <= now_ms();
	if (!has)
		result->retry_at_ms = return_time(sources, sources->no_room_until_ms);
	pthread_mutex_unlock(&sources->lock);
	if (!has)
		snprintf(result->sentence, sizeof(result->sentence),
			 "not downloaded: the disk of --data was full a moment ago");
	return has;
}

enum source_answer symbol_sources_ask(struct symbol_sources *sources,
				      const struct source_question *question,
				      struct source_result *result)
{
	enum source_answer answer;
	int output;

	*result = (struct source_result){.fd = -1, .retry_at_ms = INT64_MAX};
	snprintf(result->sentence, sizeof(result->sentence), "no debuginfod server has it");
	if (!sources->count)
		return SOURCE_NOT_FOUND;
	if (!has_room(sources, result))
		return SOURCE_NO_ROOM;
	output = open_output(sources);
	if (output < 0) {
		snprintf(result->sentence, sizeof(result->sentence),
			 "not downloaded: no file in the cache directory: %s", strerror(errno));
		result->retry_at_ms = now_ms() + NO_ROOM_MS;
		return SOURCE_NO_ROOM;
	}
	answer = ask_in_order(sources, question, output, result);
	if (answer == SOURCE_FOUND)
		result->fd = output;
	else
		close(output);
	return answer;
}
