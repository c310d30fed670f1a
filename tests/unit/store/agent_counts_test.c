/* SPDX-License-Identifier: Apache-2.0 */
/* Two agents whose reports name as many different losses and walk results as one report may: what
 * has no room of its own is counted under "other", and nothing is written beside the tables (the
 * sanitizer says so). */
#include "symbol-server/store/rules/agent_table.h"

#include <stdlib.h>
#include <string.h>

#include "tests/check.h"

static char names[BATCH_STACK_RESULTS * 4][16];

static struct agent_numbers numbers;

/* An agent's next report, with other names than in the one before. */
static struct agent_report next_report(const uint8_t id[16], unsigned first)
{
	struct agent_report report = {.tenant = 1,
				      .id = id,
				      .host = "h",
				      .version = "1",
				      .kernel = "6",
				      .numbers = &numbers};

	numbers.seq++;
	numbers.lost_count = BATCH_LOST_REASONS;
	numbers.stacks_count = BATCH_STACK_RESULTS;
	for (unsigned i = 0; i < BATCH_STACK_RESULTS; i++) {
		report.lost[i % BATCH_LOST_REASONS] = names[first + i % BATCH_LOST_REASONS];
		report.stacks[i] = names[first + i];
		numbers.lost[i % BATCH_LOST_REASONS] = numbers.stacks[i] = 1;
	}
	return report;
}

static uint64_t sum_of(const struct named_count *counts, unsigned used)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < used; i++)
		sum += counts[i].count;
	return sum;
}

static void test_room(void)
{
	/* alone on the heap, so that a byte too far is seen */
	struct named_count *counts = calloc(4, sizeof *counts);
	unsigned used = 0;

	CHECK(counts != NULL);
	for (unsigned i = 0; i < 3; i++)
		CHECK(named_count_take(counts, &used, 4, names[i]) == &counts[i].count);
	for (unsigned i = 3; i < 6; i++)
		CHECK(named_count_take(counts, &used, 4, names[i]) == &counts[3].count);
	CHECK_TEXT(counts[3].name, "other");
	CHECK(named_count_take(counts, &used, 4, names[2]) == &counts[2].count);
	strcpy(counts[3].name, "full"); /* as tables of earlier servers may be */
	CHECK(named_count_take(counts, &used, 4, names[4]) == &counts[3].count);
	CHECK(named_count_take(counts, &used, 3, names[4]) == &counts[3].count);
	CHECK_NUMBER(used, 4);
	free(counts);
}

static void test_all_agents(void)
{
	struct samples_counters *all = calloc(1, sizeof *all);
	struct agent_table table;

	CHECK(all != NULL);
	agent_table_init(&table);
	for (unsigned round = 0; round < 4; round++) {
		uint8_t id[16] = {(uint8_t)round};
		struct agent_report report = next_report(id, round * BATCH_STACK_RESULTS);
		struct agent_delta delta;

		CHECK(agent_table_apply(&table, &report, &delta));
		agent_report_count(&report, &delta, all);
	}
	CHECK_NUMBER(all->walk_count, BATCH_STACK_RESULTS);
	CHECK_NUMBER(all->lost_count, BATCH_LOST_REASONS);
	CHECK_NUMBER(sum_of(all->walks, all->walk_count), 4 * BATCH_STACK_RESULTS);
	CHECK_NUMBER(sum_of(all->lost, all->lost_count), 4 * BATCH_LOST_REASONS);
	CHECK_TEXT(all->walks[all->walk_count - 1].name, "other");
	agent_table_release(&table);
	free(all);
}

static uint64_t sum(const uint64_t *counts, unsigned used)
{
	uint64_t all = 0;

	for (unsigned i = 0; i < used; i++)
		all += counts[i];
	return all;
}

/* One agent with more names over time than there is room for: what it lost is counted, once. */
static void test_one_agent(void)
{
	static const uint8_t id[16] = {9};
	struct agent_delta delta;
	struct agent_report report;
	struct agent_table table;

	agent_table_init(&table);
	report = next_report(id, 0);
	CHECK(agent_table_apply(&table, &report, &delta));
	CHECK_NUMBER(sum(delta.lost, BATCH_LOST_REASONS), BATCH_LOST_REASONS);
	CHECK_NUMBER(sum(delta.stacks, BATCH_STACK_RESULTS), BATCH_STACK_RESULTS);
	report = next_report(id, BATCH_STACK_RESULTS);
	numbers.lost[0] = 5;
	report.lost[1] = "off-cpu:exact"; /* a tally is no loss, also where it has no room */
	CHECK(agent_table_apply(&table, &report, &delta));
	CHECK_NUMBER(sum(delta.lost, BATCH_LOST_REASONS), BATCH_LOST_REASONS + 4 - 1 - 1);
	CHECK_NUMBER(sum(delta.stacks, BATCH_STACK_RESULTS), BATCH_STACK_RESULTS - 1);
	numbers.lost[2] = 3;
	CHECK(agent_table_apply(&table, &report, &delta));
	CHECK_NUMBER(sum(delta.lost, BATCH_LOST_REASONS), 2);
	CHECK_NUMBER(sum(delta.stacks, BATCH_STACK_RESULTS), 0);
	agent_table_release(&table);
}

int main(void)
{
	for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
		snprintf(names[i], sizeof names[i], "reason-%u", i);
	test_room();
	test_all_agents();
	test_one_agent();
	return checks_done();
}
