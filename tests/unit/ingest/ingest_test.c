/* SPDX-License-Identifier: Apache-2.0 */
/* The in-place reader says what protobuf-c's decoding says: over a real sender's requests, over our
 * own agent's, and over mutations of both. */
#include "tests/check.h"

#include <stdio.h>

#include "common/hash_table.h"
#include "common/otlp.h"
#include "symbol-server/ingest/texts.h"
#include "tests/unit/ingest/reference.h"

enum { MUTATIONS = 300, BODY_MAX = 64 << 10 };

static const int64_t now_ms = 1795222560000;
static const int64_t oldest_ms = 1795222560000 - 86400000;

static size_t read_file(const char *path, uint8_t *bytes)
{
	FILE *file = fopen(path, "rb");
	size_t length = file ? fread(bytes, 1, BODY_MAX, file) : 0;

	if (file)
		fclose(file);
	return length;
}

/* Texts whose bytes both sides show differently by design: NUL ends protobuf-c's, invalid UTF-8 is
 * repaired by ours. */
static bool has_odd_text(const struct buffer *text)
{
	for (size_t i = 0; i < text->length; i++)
		if (!text->bytes[i] || text->bytes[i] >= 0x80)
			return true;
	return false;
}

static void show_difference(const struct buffer *ours, const struct buffer *theirs)
{
	size_t i = 0, start;

	while (i < ours->length && i < theirs->length && ours->bytes[i] == theirs->bytes[i])
		i++;
	start = i > 60 ? i - 60 : 0;
	printf("# differ at %zu of %zu and %zu\n#   ours: %.*s\n# theirs: %.*s\n", i, ours->length,
	       theirs->length, (int)(ours->length - start > 160 ? 160 : ours->length - start),
	       (const char *)ours->bytes + start,
	       (int)(theirs->length - start > 160 ? 160 : theirs->length - start),
	       (const char *)theirs->bytes + start);
}

struct outcome {
	unsigned same, refused_both, odd;
};

/* Empty when both agree, else what differs. */
static const char *compare(const uint8_t *bytes, size_t length, struct outcome *outcome)
{
	Request *request = farflame__otlp__export_profiles_service_request__unpack(NULL, length,
										   bytes);
	struct buffer ours, theirs;
	struct sample_batch batch;
	struct ingest_rejects rejects;
	struct error err = {0};
	struct arena arena;
	const char *difference = "";
	unsigned rejected = 0;
	bool accepted, wanted;

	arena_init(&arena, 32 << 20);
	buffer_init(&ours, 256 << 20);
	buffer_init(&theirs, 256 << 20);
	accepted = ingest_read(bytes, length, "192.0.2.1", now_ms, oldest_ms, &arena, &batch,
			       &rejects, &err);
	wanted = request && tell_request(request, (struct bytes){bytes, length}, "192.0.2.1",
					 now_ms, oldest_ms, &rejected, &theirs);
	if (accepted)
		tell_batch(&batch, &ours);
	if (has_odd_text(&ours) || has_odd_text(&theirs)) {
		outcome->odd++;
	} else if (accepted != wanted) {
		difference = accepted ? "accepted, protobuf-c refuses" : "refused";
		if (!accepted)
			printf("# %s\n", err.message);
	} else if (!accepted) {
		outcome->refused_both++;
	} else if (rejects.profiles != rejected) {
		difference = "another number of rejected profiles";
		printf("# %u (%s), not %u\n", rejects.profiles, rejects.message, rejected);
	} else if (ours.length != theirs.length ||
		   (ours.length && memcmp(ours.bytes, theirs.bytes, ours.length))) {
		if (rejects.labels_left_out) { /* protobuf-c ends a key at its NUL; ours drops it */
			outcome->odd++;
			goto out;
		}
		difference = "another meaning";
		show_difference(&ours, &theirs);
	} else {
		outcome->same++;
	}
out:
	if (request)
		farflame__otlp__export_profiles_service_request__free_unpacked(request, NULL);
	buffer_release(&ours);
	buffer_release(&theirs);
	arena_release(&arena);
	return difference;
}

static uint64_t random_state;

static uint32_t random_below(uint32_t limit)
{
	random_state = hash_word(random_state, 1);
	return (uint32_t)(random_state >> 16) % limit;
}

/* A bit, a byte, a run taken out, put in or copied elsewhere, or the end cut off. */
static size_t mutate(uint8_t *bytes, size_t length)
{
	uint32_t at = random_below((uint32_t)length), run = 1 + random_below(8);

	if (at + run >= length)
		return length - 1;
	switch (random_below(16)) {
	default:
		bytes[at] ^= (uint8_t)(1u << random_below(8));
		return length;
	case 1:
	case 6:
		bytes[at] = (uint8_t)random_below(256);
		return length;
	case 2:
		memmove(bytes + at, bytes + at + run, length - at - run);
		return length - run;
	case 3:
		memmove(bytes + at + run, bytes + at, length - at);
		return length + run;
	case 4:
		memmove(bytes + at, bytes + random_below((uint32_t)length - run), run);
		return length;
	case 5:
		return length - random_below((uint32_t)(length / 16) + 1);
	}
}

static void check_body(const char *what, const uint8_t *body, size_t length)
{
	static uint8_t bytes[BODY_MAX + 64];
	struct outcome outcome = {0};
	unsigned differ = 0;

	CHECK(length > 0);
	CHECK_TEXT(compare(body, length, &outcome), "");
	CHECK_NUMBER(outcome.same, 1);
	for (unsigned i = 0; i < MUTATIONS; i++) {
		size_t mutated = length;
		const char *difference;
		uint8_t *exact;

		random_state = i;
		memcpy(bytes, body, length);
		for (uint32_t n = 1 + (i % 4 == 0); n > 0; n--)
			mutated = mutate(bytes, mutated);
		exact = malloc(mutated); /* so that ASan sees every step outside */
		memcpy(exact, bytes, mutated);
		difference = compare(exact, mutated, &outcome);
		free(exact);
		if (*difference) {
			differ++;
			printf("# %s, mutation %u: %s\n", what, i, difference);
		}
	}
	CHECK_NUMBER(differ, 0);
	CHECK(outcome.same > MUTATIONS / 5);
	CHECK(outcome.refused_both > MUTATIONS / 5);
	printf("# %s: %u the same, %u refused by both, %u with odd text\n", what, outcome.same,
	       outcome.refused_both, outcome.odd);
}

/* --- our own agent's bytes --- */

static const char *strings[] = {
	"",         "main-thread", "worker", "libdemo.so",   "/usr/lib/libdemo.so",
	"vmlinux",  "go-id-text",  "fn",     "file.py",      "cpython",
	"no frame", "web",         "abc123", "k8s.pod.name", "pod-7"};

static size_t make_own_body(uint8_t *bytes)
{
	struct profile_mapping mappings[4] = {{0}};
	struct profile_frame frames[7] = {{0}};
	uint32_t frame_indices[] = {1, 2, 3, 4, 5, 6}, labels[] = {13, 14};
	struct profile_stack stacks[2] = {{0, 4, 0}, {2, 4, 10}};
	struct profile_process processes[2] = {{1, 4, 12, 11, 0, 1}, {2, 0, 0, 0, 0, 0}};
	struct profile_sample samples[3] = {
		{.thread = 1, .thread_id = 77, .count = 3, .value = 3000},
		{.thread = 2, .stack = 1, .count = 1, .value = 1001},
		{.process = 1, .count = 7, .value = 7000}};
	struct profile profile = {.type = "on-cpu",
				  .unit = "nanoseconds",
				  .start_ns = 1795222550000000000ull,
				  .duration_ns = 10000000000ull,
				  .period_ns = 1000,
				  .id = {1, 2, 3},
				  .strings = strings,
				  .string_count = sizeof strings / sizeof *strings,
				  .mappings = mappings,
				  .mapping_count = 4,
				  .frames = frames,
				  .frame_count = 7,
				  .frame_indices = frame_indices,
				  .frame_index_count = 6,
				  .stacks = stacks,
				  .stack_count = 2,
				  .processes = processes,
				  .process_count = 2,
				  .label_indices = labels,
				  .samples = samples,
				  .sample_count = 3};
	const struct profile_counter counters[] = {
		{"taken", 1000},   {"idle", 50},           {"lost.ring_full", 3},
		{"lost.queue", 4}, {"stacks.complete", 9}, {"stacks.made up tomorrow", 2}};
	const char *const label_names[] = {"env", "zone-1"};
	const char *const label_values[] = {"prod", "b"};
	struct profile_host host = {.host = "node1",
				    .kernel_release = "6.1.0",
				    .architecture = "x86_64",
				    .agent_version = "0.1.0",
				    .agent_id = {9, 8, 7},
				    .report_seq = 12,
				    .acknowledged_seq = 10,
				    .rate_hz = 19,
				    .start_ns = profile.start_ns,
				    .duration_ns = profile.duration_ns,
				    .label_names = label_names,
				    .label_values = label_values,
				    .label_count = 2,
				    .counters = counters,
				    .counter_count = 6};
	struct buffer out;
	size_t length = 0;

	mappings[1] = (struct profile_mapping){.file_name = 3,
					       .path = 4,
					       .go_id = 6,
					       .start = 0x1000,
					       .limit = 0x9000,
					       .file_offset = 0x1000};
	build_id_parse(&mappings[1].gnu, "00112233445566778899aabbccddeeff00112233", 40);
	build_id_parse(&mappings[1].htlhash, "ffeeddccbbaa99887766554433221100", 32);
	mappings[2] = (struct profile_mapping){.file_name = 5, .base = ADDRESS_KERNEL_TEXT};
	build_id_parse(&mappings[2].gnu, "aabbccdd", 8);
	mappings[3] = (struct profile_mapping){.file_name = 3, .go_id = 6};
	frames[1] = (struct profile_frame){
		.kind = PROFILE_FRAME_KERNEL, .mapping = 2, .address = 0x500};
	frames[2] = (struct profile_frame){
		.kind = PROFILE_FRAME_NATIVE, .mapping = 1, .address = 0x1234};
	frames[3] = (struct profile_frame){
		.kind = PROFILE_FRAME_NAMED, .function = 7, .file = 8, .line = 42, .type = 9};
	frames[4] = (struct profile_frame){.kind = PROFILE_FRAME_ANONYMOUS, .address = 0x7f00};
	frames[5] =
		(struct profile_frame){.kind = PROFILE_FRAME_NATIVE, .mapping = 3, .address = 9};
	frames[6] = (struct profile_frame){
		.kind = PROFILE_FRAME_RUNTIME, .mapping = 1, .address = 0x1300};
	buffer_init(&out, BODY_MAX);
	if (otlp_encode(&profile, &host, &out, NULL, NULL) && otlp_encode_host(&host, &out, NULL)) {
		memcpy(bytes, out.bytes, out.length);
		length = out.length;
	}
	buffer_release(&out);
	return length;
}

static const struct batch_location *location_at(const struct sample_batch *batch, uint32_t sample,
						uint32_t frame)
{
	const struct batch_stack *stack = &batch->stacks[batch->samples[sample].stack];

	return &batch->locations[batch->location_indices[stack->first_index + frame]];
}

/* What the agent said, read back: not told by any decoder of ours but by the numbers put in. */
static void test_own_meaning(void)
{
	static uint8_t bytes[BODY_MAX];
	size_t length = make_own_body(bytes);
	struct sample_batch batch;
	struct ingest_rejects rejects;
	struct arena arena;

	arena_init(&arena, 32 << 20);
	CHECK(ingest_read(bytes, length, "192.0.2.1", now_ms, oldest_ms, &arena, &batch, &rejects,
			  NULL));
	CHECK_NUMBER(rejects.profiles, 0);
	CHECK_NUMBER(batch.profile_count, 2);
	CHECK_NUMBER(batch.profiles[0].sample_count, 2);
	CHECK_NUMBER(batch.profiles[0].time_ms, 1795222550000);
	CHECK_NUMBER(batch.profiles[1].id[15], 1);
	CHECK_NUMBER(batch.samples[0].samples, 3);
	CHECK_NUMBER(batch.samples[0].value, 3000);
	CHECK_NUMBER(batch.stacks[batch.samples[0].stack].depth, 4);
	CHECK_NUMBER(batch.stacks[batch.samples[1].stack].depth, 5); /* and why it is incomplete */
	CHECK_NUMBER(location_at(&batch, 1, 2)->kind, LOCATION_NATIVE);
	CHECK_NUMBER(location_at(&batch, 1, 3)->kind, LOCATION_RUNTIME);
	CHECK_NUMBER(location_at(&batch, 1, 3)->address, 0x1300);
	CHECK_NUMBER(batch.counters_count, 1);
	CHECK_NUMBER(batch.counters[0].numbers.taken, 1000);
	CHECK_NUMBER(batch.counters[0].numbers.lost_count, 2);
	CHECK_NUMBER(batch.counters[0].numbers.stacks_count, 2);
	CHECK(text_is(batch.counters[0].stacks[0], "complete"));
	CHECK_NUMBER(batch.counters[0].numbers.stacks[0], 9);
	CHECK(text_is(batch.counters[0].stacks[1], "other")); /* blanks are no name */
	CHECK_NUMBER(batch.counters[0].numbers.stacks[1], 2);
	CHECK_NUMBER(batch.counters[0].numbers.duration_ms, 10000);
	CHECK_NUMBER(batch.counters[0].agent_id[1], 8);
	CHECK_NUMBER(batch.series[batch.profiles[0].series].label_count, 7);
	arena_release(&arena);
}

/* An agent's counts are of the minute of its samples, by whichever clock; where samples are refused
 * for their time, the counts that tell of it are of now. */
static void test_clocks_apart(void)
{
	static const int64_t time_ms = 1795222550000; /* make_own_body()'s */
	static const struct {
		int64_t ahead_ms;
		bool is_kept;
	} clocks[] = {
		{-3600000, true}, {0, true},      {1, true},
		{599999, true},   {600000, true}, {600001, false},
	};
	static uint8_t bytes[BODY_MAX];
	size_t length = make_own_body(bytes);

	for (size_t i = 0; i < sizeof clocks / sizeof *clocks; i++) {
		int64_t server_ms = time_ms - clocks[i].ahead_ms;
		struct sample_batch batch;
		struct ingest_rejects rejects;
		struct arena arena;

		arena_init(&arena, 32 << 20);
		CHECK(ingest_read(bytes, length, "192.0.2.1", server_ms, server_ms - 7200000,
				  &arena, &batch, &rejects, NULL));
		CHECK_NUMBER(batch.profile_count, clocks[i].is_kept ? 2 : 0);
		if (clocks[i].is_kept)
			CHECK_NUMBER(batch.profiles[0].time_ms, time_ms);
		CHECK_NUMBER(batch.counters_count, 1);
		CHECK_NUMBER(batch.counters[0].numbers.time_ms,
			     clocks[i].is_kept ? time_ms : server_ms);
		CHECK_NUMBER(batch.counters[0].numbers.received_ms, server_ms);
		arena_release(&arena);
	}
}

/* Any number of names: none is lost, those without room are "other". */
static void test_many_counters(void)
{
	static char names[50][32];
	struct profile_counter counters[50];
	struct profile_host host = {.host = "node1",
				    .kernel_release = "6.1.0",
				    .architecture = "x86_64",
				    .agent_version = "0.1.0",
				    .agent_id = {9},
				    .report_seq = 1,
				    .counters = counters,
				    .counter_count = 50};
	const struct batch_counters *read;
	struct sample_batch batch;
	struct ingest_rejects rejects;
	struct arena arena;
	struct buffer out;
	uint64_t sum = 0;

	for (int i = 0; i < 50; i++) {
		snprintf(names[i], sizeof names[i], "stacks.result_%d", i);
		counters[i] = (struct profile_counter){names[i], 1000 + i};
	}
	buffer_init(&out, BODY_MAX);
	arena_init(&arena, 32 << 20);
	CHECK(otlp_encode_host(&host, &out, NULL));
	CHECK(ingest_read(out.bytes, out.length, "192.0.2.1", now_ms, oldest_ms, &arena, &batch,
			  &rejects, NULL));
	CHECK_NUMBER(batch.counters_count, 1);
	read = &batch.counters[0];
	CHECK_NUMBER(read->numbers.stacks_count, BATCH_STACK_RESULTS);
	CHECK(text_is(read->stacks[0], "result_0"));
	CHECK(text_is(read->stacks[BATCH_STACK_RESULTS - 1], "other"));
	for (unsigned i = 0; i < read->numbers.stacks_count; i++)
		sum += read->numbers.stacks[i];
	CHECK_NUMBER(sum, 50 * 1000 + 49 * 50 / 2);
	arena_release(&arena);
	buffer_release(&out);
}

int main(void)
{
	static uint8_t bytes[BODY_MAX];

	check_body("profiler 05", bytes,
		   read_file("tests/golden/otlp/otel_profiler_19hz_05.bin", bytes));
	check_body("profiler 06", bytes,
		   read_file("tests/golden/otlp/otel_profiler_19hz_06.bin", bytes));
	check_body("our agent", bytes, make_own_body(bytes));
	test_own_meaning();
	test_clocks_apart();
	test_many_counters();
	return checks_done();
}
