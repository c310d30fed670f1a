/* SPDX-License-Identifier: Apache-2.0 */
/* Frames in words among native ones as frames that are counted: the calls of compiled code, what is
 * the runtime's, what has no room or no name. Names are made up; runtimes/hotspot_codes.h makes
 * real ones. */
#include "node-agent/stacks/java_frames.h"

#include <string.h>

#include "bpf/hotspot_frames.h"
#include "tests/check.h"

enum { LIBJVM = 7, OTHER = 8 };

static bool has_layout = true;

bool runtimes_hotspot_layout(const struct runtimes *runtimes, const struct process_key *process,
			     struct hotspot_layout *layout)
{
	(void)runtimes;
	CHECK(process->tgid == 99);
	*layout = (struct hotspot_layout){.version = 17};
	return has_layout;
}

bool runtimes_has_hotspot(const struct runtimes *runtimes, const struct process_key *process)
{
	(void)runtimes;
	return process->tgid == 99 && has_layout;
}

bool runtimes_hotspot_place(const struct runtimes *runtimes, const struct process_key *process,
			    struct hotspot_place *place)
{
	(void)runtimes, (void)process;
	*place = (struct hotspot_place){.unloads_at = 0x5000};
	return has_layout;
}

bool runtimes_is_hotspot_file(const struct runtimes *runtimes, uint32_t executable)
{
	(void)runtimes;
	return executable == LIBJVM;
}

/* --- names: the second word says how many calls; 0: it is gone --- */

struct hotspot_codes *hotspot_codes_new(size_t limit_bytes)
{
	return limit_bytes ? (struct hotspot_codes *)&has_layout : NULL;
}

void hotspot_codes_free(struct hotspot_codes *codes)
{
	(void)codes;
}

void hotspot_codes_begin(struct hotspot_codes *codes)
{
	(void)codes;
}

void hotspot_codes_counters(const struct hotspot_codes *codes, struct hotspot_codes_counters *out)
{
	(void)codes;
	*out = (struct hotspot_codes_counters){.methods = 5};
}

size_t hotspot_codes_name(struct hotspot_codes *codes, const struct hotspot_codes_process *process,
			  const uint64_t words[2], struct hotspot_named named[HOTSPOT_CALLS_MAX])
{
	static const char *const names[] = {"1", "2", "3", "4"};
	const bool is_stub = stack_frame_kind(words[0]) == STACK_FRAME_JAVA_STUB;

	CHECK(codes && process->layout->version == 17 && process->now_ns);
	CHECK(process->unloads == 7 && process->unloads_at == 0x5000);
	if (is_stub || !words[1]) {
		named[0] = (struct hotspot_named){is_stub ? "s" : NULL, "", 0, ""};
		return 1;
	}
	for (size_t i = 0; i < words[1]; i++)
		named[i] = (struct hotspot_named){names[i % 4], "A.java", 3, ""};
	return words[1];
}

/* --- stacks as letters --- */

enum { MOST = 200 };

static struct java_frames *java;
static struct counted_frame frames[MOST];
static union {
	struct sample_event event;
	uint8_t room[sizeof(struct sample_event) + MOST * 16];
} sample;

/* o another file, v libjvm, s a stub, g a method that is gone, 1 to 9 so many calls. */
static size_t put(const char *stack)
{
	uint64_t *words = (uint64_t *)sample.event.frames;
	size_t count = 0;

	memset(&sample, 0, sizeof sample);
	sample.event.tgid = 99;
	sample.event.java_unloads = 7;
	for (; stack[count]; count++) {
		const char kind = stack[count];
		const struct located_frame located = {.place = PLACE_JAVA,
						      .address = sample.event.user_count};

		if (kind == 'o' || kind == 'v') {
			frames[count] = (struct counted_frame){.kind = PROFILE_FRAME_NATIVE,
							       .mapping = kind == 'o' ? OTHER
										      : LIBJVM};
			words[sample.event.user_count++] = 0x1000;
			continue;
		}
		frames[count] = java_frame_of(&located);
		words[sample.event.user_count++] = hotspot_word(
			kind == 's' ? STACK_FRAME_JAVA_STUB : STACK_FRAME_JAVA_COMPILED, 0x2000);
		words[sample.event.user_count++] = kind == 's' || kind == 'g' ? 0 : kind - '0';
	}
	return count;
}

static char letter_of(const struct counted_frame *frame)
{
	if (frame->kind == PROFILE_FRAME_NATIVE)
		return frame->mapping == OTHER ? 'o' : 'v';
	if (frame->kind == PROFILE_FRAME_RUNTIME)
		return frame->mapping == LIBJVM ? 'm' : '?';
	if (!frame->type || strcmp(frame->type, "jvm") != 0)
		return '?';
	if (!strcmp(frame->function, "[no name]"))
		return 'n';
	return frame->function[0];
}

static const char *named(const char *stack, size_t room)
{
	static char text[MOST + 1];
	const size_t count = java_frames_name(java, &sample.event, frames, put(stack), room);

	for (size_t i = 0; i < count; i++)
		text[i] = letter_of(&frames[i]);
	text[count] = '\0';
	return text;
}

static void test_stacks(void)
{
	static const struct {
		const char *stack, *named;
	} rows[] = {
		{"ooo", "ooo"},
		{"", ""},
		{"vvo", "vvo"},               /* a thread of the machine's own */
		{"1so", "1o"},                /* the way into Java is left out … */
		{"s1", "s1"},                 /* … a stub that Java calls is not */
		{"ov2vvo", "ov12mmo"},        /* what Java calls is shown */
		{"3s2vs1svvo", "12312m1mmo"}, /* there and back */
		{"1g1", "1n1"},
	};
	struct java_frames_counters counters;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		CHECK_TEXT(named(rows[i].stack, MOST), rows[i].named);
	CHECK_TEXT(frames[0].file, "A.java");
	CHECK_NUMBER(frames[0].line, 3);
	java_frames_counters(java, &counters);
	CHECK_NUMBER(counters.frames, 1 + 2 + 2 + 6 + 3);
	CHECK_NUMBER(counters.nameless, 1);
	CHECK_NUMBER(counters.cut, 0);
	CHECK_NUMBER(counters.codes.methods, 5);
	has_layout = false;
	CHECK_TEXT(named("3s1o", MOST), "nno");
	has_layout = true;
}

/* Frames stay, whatever calls have no room. */
static void test_room(void)
{
	struct java_frames_counters counters;

	CHECK_TEXT(named("9o9o9o", 6), "1o1o1o");
	CHECK_TEXT(named("4o4o4o", 10), "1234o12o1o");
	java_frames_counters(java, &counters);
	CHECK_NUMBER(counters.cut, 24 + 5);
	put("1");
	sample.event.user_count = 1; /* its second word is not there */
	CHECK_NUMBER(java_frames_name(java, &sample.event, frames, 1, MOST), 1);
	CHECK(letter_of(&frames[0]) == 'n');
}

static size_t grouped(const char *stack, const char *thread, size_t room)
{
	const size_t put_in = put(stack);
	const size_t count = java_frames_name(java, &sample.event, frames, put_in, MOST);

	memcpy(sample.event.comm, thread, strlen(thread));
	return java_frames_group(java, &sample.event, frames, count, room);
}

static void test_groups(void)
{
	CHECK(grouped("vvo", "GC Thread#11", MOST) == 4);
	CHECK_TEXT(frames[3].function, "[GC]");
	CHECK_TEXT(frames[3].type, "jvm");
	CHECK(grouped("vvo", "C2 CompilerThre", MOST) == 4);
	CHECK_TEXT(frames[3].function, "[JIT]");
	CHECK(grouped("", "VM Thread", MOST) == 1);
	CHECK_TEXT(frames[0].function, "[VM]");
	CHECK(grouped("vvo", "GC Thread", MOST) == 3 && grouped("vvo", "worker", MOST) == 3);
	CHECK(grouped("v1o", "GC Thread#11", MOST) == 3); /* a program's own */
	CHECK(grouped("vvo", "GC Thread#11", 3) == 3);
	has_layout = false;
	CHECK(grouped("vvo", "GC Thread#11", MOST) == 3);
	has_layout = true;
}

int main(void)
{
	struct error err;

	java = java_frames_new(NULL, &err);
	test_stacks();
	test_room();
	test_groups();
	java_frames_free(java);
	java_frames_free(NULL);
	return checks_done();
}
