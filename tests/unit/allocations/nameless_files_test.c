/* SPDX-License-Identifier: Apache-2.0 */
/* When the server is asked about stripped files, by a clock of our own, and what becomes of what it
 * says. */
#include "node-agent/allocations/nameless_files.h"

#include "common/clock.h"
#include "node-agent/network/network.h"
#include "tests/check.h"
#include "tests/unit/ship/scripted_server.h"

enum { AGAIN_MS = 1000, HOUR_MS = 3600 * 1000, ROOM = 256, FORGOTTEN_MS = 600 * 1000 };

static struct scripted_server server;

/* Ids say what the server does. */
static const struct build_id known = {.length = 4, .bytes = {1}},
			     unknown = {.length = 4, .bytes = {2}},
			     away = {.length = 4, .bytes = {3}},
			     refuses = {.length = 4, .bytes = {4}};

static bool answer(struct scripted_server *s, int fd, const struct seen_request *request,
		   unsigned nth)
{
	(void)s;
	(void)nth;
	if (strstr(request->head, "/modules/01000000/symbols?"))
		server_answer(fd, 200, "",
			      "calloc 0x401000 17\n_Znwm 0x402000 9\nje_realloc 0x1 2\n");
	else if (strstr(request->head, "/modules/03000000/"))
		server_answer(fd, 503, "Retry-After: 4\r\n", "");
	else if (strstr(request->head, "/modules/04000000/"))
		server_answer(fd, 422, "", "no");
	else
		server_answer(fd, 404, "", "");
	return true;
}

static void fill_host(void *context, struct profile_host *host)
{
	(void)context;
	*host = (struct profile_host){.host = "tester"};
}

static struct ship *start(void)
{
	const struct ship_options options = {.server_url = server.url,
					     .queue_limit_bytes = 1 << 20,
					     .timeout_ms = 2000,
					     .fill_host = fill_host};
	struct error err = {0};

	return ship_start(&options, &err);
}

static struct nameless_files_counters counters_of(const struct nameless_files *files)
{
	struct nameless_files_counters counters;

	nameless_files_counters(files, &counters);
	return counters;
}

static bool is_settled(const struct nameless_files *files)
{
	const struct nameless_files_counters counters = counters_of(files);

	return counters.answered + counters.unknown + counters.refused == counters.asked;
}

/* Looks for it at that time, and waits for what comes of it. How often it was asked. */
static unsigned look(struct nameless_files *files, const struct build_id *id, int64_t now_ms)
{
	const uint64_t before = counters_of(files).asked;
	const int64_t until_ms = monotonic_ms() + 5000;

	nameless_files_find(files, id, now_ms);
	nameless_files_run(files, now_ms);
	while (!is_settled(files) && monotonic_ms() < until_ms) {
		usleep(1000);
		nameless_files_run(files, now_ms);
	}
	return (unsigned)(counters_of(files).asked - before);
}

static void check_known(struct nameless_files *files)
{
	const struct memory_functions *functions;
	unsigned commas = 0;

	CHECK(!nameless_files_is_new(files, &known)); /* nobody looks for it */
	CHECK(!nameless_files_find(files, &known, 0));
	CHECK(nameless_files_is_new(files, &known));
	CHECK_NUMBER(look(files, &known, 0), 1);
	CHECK(!nameless_files_is_new(files, &known));
	functions = nameless_files_find(files, &known, 1);
	CHECK(functions && functions->count == 3);
	CHECK_NUMBER(functions->items[0].kind, MEMORY_CALLOC);
	CHECK_NUMBER(functions->items[0].address, 0x401000);
	CHECK_NUMBER(functions->items[1].kind, MEMORY_MALLOC);
	CHECK_NUMBER(functions->items[2].kind, MEMORY_REALLOC);
	CHECK_NUMBER(look(files, &known, HOUR_MS), 0); /* never again */
	CHECK_NUMBER(counters_of(files).answered, 1);
	for (const char *at = server.seen[0].head; *at && *at != '\r'; at++)
		commas += *at == ',';
	CHECK(commas > 30 && commas < 64); /* the server takes 64 names */
	CHECK(strstr(server.seen[0].head, "?name=malloc,calloc,"));
	CHECK(strstr(server.seen[0].head, ",_rjem_reallocarray,"));
	CHECK(!strstr(server.seen[0].head, "je__Zn")); /* no allocator has such */
}

/* After 1, 2, 4 … seconds, and an hour at most. */
static void check_again(struct nameless_files *files, const struct build_id *id)
{
	int64_t now_ms = HOUR_MS, gap_ms = AGAIN_MS;
	unsigned wrong = 0;

	CHECK_NUMBER(look(files, id, now_ms), 1);
	for (int i = 0; i < 16; i++) {
		wrong += look(files, id, now_ms + gap_ms - 1) != 0;
		now_ms += gap_ms;
		wrong += look(files, id, now_ms) != 1;
		gap_ms = 2 * gap_ms < HOUR_MS ? 2 * gap_ms : HOUR_MS;
	}
	CHECK_NUMBER(wrong, 0);
	CHECK(!nameless_files_find(files, id, now_ms));
}

/* Nobody is asked before the server said. */
static void check_away(struct nameless_files *files)
{
	const int64_t now_ms = (int64_t)100 * HOUR_MS;
	const struct build_id other = {.length = 4, .bytes = {9}};
	const unsigned before = server_count(&server);

	nameless_files_find(files, &away, now_ms);
	for (int i = 0; i < 2000 && server_count(&server) == before; i++, usleep(1000))
		nameless_files_run(files, now_ms);
	for (int i = 0; i < 2000 && nameless_files_is_new(files, &away); i++, usleep(1000))
		nameless_files_run(files, now_ms);
	CHECK(!nameless_files_is_new(files, &away)); /* nobody waits for a server that is away */
	nameless_files_find(files, &other, now_ms + 3900);
	CHECK(!nameless_files_is_new(files, &other));
	nameless_files_run(files, now_ms + 3900);
	CHECK_NUMBER(server_count(&server), before + 1);
	for (int i = 0; i < 2000 && server_count(&server) < before + 2; i++, usleep(1000))
		nameless_files_run(files, now_ms + 4600);
	CHECK_NUMBER(server_count(&server), before + 2);
}

static void check_room(struct ship *ship)
{
	struct error err = {0};
	struct nameless_files *files = nameless_files_new(ship, AGAIN_MS, &err);
	struct build_id id = {.length = 4};

	for (int i = 0; i < ROOM + 2; i++) {
		id.bytes[2] = (uint8_t)i;
		id.bytes[3] = (uint8_t)(i >> 8) + 1;
		nameless_files_find(files, &id, i);
	}
	CHECK_NUMBER(counters_of(files).refused, 2);
	nameless_files_find(files, &id, FORGOTTEN_MS); /* the first is looked for no more */
	CHECK_NUMBER(counters_of(files).refused, 2);
	nameless_files_find(files, &known, FORGOTTEN_MS); /* the second is, still */
	CHECK_NUMBER(counters_of(files).refused, 3);
	nameless_files_free(files);
	nameless_files_free(NULL);
}

int main(int argc, char **argv)
{
	struct error err = {0};
	struct nameless_files *files;
	struct ship *ship;

	if (network_main(argc, argv) >= 0)
		return EXIT_FAILURE;
	server = (struct scripted_server){.answer = answer};
	server_start(&server, 0);
	ship = start();
	files = ship ? nameless_files_new(ship, AGAIN_MS, &err) : NULL;
	CHECK(files);
	if (files) {
		check_known(files);
		check_again(files, &unknown);
		CHECK_NUMBER(counters_of(files).unknown, 17);
		check_again(files, &refuses);
		CHECK_NUMBER(counters_of(files).refused, 17);
		check_away(files);
		check_room(ship);
	}
	nameless_files_free(files);
	ship_stop(ship, 0, NULL);
	server_stop(&server);
	return checks_done();
}
