/* SPDX-License-Identifier: Apache-2.0 */
/* What lay at an address at a time: code that is replaced, moves, overlaps, and has no room. */
#include "node-agent/runtimes/jit_code.h"

#include <stdlib.h>

#include "node-agent/file_parser/jit/jit_name.h"
#include "tests/check.h"

static struct jit_chunk chunk;
static struct jit_name name;

static struct jit_entry *put(uint64_t start, uint64_t size, const char *text)
{
	struct jit_entry *entry = jit_chunk_add(&chunk, start, size);

	if (entry)
		jit_name_set(&chunk, entry, text, strlen(text));
	return entry;
}

static uint32_t add(struct jit_code *code, uint64_t from_ns, uint64_t seen_ns)
{
	uint32_t refused = jit_code_add(code, &chunk, from_ns, seen_ns);

	jit_chunk_init(&chunk);
	return refused;
}

static const char *at(const struct jit_code *code, uint64_t address, uint64_t time_ns)
{
	switch (jit_code_find(code, address, time_ns, &name)) {
	case JIT_FOUND:
		return name.function;
	case JIT_UNSURE:
		return "unsure";
	default:
		return "none";
	}
}

static void test_ends(void)
{
	struct jit_code *code = jit_code_new(1 << 20);

	jit_chunk_init(&chunk);
	CHECK_TEXT(at(code, 0x1000, 1), "none");
	put(0x1000, 0x10, "JS:*f /x.js:12:3");
	put(0x1010, 0x10, "g");
	put(0x7ff8, 0x2000, "over pages");
	put(0x100000, 0x200000, "wide");
	CHECK_NUMBER(add(code, 0, 100), 0);
	CHECK_TEXT(at(code, 0xfff, 200), "none");
	CHECK_TEXT(at(code, 0x1000, 200), "f");
	CHECK_TEXT(name.file, "/x.js");
	CHECK_NUMBER(name.line, 12);
	CHECK_NUMBER(name.language, JIT_V8);
	CHECK_TEXT(at(code, 0x100f, 200), "f");
	CHECK_TEXT(at(code, 0x1010, 200), "g");
	CHECK_TEXT(at(code, 0x1020, 200), "none");
	CHECK_TEXT(at(code, 0x7ff8, 200), "over pages");
	CHECK_TEXT(at(code, 0x8100, 200), "over pages");
	CHECK_TEXT(at(code, 0x9ff7, 200), "over pages");
	CHECK_TEXT(at(code, 0x2fffff, 200), "wide");
	CHECK_TEXT(at(code, 0x1000, 50), "f"); /* written late: it ran before */
	CHECK_NUMBER(jit_code_count(code), 4);
	jit_code_free(code);
	jit_code_free(NULL);
}

/* A map says that something came between two looks at it. */
static void test_replaced(void)
{
	struct jit_code *code = jit_code_new(1 << 20);

	put(0x1000, 0x100, "old");
	add(code, 0, 100);
	put(0x1080, 0x100, "new");
	add(code, 200, 300);
	CHECK_TEXT(at(code, 0x1090, 150), "old");
	CHECK_TEXT(at(code, 0x1090, 250), "unsure");
	CHECK_TEXT(at(code, 0x1090, 300), "new");
	CHECK_TEXT(at(code, 0x1000, 300), "old"); /* its rest, which nobody said is gone */
	CHECK_TEXT(at(code, 0x1170, 150), "new"); /* where nothing was */
	put(0x1080, 0x100, "new");                /* the same once more */
	add(code, 400, 500);
	CHECK_TEXT(at(code, 0x1090, 450), "new");
	put(0x1090, 1, "a"); /* two at one look */
	put(0x1090, 1, "b");
	add(code, 600, 700);
	CHECK_TEXT(at(code, 0x1090, 650), "unsure");
	CHECK_TEXT(at(code, 0x1090, 700), "b");
	jit_code_free(code);
}

/* A dump says when. */
static void test_times(void)
{
	struct jit_code *code = jit_code_new(1 << 20);

	put(0x1000, 0x100, "first")->time_ns = 100;
	put(0x1000, 0x100, "second")->time_ns = 200;
	put(0x1000, 0x100, "third")->time_ns = 300;
	add(code, 0, 1000);
	CHECK_TEXT(at(code, 0x1000, 150), "first");
	CHECK_TEXT(at(code, 0x1000, 200), "second");
	CHECK_TEXT(at(code, 0x1000, 299), "second");
	CHECK_TEXT(at(code, 0x1000, 300), "third");
	CHECK_TEXT(at(code, 0x1000, 99), "first");
	jit_code_free(code);
}

static void test_moved(void)
{
	struct jit_code *code = jit_code_new(1 << 20);
	struct jit_entry *moved;

	put(0x1000, 0x100, "f")->time_ns = 100;
	moved = jit_chunk_add(&chunk, 0x2000, 0x100);
	moved->old_start = 0x1000;
	moved->time_ns = 200;
	moved = jit_chunk_add(&chunk, 0x3000, 0x100); /* nobody was there */
	moved->old_start = 0x5000;
	add(code, 0, 1000);
	CHECK_TEXT(at(code, 0x1010, 150), "f");
	CHECK_TEXT(at(code, 0x1010, 200), "none");
	CHECK_TEXT(at(code, 0x2010, 200), "f");
	CHECK_TEXT(at(code, 0x3010, 200), "none");
	jit_code_free(code);
}

static void test_lines(void)
{
	struct jit_code *code = jit_code_new(1 << 20);
	struct jit_entry *entry = put(0x1000, 0x100, "f");

	entry->first_line = 0;
	entry->line_count = chunk.head.line_count = 3;
	chunk.lines[0] = (struct jit_line){0x10, 5, jit_chunk_text(&chunk, "a.jl", 4)};
	chunk.lines[1] = (struct jit_line){0x20, 6, 0};
	chunk.lines[2] = (struct jit_line){0x30, 2, jit_chunk_text(&chunk, "b.jl", 4)};
	add(code, 0, 1);
	CHECK_TEXT(at(code, 0x1000, 1), "f");
	CHECK_NUMBER(name.line, 0);
	at(code, 0x101f, 1);
	CHECK_NUMBER(name.line, 5);
	CHECK_TEXT(name.file, "a.jl");
	at(code, 0x1020, 1);
	CHECK_NUMBER(name.line, 6);
	CHECK_TEXT(name.file, "");
	at(code, 0x10ff, 1);
	CHECK_NUMBER(name.line, 2);
	CHECK_TEXT(name.file, "b.jl");
	jit_code_free(code);
}

/* The limit holds; what is not there any more makes room; what has none is counted. */
static void test_room(void)
{
	enum { LIMIT = 256 << 10 };
	struct jit_code *code = jit_code_new(LIMIT);
	uint32_t refused = 0;
	char text[32];

	for (uint32_t round = 0; round < 200; round++) { /* the same place again and again */
		for (uint32_t i = 0; i < 100; i++) {
			snprintf(text, sizeof text, "f%u_%u", round, i);
			put(0x10000 + i * 64, 64, text);
		}
		refused += add(code, 2 * round, 2 * round + 1);
	}
	CHECK_NUMBER(refused, 0);
	CHECK(jit_code_bytes(code) <= LIMIT + (32 << 10));
	CHECK_TEXT(at(code, 0x10000, 1000), "f199_0");
	CHECK_TEXT(at(code, 0x10000 + 99 * 64, 1000), "f199_99");
	for (uint32_t round = 0; round < 200; round++) { /* more and more of it */
		for (uint32_t i = 0; i < 100; i++) {
			snprintf(text, sizeof text, "g%u_%u", round, i);
			put(0x100000 + (round * 100 + i) * 64, 64, text);
		}
		refused += add(code, 1000, 1001);
	}
	CHECK(refused > 10000);
	CHECK(jit_code_bytes(code) <= LIMIT + (32 << 10));
	CHECK_TEXT(at(code, 0x100000, 2000), "g0_0");
	CHECK_TEXT(at(code, 0x10000, 2000), "f199_0");
	jit_code_free(code);
	CHECK(!jit_code_new(100));
}

/* Against the plain way: every address of a few pages, whatever lies upon whatever. */
static void test_random(void)
{
	enum { SPAN = 1 << 14, ENTRIES = 400 };
	static uint32_t owner[SPAN];
	struct jit_code *code = jit_code_new(1 << 20);
	uint32_t wrong = 0;
	char text[32];

	srand(1);
	for (uint32_t i = 1; i <= ENTRIES; i++) {
		uint32_t start = (uint32_t)rand() % (SPAN - 700), size = (uint32_t)rand() % 700 + 1;

		snprintf(text, sizeof text, "f%u", i);
		put(start, size, text);
		add(code, 2 * i, 2 * i + 1);
		for (uint32_t byte = start; byte < start + size; byte++)
			owner[byte] = i;
	}
	for (uint32_t byte = 0; byte < SPAN; byte++) {
		snprintf(text, sizeof text, owner[byte] ? "f%u" : "none", owner[byte]);
		wrong += strcmp(at(code, byte, 10 * ENTRIES), text) != 0;
	}
	CHECK_NUMBER(wrong, 0);
	jit_code_free(code);
}

int main(void)
{
	test_ends();
	test_replaced();
	test_times();
	test_moved();
	test_lines();
	test_room();
	test_random();
	return checks_done();
}
