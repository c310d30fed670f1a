/* SPDX-License-Identifier: Apache-2.0 */
/* What the reader refuses, what it leaves out, and which sentence it gives; bodies written with
 * protobuf-c. */
#include "tests/check.h"

#include <stdlib.h>

#include "schema/wire/profiles.pb-c.h"
#include "symbol-server/ingest/ingest.h"

#define MESSAGE(name_) Farflame__Otlp__##name_

static const int64_t now_ms = 1795222560000;

/* A foreign sender's request with two profiles of one sample each; tests change it before sending.
 */
struct body {
	MESSAGE(ExportProfilesServiceRequest) request;
	MESSAGE(ProfilesDictionary) dictionary;
	MESSAGE(ResourceProfiles) resource, *resources[1];
	MESSAGE(ScopeProfiles) scope, *scopes[1];
	MESSAGE(Profile) profile[2], *profiles[2];
	MESSAGE(Sample) sample[2], *samples[2][1];
	MESSAGE(ValueType) type, period_type;
	MESSAGE(Stack) stack[2], *stacks[2];
	MESSAGE(Location) location[2], *locations[2];
	MESSAGE(Mapping) mapping[2], *mappings[2];
	char *strings[8];
	int32_t frames[1];
	int64_t values[1];
};

static void body_start(struct body *body)
{
	static const char *const strings[] = {"",        "samples",  "count",  "cpu", "nanoseconds",
					      "libx.so", "\xff\xfe", "off_cpu"};

	memset(body, 0, sizeof *body);
	farflame__otlp__export_profiles_service_request__init(&body->request);
	farflame__otlp__profiles_dictionary__init(&body->dictionary);
	farflame__otlp__resource_profiles__init(&body->resource);
	farflame__otlp__scope_profiles__init(&body->scope);
	farflame__otlp__value_type__init(&body->type);
	farflame__otlp__value_type__init(&body->period_type);
	body->frames[0] = 1;
	body->values[0] = 3;
	for (size_t i = 0; i < sizeof strings / sizeof *strings; i++)
		body->strings[i] = (char *)strings[i];
	body->type.type_strindex = 1;
	body->type.unit_strindex = 2;
	body->period_type.type_strindex = 3;
	body->period_type.unit_strindex = 4;
	for (int i = 0; i < 2; i++) {
		farflame__otlp__profile__init(&body->profile[i]);
		farflame__otlp__sample__init(&body->sample[i]);
		farflame__otlp__stack__init(&body->stack[i]);
		farflame__otlp__location__init(&body->location[i]);
		farflame__otlp__mapping__init(&body->mapping[i]);
		body->profiles[i] = &body->profile[i];
		body->samples[i][0] = &body->sample[i];
		body->stacks[i] = &body->stack[i];
		body->locations[i] = &body->location[i];
		body->mappings[i] = &body->mapping[i];
		body->profile[i].sample_type = &body->type;
		body->profile[i].period_type = &body->period_type;
		body->profile[i].period = 1000;
		body->profile[i].time_unix_nano = (uint64_t)now_ms * 1000000;
		body->profile[i].samples = body->samples[i];
		body->profile[i].n_samples = 1;
		body->sample[i].stack_index = 1;
		body->sample[i].values = body->values;
		body->sample[i].n_values = 1;
	}
	body->stack[1].location_indices = body->frames;
	body->stack[1].n_location_indices = 1;
	body->location[1].mapping_index = 1;
	body->location[1].address = 0x1234;
	body->mapping[1].filename_strindex = 5;
	body->mapping[1].memory_start = 0x1000;
	body->mapping[1].memory_limit = 0x9000;
	body->request.dictionary = &body->dictionary;
	body->request.resource_profiles = body->resources;
	body->request.n_resource_profiles = 1;
	body->resources[0] = &body->resource;
	body->resource.scope_profiles = body->scopes;
	body->resource.n_scope_profiles = 1;
	body->scopes[0] = &body->scope;
	body->scope.profiles = body->profiles;
	body->scope.n_profiles = 2;
	body->dictionary.string_table = body->strings;
	body->dictionary.n_string_table = 8;
	body->dictionary.stack_table = body->stacks;
	body->dictionary.n_stack_table = 2;
	body->dictionary.location_table = body->locations;
	body->dictionary.n_location_table = 2;
	body->dictionary.mapping_table = body->mappings;
	body->dictionary.n_mapping_table = 2;
}

struct answer {
	bool accepted;
	struct arena arena;
	struct sample_batch batch;
	struct ingest_rejects rejects;
	struct error err;
};

static void send_bytes(const void *bytes, size_t length, size_t limit, struct answer *answer)
{
	memset(answer, 0, sizeof *answer);
	arena_init(&answer->arena, limit);
	answer->accepted = ingest_read(bytes, length, "192.0.2.1", now_ms, now_ms - 3600000,
				       &answer->arena, &answer->batch, &answer->rejects,
				       &answer->err);
}

/* The batch borrows from the bytes: they live until the next call. */
static void send_body(const struct body *body, struct answer *answer)
{
	static uint8_t bytes[1 << 16];
	size_t length = protobuf_c_message_pack(&body->request.base, bytes);

	send_bytes(bytes, length, 32 << 20, answer);
}

static void test_values(void)
{
	uint64_t times[3] = {(uint64_t)now_ms * 1000000, 7, 8};
	struct answer answer;
	struct body body;

	body_start(&body);
	send_body(&body, &answer);
	CHECK(answer.accepted);
	CHECK_NUMBER(answer.batch.profile_count, 2);
	CHECK_TEXT(answer.batch.profiles[0].type, "on-cpu");
	CHECK_NUMBER(answer.batch.samples[0].samples, 3);
	CHECK_NUMBER(answer.batch.samples[0].value, 3000);
	CHECK(!answer.batch.profiles[0].is_counted);
	arena_release(&answer.arena);

	body.sample[0].n_values = 0; /* timestamps only: each is one sample */
	body.sample[0].timestamps_unix_nano = times;
	body.sample[0].n_timestamps_unix_nano = 3;
	send_body(&body, &answer);
	CHECK_NUMBER(answer.batch.samples[0].samples, 3);
	CHECK_NUMBER(answer.batch.samples[0].value, 3000);
	CHECK_NUMBER(answer.batch.time_count, 3);
	CHECK_NUMBER(answer.batch.samples[0].time_count, 3);
	CHECK(answer.batch.times && !memcmp(answer.batch.times, times, sizeof times));
	CHECK_NUMBER(answer.batch.samples[1].time_count, 0);
	arena_release(&answer.arena);

	body.type.type_strindex = 7; /* off_cpu: values are nanoseconds already */
	body.type.unit_strindex = 4;
	send_body(&body, &answer);
	CHECK(answer.accepted);
	CHECK_TEXT(answer.batch.profiles[1].type, "off-cpu");
	CHECK_NUMBER(answer.batch.samples[1].value, 3);
	CHECK_NUMBER(answer.batch.samples[1].samples, 1);
	arena_release(&answer.arena);
}

static void test_addresses(void)
{
	struct answer answer;
	struct body body;

	body_start(&body);
	send_body(&body, &answer);
	CHECK_NUMBER(answer.batch.locations[1].address, 0x1234); /* an ELF address already */
	arena_release(&answer.arena);
	body.mapping[1].memory_start = 0x7f0000001000;
	body.mapping[1].memory_limit = 0x7f0000009000;
	body.mapping[1].file_offset = 0x2000;
	body.location[1].address = 0x7f0000001234;
	send_body(&body, &answer);
	CHECK_NUMBER(answer.batch.locations[1].address, 0x2234); /* a run-time address */
	arena_release(&answer.arena);
	body.mapping[1].memory_limit = 0;
	send_body(&body, &answer);
	CHECK_NUMBER(answer.batch.locations[1].address, 0x7f0000001234); /* declared to be one */
	arena_release(&answer.arena);
}

static void test_one_bad(void)
{
	struct answer answer;
	struct body body;

	body_start(&body);
	body.sample[1].stack_index = 77;
	send_body(&body, &answer);
	CHECK(answer.accepted);
	CHECK_NUMBER(answer.batch.profile_count, 1);
	CHECK_NUMBER(answer.batch.sample_count, 1);
	CHECK_NUMBER(answer.rejects.profiles, 1);
	CHECK_TEXT(answer.rejects.message, "stack 77 is outside its table of 2");
	arena_release(&answer.arena);

	body.sample[0].stack_index = -1;
	send_body(&body, &answer);
	CHECK(!answer.accepted);
	CHECK_NUMBER(answer.err.kind, ERROR_FORMAT);
	CHECK_TEXT(answer.err.message,
		   "not OTLP profiles 1.10 or newer: stack -1 is outside its table of 2");
	arena_release(&answer.arena);

	body_start(&body);
	body.profile[0].time_unix_nano += 3600ull * 1000000000;
	body.profile[1].time_unix_nano -= 7200ull * 1000000000;
	send_body(&body, &answer);
	CHECK(answer.accepted); /* the clock is wrong, the protocol is not */
	CHECK_NUMBER(answer.rejects.profiles, 2);
	CHECK_TEXT(answer.rejects.message, "a profile's time is 3600 s in the future");
	CHECK(!answer.rejects.is_all_untimely); /* nobody there who counts */
	arena_release(&answer.arena);

	body_start(&body);
	body.type.type_strindex = 5;
	send_body(&body, &answer);
	CHECK(answer.accepted);
	CHECK_TEXT(answer.rejects.message,
		   "a profile of type libx.so/count (period cpu/nanoseconds) is "
		   "not one this server knows");
	arena_release(&answer.arena);
}

static void test_refused(void)
{
	struct answer answer;
	struct body body;

	body_start(&body);
	body.request.dictionary = NULL;
	send_body(&body, &answer);
	CHECK(!answer.accepted);
	CHECK(strstr(answer.err.message, "not OTLP profiles 1.10 or newer: "));
	arena_release(&answer.arena);
	send_bytes("GET / HTTP/1.1", 14, 32 << 20, &answer);
	CHECK(!answer.accepted);
	CHECK_NUMBER(answer.err.kind, ERROR_FORMAT);
	arena_release(&answer.arena);
	send_bytes("", 0, 32 << 20, &answer);
	CHECK(answer.accepted); /* an empty message says nothing, rightly */
	CHECK_NUMBER(answer.batch.profile_count, 0);
	arena_release(&answer.arena);
}

/* Millions of empty strings: the arena's limit, not the machine's. */
static void test_limit(void)
{
	size_t length = 8 << 20;
	uint8_t *bytes = malloc(length);
	struct answer answer;
	uint8_t *at = bytes;

	*at++ = 2 << 3 | 2;
	for (uint32_t rest = (uint32_t)length - 6; rest >= 0x80; rest >>= 7)
		*at++ = (uint8_t)(rest | 0x80);
	*at++ = (uint8_t)((length - 6) >> 21);
	CHECK_NUMBER(at - bytes, 5);
	for (; at < bytes + length - 1; at += 2) {
		at[0] = 5 << 3 | 2;
		at[1] = 0;
	}
	send_bytes(bytes, length - 1, 32 << 20, &answer);
	CHECK(!answer.accepted);
	CHECK_NUMBER(answer.err.kind, ERROR_LIMIT);
	CHECK_TEXT(answer.err.message, "the request needs more than 32 MiB to be decoded");
	CHECK(answer.arena.used <= 32 << 20);
	free(bytes);
	arena_release(&answer.arena);
}

static void test_text(void)
{
	struct answer answer;
	struct body body;

	body_start(&body);
	body.mapping[1].filename_strindex = 6;
	send_body(&body, &answer);
	CHECK(answer.accepted);
	CHECK(answer.batch.module_count == 1 && answer.batch.modules[0].name.length == 6 &&
	      !memcmp(answer.batch.modules[0].name.at, "\xef\xbf\xbd\xef\xbf\xbd", 6));
	arena_release(&answer.arena);
}

static void test_deep_stack(void)
{
	static int32_t frames[3000];
	struct answer answer;
	struct body body;

	body_start(&body);
	for (int i = 0; i < 3000; i++)
		frames[i] = 1;
	body.stack[1].location_indices = frames;
	body.stack[1].n_location_indices = 3000;
	send_body(&body, &answer);
	CHECK(answer.accepted);
	CHECK_NUMBER(answer.batch.stack_count, 1); /* made once for both samples */
	CHECK_NUMBER(answer.batch.stacks[0].depth, 2049);
	CHECK_NUMBER(answer.batch.locations[answer.batch.location_indices[2048]].kind,
		     LOCATION_INCOMPLETE);
	arena_release(&answer.arena);
}

/* Without an id of its own a profile gets one of its request: the same for the same bytes. */
static void test_made_ids(void)
{
	struct answer first, again, other;
	static const uint8_t none[16];
	struct body body;

	body_start(&body);
	send_body(&body, &first);
	send_body(&body, &again);
	CHECK(memcmp(first.batch.profiles[0].id, none, 16) != 0);
	CHECK(!memcmp(first.batch.profiles[0].id, again.batch.profiles[0].id, 16));
	CHECK(memcmp(first.batch.profiles[0].id, first.batch.profiles[1].id, 16) != 0);
	CHECK(!memcmp(first.batch.profiles[0].id, first.batch.profiles[1].id, 12));
	body.profile[1].time_unix_nano++;
	send_body(&body, &other);
	CHECK(memcmp(first.batch.profiles[0].id, other.batch.profiles[0].id, 12) != 0);
	arena_release(&other.arena);
	body.profile[0].time_unix_nano = 0; /* nothing says when: it may be another one */
	send_body(&body, &other);
	CHECK(!memcmp(other.batch.profiles[0].id, none, 16));
	arena_release(&first.arena);
	arena_release(&again.arena);
	arena_release(&other.arena);
}

int main(void)
{
	test_made_ids();
	test_values();
	test_addresses();
	test_one_bad();
	test_refused();
	test_limit();
	test_text();
	test_deep_stack();
	return checks_done();
}
