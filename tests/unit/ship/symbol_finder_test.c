/* SPDX-License-Identifier: Apache-2.0 */
/* Questions for functions, to a server that answers well, late, wrongly, or not at all. */
#include "node-agent/ship/symbol_finder.h"

#include "common/clock.h"
#include "tests/check.h"
#include "tests/unit/ship/scripted_server.h"

static struct scripted_server server;
static const char *const names[] = {"malloc", "calloc"};
static const struct build_id id = {.length = 4, .bytes = {0xca, 0xfe, 0, 1}};

enum { LONG_BYTES = 300 << 10 }; /* more than is kept of an answer */

static void answer_long(int fd)
{
	static char text[LONG_BYTES + 1];
	char head[64];

	memset(text, '\n', LONG_BYTES);
	snprintf(head, sizeof head, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", LONG_BYTES);
	server_say(fd, head);
	server_say(fd, text);
}

static bool answer(struct scripted_server *s, int fd, const struct seen_request *request,
		   unsigned nth)
{
	(void)s;
	(void)request;
	switch (nth) {
	case 1:
		server_answer(fd, 200, "Content-Type: text/plain\r\n",
			      "malloc 0x401000 17\ncalloc 0x402000 18\n");
		break;
	case 2:
		server_answer(fd, 404, "", "{\"error\":{\"message\":\"not here\"}}");
		break;
	case 3:
		server_answer(fd, 200, "", "");
		break;
	case 4:
		server_answer(fd, 503, "Retry-After: 7\r\n", "");
		break;
	case 5:
		server_answer(fd, 422, "", "no");
		break;
	case 6:
		server_answer(fd, 200, "", "<html>hello</html>");
		break;
	case 7:
		answer_long(fd);
		break;
	default: /* takes its time: more than we have */
		usleep(600000);
	}
	return true;
}

static bool take_soon(struct symbol_finder *finder, struct symbol_reply *reply)
{
	const int64_t until_ms = monotonic_ms() + 5000;

	while (!symbol_finder_take(finder, reply)) {
		if (monotonic_ms() > until_ms)
			return false;
		usleep(1000);
	}
	return true;
}

static void check_outcomes(struct symbol_finder *finder)
{
	static const struct {
		enum symbol_outcome outcome;
		int retry_after_s;
	} want[] = {
		{SYMBOLS_FOUND, -1},   {SYMBOLS_UNKNOWN, -1}, {SYMBOLS_UNKNOWN, -1},
		{SYMBOLS_LATER, 7},    {SYMBOLS_REFUSED, -1}, {SYMBOLS_REFUSED, -1},
		{SYMBOLS_REFUSED, -1}, {SYMBOLS_LATER, -1},
	};
	struct symbol_reply reply;

	CHECK(!symbol_finder_take(finder, &reply));
	for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
		CHECK(symbol_finder_ask(finder, &id, names, 2));
		CHECK(!symbol_finder_ask(finder, &id, names, 2)); /* one at a time */
		CHECK(take_soon(finder, &reply));
		CHECK(build_id_equal(&reply.id, &id));
		CHECK_NUMBER(reply.outcome, want[i].outcome);
		CHECK_NUMBER(reply.retry_after_s, want[i].retry_after_s);
		if (i)
			continue;
		CHECK_NUMBER(reply.list.count, 2);
		CHECK_NUMBER(reply.list.items[1].name, 1);
		CHECK_NUMBER(reply.list.items[1].address, 0x402000);
	}
	CHECK(strstr(server.seen[0].head,
		     "GET /api/v1/modules/cafe0001/symbols?name=malloc,calloc HTTP/1.1\r\n"));
}

/* While a server says nothing the agent can end. */
static void check_stop(struct network *network, struct symbol_finder *finder)
{
	int64_t began_ms;

	CHECK(symbol_finder_ask(finder, &id, names, 2));
	usleep(50000);
	began_ms = monotonic_ms();
	network_interrupt(network);
	symbol_finder_stop(finder);
	CHECK(monotonic_ms() - began_ms < 400);
}

int main(int argc, char **argv)
{
	struct error err = {0};
	struct network_options options = {.server_url = server.url, .timeout_ms = 300};
	struct network *network;
	struct symbol_finder *finder;

	if (network_main(argc, argv) >= 0)
		return EXIT_FAILURE;
	server = (struct scripted_server){.answer = answer};
	server_start(&server, 0);
	network = network_start(&options, &err);
	finder = symbol_finder_start(network, NULL, &err);
	CHECK(network && finder);
	check_outcomes(finder);
	symbol_finder_stop(finder);
	network_free(network);
	options.timeout_ms = 60000;
	network = network_start(&options, &err);
	finder = symbol_finder_start(network, NULL, &err);
	check_stop(network, finder);
	network_free(network);
	symbol_finder_stop(NULL);
	server_stop(&server);
	return checks_done();
}
