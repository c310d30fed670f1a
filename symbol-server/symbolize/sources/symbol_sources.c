/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/symbolize/sources/symbol_sources.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/elf_image.h"
#include "common/log.h"
#include "symbol-server/symbolize/sources/source_request.h"
#include "symbol-server/symbolize/sources/source_servers.h"

enum {
	URL_ROOM = 1024,
	THREADS_SPARE = 2, /* left over when some servers stall */
	THREADS_MOST = 16,
};

/* ---- start and stop ---- */

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
	rc = pthread_create(&sources->prober, NULL, source_servers_probe, sources);
	sources->has_prober = !rc;
	return !rc || error_set_system(err, rc, "start a thread for symbol sources");
}

struct symbol_sources *symbol_sources_open(const char *const *urls, size_t count,
					   const char *cache_directory, struct error *err)
{
	struct symbol_sources *sources = calloc(1, sizeof(*sources));
	bool ok = sources || error_set(err, ERROR_MEMORY, "no memory for symbol sources");
	pthread_condattr_t monotonic;

	if (!ok)
		return NULL;
	sources->stop_fd = -1;
	pthread_mutex_init(&sources->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&sources->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
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
	size_t threads = sources->count * SOURCE_SLOTS + THREADS_SPARE;

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
	source_server_done(sources, server, slot, question->id, reply, retry_at_ms);
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
	attempt->answer = source_server_wait(sources, server, question, output, &slot,
					     &asked->retry_at_ms, &err);
	attempt->at_ms = unix_time_ms();
	attempt->sentence = asked->reply.sentence;
	if (!slot) {
		snprintf(asked->reply.sentence, sizeof(asked->reply.sentence), "%.199s",
			 err.message);
		return;
	}
	begin_ms = monotonic_ms();
	ask_server(sources, server, question, kind, output, slot, &asked->retry_at_ms,
		   &asked->reply);
	attempt->answer = asked->reply.answer;
	attempt->bytes = asked->reply.bytes;
	attempt->ms = (uint32_t)(monotonic_ms() - begin_ms);
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
		result->retry_at_ms = unix_time_ms() + SOURCE_NO_ROOM_MS;
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
	has = sources->no_room_until_ms <= unix_time_ms();
	if (!has)
		result->retry_at_ms = source_return_time(sources, sources->no_room_until_ms);
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
		result->retry_at_ms = unix_time_ms() + SOURCE_NO_ROOM_MS;
		return SOURCE_NO_ROOM;
	}
	answer = ask_in_order(sources, question, output, result);
	if (answer == SOURCE_FOUND)
		result->fd = output;
	else
		close(output);
	return answer;
}
