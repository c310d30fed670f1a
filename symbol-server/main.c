/* SPDX-License-Identifier: Apache-2.0 */
/* farflame-server: options, store, symbolize, http; until a signal. */
#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/log.h"
#include "symbol-server/api/api.h"
#include "symbol-server/api/import.h"
#include "symbol-server/server_options.h"
#include "symbol-server/store/data_directory.h"

enum {
	EXIT_OPTIONS = 2,
	DRAIN_MS = 5000,
	SLOW_BODY_S = 30,
	ACCEPTING_THREADS = 2,
	PATH_ROOM = 4096,
};
#define BODY_MEMORY  ((size_t)256 << 20)
#define UPLOAD_BYTES ((uint64_t)4 << 30)

/* Makes the directory and its parents; says so when it cannot be written. */
static bool make_directory(const char *path, struct error *err)
{
	struct stat status;
	char part[PATH_ROOM];
	size_t length = strlen(path);

	if (!length || length >= sizeof(part))
		return error_set(err, ERROR_OPTION, "--data needs the path of a directory");
	memcpy(part, path, length + 1);
	for (char *at = part + 1; *at; at++) {
		if (*at != '/')
			continue;
		*at = 0;
		if (mkdir(part, 0700) && errno != EEXIST)
			return error_set_system(err, errno, "make directory %s", part);
		*at = '/';
	}
	if (mkdir(part, 0700) && errno != EEXIST)
		return error_set_system(err, errno, "make directory %s", part);
	if (stat(path, &status) || !S_ISDIR(status.st_mode))
		return error_set_system(err, ENOTDIR, "use directory %s", path);
	if (access(path, R_OK | W_OK | X_OK))
		return error_set_system(err, errno, "use directory %s", path);
	return true;
}

static bool open_stores(struct api *api, const struct server_options *options, struct error *err)
{
	struct samples_store_options samples = {
		.directory = options->data,
		.clickhouse_url = options->clickhouse_url,
		.keep_ms = {options->retention_ms, options->rollup_retention_ms[0],
			    options->rollup_retention_ms[1]},
		.trace_keep_ms = options->trace_retention_ms,
		.max_disk_bytes = options->max_disk_bytes,
		.series_max = options->series_limit,
	};

	if (!make_directory(options->data, err) || !data_is_whole(options->data, err))
		return false;
	api->symbols = symbols_open(options->data, err);
	if (!api->symbols)
		return false;
	api->samples = samples_open(&samples, err);
	return api->samples != NULL;
}

static bool start_symbolizer(struct api *api, const struct server_options *options,
			     struct error *err)
{
	char cache[PATH_ROOM];
	struct symbolizer_options symbolize = {
		.symbol_dirs = options->symbol_dirs.texts,
		.symbol_dir_count = options->symbol_dirs.count,
		.debuginfod_urls = options->debuginfod.texts,
		.debuginfod_url_count = options->debuginfod.count,
		.cache_directory = cache,
		.memory_limit_bytes = options->symbol_memory_bytes,
		.disk_limit_bytes = options->symbol_disk_bytes,
		.workers = options->symbol_workers,
		.upload_limit_bytes = UPLOAD_BYTES,
	};

	snprintf(cache, sizeof(cache), "%s/cache", options->data);
	if (!make_directory(cache, err))
		return false;
	api->symbolizer = symbolizer_start(&symbolize, api->symbols, err);
	return api->symbolizer != NULL;
}

static bool start_serving(struct api *api, const struct server_options *options, struct error *err)
{
	struct http_options http = {
		.address = options->listen,
		.threads = ACCEPTING_THREADS,
		.workers = options->workers,
		.long_running = options->queries,
		.connections = options->connections,
		.memory_limit_bytes = BODY_MEMORY,
		.slow_body_s = SLOW_BODY_S,
		.spill_directory = options->data,
		.on_error = api_on_error,
	};
	const char *colon = strrchr(options->listen, ':');

	api->server = http_server_start(&http, api_routes, api, err);
	if (!api->server)
		return false;
	if (options->insecure && !listen_is_loopback(options->listen))
		log_warn("insecure",
			 "meaning=\"whoever reaches %s reads every profile and may "
			 "send any\"",
			 options->listen);
	log_info("listening", "address=%.*s:%u data=%s version=%s", (int)(colon - options->listen),
		 options->listen, http_server_port(api->server), options->data, FARFLAME_VERSION);
	return true;
}

static bool import_files(struct api *api, const struct server_options *options, struct error *err)
{
	for (size_t i = 0; i < options->imports.count; i++)
		if (!api_import(api, options->imports.texts[i], err))
			return error_prefix(err, "import");
	return true;
}

/* A line on stdout; damage, also in a backup, is exit status 1. */
static int back_up(const struct server_options *options)
{
	struct backup_report report;
	struct error err = {0};

	if (!data_backup(options->data, options->backup, &report, &err)) {
		fprintf(stderr, "farflame-server: %s\n", err.message);
		return EXIT_FAILURE;
	}
	printf("%s: %u databases, %u journal segments, %u uploaded files, %llu bytes; "
	       "folding waited %lld ms\n",
	       options->backup, report.databases, report.journal_segments, report.files,
	       (unsigned long long)report.bytes, (long long)report.locked_ms);
	if (options->clickhouse_url)
		fprintf(stderr,
			"farflame-server: samples are in ClickHouse and not in this copy; back "
			"them up with its own tools\n");
	if (!report.damaged)
		return EXIT_SUCCESS;
	fprintf(stderr, "farflame-server: %u damaged databases are not in it\n", report.damaged);
	return EXIT_FAILURE;
}

static int verify(const struct server_options *options)
{
	struct verify_report report;
	struct error err = {0};

	if (!data_verify(options->data, stdout, &report, &err)) {
		fprintf(stderr, "farflame-server: %s\n", err.message);
		return EXIT_FAILURE;
	}
	printf("%u files, %u damaged, %llu rows, %llu samples, %llu records in the journal\n",
	       report.files, report.damaged, (unsigned long long)report.rows,
	       (unsigned long long)report.samples, (unsigned long long)report.journal_records);
	return report.damaged ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* Signals wait for main(); threads started later inherit the mask. */
static void block_signals(sigset_t *signals)
{
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(signals);
	sigaddset(signals, SIGINT);
	sigaddset(signals, SIGTERM);
	sigaddset(signals, SIGHUP);
	pthread_sigmask(SIG_BLOCK, signals, NULL);
}

static void wait_for_signal(const sigset_t *signals)
{
	int number = 0;

	while (sigwait(signals, &number) || number == SIGHUP)
		;
	log_info("stopping", "signal=%d", number);
}

/* First no more requests, then what they use; the store answers outstanding reports as it closes.
 */
static void stop(struct api *api)
{
	api->is_stopping = true;
	if (!http_server_stop(api->server, DRAIN_MS))
		_exit(EXIT_FAILURE); /* what was acknowledged is on disk */
	symbolizer_stop(api->symbolizer);
	samples_close(api->samples);
	symbols_close(api->symbols);
	api_release(api);
}

/* What is older is not stored; 0: everything is. */
static int64_t longest_kept_ms(const struct server_options *options)
{
	int64_t kept_ms = options->retention_ms;

	for (unsigned i = 0; i < 2; i++)
		if (options->rollup_retention_ms[i])
			kept_ms = options->rollup_retention_ms[i];
	return kept_ms == INT64_MAX ? 0 : kept_ms;
}

/* What a large query took goes back to the kernel after it: its arrays and arenas' blocks are
 * mapped apart, whatever sizes were freed before, and threads share few heaps. */
static void keep_small(void)
{
	mallopt(M_ARENA_MAX, 4);
	mallopt(M_MMAP_THRESHOLD, 1 << 20);
	mallopt(M_TRIM_THRESHOLD, 1 << 20);
}

int main(int argc, char **argv)
{
	struct server_options options = {0};
	struct api api = {.started_ms = api_now_ms()};
	struct error err = {0};
	enum options_action action;
	sigset_t signals;
	bool ok;

	symbol_worker_main(argc, argv);
	keep_small();
	umask(077); /* profiles tell what runs where: nobody else's business */
	action = server_options_read(argc, argv, &options, &err);
	if (action == OPTIONS_FAILED)
		fprintf(stderr, "farflame-server: %s\n", err.message);
	if (action != OPTIONS_RUN)
		return action == OPTIONS_DONE ? EXIT_SUCCESS : EXIT_OPTIONS;
	log_set_level((enum log_level)options.log_level);
	if (options.backup)
		return back_up(&options);
	if (options.verify)
		return verify(&options);
	block_signals(&signals);
	api.retention_ms = longest_kept_ms(&options);
	api.query_limits = (struct samples_limits){options.query_time_ms,
						   options.query_memory_bytes, options.query_rows};

	ok = api_init(&api, &err) && open_stores(&api, &options, &err) &&
	     start_symbolizer(&api, &options, &err) && import_files(&api, &options, &err) &&
	     start_serving(&api, &options, &err);
	if (ok) {
		api.is_ready = true;
		wait_for_signal(&signals);
	} else {
		fprintf(stderr, "farflame-server: %s\n", err.message);
	}
	stop(&api);
	return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
