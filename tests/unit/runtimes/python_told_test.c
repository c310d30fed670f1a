/* SPDX-License-Identifier: Apache-2.0 */
/* Code objects out of the kernel side's copies: whole ones, beginnings of long ones, and what the
 * process has in their place by then. */
#include "node-agent/runtimes/python_told.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/events.h"
#include "tests/check.h"

enum { OBJECT = 0x1000, NAME = 0x2000, FILE_NAME = 0x3000, TABLE = 0x4000, MEMORY = 0x6000 };

static uint8_t memory_bytes[MEMORY];
static bool is_there;
static unsigned reads;

static bool read_memory(void *context, uint64_t address, void *to, size_t bytes)
{
	(void)context;
	reads++;
	if (!is_there || address > MEMORY || bytes > MEMORY - address)
		return false;
	memcpy(to, memory_bytes + address, bytes);
	return true;
}

static const struct python_memory memory = {.read = read_memory};
static struct python_layout layout;

static void put(size_t at, uint64_t value, size_t bytes)
{
	memcpy(memory_bytes + at, &value, bytes);
}

static void put_text(size_t at, const char *text, size_t length)
{
	put(at + layout.unicode_length, length, 8);
	put(at + layout.unicode_state, 1 << 2 | 1 << 5 | 1 << 6, 4);
	for (size_t i = 0; i < length; i++)
		memory_bytes[at + layout.unicode_ascii_data + i] = (uint8_t)text[i % strlen(text)];
}

/* A 3.9's: argcount 1, line 10, and its table of pairs, two bytes further and one line each. */
static void fill(size_t name_length, size_t pairs)
{
	memset(memory_bytes, 0, sizeof memory_bytes);
	is_there = true;
	reads = 0;
	put(OBJECT, 3, 8); /* references */
	put(OBJECT + layout.code_argcount, 1, 4);
	put(OBJECT + layout.code_firstline, 10, 4);
	put(OBJECT + layout.code_name, NAME, 8);
	put(OBJECT + layout.code_filename, FILE_NAME, 8);
	put(OBJECT + layout.code_lines, TABLE, 8);
	put_text(NAME, "abc", name_length);
	put_text(FILE_NAME, "<string>", 8);
	put(TABLE + layout.bytes_size, 2 * pairs, 8);
	for (size_t i = 0; i < pairs; i++)
		put(TABLE + layout.bytes_data + 2 * i, 2 | 1 << 8, 2);
}

/* What the kernel side has copied, of a name so many bytes. */
static struct runtime_code_event told_now(uint16_t name_bytes)
{
	struct runtime_code_event told = {
		.type = EVENT_RUNTIME_CODE,
		.size = sizeof told,
		.cookie = runtime_cookie(1, 0, 0, 10, runtime_texts(NAME, FILE_NAME, TABLE)),
		.address = OBJECT,
		.name_at = NAME,
		.file_at = FILE_NAME,
		.lines_at = TABLE,
		.head_bytes = RUNTIME_CODE_HEAD,
		.name_bytes = name_bytes,
		.file_bytes = RUNTIME_CODE_FILE,
		.lines_bytes = RUNTIME_CODE_LINES};

	memcpy(told.head, memory_bytes + OBJECT, sizeof told.head);
	memcpy(told.name, memory_bytes + NAME, sizeof told.name);
	memcpy(told.file, memory_bytes + FILE_NAME, sizeof told.file);
	memcpy(told.lines, memory_bytes + TABLE, sizeof told.lines);
	return told;
}

static void test_gone_since(void)
{
	struct runtime_code_event told;
	struct python_code *code;

	fill(3, 20);
	told = told_now(RUNTIME_CODE_NAME);
	is_there = false;
	CHECK_NUMBER(python_told_read(&told, &memory, &layout, &code), PYTHON_CODE_READ);
	CHECK_TEXT(code->name, "abc");
	CHECK_TEXT(code->file, "<string>");
	CHECK_NUMBER(python_code_line(code, 8), 14);
	CHECK(!code->is_lines_cut);
	CHECK_NUMBER(reads, 0);
	free(code);
	told.cookie ^= 1; /* another thread has been there between */
	CHECK_NUMBER(python_told_read(&told, &memory, &layout, &code), PYTHON_CODE_GONE);
}

/* The rest is read from the process, whose object has to be the same one. */
static void test_longer_than_copies(void)
{
	struct runtime_code_event told;
	struct python_code *code;

	fill(500, 1000);
	told = told_now(RUNTIME_CODE_NAME);
	CHECK_NUMBER(python_told_read(&told, &memory, &layout, &code), PYTHON_CODE_READ);
	CHECK_NUMBER(strlen(code->name), 500);
	CHECK_NUMBER(python_code_line(code, 1900), 960);
	CHECK(!code->is_lines_cut);
	free(code);
	put(OBJECT + layout.code_firstline, 11, 4);
	CHECK_NUMBER(python_told_read(&told, &memory, &layout, &code), PYTHON_CODE_GONE);
	CHECK(!code);
}

static void test_lines_cut(void)
{
	struct runtime_code_event told;
	struct python_code *code;

	fill(3, 1000);
	told = told_now(RUNTIME_CODE_NAME);
	is_there = false;
	CHECK_NUMBER(python_told_read(&told, &memory, &layout, &code), PYTHON_CODE_READ);
	CHECK_TEXT(code->name, "abc");
	CHECK(code->is_lines_cut);
	CHECK_NUMBER(code->lines_bytes, RUNTIME_CODE_LINES - layout.bytes_data);
	CHECK_NUMBER(python_code_line(code, 8), 14);
	free(code);
}

static void test_not_copied(void)
{
	struct runtime_code_event told;
	struct python_code *code;

	fill(3, 20);
	told = told_now(0);
	CHECK_NUMBER(python_told_read(&told, &memory, &layout, &code), PYTHON_CODE_READ);
	CHECK_TEXT(code->name, "abc");
	free(code);
	is_there = false;
	CHECK_NUMBER(python_told_read(&told, &memory, &layout, &code), PYTHON_CODE_GONE);
	told.head_bytes = told.file_bytes = told.lines_bytes = 0;
	CHECK(python_told_read(&told, &memory, &layout, &code) != PYTHON_CODE_READ);
}

/* The kernel side copies what an object has and no more. */
static void test_copied_to_its_end(void)
{
	struct runtime_code_event told;
	struct python_code *code;

	fill(50, 200);
	told = told_now((uint16_t)(layout.unicode_compact_data + 50));
	told.head_bytes = layout.code_lines + 8;
	told.file_bytes = layout.unicode_compact_data + 8;
	told.lines_bytes = layout.bytes_data + 400;
	memset(told.name + told.name_bytes, 'x', sizeof told.name - told.name_bytes);
	memset(told.file + told.file_bytes, 'x', sizeof told.file - told.file_bytes);
	memset(told.lines + told.lines_bytes, 'x', sizeof told.lines - told.lines_bytes);
	is_there = false;
	CHECK_NUMBER(python_told_read(&told, &memory, &layout, &code), PYTHON_CODE_READ);
	CHECK_NUMBER(reads, 0);
	CHECK_NUMBER(strlen(code->name), 50);
	CHECK_TEXT(code->file, "<string>");
	CHECK_NUMBER(code->lines_bytes, 400);
	CHECK(!code->is_lines_cut);
	free(code);
}

int main(void)
{
	CHECK(python_layout_find(0x030912f0, &layout));
	test_gone_since();
	test_copied_to_its_end();
	test_longer_than_copies();
	test_lines_cut();
	test_not_copied();
	return checks_done();
}
