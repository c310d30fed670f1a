/* SPDX-License-Identifier: Apache-2.0 */
/* What hosts lost, by reasons that senders choose, and what is counted beside it. */
#include <stdio.h>
#include <string.h>

#include "symbol-server/store/rules/tallies.h"
#include "tests/check.h"

static struct text text_of(const char *text)
{
	return (struct text){text, (uint32_t)strlen(text)};
}

static void reasons_have_a_limit(void)
{
	struct host_accounting host = {0};
	struct arena arena;
	char name[20];

	arena_init(&arena, 1 << 20);
	for (int i = 0; i < BATCH_LOST_REASONS + 5; i++) {
		snprintf(name, sizeof name, "reason %d", i);
		CHECK(losses_add(&host, text_of(name), 1, &arena));
	}
	memset(name, 'x', sizeof name); /* it was copied */
	CHECK(losses_add(&host, text_of("reason 0"), 10, &arena));
	CHECK_NUMBER(host.lost_count, BATCH_LOST_REASONS);
	CHECK_TEXT(host.lost_by[0].reason, "reason 0");
	CHECK_NUMBER(host.lost_by[0].count, 11);
	CHECK_NUMBER(host.lost_by[BATCH_LOST_REASONS - 1].count, 6);
	CHECK_NUMBER(host.lost, BATCH_LOST_REASONS + 15);
	arena_release(&arena);
}

static void reasons_are_whole(void)
{
	struct host_accounting host = {0};
	struct arena none;

	CHECK(losses_add(&host, text_of("ring"), 1, NULL));
	CHECK(losses_add(&host, text_of("ring_full"), 2, NULL));
	CHECK(losses_add(&host, (struct text){"ring_full", 4}, 4, NULL));
	CHECK_NUMBER(host.lost_by[0].count, 5);
	CHECK_NUMBER(host.lost_by[1].count, 2);
	arena_init(&none, 1);
	CHECK(!losses_add(&host, text_of("a reason without room"), 8, &none));
	CHECK(host.lost == 7 && host.lost_count == 2);
	arena_release(&none);
}

static void hosts_are_sorted(void)
{
	struct host_accounting hosts[] = {{.host = "b"}, {.host = "a"}, {.host = "aa"}};

	hosts_sort(hosts, 3);
	CHECK_TEXT(hosts[0].host, "a");
	CHECK_TEXT(hosts[1].host, "aa");
	CHECK_TEXT(hosts[2].host, "b");
	hosts_sort(NULL, 0);
}

int main(void)
{
	reasons_have_a_limit();
	reasons_are_whole();
	hosts_are_sorted();
	return checks_done();
}
