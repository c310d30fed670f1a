/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/file_parser/parse_budget.h"

#include "tests/check.h"

static struct parse_budget budget;
static int64_t now_ms;

static enum parse_verdict verdict(uint32_t executable)
{
	return parse_budget_verdict(&budget, executable, now_ms);
}

static void clear(void)
{
	budget = (struct parse_budget){0};
	now_ms = 1000000;
}

static void test_fruitless(void)
{
	clear();
	parse_budget_strike(&budget, 1, 2000, now_ms);
	CHECK_NUMBER(verdict(1), PARSE_NOW);
	parse_budget_strike(&budget, 1, 1, now_ms);
	CHECK_NUMBER(verdict(1), PARSE_REFUSED);
	CHECK_NUMBER(verdict(2), PARSE_NOW);
	now_ms += 599999;
	CHECK_NUMBER(verdict(1), PARSE_REFUSED);
	now_ms++;
	CHECK_NUMBER(verdict(1), PARSE_NOW);
	parse_budget_strike(&budget, 1, 2000, now_ms); /* nothing of it is remembered */
	CHECK_NUMBER(verdict(1), PARSE_NOW);
}

static void test_strikes(void)
{
	clear();
	parse_budget_answered(&budget, 1, 1, now_ms);
	for (int i = 0; i < 3; i++) {
		CHECK_NUMBER(verdict(1), PARSE_NOW);
		parse_budget_strike(&budget, 1, 0, now_ms++);
	}
	CHECK_NUMBER(verdict(1), PARSE_REFUSED);
	parse_budget_strike(&budget, 2, 0, now_ms);
	parse_budget_strike(&budget, 2, 0, now_ms);
	now_ms += 600000;
	parse_budget_strike(&budget, 2, 0, now_ms); /* the others are long ago */
	CHECK_NUMBER(verdict(2), PARSE_NOW);
}

/* One that is asked for all the time, at a sixtieth of a CPU and at twice that. */
static void test_in_all(void)
{
	int seconds = 0;

	clear();
	for (int i = 0; i < 10000; i++, now_ms += 60)
		parse_budget_answered(&budget, 1, 1, now_ms);
	CHECK_NUMBER(verdict(1), PARSE_NOW);
	for (; verdict(1) != PARSE_REFUSED && seconds < 2000; seconds++, now_ms += 1000)
		for (int i = 0; i < 2; i++)
			parse_budget_answered(&budget, 1, 17, now_ms);
	CHECK(seconds > 500 && seconds < 650);
}

static void test_all_files(void)
{
	clear();
	parse_budget_answered(&budget, 500, 0, now_ms);
	for (uint32_t file = 1; file <= 6; file++)
		parse_budget_answered(&budget, file, 1000, now_ms);
	CHECK_NUMBER(verdict(1), PARSE_NOW);
	CHECK_NUMBER(verdict(500), PARSE_NOW);
	CHECK_NUMBER(verdict(7), PARSE_LATER);
	now_ms += 4999;
	CHECK_NUMBER(verdict(7), PARSE_LATER);
	now_ms++;
	CHECK_NUMBER(verdict(7), PARSE_NOW);
	now_ms -= 3000; /* a clock that goes back forgives nothing and charges nothing */
	CHECK_NUMBER(verdict(7), PARSE_NOW);
}

/* The dear ones are remembered when there are many. */
static void test_many(void)
{
	clear();
	parse_budget_answered(&budget, 3, 10001, now_ms);
	parse_budget_answered(&budget, 4, 9000, now_ms);
	for (uint32_t file = 100; file < 2000; file++)
		parse_budget_answered(&budget, file, 5, now_ms);
	CHECK_NUMBER(verdict(3), PARSE_REFUSED);
	parse_budget_answered(&budget, 4, 1001, now_ms);
	CHECK_NUMBER(verdict(4), PARSE_REFUSED);
}

int main(void)
{
	test_fruitless();
	test_strikes();
	test_in_all();
	test_all_files();
	test_many();
	return checks_done();
}
