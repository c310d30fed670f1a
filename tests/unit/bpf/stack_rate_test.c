/* SPDX-License-Identifier: Apache-2.0 */
/* A rate that several CPUs use at once, as ordinary C: what is taken stands for what the dice were
 * thrown for, and no step down leads below nothing. */
#include <stdint.h>

#include "tests/check.h"

#include "bpf/stack_rate.bpf.h"

enum { BUDGET_NS = 1000000 };

#define WINDOW_NS (STACK_RATE_WINDOW_MS * UINT64_C(1000000))

static struct stack_rate rate;
static uint32_t thrown, other_log2;

/* Meanwhile another CPU says what it has come to. */
static __u32 throw_dice(void)
{
	rate.level = other_log2;
	return thrown;
}

static __u64 time_ns(void)
{
	rate.level = other_log2;
	return 50;
}

static void test_weight_is_of_the_dice(void)
{
	uint32_t weight = 99;

	rate = (struct stack_rate){.window_ns = 1000, .level = 4};
	other_log2 = 9;
	thrown = 0xf0;
	CHECK(stack_rate_allows(&rate, 1000, BUDGET_NS, &weight));
	CHECK_NUMBER(weight, 4);
	rate.level = 4;
	other_log2 = 0;
	thrown = 0x08;
	CHECK(!stack_rate_allows(&rate, 1000, BUDGET_NS, &weight));
	rate.level = 4;
	CHECK(stack_rate_allows(&rate, 1001 + WINDOW_NS, BUDGET_NS, &weight) && weight == 3);
	rate.spent_ns = BUDGET_NS;
	rate.level = 4;
	thrown = 0xf0;
	CHECK(stack_rate_allows(&rate, 2002 + 2 * WINDOW_NS, BUDGET_NS, &weight));
	CHECK_NUMBER(weight, 4); /* much was spent */
}

static void test_bounds(void)
{
	uint32_t weight;

	thrown = 0;
	for (uint32_t log2 = 0; log2 <= STACK_RATE_LOG2_MAX; log2++) {
		rate = (struct stack_rate){.level = log2};
		other_log2 = 0; /* two at once at the beginning of a window */
		CHECK(stack_rate_allows(&rate, 1 + WINDOW_NS, BUDGET_NS, &weight));
		CHECK_NUMBER(weight, log2 ? log2 - 1 : 0);
		rate.window_ns = 0;
		CHECK(stack_rate_allows(&rate, 1 + WINDOW_NS, BUDGET_NS, &weight));
		CHECK_NUMBER(weight, 0);
	}
	rate = (struct stack_rate){.spent_ns = BUDGET_NS};
	other_log2 = STACK_RATE_LOG2_MAX;
	stack_rate_spend(&rate, 0, BUDGET_NS, STACK_RATE_LOG2_MAX);
	CHECK_NUMBER(rate.level, STACK_RATE_LOG2_MAX);
	CHECK(rate.spent_ns == 0 && rate.window_ns == 50);
}

int main(void)
{
	bpf_get_prandom_u32 = throw_dice;
	bpf_ktime_get_ns = time_ns;
	test_weight_is_of_the_dice();
	test_bounds();
	return checks_done();
}
