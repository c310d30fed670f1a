/* SPDX-License-Identifier: Apache-2.0 */
/* Code objects of a made-up memory: how often they are read, and what is kept of them. */
#include "node-agent/runtimes/python_codes.h"

#include <stdlib.h>

#include "bpf/runtime_frames.h"
#include "tests/check.h"

/* Objects of CPython 3.9 every STEP bytes, whose name is their number; read as they are asked for.
 */
enum { STEP = 0x1000, NAME = 0x200, FILE_NAME = 0x300, TABLE = 0x400 };

static unsigned reads;
static uint64_t gone_from, missing_from;

static void make(uint64_t number, uint8_t *page)
{
	const uint64_t at = number * STEP;
	const uint64_t name = at + NAME, file = at + FILE_NAME, table = at + TABLE, one = 1,
		       eight = 8;
	const uint32_t ascii = 1 << 2 | 1 << 5 | 1 << 6, line = number >= gone_from ? 7 : 1;
	char text[9];

	memcpy(page, &one, 8); /* references */
	memcpy(page + 40, &line, 4);
	memcpy(page + 104, &file, 8);
	memcpy(page + 112, &name, 8);
	memcpy(page + 120, &table, 8);
	memcpy(page + NAME + 16, &eight, 8);
	memcpy(page + NAME + 32, &ascii, 4);
	snprintf(text, sizeof text, "%08u", (unsigned)number);
	memcpy(page + NAME + 48, text, 8);
	memcpy(page + FILE_NAME + 16, &one, 8);
	memcpy(page + FILE_NAME + 32, &ascii, 4);
	page[FILE_NAME + 48] = 'x';
}

static bool read_page(void *context, uint64_t address, void *to, size_t bytes)
{
	uint8_t page[STEP] = {0};
	const uint64_t number = address / STEP;

	(void)context;
	reads++;
	if (number >= missing_from || address % STEP + bytes > STEP)
		return false;
	make(number, page);
	memcpy(to, page + address % STEP, bytes);
	return true;
}

static const struct python_memory memory = {.read = read_page};
static struct python_layout layout;

/* --- at once --- */

static unsigned copies;
static bool is_changing;

static bool copy_page(void *context, struct runtime_code_event *told)
{
	uint8_t page[STEP] = {0};

	(void)context;
	copies++;
	make(told->address / STEP, page);
	told->name_at = told->address + NAME;
	told->file_at = told->address + FILE_NAME;
	told->lines_at = told->address + TABLE;
	told->head_bytes = layout.code_lines + 8;
	told->name_bytes = told->file_bytes = told->lines_bytes = 128;
	memcpy(told->head, page, told->head_bytes);
	memcpy(told->name, page + NAME, 128);
	memcpy(told->file, page + FILE_NAME, 128);
	memcpy(told->lines, page + TABLE, 128);
	return !is_changing;
}

static uint16_t cookie_of(uint64_t number)
{
	const uint64_t at = number * STEP;

	return runtime_cookie(0, 0, 0, 1, runtime_texts(at + NAME, at + FILE_NAME, at + TABLE));
}

static const char *find(struct python_codes *codes, uint32_t tgid, uint64_t number, uint64_t now_ns)
{
	const struct process_key key = {tgid, 0, 1};
	const struct python_code *code = python_codes_find(
		codes, &key, &memory, &layout, number * STEP, cookie_of(number), now_ns);

	return code ? code->name : NULL;
}

static void test_once(void)
{
	struct python_codes *codes = python_codes_new(PYTHON_CODES_BYTES);
	struct python_codes_counters counters;

	gone_from = missing_from = UINT64_MAX;
	CHECK_TEXT(find(codes, 1, 5, 1), "00000005");
	const unsigned once = reads;
	CHECK_TEXT(find(codes, 1, 5, 2), "00000005");
	CHECK_NUMBER(reads, once);
	CHECK_TEXT(find(codes, 2, 5, 2), "00000005"); /* another process may have another there */
	CHECK_NUMBER(reads, 2 * once);
	python_codes_counters(codes, &counters);
	CHECK_NUMBER(counters.read, 2);
	python_codes_free(codes);
	python_codes_free(NULL);
}

static void test_failures(void)
{
	struct python_codes *codes = python_codes_new(PYTHON_CODES_BYTES);
	struct python_codes_counters counters;

	gone_from = 100;
	missing_from = 200;
	for (int i = 0; i < 10; i++)
		CHECK(!find(codes, 1, 150, 1) && !find(codes, 1, 250, 1));
	python_codes_counters(codes, &counters);
	CHECK_NUMBER(counters.gone, PYTHON_CODE_TRIES);
	CHECK_NUMBER(counters.unread, PYTHON_CODE_TRIES);
	gone_from = missing_from = UINT64_MAX;
	CHECK(!find(codes, 1, 150, 1));
	/* One that was not there yet: the second try has it. */
	missing_from = 300;
	CHECK(!find(codes, 1, 350, 1));
	missing_from = UINT64_MAX;
	CHECK_TEXT(find(codes, 1, 350, 1), "00000350");
	python_codes_free(codes);
}

static void test_bound_in_bytes(void)
{
	enum { LIMIT = 64 << 10 };
	struct python_codes *codes = python_codes_new(LIMIT);
	struct python_codes_counters counters;
	uint64_t most = 0, now_ns = 1;
	unsigned wrong = 0;

	for (uint64_t i = 1; i < 5000; i++, now_ns += 1000000000) {
		char want[9];
		snprintf(want, sizeof want, "%08u", (unsigned)i);
		python_codes_begin(codes);
		const char *got = find(codes, 1, i, now_ns), *kept;
		wrong += !got || strcmp(got, want) != 0;
		kept = find(codes, 1, 1, now_ns); /* what is in use stays */
		wrong += !kept || strcmp(kept, "00000001") != 0;
		python_codes_counters(codes, &counters);
		most = counters.bytes > most ? counters.bytes : most;
	}
	CHECK_NUMBER(wrong, 0);
	CHECK_NUMBER(counters.read, 4999);
	CHECK(counters.given_up > 10 && most > LIMIT / 2 && most <= LIMIT);
	/* One stack of more than there is room for: what it was lent stays, the rest has no names.
	 */
	python_codes_begin(codes);
	const char *first = find(codes, 1, 10000, now_ns);
	unsigned found = 0;
	for (uint64_t i = 10001; i < 11000; i++)
		found += find(codes, 1, i, now_ns) != NULL;
	python_codes_counters(codes, &counters);
	CHECK(found > 20 && found < 500 && counters.bytes <= LIMIT && counters.refused > 0);
	CHECK_TEXT(first, "00010000");
	python_codes_free(codes);
}

static void test_bound_in_time(void)
{
	struct python_codes *codes = python_codes_new(PYTHON_CODES_BYTES);
	unsigned found = 0;

	for (uint64_t i = 1; i < 10000; i++)
		found += find(codes, 1, i, 5) != NULL;
	CHECK_NUMBER(found, PYTHON_CODES_BURST);
	CHECK(find(codes, 2, 1, 5) != NULL); /* others have theirs */
	for (uint64_t i = 10000; i < 20000; i++)
		found += find(codes, 1, i, 1000000005) != NULL;
	CHECK_NUMBER(found, PYTHON_CODES_BURST + PYTHON_CODES_A_SECOND);
	python_codes_free(codes);
}

/* One question where the whole object can be had by one; one after the other where it changes. */
static void test_copied(void)
{
	static const struct python_memory copied = {.read = read_page, .copy_code = copy_page};
	struct python_codes *codes = python_codes_new(PYTHON_CODES_BYTES);
	const struct process_key key = {1, 0, 1};
	const struct python_code *code;

	reads = copies = 0;
	code = python_codes_find(codes, &key, &copied, &layout, 5 * STEP, cookie_of(5), 0);
	CHECK_TEXT(code ? code->name : NULL, "00000005");
	CHECK(copies == 1 && !reads);
	is_changing = true;
	code = python_codes_find(codes, &key, &copied, &layout, 6 * STEP, cookie_of(6), 0);
	CHECK_TEXT(code ? code->name : NULL, "00000006");
	CHECK(copies == 2 && reads);
	is_changing = false;
	CHECK(!python_codes_find(codes, &key, &copied, &layout, 7 * STEP, cookie_of(7) ^ 1, 0));
	python_codes_free(codes);
}

int main(void)
{
	CHECK(python_layout_find(0x030900f0, &layout));
	test_once();
	test_failures();
	test_bound_in_bytes();
	test_bound_in_time();
	test_copied();
	return checks_done();
}
