/* SPDX-License-Identifier: Apache-2.0 */
/* The whole of ship against a server that answers as told. What arrived is read with protobuf-c. */
#include "tests/check.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "common/clock.h"
#include "common/gzip.h"
#include "common/otlp.h"
#include "node-agent/network/network.h"
#include "node-agent/ship/ship.h"
#include "schema/wire/profiles.pb-c.h"
#include "tests/unit/ship/scripted_server.h"

typedef Farflame__Otlp__ExportProfilesServiceRequest Request;

static struct scripted_server server;

static uint8_t run_number;
static const char *spool_directory; /* NULL: none */

static void fill_host(void *context, struct profile_host *host)
{
	(void)context;
	*host = (struct profile_host){.host = "tester",
				      .kernel_release = "6.1",
				      .architecture = "x86_64",
				      .agent_version = "0",
				      .agent_id = {run_number},
				      .sent_ns = 1700000000000000000,
				      .rate_hz = 19};
}

static struct ship *start(size_t queue_limit, uint64_t rate)
{
	struct ship_options options = {.server_url = server.url,
				       .spool_directory = spool_directory,
				       .spool_limit_bytes = 1 << 20,
				       .queue_limit_bytes = queue_limit,
				       .upload_missing = true,
				       .upload_bytes_per_second = rate,
				       .timeout_ms = 1000,
				       .fill_host = fill_host};
	struct error err = {0};
	struct ship *ship = ship_start(&options, &err);

	if (!ship)
		printf("# %s\n", err.message);
	return ship;
}

/* A report whose main part is a request with one resource of that schema_url. */
static void submit(struct ship *ship, uint64_t seq, uint64_t samples, uint64_t taken)
{
	Farflame__Otlp__ResourceProfiles resource = FARFLAME__OTLP__RESOURCE_PROFILES__INIT;
	Farflame__Otlp__ResourceProfiles *resources[] = {&resource};
	Request request = FARFLAME__OTLP__EXPORT_PROFILES_SERVICE_REQUEST__INIT;
	struct ship_report report = {.seq = seq, .samples = samples, .taken = taken};
	char name[20];
	uint8_t bytes[100];
	struct buffer gzip;

	snprintf(name, sizeof name, "main-%d", (int)seq);
	resource.schema_url = name;
	request.n_resource_profiles = 1;
	request.resource_profiles = resources;
	buffer_init(&gzip, 10000);
	gzip_compress(bytes, farflame__otlp__export_profiles_service_request__pack(&request, bytes),
		      6, &gzip, NULL);
	report.gzip = buffer_take(&gzip, &report.length);
	ship_submit(ship, &report);
}

/* The nth profiles request as the server would read it: members merged. */
static Request *arrived(unsigned nth)
{
	Request *request = NULL;
	struct buffer plain;

	buffer_init(&plain, 1 << 20);
	for (unsigned i = 0; i < server.count; i++)
		if (!strncmp(server.seen[i].head, "POST /v1development/profiles ", 29) && !--nth) {
			if (gzip_inflate(server.seen[i].body, server.seen[i].length, &plain, NULL))
				request = farflame__otlp__export_profiles_service_request__unpack(
					NULL, plain.length, plain.bytes);
			break;
		}
	buffer_release(&plain);
	return request;
}

static int64_t attribute(const Request *request, const char *name)
{
	for (size_t r = 0; request && r < request->n_resource_profiles; r++) {
		const Farflame__Otlp__Resource *resource = request->resource_profiles[r]->resource;

		for (size_t a = 0; resource && a < resource->n_attributes; a++)
			if (!strcmp(resource->attributes[a]->key, name))
				return resource->attributes[a]->value->int_value;
	}
	return -1;
}

/* A reason for which nothing was lost is left out. */
static int64_t lost(const Request *request, const char *name)
{
	int64_t count = attribute(request, name);

	CHECK(count != 0);
	return count < 0 ? 0 : count;
}

/* Main part, sequence number and counters of the nth request. */
static void check_arrived(unsigned nth, const char *name, int64_t seq, int64_t taken,
			  int64_t lost_queue, int64_t lost_refused)
{
	Request *request = arrived(nth);

	if (!CHECK(request && request->n_resource_profiles == 2))
		return;
	CHECK_TEXT(request->resource_profiles[0]->schema_url, name);
	CHECK_NUMBER(attribute(request, "farflame.report.seq"), seq);
	CHECK_NUMBER(attribute(request, "farflame.taken"), taken);
	CHECK_NUMBER(lost(request, "farflame.lost.queue"), lost_queue);
	CHECK_NUMBER(lost(request, "farflame.lost.refused"), lost_refused);
	farflame__otlp__export_profiles_service_request__free_unpacked(request, NULL);
}

static const char profiles[] = "POST /v1development/profiles ";

static void answer_otlp(int fd)
{
	server_answer(fd, 200, "Content-Type: application/x-protobuf\r\n", "");
}

/* --- 421, garbage, a cut connection, then 200: the same report arrives whole --- */

static bool answer_troubles(struct scripted_server *s, int fd, const struct seen_request *request,
			    unsigned nth)
{
	(void)s;
	(void)request;
	switch (nth) {
	case 1:
		server_answer(fd, 421, "Retry-After: 1\r\n", "");
		return true;
	case 2:
		server_say(fd, "<html>what?</html>");
		return false;
	case 3:
		server_say(fd, "HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n");
		return false;
	case 4:
		server_answer(fd, 200, "Content-Type: text/html\r\n", "<p>portal</p>");
		return true;
	default:
		answer_otlp(fd);
		return true;
	}
}

static void check_troubles(void)
{
	struct ship_counters counters;
	struct ship *ship;
	int64_t began = monotonic_ms();

	server = (struct scripted_server){.answer = answer_troubles};
	server_start(&server, 0);
	ship = start(1 << 20, 0);
	submit(ship, 1, 10, 12);
	CHECK(server_wait(&server, profiles, 2, 3000));
	CHECK(monotonic_ms() - began >= 1000); /* Retry-After */
	CHECK(server_wait(&server, profiles, 5, 10000));
	submit(ship, 2, 5, 17);
	CHECK(server_wait(&server, profiles, 6, 3000));
	CHECK_NUMBER(ship_stop(ship, 500, &counters), 0);
	CHECK_NUMBER(counters.reports_sent, 2);
	CHECK_NUMBER(counters.reports_retried, 4);
	CHECK_NUMBER(counters.samples_sent, 15);
	CHECK_NUMBER(counters.acknowledged_seq, 2);
	for (unsigned nth = 1; nth <= 5; nth++)
		check_arrived(nth, "main-1", 1, 12, 0, 0);
	check_arrived(6, "main-2", 2, 17, 0, 0);
	server_stop(&server);
}

/* --- refused reports are lost, counted, and told by the next one --- */

static bool answer_refusing(struct scripted_server *s, int fd, const struct seen_request *request,
			    unsigned nth)
{
	(void)s;
	(void)request;
	if (nth == 1)
		server_answer(fd, 400, "Content-Type: text/plain\r\n", "no such thing");
	else
		answer_otlp(fd);
	return true;
}

static void check_refused(void)
{
	struct ship_counters counters;
	struct ship *ship;

	server = (struct scripted_server){.answer = answer_refusing};
	server_start(&server, 0);
	ship = start(1 << 20, 0);
	submit(ship, 1, 10, 10);
	submit(ship, 2, 7, 17);
	CHECK(server_wait(&server, profiles, 2, 3000));
	CHECK_NUMBER(ship_stop(ship, 500, &counters), 0);
	CHECK_NUMBER(counters.samples_lost_refused, 10);
	CHECK_NUMBER(counters.samples_sent, 7);
	check_arrived(1, "main-1", 1, 10, 0, 0);
	check_arrived(2, "main-2", 2, 17, 0, 10);
	server_stop(&server);
}

/* --- nobody there: the oldest go, and what arrives tells of them --- */

static bool answer_fine(struct scripted_server *s, int fd, const struct seen_request *request,
			unsigned nth)
{
	(void)s;
	(void)request;
	(void)nth;
	answer_otlp(fd);
	return true;
}

static void check_away(void)
{
	struct ship_counters counters;
	struct ship *ship;
	uint16_t port;
	int64_t began;

	server = (struct scripted_server){.answer = answer_fine};
	server_start(&server, 0);
	port = server.port;
	server_stop(&server); /* the address exists, nobody listens */
	ship = start(4800, 0);
	for (uint64_t seq = 1; seq <= 20; seq++)
		submit(ship, seq, 1, seq);
	ship_counters(ship, &counters);
	CHECK(counters.queue_bytes <= 4800);
	CHECK(counters.queue_reports > 0 && counters.queue_reports < 20);
	usleep(100000);
	server = (struct scripted_server){.answer = answer_fine};
	server_start(&server, port);
	CHECK(server_wait(&server, profiles, 1, 5000));
	CHECK_NUMBER(ship_stop(ship, 2000, &counters), 0);
	CHECK_NUMBER(counters.samples_sent + counters.samples_lost_queue, 20);
	for (unsigned nth = 1; nth <= server.count; nth++) {
		Request *request = arrived(nth);
		int64_t seq = attribute(request, "farflame.report.seq");

		/* taken = what arrived so far + what was lost before it */
		CHECK_NUMBER(lost(request, "farflame.lost.queue") + nth, seq);
		farflame__otlp__export_profiles_service_request__free_unpacked(request, NULL);
	}
	server_stop(&server);
	/* nobody again: stopping does not take longer than it may */
	ship = start(1 << 20, 0);
	submit(ship, 1, 3, 3);
	began = monotonic_ms();
	CHECK_NUMBER(ship_stop(ship, 300, &counters), 3);
	CHECK(monotonic_ms() - began < 1200);
}

/* --- a server that accepts and says nothing --- */

static void hold(struct scripted_server *s, int fd)
{
	char byte;

	(void)s;
	while (recv(fd, &byte, 1, 0) > 0)
		;
}

static void check_silent(void)
{
	struct ship *ship;
	int64_t began;

	server = (struct scripted_server){.raw = hold};
	server_start(&server, 0);
	ship = start(1 << 20, 0);
	submit(ship, 1, 3, 3);
	usleep(100000);
	began = monotonic_ms();
	CHECK_NUMBER(ship_stop(ship, 300, NULL), 3);
	CHECK(monotonic_ms() - began < 1200);
	server_stop(&server);
}

/* --- with a spool: silence costs nothing, and the next run sends it, in order --- */

static bool answer_second(struct scripted_server *s, int fd, const struct seen_request *request,
			  unsigned nth)
{
	(void)s;
	(void)request;
	if (nth == 2)
		server_answer(fd, 503, "", "");
	else if (nth == 4)
		server_answer(fd, 400, "Content-Type: text/plain\r\n", "no such thing");
	else
		answer_otlp(fd);
	return true;
}

static void check_spool(void)
{
	char directory[] = "/tmp/farflame-ship-XXXXXX", command[60];
	struct ship_counters counters;
	struct ship *ship;
	int64_t began;

	CHECK(mkdtemp(directory));
	spool_directory = directory;
	run_number = 1;
	server = (struct scripted_server){.raw = hold};
	server_start(&server, 0);
	ship = start(1 << 20, 0);
	submit(ship, 1, 3, 3); /* on its way when the end comes */
	usleep(100000);
	submit(ship, 2, 4, 7); /* behind it */
	began = monotonic_ms();
	CHECK_NUMBER(ship_stop(ship, 300, &counters), 0);
	CHECK(monotonic_ms() - began < 1200);
	CHECK_NUMBER(counters.reports_spooled, 2);
	server_stop(&server);

	run_number = 2;
	server = (struct scripted_server){.answer = answer_second};
	server_start(&server, 0);
	ship = start(1 << 20, 0);
	submit(ship, 1, 10, 10); /* after what the first run left */
	submit(ship, 2, 20, 30);
	CHECK(server_wait(&server, profiles, 5, 15000));
	submit(ship, 3, 40, 70);
	CHECK(server_wait(&server, profiles, 6, 3000));
	CHECK_NUMBER(ship_stop(ship, 500, &counters), 0);
	check_arrived(1, "main-1", 1, 3, 0, 0);
	check_arrived(2, "main-2", 2, 7, 0, 0); /* 503 */
	check_arrived(3, "main-2", 2, 7, 0, 0);
	check_arrived(4, "main-1", 1, 10, 0, 0); /* 400 */
	check_arrived(5, "main-2", 2, 30, 0, 10);
	check_arrived(6, "main-3", 3, 70, 0, 10);
	CHECK_NUMBER(counters.samples_lost_refused, 10);
	CHECK_NUMBER(counters.samples_lost_spool, 0);
	CHECK_NUMBER(counters.spool_bytes, 0);
	CHECK_NUMBER(counters.acknowledged_seq, 3);
	for (unsigned nth = 1; nth <= 6; nth++) {
		Request *request = arrived(nth);

		CHECK_NUMBER(attribute(request, "farflame.sent_unix_nano"), 1700000000000000000);
		farflame__otlp__export_profiles_service_request__free_unpacked(request, NULL);
	}
	server_stop(&server);
	spool_directory = NULL;
	snprintf(command, sizeof command, "rm -r '%s'", directory);
	CHECK(system(command) == 0);
}

/* --- modules --- */

static const char file_id[] = "00112233", text_id[] = "44556677", other_id[] = "8899aabb";

static bool answer_modules(struct scripted_server *s, int fd, const struct seen_request *request,
			   unsigned nth)
{
	(void)s;
	(void)nth;
	if (!strncmp(request->head, "POST /api/v1/modules ", 21))
		server_answer(fd, 200, "Content-Type: text/plain\r\n",
			      "00112233\n44556677\n8899aabb\nffffffff\n");
	else if (!strncmp(request->head, "PUT ", 4))
		server_answer(fd, 201, "", "");
	else
		answer_otlp(fd);
	return true;
}

static bool make_text(void *context, struct buffer *out, struct error *err)
{
	(void)err;
	buffer_append_text(out, context);
	return true;
}

static void add_module(struct ship *ship, const char *id, const char *content, bool is_made)
{
	struct ship_module module = {.fd = -1};

	build_id_parse(&module.id, id, strlen(id));
	snprintf(module.name, sizeof module.name, "file of %s", id);
	if (is_made) {
		module.make_bytes = make_text;
		module.make_context = (void *)content;
	} else {
		module.fd = memfd_create("module", MFD_CLOEXEC);
		CHECK(write(module.fd, content, strlen(content)) == (ssize_t)strlen(content));
	}
	ship_module(ship, &module);
}

static const struct seen_request *put_of(const char *id)
{
	char start[64];

	snprintf(start, sizeof start, "PUT /api/v1/modules/%s HTTP/1.1\r\n", id);
	for (unsigned i = 0; i < server.count; i++)
		if (!strncmp(server.seen[i].head, start, strlen(start)))
			return &server.seen[i];
	return NULL;
}

static void check_modules(void)
{
	static char elf[200001] = "\177ELF";
	struct ship_counters counters;
	const struct seen_request *put;
	struct ship *ship;
	int64_t began;

	memset(elf + 4, 'e', sizeof elf - 5);
	server = (struct scripted_server){.answer = answer_modules};
	server_start(&server, 0);
	ship = start(1 << 20, 400000);
	add_module(ship, file_id, elf, false);
	add_module(ship, text_id, "farflame-kallsyms 1\n", true);
	add_module(ship, other_id, "#!/bin/sh\n", false);
	usleep(200000);
	CHECK_NUMBER(server_count(&server), 0); /* nothing before the first report has arrived */
	submit(ship, 1, 1, 1);
	began = monotonic_ms();
	CHECK(server_wait(&server, "PUT ", 2, 5000));
	usleep(300000);
	/* paced: 200 kB at 400 kB/s */
	CHECK(monotonic_ms() - began >= 400);
	add_module(ship, file_id, elf, false); /* again: known */
	submit(ship, 2, 1, 2);
	usleep(200000);
	CHECK_NUMBER(server_count_of(&server, "POST /api/v1/modules "), 1);
	ship_counters(ship, &counters);
	CHECK_NUMBER(counters.modules_announced, 3);
	CHECK_NUMBER(counters.modules_uploaded, 2);
	CHECK_NUMBER(counters.uploads_failed, 1); /* not an ELF file */
	CHECK_NUMBER(ship_stop(ship, 500, NULL), 0);
	CHECK_NUMBER(server_count_of(&server, "PUT "), 2);
	put = put_of(file_id);
	CHECK(put && put->length == sizeof elf - 1 && !memcmp(put->body, elf, put->length));
	put = put_of(text_id);
	CHECK_TEXT(put ? (char *)put->body : "", "farflame-kallsyms 1\n");
	CHECK(!put_of(other_id));
	server_stop(&server);
}

static void check_bad_options(void)
{
	struct ship_options options = {.server_url = "nonsense", .fill_host = fill_host};
	struct error err = {0};

	CHECK(!ship_start(&options, &err));
	CHECK_NUMBER(err.kind, ERROR_OPTION);
	options.server_url = "http://127.0.0.1:1";
	options.token_file = "/nonexistent";
	CHECK(!ship_start(&options, &err));
	CHECK_NUMBER(err.kind, ERROR_OPTION);
	options.server_url = "https://127.0.0.1:1";
	options.token_file = NULL;
	options.ca_file = "/dev/null";
	CHECK(!ship_start(&options, &err));
	CHECK_NUMBER(err.kind, ERROR_OPTION);
}

int main(int argc, char **argv)
{
	if (network_main(argc, argv) >= 0)
		return EXIT_FAILURE;
	check_troubles();
	check_refused();
	check_away();
	check_silent();
	check_spool();
	check_modules();
	check_bad_options();
	return checks_done();
}
