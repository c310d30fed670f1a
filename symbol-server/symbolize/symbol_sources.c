/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/symbolize/symbol_sources.h"

#include <elfutils/debuginfod.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/elf_image.h"
#include "common/log.h"
#include "symbol-server/symbolize/worker.h"

enum {
	SERVERS_MAX = 32,
	URL_MAX = 1024,
	TIMEOUT_SECONDS = 30, /* less than 100 KB in that time; libdebuginfod's own default is 90 */
	DOWNLOAD_SECONDS = 600,
	CLOSED_FIRST_MS = 30 * 1000,
	CLOSED_MAX_MS = 30 * 60 * 1000,
	EXIT_NOT_FOUND = 4,
};

static const char size_limit[] = "DEBUGINFOD_MAXSIZE=2147483648";

struct server {
	char *url;
	unsigned failures; /* in a row */
	int64_t closed_until_ms;
};

struct symbol_sources {
	pthread_mutex_t lock; /* of the servers' states */
	struct server servers[SERVERS_MAX];
	size_t count;
	char cache[PATH_MAX];
	void (*is_back)(void *context);
	void *context;
};

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
}

/* ---- configuration ---- */

static bool check_url(const char *url, struct error *err)
{
	if (strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0)
		return error_set(err, ERROR_OPTION,
				 "debuginfod server '%.200s' is not an http:// or https:// URL",
				 url);
	/* libdebuginfod splits its list at blanks. */
	if (strlen(url) > URL_MAX || strpbrk(url, " \t\r\n"))
		return error_set(err, ERROR_OPTION,
				 "debuginfod server '%.200s' is too long or has blanks in it", url);
	return true;
}

/* libdebuginfod reads its settings from files in the cache: misses are remembered by us alone, and
 * downloads stay only until they are converted. */
static bool write_setting(const char *cache, const char *name, const char *value, struct error *err)
{
	char path[PATH_MAX + 32];
	ssize_t length = (ssize_t)strlen(value);
	bool ok;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", cache, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	ok = fd >= 0 && write(fd, value, (size_t)length) == length;
	if (!ok)
		error_set_system(err, errno, "write '%s'", path);
	if (fd >= 0)
		close(fd);
	return ok;
}

static bool prepare_cache(struct symbol_sources *sources, const char *directory, struct error *err)
{
	if ((size_t)snprintf(sources->cache, sizeof(sources->cache), "%s/debuginfod", directory) >=
	    sizeof(sources->cache))
		return error_set(err, ERROR_LIMIT, "path of the cache directory is too long");
	if (mkdir(sources->cache, 0700) && errno != EEXIST)
		return error_set_system(err, errno, "create '%s'", sources->cache);
	return write_setting(sources->cache, "cache_miss_s", "0\n", err) &&
	       write_setting(sources->cache, "max_unused_age_s", "86400\n", err);
}

struct symbol_sources *symbol_sources_open(const char *const *urls, size_t count,
					   const char *cache_directory, struct error *err)
{
	struct symbol_sources *sources = calloc(1, sizeof(*sources));

	if (!sources) {
		error_set(err, ERROR_MEMORY, "no memory for symbol sources");
		return NULL;
	}
	pthread_mutex_init(&sources->lock, NULL);
	if (count > SERVERS_MAX) {
		error_set(err, ERROR_OPTION, "more than %d debuginfod servers", SERVERS_MAX);
		goto fail;
	}
	for (size_t i = 0; i < count; i++) {
		if (!check_url(urls[i], err))
			goto fail;
		sources->servers[i].url = strdup(urls[i]);
		if (!sources->servers[i].url) {
			error_set(err, ERROR_MEMORY, "no memory for symbol sources");
			goto fail;
		}
		sources->count++;
	}
	if (count && !prepare_cache(sources, cache_directory, err))
		goto fail;
	return sources;
fail:
	symbol_sources_close(sources);
	return NULL;
}

size_t symbol_sources_count(const struct symbol_sources *sources)
{
	return sources->count;
}

void symbol_sources_close(struct symbol_sources *sources)
{
	if (!sources)
		return;
	for (size_t i = 0; i < sources->count; i++)
		free(sources->servers[i].url);
	pthread_mutex_destroy(&sources->lock);
	free(sources);
}

/* ---- servers' states ---- */

static bool is_closed(struct symbol_sources *sources, struct server *server, int64_t *until_ms)
{
	bool closed;

	pthread_mutex_lock(&sources->lock);
	closed = server->closed_until_ms > now_ms();
	*until_ms = server->closed_until_ms;
	pthread_mutex_unlock(&sources->lock);
	return closed;
}

static int64_t server_failed(struct symbol_sources *sources, struct server *server,
			     const char *sentence)
{
	int64_t pause = CLOSED_FIRST_MS, until;

	pthread_mutex_lock(&sources->lock);
	for (unsigned i = 0; i < server->failures && pause < CLOSED_MAX_MS; i++)
		pause *= 2;
	if (pause > CLOSED_MAX_MS)
		pause = CLOSED_MAX_MS;
	if (!server->failures++)
		log_warn("debuginfod server does not answer", "url=%s reason=\"%s\" pause_s=%lld",
			 server->url, sentence, (long long)pause / 1000);
	until = server->closed_until_ms = now_ms() + pause;
	pthread_mutex_unlock(&sources->lock);
	return until;
}

static void server_answered(struct symbol_sources *sources, struct server *server)
{
	pthread_mutex_lock(&sources->lock);
	if (server->failures)
		log_info("debuginfod server answers again", "url=%s", server->url);
	server->failures = 0;
	server->closed_until_ms = 0;
	pthread_mutex_unlock(&sources->lock);
}

/* ---- one question to one server ---- */

/* The child's whole environment: what libdebuginfod and libcurl look at. */
struct environment {
	char texts[12][PATH_MAX + 64];
	const char *list[13];
	size_t count;
};

static void environment_add(struct environment *environment, const char *name, const char *value)
{
	char *text = environment->texts[environment->count];

	if (!value || (size_t)snprintf(text, sizeof(environment->texts[0]), "%s=%s", name, value) >=
			      sizeof(environment->texts[0]))
		return;
	environment->list[environment->count++] = text;
}

static void environment_fill(struct environment *environment, const char *url, const char *cache)
{
	static const char *const kept[] = {"http_proxy", "https_proxy", "HTTPS_PROXY",
					   "no_proxy",   "NO_PROXY",    "SSL_CERT_FILE"};
	char number[16];

	environment->count = 0;
	environment_add(environment, "DEBUGINFOD_URLS", url);
	environment_add(environment, "DEBUGINFOD_CACHE_PATH", cache);
	snprintf(number, sizeof(number), "%d", TIMEOUT_SECONDS);
	environment_add(environment, "DEBUGINFOD_TIMEOUT", number);
	snprintf(number, sizeof(number), "%d", DOWNLOAD_SECONDS);
	environment_add(environment, "DEBUGINFOD_MAXTIME", number);
	environment_add(environment, "DEBUGINFOD_RETRY_LIMIT", "1");
	for (size_t i = 0; i < sizeof(kept) / sizeof(*kept); i++)
		environment_add(environment, kept[i], getenv(kept[i]));
	environment->list[environment->count++] = size_limit;
	environment->list[environment->count] = NULL;
}

static enum source_answer ask_server(struct symbol_sources *sources, const struct server *server,
				     const char *hex, const char *kind, int output, int stop_fd,
				     struct error *err)
{
	const char *arguments[] = {SYMBOL_WORKER_FETCH, hex, kind, NULL};
	struct environment *environment = calloc(1, sizeof(*environment));
	struct worker_child child = {
		.arguments = arguments,
		.fds = &output,
		.fd_count = 1,
		.stop_fd = stop_fd,
		.limit_ms = (DOWNLOAD_SECONDS + TIMEOUT_SECONDS) * INT64_C(1000),
	};
	char sentence[200];
	bool ran;
	int status;

	if (!environment) {
		error_set(err, ERROR_MEMORY, "no memory to ask '%s'", server->url);
		return SOURCE_DOWN;
	}
	environment_fill(environment, server->url, sources->cache);
	child.environment = environment->list;
	ran = worker_run(&child, &status, err);
	free(environment);
	if (!ran)
		return err->kind == ERROR_BUSY ? SOURCE_STOPPED : SOURCE_DOWN;
	if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS)
		return SOURCE_FOUND;
	if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_NOT_FOUND)
		return SOURCE_NOT_FOUND;
	worker_sentence(output, sentence, sizeof(sentence));
	error_set(err, ERROR_REMOTE, "%s", *sentence ? sentence : "the download crashed");
	return SOURCE_DOWN;
}

/* What came is what was asked for: servers have answered with error pages and with other builds. */
static bool verify(int fd, const struct build_id *id, struct error *err)
{
	struct elf_image *image = malloc(sizeof(*image));
	bool ok = image && elf_image_read(fd, image, err);

	if (!image)
		error_set(err, ERROR_MEMORY, "no memory to check a download");
	if (ok && !build_id_equal(&image->gnu, id))
		ok = error_set(err, ERROR_CONFLICT, "the file has another build-id");
	free(image);
	return ok;
}

static enum source_answer fetch_kind(struct symbol_sources *sources, struct server *server,
				     const struct build_id *id, const char *kind, int stop_fd,
				     int *fd, struct error *err)
{
	int output = memfd_create("symbol-path", MFD_CLOEXEC);
	enum source_answer answer;
	char hex[BUILD_ID_HEX], path[PATH_MAX];

	if (output < 0) {
		error_set_system(err, errno, "memory for a path");
		return SOURCE_DOWN;
	}
	answer = ask_server(sources, server, build_id_format(id, hex), kind, output, stop_fd, err);
	if (answer == SOURCE_FOUND) {
		worker_sentence(output, path, sizeof(path));
		*fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
		if (*fd < 0 || !verify(*fd, id, err)) {
			log_warn("debuginfod server sent a wrong file",
				 "url=%s build_id=%s reason=\"%s\"", server->url, hex,
				 err->message);
			if (*fd >= 0)
				close(*fd);
			*fd = -1;
			unlink(path);
			answer = SOURCE_NOT_FOUND;
		}
	}
	close(output);
	return answer;
}

static enum source_answer fetch_from(struct symbol_sources *sources, struct server *server,
				     const struct build_id *id, int stop_fd, int *fd,
				     struct error *err)
{
	enum source_answer answer = fetch_kind(sources, server, id, "debuginfo", stop_fd, fd, err);

	if (answer == SOURCE_NOT_FOUND)
		answer = fetch_kind(sources, server, id, "executable", stop_fd, fd, err);
	return answer;
}

const char *source_answer_text(enum source_answer answer)
{
#define SOURCE_ANSWER_TEXT(upper_, lower_, meaning_) #lower_,
	static const char *const texts[] = {SOURCE_ANSWERS(SOURCE_ANSWER_TEXT)};
#undef SOURCE_ANSWER_TEXT

	return (size_t)answer < sizeof(texts) / sizeof(*texts) ? texts[answer] : "";
}

/* One server, or why it is passed over. */
static struct source_attempt try_server(struct symbol_sources *sources, struct server *server,
					const struct source_question *question, int *fd,
					int64_t *until_ms, struct error *err)
{
	struct source_attempt attempt = {.source = server->url, .at_ms = now_ms()};
	struct stat stat;

	if (is_closed(sources, server, until_ms)) {
		attempt.answer = SOURCE_CLOSED;
		error_set(err, ERROR_REMOTE, "it did not answer before");
		return attempt;
	}
	attempt.answer = fetch_from(sources, server, question->id, question->stop_fd, fd, err);
	attempt.ms = (uint32_t)(now_ms() - attempt.at_ms);
	if (attempt.answer == SOURCE_FOUND && !fstat(*fd, &stat))
		attempt.bytes = (uint64_t)stat.st_size;
	if (attempt.answer == SOURCE_DOWN)
		*until_ms = server_failed(sources, server, err->message);
	else if (attempt.answer != SOURCE_STOPPED)
		server_answered(sources, server);
	return attempt;
}

enum source_answer symbol_sources_ask(struct symbol_sources *sources,
				      const struct source_question *question,
				      struct source_result *result)
{
	enum source_answer all = SOURCE_NOT_FOUND;

	*result = (struct source_result){.fd = -1, .retry_at_ms = INT64_MAX};
	snprintf(result->sentence, sizeof(result->sentence), "no debuginfod server has it");
	for (size_t i = 0; i < sources->count; i++) {
		struct server *server = &sources->servers[i];
		struct error one = {0};
		int64_t until_ms = 0;
		struct source_attempt attempt = try_server(sources, server, question, &result->fd,
							   &until_ms, &one);

		if (attempt.answer == SOURCE_STOPPED)
			return SOURCE_STOPPED;
		attempt.sentence = *one.message ? one.message : source_answer_text(attempt.answer);
		if (question->note)
			question->note(question->context, &attempt);
		result->url = server->url;
		if (attempt.answer == SOURCE_FOUND)
			return SOURCE_FOUND;
		if (attempt.answer == SOURCE_DOWN || attempt.answer == SOURCE_CLOSED) {
			all = SOURCE_DOWN;
			if (until_ms < result->retry_at_ms)
				result->retry_at_ms = until_ms;
			snprintf(result->sentence, sizeof(result->sentence),
				 "debuginfod server %.80s: %.90s", server->url, one.message);
		}
	}
	return all;
}

enum source_answer symbol_sources_fetch(struct symbol_sources *sources, const struct build_id *id,
					int stop_fd, int *fd, const char **url,
					int64_t *retry_at_ms, struct error *err)
{
	struct source_question question = {.id = id, .stop_fd = stop_fd};
	struct source_result result;
	enum source_answer answer = symbol_sources_ask(sources, &question, &result);

	*fd = result.fd;
	*url = result.url;
	*retry_at_ms = result.retry_at_ms;
	error_set(err, ERROR_REMOTE, "%s", result.sentence);
	switch (answer) {
	case SOURCE_FOUND:
	case SOURCE_DOWN:
	case SOURCE_STOPPED:
		return answer;
	case SOURCE_NO_ROOM:
		return SOURCE_DOWN;
	case SOURCE_NOT_FOUND:
	case SOURCE_WRONG_FILE:
	case SOURCE_TOO_LARGE:
	case SOURCE_CLOSED:
		break;
	}
	return SOURCE_NOT_FOUND;
}

void symbol_sources_watch(struct symbol_sources *sources, void (*is_back)(void *context),
			  void *context)
{
	sources->is_back = is_back;
	sources->context = context;
}

unsigned symbol_sources_threads(const struct symbol_sources *sources)
{
	return sources->count ? 2 : 0;
}

size_t symbol_sources_states(struct symbol_sources *sources, struct source_state *states,
			     size_t room)
{
	pthread_mutex_lock(&sources->lock);
	for (size_t i = 0; i < sources->count && i < room; i++) {
		const struct server *server = &sources->servers[i];

		states[i] = (struct source_state){
			.is_closed = server->closed_until_ms > now_ms(),
			.failures = server->failures,
			.closed_until_ms = server->closed_until_ms,
		};
		snprintf(states[i].url, sizeof(states[i].url), "%s", server->url);
	}
	pthread_mutex_unlock(&sources->lock);
	return sources->count;
}

void symbol_sources_forget(struct symbol_sources *sources, const struct build_id *id)
{
	static const char *const kinds[] = {"debuginfo", "executable"};
	char hex[BUILD_ID_HEX], path[PATH_MAX + BUILD_ID_HEX + 16];

	if (!sources->count)
		return;
	build_id_format(id, hex);
	for (size_t i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/%s/%s", sources->cache, hex, kinds[i]);
		unlink(path);
	}
	snprintf(path, sizeof(path), "%s/%s", sources->cache, hex);
	rmdir(path);
}

/* ---- the child ---- */

void symbol_source_fetch_main(int argc, char **argv)
{
	debuginfod_client *client;
	struct build_id id;
	struct error err = {0};
	char *path = NULL;
	size_t length;
	int fd;

	close_range(WORKER_FIRST_FD + 1, ~0U, 0);
	if (argc != 4 || !build_id_parse(&id, argv[2], strlen(argv[2])) ||
	    !(client = debuginfod_begin()))
		_exit(EXIT_FAILURE);
	fd = !strcmp(argv[3], "debuginfo")
		     ? debuginfod_find_debuginfo(client, id.bytes, id.length, &path)
		     : debuginfod_find_executable(client, id.bytes, id.length, &path);
	if (fd == -ENOENT ||
	    fd == -EFBIG) /* there, but larger than we take: as good as not there */
		_exit(EXIT_NOT_FOUND);
	if (fd < 0) {
		error_set(&err, ERROR_REMOTE, "%s", strerror(-fd));
		worker_fail(&err);
	}
	length = path ? strlen(path) : 0;
	_exit(length && write(WORKER_FIRST_FD, path, length) == (ssize_t)length ? EXIT_SUCCESS
										: EXIT_FAILURE);
}
