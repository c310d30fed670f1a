/* SPDX-License-Identifier: Apache-2.0 */
/* Requests through the process of the network: what it is, what comes of them when it is killed,
 * stopped, or taken over by somebody who answers nonsense. */
#include "node-agent/network/network_client.h"

#include <signal.h>
#include <sys/prctl.h>

#include "common/clock.h"
#include "common/log.h"
#include "node-agent/kernel/own_child.h"
#include "node-agent/network/network_messages.h"
#include "tests/check.h"
#include "tests/unit/ship/scripted_server.h"

enum { BIG = 200001, LONG = 300 << 10, SOON_MS = 20000 };

static struct scripted_server server;
static char big[BIG], text_long[LONG + 1];

static void answer_long(int fd)
{
	char head[100];

	memset(text_long, 'l', LONG);
	snprintf(head, sizeof head, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", LONG);
	server_say(fd, head);
	server_say(fd, text_long);
}

static bool answer(struct scripted_server *s, int fd, const struct seen_request *request,
		   unsigned nth)
{
	(void)s;
	(void)nth;
	if (strstr(request->head, "/silent"))
		usleep(3000000);
	if (strstr(request->head, "/long"))
		answer_long(fd);
	else if (strstr(request->head, "/busy"))
		server_answer(fd, 429, "Retry-After: 7\r\nContent-Type: text/plain\r\n", "later");
	else if (strstr(request->head, "/moved"))
		server_answer(fd, 302, "Location: http://elsewhere/\r\n", "");
	else
		server_answer(fd, 200, "", "fine");
	return true;
}

static char token_file[] = "/tmp/farflame-token-XXXXXX";

static struct network *start(void)
{
	const struct network_options options = {
		.server_url = server.url, .token_file = token_file, .timeout_ms = 10000};
	struct error err = {0};
	struct network *network = network_start(&options, &err);

	if (!network)
		printf("# %s\n", err.message);
	return network;
}

/* The only child of this process that has that name; 0: none. */
static pid_t child(void)
{
	char path[64], line[32];
	pid_t found = 0;
	FILE *children, *name;
	int pid;

	snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
	children = fopen(path, "r");
	while (children && fscanf(children, "%d", &pid) == 1) {
		snprintf(path, sizeof path, "/proc/%d/comm", pid);
		name = fopen(path, "r");
		if (name && fgets(line, sizeof line, name) && !strcmp(line, "farflame-net\n"))
			found = pid;
		if (name)
			fclose(name);
	}
	if (children)
		fclose(children);
	return found;
}

static bool ask(struct network_client *client, const char *path, struct http_answer *answer,
		int limit_ms, struct error *err)
{
	struct http_request request = {.method = "POST",
				       .path = path,
				       .content_type = "text/plain",
				       .deadline_ms = monotonic_ms() + limit_ms};

	*err = (struct error){0};
	request.pieces[0] = (struct bytes){(const uint8_t *)"one ", 4};
	request.pieces[1] = (struct bytes){(const uint8_t *)"two", 3};
	return network_client_send(client, &request, answer, err);
}

static int64_t read_big(void *context, uint64_t offset, void *bytes, size_t room)
{
	if (context && offset) /* it became shorter */
		return 0;
	memcpy(bytes, big + offset, room);
	return (int64_t)room;
}

static bool upload(struct network_client *client, bool is_cut, struct error *err)
{
	const struct http_request request = {.method = "PUT",
					     .path = "/big",
					     .content_type = "application/octet-stream",
					     .source = read_big,
					     .context = is_cut ? big : NULL,
					     .source_length = BIG};
	struct http_answer answer;
	bool ok = network_client_send(client, &request, &answer, err);

	http_answer_release(&answer);
	return ok;
}

/* --- what it carries --- */

static void check_answers(struct network_client *client)
{
	struct http_answer answer;
	struct error err;

	CHECK(ask(client, "/x", &answer, SOON_MS, &err));
	CHECK_NUMBER(answer.status, 200);
	CHECK_NUMBER(answer.retry_after_s, -1);
	CHECK(answer.body.length == 4 && !memcmp(answer.body.bytes, "fine", 4));
	http_answer_release(&answer);
	CHECK_TEXT((char *)server.seen[0].body, "one two");
	CHECK(strstr(server.seen[0].head, "\r\nAuthorization: Bearer secret\r\n"));
	CHECK(ask(client, "/busy", &answer, SOON_MS, &err));
	CHECK_NUMBER(answer.status, 429);
	CHECK_NUMBER(answer.retry_after_s, 7);
	CHECK_TEXT(answer.content_type, "text/plain");
	http_answer_release(&answer);
	CHECK(ask(client, "/moved", &answer, SOON_MS, &err));
	CHECK_TEXT(answer.location, "http://elsewhere/");
	http_answer_release(&answer);
	CHECK(ask(client, "/long", &answer, SOON_MS, &err));
	CHECK(answer.is_truncated && answer.body.length == HTTP_BODY_MAX &&
	      !memcmp(answer.body.bytes, text_long, HTTP_BODY_MAX));
	http_answer_release(&answer);
	CHECK_NUMBER(server.seen[3].connection, 1); /* kept */
}

static void check_upload(struct network_client *client)
{
	const struct seen_request *seen = &server.seen[server.count];
	struct error err = {0};

	for (int i = 0; i < BIG; i++)
		big[i] = (char)(i * 7 >> 3);
	CHECK(upload(client, false, &err));
	CHECK(seen->length == BIG && !memcmp(seen->body, big, BIG));
	CHECK(!upload(client, true, &err));
	CHECK(strstr(err.message, "could not be read to its end"));
	CHECK(upload(client, false, &err));
}

/* --- what becomes of it --- */

static bool ask_soon(struct network *network, struct network_client *client)
{
	const int64_t until_ms = monotonic_ms() + SOON_MS;
	struct http_answer answer;
	struct error err;
	bool ok = false;

	while (!ok && monotonic_ms() < until_ms) {
		network_keep(network);
		ok = ask(client, "/x", &answer, SOON_MS, &err);
		http_answer_release(&answer);
		usleep(10000);
	}
	return ok;
}

static void *kill_soon(void *pid)
{
	usleep(300000);
	kill((pid_t)(intptr_t)pid, SIGKILL);
	return NULL;
}

static void check_killed(struct network *network, struct network_client *client)
{
	struct http_answer answer;
	struct error err;
	pthread_t killer;
	pid_t first = child();

	pthread_create(&killer, NULL, kill_soon, (void *)(intptr_t)first);
	CHECK(!ask(client, "/silent", &answer, SOON_MS, &err)); /* while it waits */
	CHECK_NUMBER(err.kind, ERROR_REMOTE);
	http_answer_release(&answer);
	pthread_join(killer, NULL);
	CHECK(!ask(client, "/x", &answer, SOON_MS, &err)); /* and there is none */
	CHECK_NUMBER(err.kind, ERROR_REMOTE);
	http_answer_release(&answer);
	CHECK(ask_soon(network, client));
	CHECK_NUMBER(network_restarts(network), 1);
	CHECK(child() && child() != first);
}

/* Its time is kept by the agent too, and another takes over. */
static void check_stopped(struct network *network, struct network_client *client)
{
	struct http_answer answer;
	struct error err;
	int64_t began_ms = monotonic_ms();

	kill(child(), SIGSTOP);
	CHECK(!ask(client, "/x", &answer, 200, &err));
	CHECK(strstr(err.message, "waiting for the process of the network"));
	http_answer_release(&answer);
	CHECK(monotonic_ms() - began_ms >= 200 && monotonic_ms() - began_ms < 8000);
	CHECK(ask_soon(network, client));
	CHECK_NUMBER(network_restarts(network), 2);
}

static void *interrupt_soon(void *network)
{
	usleep(300000);
	network_interrupt(network);
	return NULL;
}

static void check_interrupted(struct network *network, struct network_client *client)
{
	struct http_answer answer;
	struct error err;
	pthread_t thread;
	int64_t began_ms = monotonic_ms();

	pthread_create(&thread, NULL, interrupt_soon, network);
	CHECK(!ask(client, "/silent", &answer, SOON_MS, &err));
	CHECK_NUMBER(err.kind, ERROR_BUSY);
	CHECK(monotonic_ms() - began_ms < 2500);
	http_answer_release(&answer);
	pthread_join(thread, NULL);
	CHECK(!ask(client, "/x", &answer, SOON_MS, &err));
	CHECK_NUMBER(err.kind, ERROR_BUSY);
	http_answer_release(&answer);
}

/* --- one that a server has taken over --- */

static int fake; /* which of its replies this child gives; 0: it is sound */

static const struct network_reply replies[] = {
	{.kind = NETWORK_FAILED + 1},
	{.kind = NETWORK_WANT, .length = 8},                       /* more than there is */
	{.kind = NETWORK_WANT, .length = 7, .offset = UINT64_MAX}, /* which overflows */
	{.kind = NETWORK_WANT, .length = 3, .offset = 4},          /* not what comes next */
	{.kind = NETWORK_WANT},
	{.kind = NETWORK_ANSWER, .status = 99},
	{.kind = NETWORK_ANSWER, .status = 200, .length = UINT32_MAX},
	{.kind = NETWORK_ANSWER, .status = 200, .retry_after_s = INT64_MIN},
	{.kind = NETWORK_ANSWER, .status = 200, .length = 7}, /* which is followed by more */
	{.kind = NETWORK_FAILED},
	{.kind = NETWORK_FAILED, .error.kind = ERROR_BUSY},
};

static void fake_child(void)
{
	static struct network_settings settings;
	static struct network_request asked;
	struct error ready = {0};
	int channel;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, "farflame-net");
	(void)!recv(OWN_CHILD_SOCKET, &settings, sizeof settings, 0);
	(void)!send(OWN_CHILD_SOCKET, &ready, sizeof ready, 0);
	while (own_child_receive(OWN_CHILD_SOCKET, &channel) == 1) {
		(void)!recv(channel, &asked, sizeof asked, 0);
		(void)!send(channel, &replies[fake - 1], sizeof *replies, MSG_NOSIGNAL);
		(void)!send(channel, "more than that", 14, MSG_NOSIGNAL);
	}
	_exit(0);
}

static void check_taken_over(void)
{
	char number[8];

	for (size_t i = 1; i <= sizeof replies / sizeof *replies; i++) {
		struct network *network;
		struct network_client *client;
		struct http_answer answer;
		struct error err = {0};

		snprintf(number, sizeof number, "%zu", i);
		setenv("FAKE_NETWORK", number, 1);
		network = start();
		client = network_client_new(network, &err);
		CHECK(!ask(client, "/x", &answer, SOON_MS, &err));
		if (!CHECK(strstr(err.message, "says what it cannot")))
			printf("# %zu: %s\n", i, err.message);
		http_answer_release(&answer);
		unsetenv("FAKE_NETWORK");
		CHECK(ask_soon(network, client)); /* it is replaced */
		network_client_free(client);
		network_free(network);
	}
}

static void check_bad_options(void)
{
	struct network_options options = {.server_url = "nonsense"};
	struct error err = {0};

	CHECK(!network_start(&options, &err));
	CHECK_NUMBER(err.kind, ERROR_OPTION);
	options.server_url = "https://127.0.0.1:1";
	options.ca_file = "/dev/null";
	err = (struct error){0};
	CHECK(!network_start(&options, &err));
	CHECK_NUMBER(err.kind, ERROR_OPTION);
	CHECK(strstr(err.message, "'/dev/null' holds no PEM certificates"));
	CHECK_NUMBER(child(), 0);
}

int main(int argc, char **argv)
{
	struct network *network;
	struct network_client *client;
	struct error err = {0};
	int token;

	fake = getenv("FAKE_NETWORK") ? atoi(getenv("FAKE_NETWORK")) : 0;
	if (fake && !strcmp(argv[0], NETWORK_NAME))
		fake_child();
	if (network_main(argc, argv) >= 0)
		return EXIT_FAILURE;
	log_set_level(LOG_ERROR);
	server = (struct scripted_server){.answer = answer};
	server_start(&server, 0);
	token = mkstemp(token_file);
	CHECK(write(token, "secret\n", 7) == 7);
	network = start();
	client = network_client_new(network, &err);
	check_answers(client);
	check_upload(client);
	check_killed(network, client);
	check_stopped(network, client);
	check_interrupted(network, client);
	network_client_free(client);
	network_free(network);
	CHECK_NUMBER(child(), 0);
	check_taken_over();
	check_bad_options();
	unlink(token_file);
	server_stop(&server);
	return checks_done();
}
