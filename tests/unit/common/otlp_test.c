/* SPDX-License-Identifier: Apache-2.0 */
/* What otlp_encode() writes, read by protobuf's own compiler: `protoc --decode` prints the message and
 * the test looks for what must be in it. */
#include "common/otlp.h"

#include <stdlib.h>
#include <unistd.h>

#include "tests/check.h"

static const char *strings[] = { "", "chain", "/usr/bin/chain", "worker", "code without frame pointers",
				 "fib", "fib.py", "cpython", "bad\xff name" };
static struct profile_mapping mappings[2];
static struct profile_frame frames[] = {
	{ 0 },
	{ .kind = PROFILE_FRAME_NATIVE, .mapping = 1, .address = 0x1234 },
	{ .kind = PROFILE_FRAME_NAMED, .function = 5, .file = 6, .line = 7, .type = 7 },
	{ .kind = PROFILE_FRAME_ANONYMOUS },
	{ .kind = PROFILE_FRAME_KERNEL, .mapping = 1, .address = 0x99 },
};
static uint32_t indices[] = { 4, 1, 2, 3 };
static struct profile_stack stacks[] = { { 0, 4, 4 }, { 1, 1, 0 } };
static struct profile_process processes[] = { { .name = 1, .executable = 2 }, { .name = 8 } };
static struct profile_sample samples[] = {
	{ .process = 0, .thread = 3, .stack = 0, .count = 3, .value = 30 },
	{ .process = 0, .thread = 3, .stack = 1, .count = 1, .value = 10 },
	{ .process = 1, .thread = 0, .stack = 1, .count = 2, .value = 20 },
};

static struct profile make_profile(void)
{
	build_id_parse(&mappings[1].gnu, "0102030405060708", 16);
	mappings[1].file_name = 1;
	mappings[1].start = 0x1000;
	mappings[1].limit = 0x2000;
	mappings[1].file_offset = 0x1000;
	return (struct profile){
		.type = "on-cpu", .unit = "nanoseconds", .start_ns = 1700000000000000000ull,
		.duration_ns = 10000000000ull, .period_ns = 10, .id = { 1, 2, 3, [15] = 0xff },
		.strings = strings, .string_count = sizeof strings / sizeof *strings,
		.mappings = mappings, .mapping_count = 2,
		.frames = frames, .frame_count = sizeof frames / sizeof *frames,
		.frame_indices = indices, .frame_index_count = 4,
		.stacks = stacks, .stack_count = 2,
		.processes = processes, .process_count = 2,
		.samples = samples, .sample_count = 3,
	};
}

static char *decode(const struct buffer *bytes)
{
	char path[] = "/tmp/farflame-otlp-XXXXXX", command[300];
	int fd = mkstemp(path);
	char *text = calloc(1, 1 << 20);
	FILE *pipe;

	if (fd < 0 || write(fd, bytes->bytes, bytes->length) != (ssize_t)bytes->length)
		return text;
	close(fd);
	snprintf(command, sizeof command,
		 "protoc --proto_path=schema/wire --decode="
		 "farflame.otlp.ExportProfilesServiceRequest profiles.proto < %s 2>&1", path);
	pipe = popen(command, "r");
	if (pipe && fread(text, 1, (1 << 20) - 1, pipe) == 0)
		text[0] = '\0';
	if (pipe)
		pclose(pipe);
	unlink(path);
	return text;
}

static int times(const char *text, const char *part)
{
	int count = 0;

	for (; (text = strstr(text, part)); text += strlen(part))
		count++;
	return count;
}

static void test_report(void)
{
	static const char *const names[] = { "service" }, *const values[] = { "api" };
	struct profile_counter counters[] = { { "taken", 6 }, { "lost.ring_full", 1 } };
	struct profile_host host = { .host = "h1", .kernel_release = "6.1", .architecture = "x86_64",
				     .agent_version = "0", .report_seq = 4, .rate_hz = 19,
				     .label_names = names, .label_values = values, .label_count = 1,
				     .counters = counters, .counter_count = 2 };
	struct profile profile = make_profile();
	struct buffer out;
	struct error err = { 0 };
	char *text;

	buffer_init(&out, 1 << 20);
	CHECK(otlp_encode(&profile, &host, &out, &err));
	CHECK(otlp_encode_host(&host, &out, &err));
	text = decode(&out);
	CHECK_NUMBER(times(text, "resource_profiles {"), 3); /* two processes, the agent: concatenated */
	CHECK_NUMBER(times(text, "dictionary {"), 1);
	CHECK_NUMBER(times(text, "samples {"), 3);
	CHECK(strstr(text, "string_value: \"0102030405060708\""));
	CHECK(strstr(text, "key: \"farflame.lost.ring_full\""));
	CHECK(strstr(text, "key: \"service.name\""));
	CHECK(strstr(text, "string_value: \"bad? name\""));
	CHECK(strstr(text, "profile_id: \"\\001\\002\\003"));
	CHECK(strstr(text, "\\001\\000\"")); /* the second id: the last byte carried over */
	CHECK(strstr(text, "address: 4660")); /* 0x1234 */
	CHECK(strstr(text, "values: 30"));
	CHECK(!strstr(text, "Failed"));
	/* No field that the schema does not know: protoc prints those as bare numbers. */
	CHECK(!strstr(text, "\n1: ") && !strstr(text, " 2: {"));
	free(text);
	buffer_release(&out);
}

/* Labels come after the counters: both fit. */
static void test_many_attributes(void)
{
	static const char *const names[] = { "a", "last" }, *const values[] = { "1", "2" };
	struct profile_counter counters[100];
	char counter_names[100][16];
	struct profile_host host = { .host = "h1", .kernel_release = "6.1", .architecture = "x86_64",
				     .agent_version = "0", .label_names = names,
				     .label_values = values, .label_count = 2,
				     .counters = counters, .counter_count = 100 };
	struct buffer out;
	char *text;

	for (int i = 0; i < 100; i++) {
		snprintf(counter_names[i], sizeof counter_names[i], "n%d", i);
		counters[i] = (struct profile_counter){ counter_names[i], 1 };
	}
	buffer_init(&out, 1 << 20);
	CHECK(otlp_encode_host(&host, &out, NULL));
	text = decode(&out);
	CHECK_NUMBER(times(text, "key: \"farflame.n"), 100);
	CHECK(strstr(text, "key: \"farflame.label.last\""));
	free(text);
	buffer_release(&out);
}

static void test_answers(void)
{
	struct buffer out;
	char message[64];
	int64_t rejected = -1;

	buffer_init(&out, 1000);
	CHECK(otlp_encode_response(0, NULL, &out));
	CHECK_NUMBER(out.length, 0); /* an empty body is the valid empty message */
	CHECK(otlp_decode_response("", 0, &rejected, message, sizeof message));
	CHECK_NUMBER(rejected, 0);
	CHECK(otlp_encode_response(2, "two were bad", &out));
	CHECK(otlp_decode_response(out.bytes, out.length, &rejected, message, sizeof message));
	CHECK_NUMBER(rejected, 2);
	CHECK_TEXT(message, "two were bad");
	CHECK(!otlp_decode_response("\xff\xff", 2, &rejected, message, sizeof message));
	buffer_release(&out);
}

int main(void)
{
	test_report();
	test_many_attributes();
	test_answers();
	return checks_done();
}
