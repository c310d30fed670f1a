/* SPDX-License-Identifier: Apache-2.0 */
/* farflame-server: options, store, symbolize, http; until a signal. */
#include <malloc.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "symbol-server/api/api.h"
#include "symbol-server/api/import.h"
#include "symbol-server/directories.h"
#include "symbol-server/life.h"
#include "symbol-server/server_options.h"
#include "symbol-server/store/data_directory.h"
#include "symbol-server/store/sqlite/reserve.h"
#include "symbol-server/symbolize/sources/upload_sums.h"
#include "symbol-server/symbolize/worker.h"

enum {
	EXIT_OPTIONS = 2,
	DRAIN_MS = 5000,
	SLOW_BODY_S = 30,
	ACCEPTING_THREADS = 2,
	PATH_ROOM = 4096,
	ADDRESS_ROOM = 300,
	ROOM_LOOK_MS = 1000,
};
#define BODY_MEMORY  ((size_t)256 << 20)
#define UPLOAD_BYTES ((uint64_t)4 << 30)

/* What the start is at, for whoever asks; also by the store, from within its opening. */
static void does(void *context, const char *doing)
{
	((struct api *)context)->doing = doing;
}

static bool open_stores(struct api *api, const struct server_options *options, struct error *err)
{
	struct samples_store_options samples = {
		.directory = options->data,
		.clickhouse_url = options->clickhouse_url,
		.keep_ms = {options->retention_ms, options->rollup_retention_ms[0],
			    options->rollup_retention_ms[1]},
		.trace_keep_ms = options->trace_retention_ms,
		.max_disk_bytes = options->max_disk_percent
					  ? directory_share(options->data,
							    options->max_disk_percent)
					  : options->max_disk_bytes,
		.series_max = options->series_limit,
		.dictionary_bytes = options->dictionary_memory_bytes,
		.does = does,
		.does_context = api,
	};

	does(api, "opens its samples");
	api->samples = samples_open(&samples, err);
	if (!api->samples)
		return false;
	does(api, "opens its symbols");
	api->symbols = symbols_open(options->data, err);
	return api->symbols != NULL;
}

static bool start_symbolizer(struct api *api, const struct server_options *options,
			     struct error *err)
{
	char cache[PATH_ROOM];
	bool is_new;
	struct symbolizer_options symbolize = {
		.symbol_dirs = options->symbol_dirs.texts,
		.symbol_dir_count = options->symbol_dirs.count,
		.sources = options->sources,
		.source_dirs = options->source_dirs.texts,
		.source_dir_count = options->source_dirs.count,
		.debuginfod_urls = options->debuginfod.texts,
		.debuginfod_url_count = options->debuginfod.count,
		.cache_directory = cache,
		.memory_limit_bytes = options->symbol_memory_bytes,
		.disk_limit_bytes = options->symbol_disk_bytes,
		.workers = options->symbol_workers,
		.upload_limit_bytes = UPLOAD_BYTES,
		.upload_disk_bytes = options->upload_disk_bytes,
	};

	does(api, "looks at its modules");
	snprintf(cache, sizeof(cache), "%s/cache", options->data);
	if (!directory_make(cache, &is_new, err))
		return false;
	api->symbolizer = symbolizer_start(&symbolize, api->symbols, err);
	return api->symbolizer != NULL;
}

/* On a full disk the start waits for the room it needs, which retention makes by itself at the
 * first look, or whoever runs the server. */
static bool open_all(struct api *api, const struct server_options *options, struct error *err)
{
	struct log_fault no_room = {0};

	while (!open_stores(api, options, err) || !start_symbolizer(api, options, err)) {
		samples_close(api->samples);
		symbols_close(api->symbols);
		api->samples = NULL;
		api->symbols = NULL;
		if (!error_is_no_room(err))
			return false;
		if (reserve_give_up(options->data))
			continue;
		log_fault_write(&no_room, 0, LOG_ERROR,
				"the disk is full: the start waits for room", "reason=\"%s\"",
				err->message);
		does(api, "waits for room on the disk of --data");
		poll(NULL, 0, ROOM_LOOK_MS);
	}
	log_fault_over(&no_room, "the disk is full: the start waits for room");
	return true;
}

/* The port answers from now on: "starting", until the rest is there. */
static bool start_serving(struct api *api, const struct server_options *options,
			  char address[ADDRESS_ROOM], struct error *err)
{
	struct http_options http = {
		.address = options->listen,
		.hosts = options->hosts.texts,
		.host_count = options->hosts.count,
		.threads = ACCEPTING_THREADS,
		.workers = options->workers,
		.long_running = options->queries,
		.connections = options->connections,
		.memory_limit_bytes = BODY_MEMORY,
		.slow_body_s = SLOW_BODY_S,
		.spill_directory = options->data,
		.on_error = api_on_error,
		.is_closed = api_is_closed,
	};
	const char *colon = strrchr(options->listen, ':');

	api->server = http_server_start(&http, api_routes, api, err);
	if (!api->server)
		return false;
	snprintf(address, ADDRESS_ROOM, "%.*s:%u", (int)(colon - options->listen), options->listen,
		 http_server_port(api->server));
	if (options->insecure && !listen_is_loopback(options->listen))
		log_warn("insecure",
			 "meaning=\"whoever reaches %s reads every profile and may "
			 "send any\"",
			 options->listen);
	return true;
}

/* What was found, so that an empty store that should not be one is seen. */
static void say_ready(const struct api *api, const struct server_options *options,
		      const char *address)
{
	struct samples_counters samples;
	char oldest[40] = "none";
	time_t seconds;
	struct tm tm;

	if (options->clickhouse_url) {
		log_info("listening", "address=%s data=%s version=%s retention=%s", address,
			 options->data, FARFLAME_VERSION, options->retention);
		return;
	}
	samples_counters(api->samples, &samples);
	seconds = (time_t)(samples.oldest_ms / 1000);
	if (seconds)
		strftime(oldest, sizeof oldest, "%Y-%m-%d", gmtime_r(&seconds, &tm));
	log_info("listening",
		 "address=%s data=%s version=%s days=%llu oldest=%s bytes=%llu retention=%s "
		 "max_disk=%s",
		 address, options->data, FARFLAME_VERSION, (unsigned long long)samples.days, oldest,
		 (unsigned long long)samples.disk_bytes, options->retention, options->max_disk);
}

static bool import_files(struct api *api, const struct server_options *options, struct error *err)
{
	if (options->imports.count)
		does(api, "reads the files of --import");
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

	if (!data_backup(options->data, options->backup, options->backup_base, &report, &err)) {
		fprintf(stderr, "farflame-server: %s\n", err.message);
		return EXIT_FAILURE;
	}
	printf("%s: %u databases, %u journal segments, %u uploaded files, %u of them linked to "
	       "%s, %llu bytes copied; folding waited %lld ms\n",
	       options->backup, report.databases, report.journal_segments, report.files,
	       report.linked, options->backup_base ? options->backup_base : "nothing",
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
	struct uploads_report uploads;
	struct error err = {0};
	char cache[PATH_ROOM];

	snprintf(cache, sizeof(cache), "%s/cache", options->data);
	if (!data_verify(options->data, stdout, &report, &err) ||
	    !uploads_verify(cache, false, stdout, &uploads, &err)) {
		fprintf(stderr, "farflame-server: %s\n", err.message);
		return EXIT_FAILURE;
	}
	report.files += uploads.files;
	report.damaged += uploads.damaged;
	printf("%u files, %u damaged, %llu rows, %llu samples, %llu records in the journal\n",
	       report.files, report.damaged, (unsigned long long)report.rows,
	       (unsigned long long)report.samples, (unsigned long long)report.journal_records);
	if (report.newer)
		printf("%u files are of a newer version, and were not read\n", report.newer);
	return report.damaged || report.newer ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* A damaged upload is deleted: whoever has the file is asked for it again. Exit status 1: something
 * is damaged and was not dropped. */
static int repair(const struct server_options *options)
{
	bool drops = options->repair == REPAIR_DROP;
	struct repair_report report;
	struct uploads_report uploads;
	struct error err = {0};
	char cache[PATH_ROOM];

	snprintf(cache, sizeof(cache), "%s/cache", options->data);
	if (!data_repair(options->data, drops, stdout, &report, &err) ||
	    !uploads_verify(cache, drops, stdout, &uploads, &err)) {
		fprintf(stderr, "farflame-server: %s\n", err.message);
		return EXIT_FAILURE;
	}
	report.damaged += uploads.damaged;
	printf("%u damaged files %s: %llu samples of them kept, %llu lost\n", report.damaged,
	       drops ? "repaired" : "would be repaired", (unsigned long long)report.samples_kept,
	       (unsigned long long)report.samples_lost);
	if (!drops && report.damaged)
		printf("--repair drop does so; the damaged databases stay as *.damaged\n");
	return drops || !report.damaged ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* Takes the locks of the stores, and so returns where nobody keeps them. */
static void ask_stores(void *context)
{
	const struct api *api = context;
	struct samples_counters samples;

	samples_counters(api->samples, &samples);
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

/* Directories as they have to be; the stores; all that needs them. */
static bool start(struct api *api, const struct server_options *options, struct life *life,
		  char address[ADDRESS_ROOM], struct error *err)
{
	bool is_new;

	if (!directory_make(options->data, &is_new, err) || !data_is_whole(options->data, err) ||
	    !directories_are_there(&options->symbol_dirs, err) ||
	    !directories_are_there(&options->source_dirs, err) || !api_init(api, err))
		return false;
	if (is_new)
		log_warn("new data directory", "path=\"%s\" meaning=\"nothing is in it yet\"",
			 options->data);
	if (!start_serving(api, options, address, err) || !life_start(life, &api->doing, err) ||
	    !open_all(api, options, err))
		return false;
	return import_files(api, options, err);
}

int main(int argc, char **argv)
{
	struct server_options options = {0};
	struct api api = {.started_ms = unix_time_ms(), .doing = "begins"};
	char address[ADDRESS_ROOM] = "";
	struct life life = {.address = address};
	struct error err = {0};
	enum options_action action;
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
	if (options.repair != REPAIR_NO)
		return repair(&options);
	life_hold_signals(&life);
	api.data = options.data;
	api.retention_ms = longest_kept_ms(&options);
	api.query_limits = (struct samples_limits){options.query_time_ms,
						   options.query_memory_bytes, options.query_rows};

	ok = start(&api, &options, &life, address, &err);
	if (ok) {
		say_ready(&api, &options, address);
		api.is_ready = true;
	} else {
		fprintf(stderr, "farflame-server: %s\n", err.message);
	}
	life_started(&life, ok);
	if (ok)
		life_wait(&life, ask_stores, &api);
	stop(&api);
	return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
