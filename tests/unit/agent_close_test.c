/* SPDX-License-Identifier: Apache-2.0 */
/* Whoever sends asks the reporter who we are: that goes only once nobody asks any more. The
 * sanitizer says so if it does not. */
#include "node-agent/agent.h"

#include <stdlib.h>
#include <time.h>

#include "node-agent/network/network.h"
#include "tests/check.h"
#include "tests/unit/ship/scripted_server.h"

enum { SLOW_MS = 3000, ENDED_MS = 4000 };

static struct scripted_server server;
static unsigned asked;

/* What a thread that cannot be stopped uses is never given back. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}

static bool answer(struct scripted_server *s, int fd, const struct seen_request *request,
		   unsigned nth)
{
	(void)s, (void)request, (void)nth;
	server_answer(fd, 503, "", "");
	return true;
}

static void pause_ms(int64_t ms)
{
	nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

static void submit(struct ship *ship)
{
	struct ship_report report = {.gzip = calloc(1, 16), .length = 16, .seq = 1, .samples = 1};

	ship_submit(ship, &report);
}

/* As when a start fails half-way: nobody has stopped what sends. */
static void test_closed_without_a_stop(void)
{
	struct agent_options options = {.server = server.url,
					.host = "here",
					.frequency_hz = 19,
					.queue_limit_bytes = 1 << 20,
					.timeout_ms = 2000,
					.report_interval_ms = 1000};
	struct error err = {0};
	struct agent agent = {.options = &options,
			      .samples = samples_new(&(struct samples_sources){0}, &err)};

	CHECK(agent_open_output(&agent, &err));
	submit(agent.ship);
	CHECK(server_wait(&server, "POST", 1, 10000));
	agent_close(&agent);
	CHECK(!agent.ship && !agent.is_left_behind);
	CHECK(!server_wait(&server, "POST", 2, SLOW_MS)); /* it would try again */
}

static void fill_slowly(void *context, struct profile_host *host)
{
	if (__atomic_fetch_add(&asked, 1, __ATOMIC_SEQ_CST)) /* then it holds no lock */
		pause_ms(SLOW_MS);
	reporter_fill_host(context, host);
}

/* As when a file system hangs. */
static void test_a_thread_that_cannot_be_stopped(void)
{
	struct agent_options options = {.host = "here", .frequency_hz = 19};
	struct error err = {0};
	struct samples *samples = samples_new(&(struct samples_sources){0}, &err);
	const struct report_sources sources = {.options = &options, .samples = samples};
	struct agent agent = {.options = &options, .samples = samples};
	struct ship_options ship = {.server_url = server.url,
				    .queue_limit_bytes = 1 << 20,
				    .timeout_ms = 2000,
				    .fill_host = fill_slowly};
	struct ship_counters counters;

	ship.context = agent.reporter = reporter_new(&sources, &err);
	agent.ship = ship_start(&ship, &err);
	CHECK(agent.reporter && agent.ship);
	submit(agent.ship);
	while (__atomic_load_n(&asked, __ATOMIC_SEQ_CST) < 2)
		pause_ms(10);
	CHECK_NUMBER(agent_stop_ship(&agent, 0, &counters), 1);
	CHECK(counters.is_left_behind);
	agent_close(&agent);
	pause_ms(ENDED_MS); /* meanwhile it goes on */
}

int main(int argc, char **argv)
{
	if (network_main(argc, argv) >= 0)
		return EXIT_FAILURE;
	server.answer = answer;
	server_start(&server, 0);
	test_closed_without_a_stop();
	test_a_thread_that_cannot_be_stopped();
	server_stop(&server);
	return checks_done();
}
