/* SPDX-License-Identifier: Apache-2.0 */
/* What otlp_encode() writes, read by protobuf's own compiler: `protoc --decode` prints the message and
 * the test looks for what must be in it. */
#include "common/otlp.h"

#include <stdlib.h>
#include <unistd.h>

#include "common/otlp_message.h"
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
	CHECK(otlp_encode(&profile, &host, &out, NULL, &err));
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

/* Oldest first, as unix time; a sample without times has none. */
static void test_times(void)
{
	struct profile_host host = { .host = "h1", .agent_version = "0" };
	struct profile_time moments[] = { { 0 }, { 100, 0 }, { 250, 1 }, { 900, 2 } };
	struct profile profile = make_profile();
	struct buffer out;
	char *text;

	profile.times = moments;
	profile.time_count = 4;
	profile.time_offset_ns = 5000;
	profile.samples[1].first_time = 3;
	profile.samples[1].time_count = 3;
	buffer_init(&out, 1 << 20);
	CHECK(otlp_encode(&profile, &host, &out, NULL, NULL));
	profile.samples[1].first_time = profile.samples[1].time_count = 0;
	text = decode(&out);
	CHECK_NUMBER(times(text, "timestamps_unix_nano"), 3);
	CHECK(strstr(text, "timestamps_unix_nano: 5100\n        timestamps_unix_nano: 5250\n"
			   "        timestamps_unix_nano: 5900\n"));
	free(text);
	buffer_release(&out);
}

/* A sample's thread, request and what was published of both; what the agent knows itself, and its own
 * names, no program can say. */
static void test_requests(void)
{
	static const char *texts[] = { "", "chain", "service.name", "shop", "http.route", "/a", "host.name",
				       "evil", "farflame.agent.id" };
	struct profile_host host = { .host = "h1", .agent_version = "0" };
	struct profile_link links[] = { { { 0 }, { 0 } }, { { 'T', 'R', [15] = 'C' }, { 'S', [7] = 'P' } } };
	struct profile_attribute attributes[] = { { 2, 3 }, { 4, 5 }, { 6, 7 }, { 8, 7 } };
	uint32_t attribute_indices[] = { 0, 2, 3, 1 };
	struct profile_attribute_set sets[] = { { 0, 0 }, { 0, 3 }, { 3, 1 } };
	struct profile_process process = { .name = 1, .attributes = 1 };
	struct profile_sample own[] = {
		{ .stack = 1, .count = 1, .value = 10, .thread_id = 4711, .link = 1, .attributes = 2 },
		{ .stack = 1, .count = 1, .value = 10, .thread_id = 4710 },
	};
	struct profile profile = make_profile();
	struct buffer out;
	char *text;

	profile.strings = texts;
	profile.string_count = sizeof texts / sizeof *texts;
	profile.frame_count = profile.mapping_count = 2;
	profile.processes = &process;
	profile.process_count = 1;
	profile.samples = own;
	profile.sample_count = 2;
	indices[0] = indices[2] = indices[3] = 1;
	stacks[0].incomplete = 0;
	profile.links = links;
	profile.link_count = 2;
	profile.attributes = attributes;
	profile.attribute_count = 4;
	profile.attribute_indices = attribute_indices;
	profile.attribute_sets = sets;
	profile.attribute_set_count = 3;
	buffer_init(&out, 1 << 20);
	CHECK(otlp_encode(&profile, &host, &out, NULL, NULL));
	text = decode(&out);
	CHECK_NUMBER(times(text, "samples {"), 2);
	CHECK_NUMBER(times(text, "link_index: 1"), 1);
	CHECK(strstr(text, "trace_id: \"TR\\000\\000\\000\\000\\000\\000\\000\\000\\000\\000\\000"
			   "\\000\\000C\""));
	CHECK(strstr(text, "span_id: \"S\\000\\000\\000\\000\\000\\000P\""));
	CHECK_NUMBER(times(text, "int_value: 4711"), 1);
	CHECK_NUMBER(times(text, "\"thread.id\""), 1);
	CHECK_NUMBER(times(text, "\"http.route\""), 1);
	CHECK_NUMBER(times(text, "string_value: \"/a\""), 1);
	CHECK_NUMBER(times(text, "string_value: \"shop\""), 1);
	CHECK_NUMBER(times(text, "key: \"host.name\""), 1);
	CHECK_NUMBER(times(text, "evil"), 0);
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

/* --- the order of rows is ours to choose, the samples are not --- */

enum { MANY_MAPPINGS = 7, MANY_FRAMES = 300, MANY_STACKS = 200, MANY_SAMPLES = 500, DEEPEST = 40 };

static const char *const names_of_many[] = { "", "a", "b", "c", "d", "e", "f", "deep", "main",
					     "worker", "pool-1", "no frame pointer" };
static struct profile_mapping many_mappings[MANY_MAPPINGS];
static struct profile_frame many_frames[MANY_FRAMES];
static uint32_t many_indices[MANY_STACKS * DEEPEST];
static struct profile_stack many_stacks[MANY_STACKS];
static struct profile_process many_processes[3] = { { .name = 1 }, { .name = 2 }, { .name = 7 } };
static struct profile_sample many_samples[MANY_SAMPLES];

static uint32_t below(uint32_t limit)
{
	static uint64_t state = 88172645463325252ull; /* xorshift64, Marsaglia 2003 */

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state >> 33) % limit;
}

static void make_frame(struct profile_frame *frame)
{
	frame->kind = (enum profile_frame_kind)below(5);
	if (frame->kind == PROFILE_FRAME_NAMED) {
		*frame = (struct profile_frame){ .kind = frame->kind, .function = 1 + below(8),
						 .file = below(8), .line = below(90), .type = 3 };
	} else if (frame->kind != PROFILE_FRAME_ANONYMOUS) {
		frame->mapping = below(MANY_MAPPINGS);
		frame->address = (uint64_t)below(4000) << below(40);
	}
}

static struct profile make_many(void)
{
	struct profile profile = make_profile();
	uint32_t used = 0;

	for (uint32_t i = 1; i < MANY_MAPPINGS; i++)
		many_mappings[i] = (struct profile_mapping){ .file_name = i, .start = i << 12 };
	for (uint32_t i = 1; i < MANY_FRAMES; i++)
		make_frame(&many_frames[i]);
	for (uint32_t i = 0; i < MANY_STACKS; i++) {
		many_stacks[i] = (struct profile_stack){ used, below(DEEPEST), below(3) ? 0 : 11 };
		for (uint32_t k = 0; k < many_stacks[i].depth; k++)
			many_indices[used++] = 1 + below(MANY_FRAMES - 1);
	}
	for (uint32_t i = 0; i < MANY_SAMPLES; i++)
		many_samples[i] = (struct profile_sample){ .process = i * 3 / MANY_SAMPLES,
							   .thread = 7 + below(4),
							   .stack = below(MANY_STACKS),
							   .count = 1 + below(3),
							   .value = 10 * (1 + below(3)) };
	profile.strings = (const char **)names_of_many;
	profile.string_count = sizeof names_of_many / sizeof *names_of_many;
	profile.mappings = many_mappings;
	profile.mapping_count = MANY_MAPPINGS;
	profile.frames = many_frames;
	profile.frame_count = MANY_FRAMES;
	profile.frame_indices = many_indices;
	profile.frame_index_count = used;
	profile.stacks = many_stacks;
	profile.stack_count = MANY_STACKS;
	profile.processes = many_processes;
	profile.process_count = 3;
	profile.samples = many_samples;
	profile.sample_count = MANY_SAMPLES;
	return profile;
}

enum { LINE = 4096 };

static void put_frame(char *line, const char *file, uint64_t address, const char *function,
		      const char *path, int64_t number)
{
	size_t used = strlen(line);

	snprintf(line + used, LINE - used, " %s+%llx:%s,%s,%lld", file, (unsigned long long)address,
		 function, path, (long long)number);
}

/* One sample as it is meant. */
static void say_sample(const struct profile *profile, const struct profile_sample *sample, char *line)
{
	const struct profile_stack *stack = &profile->stacks[sample->stack];

	snprintf(line, LINE, "%s %s %s %llu %llu",
		 profile->strings[profile->processes[sample->process].name],
		 profile->strings[sample->thread], profile->strings[stack->incomplete],
		 (unsigned long long)sample->count, (unsigned long long)sample->value);
	for (uint32_t i = 0; i < stack->depth; i++) {
		const struct profile_frame *frame =
			&profile->frames[profile->frame_indices[stack->first_index + i]];

		put_frame(line, profile->strings[profile->mappings[frame->mapping].file_name],
			  frame->address, profile->strings[frame->function],
			  profile->strings[frame->file], frame->line);
	}
}

static const char *attribute(const Dictionary *dictionary, const Sample *sample, const char *key)
{
	for (size_t i = 0; i < sample->n_attribute_indices; i++) {
		const Attribute *one = dictionary->attribute_table[sample->attribute_indices[i]];

		if (!strcmp(dictionary->string_table[one->key_strindex], key))
			return one->value->string_value;
	}
	return "";
}

/* One sample as protobuf-c reads it. */
static void read_sample(const Dictionary *dictionary, const Resource *resource,
			const Sample *sample, char *line)
{
	const Stack *stack = dictionary->stack_table[sample->stack_index];
	const char *process = "";

	for (size_t i = 0; i < resource->n_attributes; i++)
		if (!strcmp(resource->attributes[i]->key, "farflame.process"))
			process = resource->attributes[i]->value->string_value;
	snprintf(line, LINE, "%s %s %s %llu %llu", process,
		 attribute(dictionary, sample, "thread.name"),
		 attribute(dictionary, sample, "farflame.incomplete"),
		 (unsigned long long)sample->values[0], (unsigned long long)sample->values[1]);
	for (size_t i = 0; i < stack->n_location_indices; i++) {
		const Location *location =
			dictionary->location_table[stack->location_indices[i]];
		const Mapping *mapping = dictionary->mapping_table[location->mapping_index];
		const Line *source = location->n_lines ? location->lines[0] : NULL;
		const Function *function =
			dictionary->function_table[source ? source->function_index : 0];

		put_frame(line, dictionary->string_table[mapping->filename_strindex],
			  location->address, dictionary->string_table[function->name_strindex],
			  dictionary->string_table[function->filename_strindex],
			  source ? source->line : 0);
	}
}

static int compare_lines(const void *a, const void *b)
{
	return strcmp(a, b);
}

static size_t read_all(const Request *request, char (*lines)[LINE])
{
	size_t count = 0;

	for (size_t i = 0; i < request->n_resource_profiles; i++) {
		const ResourceProfiles *resource = request->resource_profiles[i];
		const Profile *profile = resource->scope_profiles[0]->profiles[0];

		for (size_t k = 0; k < profile->n_samples && count < MANY_SAMPLES; k++)
			read_sample(request->dictionary, resource->resource, profile->samples[k],
				    lines[count++]);
	}
	return count;
}

/* Rows of functions that are there before, by the same two strings. */
static size_t functions_again(const Dictionary *dictionary)
{
	size_t again = 0;

	for (size_t i = 1; i < dictionary->n_function_table; i++)
		for (size_t k = 1; k < i; k++)
			again += dictionary->function_table[i]->name_strindex ==
					 dictionary->function_table[k]->name_strindex &&
				 dictionary->function_table[i]->filename_strindex ==
					 dictionary->function_table[k]->filename_strindex;
	return again;
}

static void test_samples_survive(void)
{
	static char meant[MANY_SAMPLES][LINE], read[MANY_SAMPLES][LINE];
	struct profile_host host = { .host = "h1", .agent_version = "0" };
	struct profile profile = make_many();
	struct otlp_parts parts;
	struct buffer out;
	Request *request;
	size_t differ = 0;

	buffer_init(&out, 1 << 20);
	CHECK(otlp_encode(&profile, &host, &out, &parts, NULL));
	CHECK_NUMBER(parts.count, OTLP_PARTS);
	CHECK_NUMBER(parts.ends[OTLP_PARTS - 1], out.length);
	request = farflame__otlp__export_profiles_service_request__unpack(NULL, out.length,
									  out.bytes);
	if (CHECK(request && request->dictionary)) {
		for (size_t i = 0; i < MANY_SAMPLES; i++)
			say_sample(&profile, &profile.samples[i], meant[i]);
		CHECK_NUMBER(read_all(request, read), MANY_SAMPLES);
		qsort(meant, MANY_SAMPLES, LINE, compare_lines);
		qsort(read, MANY_SAMPLES, LINE, compare_lines);
		for (size_t i = 0; i < MANY_SAMPLES; i++)
			differ += strcmp(meant[i], read[i]) != 0;
		CHECK_NUMBER(differ, 0);
		CHECK_NUMBER(functions_again(request->dictionary), 0);
		/* gzip's parts begin where the tables do: at a row's tag */
		CHECK_NUMBER(out.bytes[parts.ends[0]], 1 << 3 | 2);
		CHECK_NUMBER(out.bytes[parts.ends[1]], 2 << 3 | 2);
		CHECK_NUMBER(out.bytes[parts.ends[2]], 3 << 3 | 2);
		CHECK_NUMBER(out.bytes[parts.ends[3]], 4 << 3 | 2);
		CHECK_NUMBER(out.bytes[parts.ends[4]], 6 << 3 | 2);
		CHECK_NUMBER(out.bytes[parts.ends[5]], 7 << 3 | 2);
		farflame__otlp__export_profiles_service_request__free_unpacked(request, NULL);
	}
	buffer_release(&out);
}

int main(void)
{
	test_report();
	test_samples_survive();
	test_times();
	test_many_attributes();
	test_answers();
	test_requests(); /* last: it changes the tables */
	return checks_done();
}
