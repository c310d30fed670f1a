/* SPDX-License-Identifier: Apache-2.0 */
/* Java's frames in words, with names: compiled code and what is inlined into it, interpreted
 * methods, stubs; and what is gone, damaged or of another process. */
#include "node-agent/runtimes/hotspot_codes.h"

#include <stdlib.h>

#include "tests/check.h"
#include "tests/unit/runtimes/hotspot_image.h"

static struct hotspot_codes *codes;
static struct hotspot_layout layout;
static struct image image;
static const struct python_memory memory = {read_image, &image};
static struct hotspot_codes_process process;
static struct hotspot_named named[HOTSPOT_CALLS_MAX];

static void begin(unsigned version)
{
	layout = layout_of(version);
	image_fill(&image, &layout);
	image_compile(&image, &layout);
	image_stub(&image, &layout);
	process = (struct hotspot_codes_process){
		.key = {7, 1, 100}, .memory = &memory, .layout = &layout, .now_ns = 1};
	hotspot_codes_free(codes);
	codes = hotspot_codes_new(1 << 20);
}

static size_t name(uint64_t first, uint64_t second)
{
	hotspot_codes_begin(codes);
	return hotspot_codes_name(codes, &process, (const uint64_t[]){first, second}, named);
}

static size_t name_pc(uint32_t at)
{
	return name(hotspot_word(STACK_FRAME_JAVA_COMPILED, BASE + CODE + at),
		    hotspot_pointer_word(BASE + NMETHOD, (uint16_t)COMPILE_ID));
}

static struct hotspot_codes_counters counters(void)
{
	struct hotspot_codes_counters now;

	hotspot_codes_counters(codes, &now);
	return now;
}

static void check_call(const struct hotspot_named *call, uint32_t line, const char *tier)
{
	CHECK_TEXT(call->name ? call->name : "none", "a.Main$Inner.run");
	CHECK_TEXT(call->file, "Main.java");
	CHECK_NUMBER(call->line, line);
	CHECK_TEXT(call->tier, tier);
}

static void test_compiled(unsigned version)
{
	begin(version);
	CHECK_NUMBER(name_pc(16), 1);
	check_call(&named[0], 11, "C2");
	CHECK_NUMBER(name_pc(17), 2);
	check_call(&named[0], 10, "C2");
	check_call(&named[1], 11, "C2");
	CHECK_NUMBER(name_pc(32), 2);
	CHECK_NUMBER(name_pc(33), 1); /* not described: the method itself */
	check_call(&named[0], 10, "C2");
	CHECK_NUMBER(name_pc(0), 1);
	CHECK_NUMBER(name_pc(80), 1); /* in its stubs */
	const unsigned reads = image.reads;
	CHECK_NUMBER(name_pc(32), 2);
	CHECK_NUMBER(image.reads, reads); /* known */
	CHECK_NUMBER(counters().compiled, 6);
	CHECK_NUMBER(counters().methods, 1);
	process.key.tgid = 8;
	CHECK_NUMBER(name_pc(32), 2);
	CHECK(image.reads > reads);
}

static void test_others(void)
{
	const uint64_t cookie = hotspot_cookie(BASE + POOL, CODE_SIZE, 3, 4);

	begin(17);
	CHECK_NUMBER(name(hotspot_word(STACK_FRAME_JAVA_INTERPRETED, cookie),
			  hotspot_pointer_word(BASE + METHOD, 6)),
		     1);
	check_call(&named[0], 11, "interpreted");
	CHECK_NUMBER(name(hotspot_word(STACK_FRAME_JAVA_INTERPRETED, 0),
			  hotspot_pointer_word(BASE + METHOD, 6)),
		     1);
	CHECK(!named[0].name);
	CHECK_NUMBER(name(hotspot_word(STACK_FRAME_JAVA_STUB, BASE + STUB),
			  hotspot_pointer_word(BASE + STUB, 0)),
		     1);
	CHECK_TEXT(named[0].name, "a stub");
	CHECK_TEXT(named[0].tier, "stub");
}

static void test_gone(void)
{
	begin(17);
	CHECK_NUMBER(name(hotspot_word(STACK_FRAME_JAVA_COMPILED, BASE + CODE),
			  hotspot_pointer_word(BASE + NMETHOD, 1)),
		     1);
	CHECK(!named[0].name); /* another one has its place */
	CHECK_NUMBER(counters().gone, 1);
	CHECK_NUMBER(name(hotspot_word(STACK_FRAME_JAVA_INTERPRETED, 77),
			  hotspot_pointer_word(BASE + METHOD, 0)),
		     1);
	CHECK(!named[0].name);
	CHECK_NUMBER(counters().gone, 2);
	put(&image, NMETHOD + layout.nmethod_comp_level, 2, 1);
	CHECK_NUMBER(name_pc(16), 1);
	check_call(&named[0], 11, "C1 2");
}

/* What makes no sense, a byte at a time of the nmethod and what belongs to it: it may be named, and
 * by nothing that is not its own. */
static void test_damaged(void)
{
	unsigned strange = 0;

	for (size_t at = NMETHOD; at < STUB; at++) {
		for (unsigned value = 0; value < 256; value += 51) {
			begin(at % 2 ? 17 : 25);
			image.bytes[at] ^= value;
			const size_t count = name_pc(17);

			strange += count < 1 || count > HOTSPOT_CALLS_MAX;
			for (size_t i = 0; i < count; i++)
				strange += named[i].name &&
					   strcmp(named[i].name, "a.Main$Inner.run") != 0;
		}
	}
	CHECK_NUMBER(strange, 0);
	begin(25); /* a scope that is its own sender */
	image.bytes[DATA + 32 + 80 + INLINED_AT] = INLINED_AT + 1;
	CHECK_NUMBER(name_pc(17), HOTSPOT_CALLS_MAX);
	CHECK_NUMBER(counters().calls_cut, 1);
}

/* A method that another one has replaced, with nothing in its place that tells: the count of
 * unloaded classes does. */
static void test_unloaded(void)
{
	enum { COUNT = MEMORY - 8 };

	begin(17);
	process.unloads = 5;
	process.unloads_at = BASE + COUNT;
	put(&image, COUNT, 4, 8);
	CHECK_NUMBER(name_pc(16), 1);
	check_call(&named[0], 11, "C2");
	put_symbol(&image, &layout, NAME, "you");
	put(&image, COUNT, 5, 8);
	CHECK_NUMBER(name_pc(16), 1); /* of a sample from before */
	check_call(&named[0], 11, "C2");
	CHECK_NUMBER(name_pc(17), 1); /* which is not known: too late for it */
	CHECK(!named[0].name);
	CHECK_NUMBER(counters().gone, 1);
	process.unloads = 6;
	CHECK_NUMBER(name_pc(16), 1);
	CHECK_TEXT(named[0].name, "a.Main$Inner.you");
	process.unloads = 0; /* not counted: known for some seconds */
	CHECK_NUMBER(name_pc(16), 1);
	put_symbol(&image, &layout, NAME, "him");
	CHECK_NUMBER(name_pc(16), 1);
	CHECK_TEXT(named[0].name, "a.Main$Inner.you");
	process.now_ns = 20000000000;
	CHECK_NUMBER(name_pc(16), 1);
	CHECK_TEXT(named[0].name, "a.Main$Inner.him");
}

int main(void)
{
	test_compiled(8);
	test_compiled(17);
	test_compiled(25);
	test_others();
	test_gone();
	test_unloaded();
	test_damaged();
	hotspot_codes_free(codes);
	hotspot_codes_free(NULL);
	return checks_done();
}
