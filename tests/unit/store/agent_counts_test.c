/* SPDX-License-Identifier: Apache-2.0 */
/* Two agents whose reports name as many different losses and walk results as one report may: what
 * has no room of its own is counted under "other", and nothing is written beside the tables (the
 * sanitizer says so). */
#include "symbol-server/store/rules/agent_table.h"

#include <stdlib.h>

#include "tests/check.h"

static char names[BATCH_STACK_RESULTS * 4][16];

static void fill(struct agent_report *report, unsigned first)
{
	for (unsigned i = 0; i < BATCH_LOST_REASONS; i++) {
		report->lost[i].reason = names[first + i];
		report->lost[i].count = 1;
	}
	for (unsigned i = 0; i < BATCH_STACK_RESULTS; i++) {
		report->stacks[i].name = names[first + i];
		report->stacks[i].count = 1;
	}
	report->lost_count = BATCH_LOST_REASONS;
	report->stacks_count = BATCH_STACK_RESULTS;
}

static uint64_t sum_of(const struct named_count *counts, unsigned used)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < used; i++)
		sum += counts[i].count;
	return sum;
}

int main(void)
{
	struct agent_table table;
	/* alone on the heap, so that a byte too far is seen */
	struct named_count *counts = calloc(4, sizeof *counts);
	struct samples_counters *all = calloc(1, sizeof *all);
	unsigned used = 0;

	if (!counts || !all)
		return 1;
	for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
		snprintf(names[i], sizeof names[i], "reason-%u", i);
	for (unsigned i = 0; i < 4; i++)
		CHECK(named_count_take(counts, &used, 4, names[i]) != NULL);
	CHECK(!named_count_take(counts, &used, 4, names[4]));
	CHECK(!named_count_take(counts, &used, 3, names[4])); /* of a table that is over its room */
	CHECK(named_count_take(counts, &used, 3, names[3]) == &counts[3].count);
	CHECK_NUMBER(used, 4);

	agent_table_init(&table);
	for (unsigned round = 0; round < 4; round++) {
		uint8_t id[16] = {(uint8_t)round};
		struct agent_report report = {.tenant = 1,
					      .id = id,
					      .seq = 1,
					      .host = "h",
					      .version = "1",
					      .kernel = "6"};
		struct agent_delta delta;

		fill(&report, round * BATCH_STACK_RESULTS);
		CHECK(agent_table_apply(&table, &report, &delta));
		agent_report_count(&report, &delta, all);
	}
	CHECK_NUMBER(all->walk_count, BATCH_STACK_RESULTS);
	CHECK_NUMBER(all->lost_count, BATCH_LOST_REASONS);
	CHECK_NUMBER(sum_of(all->walks, all->walk_count), 4 * BATCH_STACK_RESULTS);
	CHECK_NUMBER(sum_of(all->lost, all->lost_count), 4 * BATCH_LOST_REASONS);
	CHECK_TEXT(all->walks[all->walk_count - 1].name, "other");
	agent_table_release(&table);
	free(counts);
	free(all);
	return checks_done();
}
