/* SPDX-License-Identifier: Apache-2.0 */
/* Store and symbolizer on a fresh directory, requests over the wire. */
#include "common/clock.h"
#include "common/gzip.h"
#include "common/log.h"
#include "common/otlp.h"
#include "symbol-server/api/import.h"
#include "symbol-server/symbolize/worker.h"
#include "tests/check.h"
#include "tests/unit/api/one_server.h"

#define PROTOBUF "Content-Type: application/x-protobuf\r\n"

static int64_t taken_ms; /* when the samples below were taken: the start of a minute */

/* ---- a report, as the agent makes it ---- */

enum {
	S_NONE,
	S_DEMO,
	S_APP,
	S_WORKER,
	S_FUNCTION,
	S_FILE,
	S_CPYTHON,
	S_INCOMPLETE,
	S_ODD,
	STRINGS
};

static const char *strings[STRINGS] = {
	"",          "demo",   "app",     "worker",
	"handle;it", "app.py", "cpython", "code without frame pointers",
	"redis"};
static struct profile_mapping mappings[] = {
	{0},
	{.file_name = S_APP,
	 .gnu = {20, {0xab, 0xcd}},
	 .start = 0x1000,
	 .limit = 0x9000,
	 .file_offset = 0x1000},
};
static struct profile_frame frames[] = {
	{0},
	{.kind = PROFILE_FRAME_NATIVE, .mapping = 1, .address = 0x1234},
	{.kind = PROFILE_FRAME_NAMED,
	 .function = S_FUNCTION,
	 .file = S_FILE,
	 .line = 42,
	 .type = S_CPYTHON},
	{.kind = PROFILE_FRAME_ANONYMOUS},
};
static uint32_t indices[] = {2, 1, 3};
static struct profile_stack stacks[] = {{.first_index = 0, .depth = 2},
					{.first_index = 2, .depth = 1, .incomplete = S_INCOMPLETE}};
static struct profile_process processes[] = {{.name = S_DEMO}, {.name = S_ODD}};
static struct profile_sample samples[] = {
	{.process = 0, .thread = S_WORKER, .stack = 0, .count = 3, .value = 3000},
	{.process = 1, .thread = S_ODD, .stack = 1, .count = 1, .value = 1000},
};

static void make_report(struct buffer *out, uint8_t number, int64_t start_ms)
{
	struct profile profile = {
		.type = "on-cpu",
		.unit = "nanoseconds",
		.start_ns = (uint64_t)start_ms * 1000000,
		.duration_ns = 10000000000,
		.period_ns = 1000,
		.id = {number, 1},
		.strings = strings,
		.string_count = STRINGS,
		.mappings = mappings,
		.mapping_count = 2,
		.frames = frames,
		.frame_count = 4,
		.frame_indices = indices,
		.frame_index_count = 3,
		.stacks = stacks,
		.stack_count = 2,
		.processes = processes,
		.process_count = 2,
		.samples = samples,
		.sample_count = 2,
	};
	struct profile_counter counters[] = {{"taken", 6}, {"idle", 100}, {"lost.ring_full", 2}};
	struct profile_host host = {
		.host = "h1",
		.kernel_release = "6.1",
		.architecture = "x86_64",
		.agent_version = "0.1",
		.agent_id = {number, 7},
		.report_seq = 1,
		.rate_hz = 19,
		.start_ns = profile.start_ns,
		.duration_ns = profile.duration_ns,
		.counters = counters,
		.counter_count = 3,
	};
	struct error err = {0};

	buffer_init(out, 1 << 20);
	if (!CHECK(otlp_encode(&profile, &host, out, NULL, &err) &&
		   otlp_encode_host(&host, out, &err)))
		printf("# %s\n", err.message);
}

/* ---- questions ---- */

/* A question about the minute of the samples. */
static struct reply ask(const char *path)
{
	char target[1000];

	snprintf(target, sizeof(target), "%s%cfrom=%lld&until=%lld", path,
		 strchr(path, '?') ? '&' : '?', (long long)taken_ms, (long long)taken_ms + 30000);
	return client_ask(port, "GET", target, "", NULL, 0);
}

static void check_answer(const char *path, const char *want)
{
	struct reply reply = ask(path);

	CHECK_NUMBER(reply.status, 200);
	CHECK_TEXT(reply.body, want);
	reply_release(&reply);
}

static void check_holds(const char *path, const char *part)
{
	struct reply reply = ask(path);

	if (!CHECK(reply.status == 200 && strstr(reply.body, part)))
		printf("# %s: %d %s\n# has no %s\n", path, reply.status, reply.body, part);
	reply_release(&reply);
}

static void test_posting(void)
{
	struct buffer body, packed;
	struct reply reply;
	char message[200];
	int64_t rejected = -1;

	make_report(&body, 1, taken_ms);
	for (int i = 0; i < 2; i++) { /* the second is a retry */
		reply = client_ask(port, "POST", "/v1development/profiles", PROTOBUF, body.bytes,
				   body.length);
		CHECK_NUMBER(reply.status, 200);
		CHECK_TEXT(reply_header(&reply, "Content-Type"), "application/x-protobuf");
		CHECK(otlp_decode_response(reply.body, reply.length, &rejected, message, 200));
		CHECK_NUMBER(rejected, 0);
		reply_release(&reply);
	}
	buffer_release(&body);

	make_report(&body, 2, taken_ms - INT64_C(8) * 86400000); /* beyond the retention */
	buffer_init(&packed, 1 << 20);
	gzip_compress(body.bytes, body.length, 6, &packed, NULL);
	reply = client_ask(port, "POST", "/v1development/profiles",
			   PROTOBUF "Content-Encoding: gzip\r\n", packed.bytes, packed.length);
	CHECK_NUMBER(reply.status, 400); /* all of an agent's report: it counts what it lost */
	CHECK_TEXT(reply_header(&reply, "Content-Type"), "application/x-protobuf");
	CHECK(strstr(reply.body, "older than what is kept"));
	reply_release(&reply);
	buffer_release(&packed);
	buffer_release(&body);
}

static void test_answers(void)
{
	check_answer("/api/v1/flamegraph?format=folded",
		     "demo;app+0x1234;handle_it 3000\n"
		     "redis;[incomplete: code without frame pointers];[anon] 1000\n");
	check_answer("/api/v1/flamegraph?format=folded&group_by=host,thread&value=samples",
		     "h1;worker;app+0x1234;handle_it 3\n"
		     "h1;redis;[incomplete: code without frame pointers];[anon] 1\n");
	check_answer("/api/v1/flamegraph?format=folded&match=%7Bprocess%3D~%22de.*%22%7D&group_by=",
		     "app+0x1234;handle_it 3000\n");
	check_answer("/api/v1/flamegraph?format=folded&match=%7Bthread%3D%22redis%22%7D&group_by=",
		     "[incomplete: code without frame pointers];[anon] 1000\n");
	check_answer("/api/v1/flamegraph?format=folded&root=demo%3Bapp%2B0x1234",
		     "demo;app+0x1234;handle_it 3000\n");
	check_holds("/api/v1/flamegraph",
		    "\"accounting\":{\"value\":4000,\"error\":4383,\"samples\":4,\"taken\":6,"
		    "\"lost\":2,\"lost_by\":{"
		    "\"ring_full\":2,\"unexplained\":0},\"unwind_incomplete\":1,"
		    "\"incomplete_by\":[{\"reason\":\"code without frame pointers\",\"samples\":1,"
		    "\"modules\":[]}],\"nameless_value\":1000,\"nameless_error\":2772,\"nameless_modules\":0,"
		    "\"unsymbolized\":4,"
		    "\"cut\":0,\"hosts\":1,\"reported_ms\":10000,\"resolution_ms\":");
	check_holds("/api/v1/flamegraph?match=%7Bprocess%3D%22demo%22%7D",
		    "\"accounting\":{\"value\":3000,\"error\":3920,\"samples\":3,\"taken\":6,"
		    "\"lost\":2,\"lost_by\":{"
		    "\"ring_full\":2,\"unexplained\":0},\"unwind_incomplete\":0,"
		    "\"incomplete_by\":[],\"nameless_value\":0,\"nameless_error\":0,\"nameless_modules\":0,"
		    "\"unsymbolized\":3,"
		    "\"cut\":0,\"hosts\":1,\"reported_ms\":10000,\"resolution_ms\":");
	check_holds("/api/v1/flamegraph?max_nodes=2", "\"cut\":4000");
	check_holds("/api/v1/flamegraph", "{\"name\":\"app\",\"build_id\":\"abcd000000000000");
	check_holds("/api/v1/top",
		    "{\"name\":\"handle;it\",\"signature\":\"handle;it (app.py)\",\"file\":\"app.py\","
		    "\"line\":42,\"module\":\"\","
		    "\"build_id\":\"\",\"language\":\"Python\",\"kind\":\"interpreter\","
		    "\"self\":3000,\"total\":3000,"
		    "\"self_error\":3920,\"total_error\":3920}");
	check_answer("/api/v1/types",
		     "{\"types\":[{\"name\":\"on-cpu\",\"unit\":\"nanoseconds\",\"samples\":4,"
		     "\"value\":4000}]}\n");
	check_holds("/api/v1/labels", "{\"name\":\"process\",\"values\":2}");
	check_answer("/api/v1/labels/process", "{\"values\":[{\"value\":\"demo\",\"samples\":3},{"
					       "\"value\":\"redis\",\"samples\":1}]}\n");
	check_holds("/api/v1/labels/thread", "{\"value\":\"worker\",\"samples\":3}");
	check_answer("/api/v1/labels/nothing", "{\"values\":[]}\n");
	check_holds("/api/v1/modules", "\"unsymbolized_share\":0.750000");
	check_holds("/api/v1/modules", "\"state\":\"missing\",\"reason\":\"");
}

static void test_agents(void)
{
	struct reply reply = client_ask(port, "GET", "/api/v1/agents", "", NULL, 0);

	CHECK(strstr(reply.body,
		     "{\"agents\":[{\"host\":\"h1\",\"version\":\"0.1\",\"kernel\":\"6.1\","
		     "\"rate_hz\":19,\"last_seen\":"));
	CHECK(strstr(reply.body, "\"taken\":6,\"lost\":2,\"lost_by\":{\"ring_full\":2}"));
	CHECK(strstr(reply.body, "],\"now\":1"));
	reply_release(&reply);
}

static void test_errors(void)
{
	static const struct {
		const char *method, *target, *headers, *body;
		int status;
		const char *part;
	} rows[] = {
		{"POST", "/v1development/profiles", PROTOBUF, "\xff\xff\xff", 400, "OTLP"},
		{"POST", "/v1development/profiles", PROTOBUF "Content-Encoding: gzip\r\n", "x", 400,
		 "gzip"},
		{"POST", "/v1development/profiles", "Content-Type: application/json\r\n", "{}", 415,
		 "protobuf"},
		{"POST", "/v1development/profiles", "", "{}", 415, "protobuf"},
		{"GET", "/v1development/profiles", "", NULL, 405, "POST"},
		{"GET", "/api/v1/nothing", "", NULL, 404, "/api/v1/flamegraph"},
		{"POST", "/api/v1/flamegraph", "", "", 405, "GET, HEAD"},
		{"GET", "/api/v1/flamegraph?from=x", "", NULL, 422, "'from'"},
		{"GET", "/api/v1/flamegraph?until=x", "", NULL, 422, "'until'"},
		{"GET", "/api/v1/flamegraph?from=now&until=now-1s", "", NULL, 422, "'from'"},
		{"GET", "/api/v1/flamegraph?type=cpu", "", NULL, 422, "'type'"},
		{"GET", "/api/v1/flamegraph?match=x", "", NULL, 422, "'match'"},
		{"GET", "/api/v1/flamegraph?group_by=a,,b", "", NULL, 422, "'group_by'"},
		{"GET", "/api/v1/flamegraph?focus=(", "", NULL, 422, "'focus'"},
		{"GET", "/api/v1/flamegraph?ignore=(", "", NULL, 422, "'ignore'"},
		{"GET", "/api/v1/flamegraph?hide=(", "", NULL, 422, "'hide'"},
		{"GET", "/api/v1/flamegraph?invert=yes", "", NULL, 422, "'invert'"},
		{"GET", "/api/v1/flamegraph?demangle=x", "", NULL, 422, "'demangle'"},
		{"GET", "/api/v1/flamegraph?value=x", "", NULL, 422, "'value'"},
		{"GET", "/api/v1/flamegraph?max_nodes=1000001", "", NULL, 422, "'max_nodes'"},
		{"GET", "/api/v1/flamegraph?max_nodes=1x", "", NULL, 422, "'max_nodes'"},
		{"GET", "/api/v1/flamegraph?format=xml", "", NULL, 422, "'format'"},
		{"GET", "/api/v1/flamegraph?form=json", "", NULL, 422, "'form'"},
		{"GET", "/api/v1/flamegraph?type=on-cpu&type=on-cpu", "", NULL, 422, "'type'"},
		{"GET", "/api/v1/top?limit=0", "", NULL, 422, "'limit'"},
		{"GET", "/api/v1/top?max_nodes=5", "", NULL, 422, "'max_nodes'"},
		{"GET", "/api/v1/labels?x=1", "", NULL, 422, "'x'"},
		{"GET", "/api/v1/labels/a%20b", "", NULL, 422, "label name"},
		{"GET", "/api/v1/agents?x=1", "", NULL, 422, "'x'"},
		{"POST", "/api/v1/modules", "Content-Type: text/plain\r\n", "zz gnu x", 422,
		 "line 1"},
		{"POST", "/api/v1/modules", "Content-Type: text/plain\r\n", "abcd1234 md5 x", 422,
		 "line 1"},
		{"POST", "/api/v1/modules", "", "abcd1234 gnu x", 415, "text/plain"},
		{"PUT", "/api/v1/modules/zz", "", "x", 422, "build-id"},
		{"POST", "/api/v1/modules/zz/fetch", "", "", 422, "build-id"},
		{"POST", "/api/v1/modules/abcd1234abcd/fetch", "", "", 404, "nothing is known"},
		{"POST", "/api/v1/modules/abcd1234abcd/fetch", "Origin: http://evil.example\r\n",
		 "", 403, "other sites"},
		{"PUT", "/api/v1/modules/abcd1234", "", "no ELF file", 422, "ELF"},
		{"PUT", "/api/v1/modules/abcd1234", "", "", 422, " "},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct reply reply = client_ask(port, rows[i].method, rows[i].target,
						rows[i].headers, rows[i].body,
						rows[i].body ? strlen(rows[i].body) : 0);
		bool is_otlp = strstr(rows[i].target, "profiles");

		if (!CHECK(reply.status == rows[i].status &&
			   (is_otlp || !strncmp(reply.body, "{\"error\":{\"code\":\"", 18)) &&
			   strstr(reply.body + (is_otlp ? 2 : 0), rows[i].part)))
			printf("# %s: %d %s\n", rows[i].target, reply.status, reply.body);
		reply_release(&reply);
	}
}

static void test_modules(void)
{
	static const char text[] =
		"0102030405060708 gnu some file\r\n\n1112131415161718 htlhash x\n";
	struct reply reply = client_ask(port, "POST", "/api/v1/modules",
					"Content-Type: text/plain\r\n", text, sizeof(text) - 1);

	CHECK_NUMBER(reply.status, 200);
	CHECK_TEXT(reply_header(&reply, "Content-Type"), "text/plain; charset=utf-8");
	CHECK_TEXT(reply.body, "0102030405060708\n1112131415161718\n");
	reply_release(&reply);
	check_holds("/api/v1/modules", "\"name\":\"some file\"");
	check_holds("/api/v1/modules", "\"debuginfod\":[]");
	reply = client_ask(port, "POST", "/api/v1/modules/0102030405060708/fetch", "", "", 0);
	CHECK_NUMBER(reply.status, 202);
	CHECK_TEXT(reply.body, "{\"has_symbol_dirs\":0,\"debuginfod\":[]}\n");
	reply_release(&reply);
}

/* Prometheus' text format: every sample follows a HELP and a TYPE of its name. */
static void test_metrics(void)
{
	struct reply reply = client_ask(port, "GET", "/metrics", "", NULL, 0);
	char type[100] = "", help[100] = "", *rest = reply.body;
	static const char *const parts[] = {"_bucket", "_sum", "_count"};
	bool ok = true;

	CHECK_TEXT(reply_header(&reply, "Content-Type"),
		   "text/plain; version=0.0.4; charset=utf-8");
	CHECK(strstr(reply.body, "farflame_server_build_info{version=\""));
	CHECK(strstr(reply.body, "\nfarflame_server_samples_total 4\n"));
	CHECK(strstr(reply.body, "\nfarflame_server_profiles_duplicate_total "));
	for (char *line = strsep(&rest, "\n"); line && *line; line = strsep(&rest, "\n")) {
		size_t length = strcspn(line, " {");

		if (sscanf(line, "# HELP %99s", help) == 1 ||
		    sscanf(line, "# TYPE %99s", type) == 1)
			continue;
		for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) /* of a histogram */
			if (length > strlen(type) &&
			    !strncmp(line + strlen(type), parts[i], length - strlen(type)))
				length = strlen(type);
		ok &= strlen(type) == length && !strncmp(line, type, length) && !strcmp(type, help);
	}
	CHECK(ok);
	reply_release(&reply);
}

static void test_page(void)
{
	struct reply reply = client_ask(port, "GET", "/", "", NULL, 0);
	char headers[100];
	size_t length = reply.length;

	CHECK(reply.status == 200 && strstr(reply.body, "<html"));
	CHECK(strstr(reply_header(&reply, "Content-Security-Policy"), "default-src 'none'"));
	CHECK_TEXT(reply_header(&reply, "X-Content-Type-Options"), "nosniff");
	snprintf(headers, sizeof(headers), "If-None-Match: %s\r\n", reply_header(&reply, "ETag"));
	reply_release(&reply);
	reply = client_ask(port, "GET", "/", "Accept-Encoding: gzip\r\n", NULL, 0);
	CHECK_TEXT(reply_header(&reply, "Content-Encoding"), "gzip");
	CHECK(reply.length < length);
	reply_release(&reply);
	reply = client_ask(port, "GET", "/", headers, NULL, 0);
	CHECK_NUMBER(reply.status, 304);
	CHECK_NUMBER(reply.length, 0);
	reply_release(&reply);
	reply = client_ask(port, "GET", "/openapi.yaml", "", NULL, 0);
	CHECK(reply.status == 200 && strstr(reply.body, "openapi: 3"));
	reply_release(&reply);
	reply = client_ask(port, "GET", "/readyz", "", NULL, 0);
	CHECK_NUMBER(reply.status, 200);
	reply_release(&reply);
}

static void test_import(void)
{
	char path[100];
	struct buffer body, packed;
	struct error err = {0};
	FILE *file;

	snprintf(path, sizeof(path), "%s/report.otlp.gz", directory);
	make_report(&body, 9, taken_ms);
	buffer_init(&packed, 1 << 20);
	gzip_compress(body.bytes, body.length, 6, &packed, NULL);
	file = fopen(path, "wb");
	fwrite(packed.bytes, 1, packed.length, file);
	fclose(file);
	CHECK(api_import(&api, path, &err));
	CHECK(api_import(&api, path, &err)); /* the same again counts once */
	check_holds("/api/v1/types", "\"samples\":8");
	file = fopen(path, "wb");
	fwrite(packed.bytes, 1, packed.length / 2, file);
	fclose(file);
	CHECK(!api_import(&api, path, &err));
	CHECK(strstr(err.message, path));
	err = (struct error){0};
	CHECK(!api_import(&api, "/nonexistent", &err));
	CHECK(strstr(err.message, "/nonexistent: No such file"));
	buffer_release(&packed);
	buffer_release(&body);
}

/* The id came first without its htlhash, now with it: still one module, and the alias is known. */
static void test_htlhash_told_later(void)
{
	struct module_row row;
	struct arena arena;
	struct buffer body;
	struct reply reply;
	char *module;

	arena_init(&arena, 1 << 20);
	build_id_parse(&mappings[1].htlhash, "00112233445566778899aabbccddeeff", 32);
	CHECK(!symbols_module(api.symbols, &mappings[1].htlhash, &arena, &row, NULL));
	make_report(&body, 9, taken_ms);
	reply = client_ask(port, "POST", "/v1development/profiles", PROTOBUF, body.bytes,
			   body.length);
	CHECK_NUMBER(reply.status, 200);
	reply_release(&reply);
	buffer_release(&body);
	CHECK(symbols_module(api.symbols, &mappings[1].htlhash, &arena, &row, NULL) &&
	      build_id_equal(&row.id, &mappings[1].gnu));
	reply = client_ask(port, "GET", "/api/v1/modules", "", "", 0);
	module = strstr(reply.body, "\"build_id\":\"abcd000000000000");
	CHECK(module && !strstr(module + 1, "\"build_id\":\"abcd000000000000"));
	reply_release(&reply);
	arena_release(&arena);
}

int main(int argc, char **argv)
{
	symbol_worker_main(argc, argv);
	log_set_level(LOG_ERROR);
	taken_ms = (unix_time_ms() / 60000 - 2) * 60000;
	if (!CHECK(mkdtemp(directory)) || !CHECK(start()))
		return checks_done();
	test_posting();
	test_answers();
	test_agents();
	test_errors();
	test_modules();
	test_metrics();
	test_page();
	stop();
	if (CHECK(start())) { /* what was acknowledged is there again */
		test_answers();
		test_import();
		test_htlhash_told_later();
		stop();
	}
	remove_directory();
	return checks_done();
}
