/* SPDX-License-Identifier: Apache-2.0 */
/* Against a model that keeps every sample ever added as a line of text. */
#include "node-agent/aggregate/stack_counts.h"

#include "tests/check.h"

#define NAMED(name_) (&(struct counted_thread){.name = name_})

static const struct counted_process web = {
	.name = "nginx", .executable = "/usr/sbin/nginx", .service = "nginx", .pod = "p-1"};
static const struct counted_process tool = {.name = "sh", .container_id = "abc", .namespace_ = ""};

static void fill(void *context, uint32_t mapping, struct profile_mapping *row,
		 struct stack_counts_strings *strings)
{
	char name[32];

	++*(int *)context;
	snprintf(name, sizeof name, "file%u", mapping);
	row->file_name = stack_counts_text(strings, name);
	row->start = mapping;
}

static struct counted_frame native(uint32_t mapping, uint64_t address)
{
	return (struct counted_frame){
		.kind = PROFILE_FRAME_NATIVE, .mapping = mapping, .address = address};
}

/* One sample of a profile as a line: everything that tells it apart. */
static void describe(const struct profile *profile, const struct profile_sample *sample, char *out,
		     size_t room)
{
	const struct profile_process *process = &profile->processes[sample->process];
	const struct profile_stack *stack = &profile->stacks[sample->stack];
	size_t at = (size_t)snprintf(out, room, "%s/%s/%s|%s|", profile->strings[process->name],
				     profile->strings[sample->thread],
				     profile->strings[stack->incomplete],
				     profile->strings[process->container_id]);

	for (uint32_t i = 0; i < stack->depth && at < room; i++) {
		const struct profile_frame *frame =
			&profile->frames[profile->frame_indices[stack->first_index + i]];

		at += (size_t)snprintf(
			out + at, room - at, "%s+%llx%s;",
			profile->strings[profile->mappings[frame->mapping].file_name],
			(unsigned long long)frame->address, profile->strings[frame->function]);
	}
}

static void test_tables(void)
{
	struct stack_counts *counts = stack_counts_new(1 << 20, NULL);
	const struct counted_frame stack[] = {
		native(7, 0x10),
		{.kind = PROFILE_FRAME_ANONYMOUS},
		{.kind = PROFILE_FRAME_NAMED,
		 .function = "f",
		 .file = "f.py",
		 .line = 3,
		 .type = "cpython"},
		native(9, 0x10),
		native(7, 0x10),
	};
	struct profile profile = {0};
	char line[256];
	int filled = 0;

	CHECK(stack_counts_add(counts, &web, NAMED("worker"), stack, 5, NULL, 1, 10));
	CHECK(stack_counts_add(counts, &web, NAMED("worker"), stack, 5, "", 2, 20));
	CHECK(stack_counts_add(counts, &tool, NAMED("sh"), stack, 1, "why", 1, 5));
	CHECK(stack_counts_add(counts, &web, NAMED("worker"), stack, 0, NULL, 1, 1));
	CHECK_NUMBER(stack_counts_samples(counts), 5);
	CHECK(stack_counts_take(counts, fill, &filled, &profile, NULL));
	CHECK(!stack_counts_add(counts, &web, NAMED("worker"), stack, 5, NULL, 1, 10));

	CHECK_NUMBER(filled, 2);
	CHECK_NUMBER(profile.mapping_count, 3); /* 0 means none */
	CHECK_NUMBER(profile.frame_count, 5);
	CHECK_NUMBER(profile.frame_index_count, 6);
	CHECK_NUMBER(profile.stack_count, 3);
	CHECK_NUMBER(profile.process_count, 2);
	CHECK_NUMBER(profile.sample_count, 3);
	CHECK_TEXT(profile.strings[0], "");
	CHECK_NUMBER(profile.samples[0].count, 3);
	CHECK_NUMBER(profile.samples[0].value, 30);
	describe(&profile, &profile.samples[0], line, sizeof line);
	CHECK_TEXT(line, "nginx/worker/||file7+10;+0;+0f;file9+10;file7+10;");
	describe(&profile, &profile.samples[2], line, sizeof line);
	CHECK_TEXT(line, "sh/sh/why|abc|file7+10;");
	CHECK_NUMBER(profile.processes[0].label_count, 1);
	CHECK_TEXT(profile.strings[profile.label_indices[0]], "pod");
	CHECK_TEXT(profile.strings[profile.label_indices[1]], "p-1");
	CHECK_NUMBER(profile.processes[1].label_count, 0);
	stack_counts_clear(counts);
	CHECK_NUMBER(stack_counts_samples(counts), 0);
	CHECK(stack_counts_add(counts, &tool, NAMED("sh"), stack, 1, NULL, 1, 5));
	CHECK(stack_counts_take(counts, fill, &filled, &profile, NULL));
	CHECK_NUMBER(profile.sample_count, 1);
	describe(&profile, &profile.samples[0], line, sizeof line);
	CHECK_TEXT(line, "sh/sh/|abc|file7+10;");
	stack_counts_free(counts);
	stack_counts_free(NULL);
}

static uint32_t random_state = 11;

static uint32_t next_random(uint32_t below)
{
	random_state = random_state * 1664525 + 1013904223;
	return (random_state >> 8) % below;
}

enum { MODEL_LINES = 4096 };
static struct {
	char line[160];
	uint64_t count, value;
} model[MODEL_LINES];
static size_t model_lines;

static void model_add(const char *line, uint64_t count, uint64_t value)
{
	size_t i = 0;

	while (i < model_lines && strcmp(model[i].line, line) != 0)
		i++;
	if (i == model_lines)
		snprintf(model[model_lines++].line, sizeof model[0].line, "%s", line);
	model[i].count += count;
	model[i].value += value;
}

/* Few different things in many combinations; also after the tables were used before. */
static void test_against_model(struct stack_counts *counts)
{
	struct profile profile = {0};
	int ignored = 0, wrong = 0;
	char line[160];

	memset(model, 0, sizeof model);
	model_lines = 0;
	for (int i = 0; i < 5000; i++) {
		const struct counted_process *process = next_random(2) ? &web : &tool;
		const char *thread = next_random(2) ? "a" : "b";
		const char *why = next_random(4) ? "" : "why";
		struct counted_frame frames[4];
		uint32_t depth = next_random(4);
		uint64_t value = next_random(100);
		size_t at = (size_t)snprintf(line, sizeof line, "%s/%s/%s|%s|", process->name,
					     thread, why, process == &tool ? "abc" : "");

		for (uint32_t f = 0; f < depth; f++) {
			uint32_t mapping = 1 + next_random(3), address = next_random(3);

			frames[f] = native(mapping, address);
			at += (size_t)snprintf(line + at, sizeof line - at, "file%u+%x;", mapping,
					       address);
		}
		model_add(line, 1, value);
		wrong += !stack_counts_add(counts, process, NAMED(thread), frames, depth, why, 1,
					   value);
	}
	CHECK_NUMBER(stack_counts_samples(counts), 5000);
	CHECK(stack_counts_take(counts, fill, &ignored, &profile, NULL));
	CHECK_NUMBER(profile.sample_count, model_lines);
	for (size_t i = 0; i < profile.sample_count; i++) {
		const struct profile_sample *sample = &profile.samples[i];
		size_t m = 0;

		describe(&profile, sample, line, sizeof line);
		while (m < model_lines && strcmp(model[m].line, line) != 0)
			m++;
		wrong += m == model_lines || model[m].count != sample->count ||
			 model[m].value != sample->value;
		if (i)
			wrong += sample->process < sample[-1].process ||
				 (sample->process == sample[-1].process &&
				  sample->stack < sample[-1].stack);
	}
	CHECK_NUMBER(wrong, 0);
	stack_counts_clear(counts);
}

/* What is refused is refused whole: sums of what was accepted stay exact. */
static void test_limit(void)
{
	struct stack_counts *counts = stack_counts_new(64 << 10, NULL);
	uint64_t accepted = 0, refused = 0, sum = 0;
	struct profile profile = {0};
	int ignored = 0;

	for (uint64_t i = 0; i < 20000; i++) {
		struct counted_frame frames[] = {native(1, i), native(2, i / 3)};
		char thread[32];

		snprintf(thread, sizeof thread, "thread-%u", (unsigned)i % 5000);
		if (stack_counts_add(counts, &web, NAMED(thread), frames, 2, NULL, 1, 1))
			accepted++;
		else
			refused++;
	}
	CHECK(accepted > 20 && refused > 10000);
	CHECK(stack_counts_add(counts, &web, NAMED("thread-0"),
			       (struct counted_frame[]){native(1, 0), native(2, 0)}, 2, NULL, 1,
			       1)); /* known: needs no room */
	CHECK_NUMBER(stack_counts_samples(counts), accepted + 1);
	CHECK(stack_counts_take(counts, fill, &ignored, &profile, NULL));
	for (size_t i = 0; i < profile.sample_count; i++)
		sum += profile.samples[i].count;
	CHECK_NUMBER(sum, accepted + 1);
	stack_counts_clear(counts);
	CHECK(stack_counts_add(counts, &tool, NAMED("x"), NULL, 0, NULL, 1, 1));
	stack_counts_free(counts);
	CHECK(!stack_counts_new(16, NULL));
}

/* Each sample keeps its own times whatever comes between, newest first. */
static void test_times(void)
{
	struct stack_counts *counts = stack_counts_new(1 << 20, NULL);
	const struct counted_frame frame = native(1, 0x10);
	struct profile profile = {0};
	uint64_t sum = 0, all = 0;
	int ignored = 0, added = 0;

	for (uint64_t i = 1; i <= 300; i++) {
		CHECK(stack_counts_add(counts, &web, NAMED(i % 3 ? "often" : "seldom"), &frame, 1,
				       NULL, 1, 1));
		stack_counts_add_time(counts, 1000 + i);
	}
	CHECK(stack_counts_take(counts, fill, &ignored, &profile, NULL));
	CHECK_NUMBER(profile.sample_count, 2);
	for (size_t i = 0; i < profile.sample_count; i++) {
		const struct profile_sample *sample = &profile.samples[i];
		bool is_often = !strcmp(profile.strings[sample->thread], "often");
		uint64_t last = UINT64_MAX;

		CHECK_NUMBER(sample->time_count, is_often ? 200 : 100);
		CHECK_NUMBER(sample->time_count, sample->count);
		for (uint32_t at = sample->first_time; at; at = profile.times[at].next) {
			uint64_t time = profile.times[at].time_ns;

			CHECK(time < last && ((time - 1000) % 3 != 0) == is_often);
			last = time;
			sum += time - 1000;
			all++;
		}
	}
	CHECK_NUMBER(all, 300);
	CHECK_NUMBER(sum, 300 * 301 / 2);
	stack_counts_clear(counts);
	stack_counts_add_time(counts, 5); /* there is no sample that it could belong to */
	CHECK_NUMBER(stack_counts_lost_times(counts), 1);
	for (int i = 0; i < 100000; i++) {
		added += stack_counts_add(counts, &web, NAMED("same"), &frame, 1, NULL, 1, 1);
		stack_counts_add_time(counts, (uint64_t)i);
	}
	CHECK_NUMBER(added, 100000);
	CHECK(stack_counts_lost_times(counts) > 1000); /* 1 MiB is full; every sample is there */
	CHECK_NUMBER(stack_counts_samples(counts), 100000);
	stack_counts_free(counts);
}

/* A sample is its thread's and its request's own; equal attributes are kept once. */
static void test_requests(void)
{
	struct stack_counts *counts = stack_counts_new(1 << 20, NULL);
	const struct counted_frame frame = native(1, 0x10);
	const struct counted_attribute routes[] = {{"http.route", "/a"}, {"http.route", "/b"}};
	const struct counted_attribute own[] = {{"service.name", "shop"}};
	struct counted_process process = web;
	struct profile profile = {0};
	uint64_t found = 0;
	int ignored = 0;

	process.attributes = own;
	process.attribute_count = 1;
	for (uint32_t i = 0; i < 240; i++) {
		struct counted_thread thread = {.name = "same", .id = 10 + i % 4};

		if (i % 3) {
			thread.link.trace_id[0] = (uint8_t)(i % 3);
			thread.attributes = &routes[i % 3 - 1];
			thread.attribute_count = 1;
		}
		CHECK(stack_counts_add(counts, &process, &thread, &frame, 1, NULL, 1, 1));
	}
	CHECK(stack_counts_take(counts, fill, &ignored, &profile, NULL));
	CHECK_NUMBER(profile.sample_count, 12); /* 4 threads, of which each had 3 states */
	CHECK_NUMBER(profile.stack_count, 1);
	CHECK_NUMBER(profile.process_count, 1);
	CHECK_NUMBER(profile.link_count, 3); /* 0 means none */
	CHECK_NUMBER(profile.attribute_set_count, 4);
	CHECK_NUMBER(profile.attribute_count, 3);
	for (size_t i = 0; i < profile.sample_count; i++) {
		const struct profile_sample *sample = &profile.samples[i];
		const uint8_t trace = profile.links[sample->link].trace_id[0];
		const struct profile_attribute_set *set =
			&profile.attribute_sets[sample->attributes];

		CHECK_NUMBER(sample->count, 20);
		CHECK(sample->thread_id >= 10 && sample->thread_id < 14);
		CHECK_NUMBER(set->count, trace ? 1 : 0);
		if (set->count)
			CHECK_TEXT(profile.strings[profile.attributes[profile.attribute_indices
									      [set->first_index]]
							   .value],
				   trace == 1 ? "/a" : "/b");
		found |= UINT64_C(1) << (sample->thread_id - 10) * 3 << trace;
	}
	CHECK_NUMBER(found, 0xfff);
	CHECK_NUMBER(profile.attribute_sets[profile.processes[0].attributes].count, 1);
	stack_counts_clear(counts);
	CHECK_NUMBER(stack_counts_lost_attributes(counts), 0);
	for (int i = 0; i < 40000; i++) { /* many of them push out no sample */
		char text[64];
		const struct counted_attribute many = {"id", text};
		const struct counted_thread thread = {.attributes = &many, .attribute_count = 1};

		snprintf(text, sizeof text, "%060d", i);
		if (i >= 20000)
			CHECK(stack_counts_add(counts, &web, NAMED("t"), &frame, 1, NULL, 1, 1));
		else
			found += stack_counts_add(counts, &web, &thread, &frame, 1, NULL, 1, 1);
	}
	CHECK_NUMBER(found, 0xfff + 20000);
	CHECK(stack_counts_lost_attributes(counts) > 1000);
	stack_counts_free(counts);
}

int main(void)
{
	struct stack_counts *counts = stack_counts_new(4 << 20, NULL);

	test_tables();
	test_against_model(counts);
	test_against_model(counts);
	test_against_model(counts);
	stack_counts_free(counts);
	test_limit();
	test_times();
	test_requests();
	return checks_done();
}
