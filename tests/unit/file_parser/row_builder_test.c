/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/file_parser/row_builder.h"

#include "tests/check.h"

enum { PAGE = 3, BASE = PAGE << 16 };

static struct page_rows rows;

static struct unwind_rule rule_of(int offset)
{
	return (struct unwind_rule){
		.cfa = UNWIND_CFA_REGISTER, .cfa_register = 7, .cfa_offset = offset};
}

static bool add(uint64_t start, uint64_t end, int offset)
{
	struct unwind_rule rule = rule_of(offset);

	return row_builder_add(&rows, start, end, &rule);
}

/* The CFA's offset at an address; −1: nothing is known there, −2: the page has no rows. */
static int at(uint64_t address)
{
	const struct unwind_rule *rule = page_rows_find(&rows, address);

	if (!rule)
		return -2;
	return rule->cfa == UNWIND_CFA_NONE ? -1 : rule->cfa_offset;
}

static void test_pieces(void)
{
	row_builder_begin(&rows, PAGE);
	CHECK(add(BASE - 100, BASE - 10, 1)); /* not on this page */
	CHECK(add(BASE - 10, BASE + 4, 8));
	CHECK(add(BASE + 4, BASE + 8, 16));
	CHECK(add(BASE + 8, BASE + 12, 16)); /* goes on */
	CHECK(add(BASE + 20, BASE + 30, 8));
	CHECK(add(BASE + 25, BASE + 40, 24)); /* the first wins */
	CHECK(add(BASE + 22, BASE + 35, 32)); /* nothing is left of it */
	CHECK(add(BASE + 50, BASE + 50, 40));
	CHECK(add(BASE + 0xfffe, BASE + 0x10100, 48));
	CHECK(add(BASE + 0x10000, BASE + 0x10010, 56));
	row_builder_end(&rows);
	CHECK_NUMBER(rows.state, UNWIND_PAGE_LOADED);
	CHECK_NUMBER(rows.count, 7);
	CHECK_NUMBER(rows.rule_count, 5); /* 8, 16, none, 24, 48 */
	CHECK_NUMBER(rows.rows[0].low, 0);
	CHECK_NUMBER(at(BASE), 8);
	CHECK_NUMBER(at(BASE + 3), 8);
	CHECK_NUMBER(at(BASE + 4), 16);
	CHECK_NUMBER(at(BASE + 11), 16);
	CHECK_NUMBER(at(BASE + 12), -1);
	CHECK_NUMBER(at(BASE + 20), 8);
	CHECK_NUMBER(at(BASE + 29), 8);
	CHECK_NUMBER(at(BASE + 30), 24);
	CHECK_NUMBER(at(BASE + 40), -1);
	CHECK_NUMBER(at(BASE + 0xfffd), -1);
	CHECK_NUMBER(at(BASE + 0xffff), 48);
	CHECK_NUMBER(at(BASE - 1), -2);
	CHECK_NUMBER(at(BASE + 0x10000), -2);
	CHECK_NUMBER(at(BASE + (UINT64_C(1) << 48)), -2);
}

static void test_edges(void)
{
	row_builder_begin(&rows, PAGE);
	row_builder_end(&rows);
	CHECK_NUMBER(rows.state, UNWIND_PAGE_EMPTY);
	CHECK_NUMBER(at(BASE), -2);

	row_builder_begin(&rows, PAGE);
	CHECK(add(BASE + 100, BASE + 101, 8));
	row_builder_end(&rows);
	CHECK_NUMBER(rows.count, 3);
	CHECK_NUMBER(at(BASE), -1);
	CHECK_NUMBER(at(BASE + 100), 8);
	CHECK_NUMBER(at(BASE + 101), -1);

	row_builder_begin(&rows, UINT32_MAX);
	CHECK(add(UINT64_C(0xffffffff0000), UINT64_MAX, 8));
	row_builder_end(&rows);
	CHECK_NUMBER(rows.count, 1);
	CHECK_NUMBER(at(UINT64_C(0xffffffffffff)), 8);
}

/* As many as fit, and one more: that page has failed, and says so whatever comes afterwards. */
static void test_limits(void)
{
	row_builder_begin(&rows, PAGE);
	for (int i = 0; i < UNWIND_PAGE_ROWS_MAX; i++)
		if (!add(BASE + 4 * (uint64_t)i, BASE + 4 * (uint64_t)i + 4, i % 2))
			CHECK(!"there is room");
	row_builder_end(&rows);
	CHECK_NUMBER(rows.state, UNWIND_PAGE_LOADED);
	CHECK_NUMBER(rows.count, UNWIND_PAGE_ROWS_MAX);
	CHECK_NUMBER(at(BASE + 0xffff), 1);

	row_builder_begin(&rows, PAGE);
	for (int i = 0; i < UNWIND_PAGE_ROWS_MAX; i++)
		add(BASE + 2 * (uint64_t)i, BASE + 2 * (uint64_t)i + 2, i % 2);
	CHECK(!add(BASE + 0x9000, BASE + 0x9001, 7));
	CHECK(!add(BASE + 0x9001, BASE + 0x9002, 7));
	row_builder_end(&rows);
	CHECK_NUMBER(rows.state, UNWIND_PAGE_FAILED);
	CHECK_NUMBER(rows.failure, ROW_FAILURE_LIMIT);
	CHECK_NUMBER(rows.count, 0);

	row_builder_begin(&rows, PAGE);
	for (int i = 0; i < PAGE_RULES_MAX; i++)
		if (!add(BASE + (uint64_t)i, BASE + (uint64_t)i + 1, i))
			CHECK(!"there is room");
	CHECK(add(BASE + 0x8000 - 1, BASE + 0x8000, 5) == false); /* the gap's is one too many */
	CHECK_NUMBER(rows.failure, ROW_FAILURE_LIMIT);
}

int main(void)
{
	test_pieces();
	test_edges();
	test_limits();
	return checks_done();
}
