/* SPDX-License-Identifier: Apache-2.0 */
/* The whole server in the test's process, on a folder of its own. */
#ifndef TESTS_UNIT_API_ONE_SERVER_H
#define TESTS_UNIT_API_ONE_SERVER_H

#include <ftw.h>
#include <stdlib.h>

#include "symbol-server/api/api.h"
#include "tests/check.h"
#include "tests/unit/http/http_client.h"

static char directory[64] = "/tmp/farflame-api-test-XXXXXX";
static struct api api;
static unsigned port;

/* Where one has been stopped, what it kept is there again. */
static bool start(void)
{
	struct samples_store_options store = {.directory = directory,
					      .keep_ms = {INT64_C(7) * 86400000}};
	struct symbolizer_options symbolize = {.cache_directory = directory,
					       .workers = 1,
					       .memory_limit_bytes = 64 << 20,
					       .upload_limit_bytes = 64 << 20};
	struct http_options http = {.address = "127.0.0.1:0",
				    .threads = 2,
				    .workers = 4,
				    .connections = 100,
				    .memory_limit_bytes = 128 << 20,
				    .slow_body_s = 5,
				    .on_error = api_on_error};
	struct error err = {0};

	api = (struct api){.retention_ms = store.keep_ms[SAMPLES_RAW], .is_ready = true};
	api.symbols = symbols_open(directory, &err);
	api.samples = api.symbols ? samples_open(&store, &err) : NULL;
	api.symbolizer = api.samples ? symbolizer_start(&symbolize, api.symbols, &err) : NULL;
	if (api.symbolizer && api_init(&api, &err))
		api.server = http_server_start(&http, api_routes, &api, &err);
	if (!api.server)
		printf("# %s\n", err.message);
	port = api.server ? http_server_port(api.server) : 0;
	return api.server;
}

static void stop(void)
{
	CHECK(http_server_stop(api.server, 3000));
	symbolizer_stop(api.symbolizer);
	samples_close(api.samples);
	symbols_close(api.symbols);
	api_release(&api);
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *where)
{
	(void)status, (void)type, (void)where;
	return remove(path);
}

static void remove_directory(void)
{
	nftw(directory, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

#endif
