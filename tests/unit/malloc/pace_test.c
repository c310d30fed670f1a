/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/malloc/pace.h"

#include <math.h>

#include "node-agent/malloc/poisson.h"
#include "tests/check.h"

enum { SIZE = 144, LEAST = POISSON_RATE_DEFAULT };

/* A thread that allocates blocks of SIZE bytes, and whose clock is its own. */
struct thread {
	struct pace pace;
	uint64_t now_ns, mean, left, random;
	uint64_t samples;
	double told; /* bytes, by weights */
};

static struct thread begin(void)
{
	struct thread thread = {.mean = LEAST, .random = 88172645463325252};

	thread.left = poisson_distance(poisson_random(&thread.random), thread.mean);
	return thread;
}

static void sample(struct thread *thread, uint64_t cost_ns)
{
	const bool is_timed = pace_is_timed(&thread->pace);
	const uint64_t began = thread->now_ns;

	thread->samples++;
	thread->told += (double)poisson_weight(SIZE, thread->mean);
	thread->now_ns += cost_ns;
	thread->mean = pace_told(&thread->pace, is_timed ? began : 0, is_timed ? thread->now_ns : 0,
				 thread->mean, LEAST);
	thread->left = poisson_distance(poisson_random(&thread->random), thread->mean);
}

static void allocate(struct thread *thread, uint64_t blocks, uint64_t each_ns, uint64_t cost_ns)
{
	for (uint64_t i = 0; i < blocks; i++) {
		thread->now_ns += each_ns;
		if (thread->left < SIZE)
			sample(thread, cost_ns);
		else
			thread->left -= SIZE;
	}
}

static void test_cost_is_a_share(void)
{
	static const uint64_t costs[] = {1000, 8000, 40000};

	for (size_t i = 0; i < sizeof costs / sizeof *costs; i++) {
		struct thread thread = begin();
		uint64_t before;
		double share;

		allocate(&thread, 20000000, 100, costs[i]); /* 10 million a second */
		before = thread.samples;
		allocate(&thread, 100000000, 100, costs[i]);
		share = (double)((thread.samples - before) * costs[i]) / 1e10;
		printf("# a sample costs %" PRIu64 " ns: %.3f %%, mean %" PRIu64 "\n", costs[i],
		       share * 100, thread.mean);
		CHECK(share < 1.1 / PACE_SHARE);
		CHECK(share > 0.4 / PACE_SHARE || thread.mean < 2 * LEAST);
	}
}

static void test_sums_stay_true(void)
{
	struct thread thread = begin();
	uint64_t blocks = 0;

	/* by turns slow and fast */
	for (int i = 0; i < 60; i++) {
		const uint64_t count = i % 2 ? 10000000 : 1000000;

		allocate(&thread, count, i % 2 ? 20 : 1000, 8000);
		blocks += count;
	}
	printf("# %" PRIu64 " samples\n", thread.samples);
	CHECK(thread.samples > 1000);
	CHECK(fabs(thread.told / ((double)blocks * SIZE) - 1) < 0.1);
}

static void test_it_comes_back(void)
{
	struct thread thread = begin();

	allocate(&thread, 30000000, 20, 8000);
	CHECK(thread.mean > 4 * LEAST);
	allocate(&thread, 30000000, 2000, 8000);
	CHECK_NUMBER(thread.mean, LEAST);
	allocate(&thread, 30000000, 0, 8000); /* a clock that stands */
	CHECK(thread.mean <= (uint64_t)LEAST * PACE_TIMES_MAX);
}

int main(void)
{
	test_cost_is_a_share();
	test_sums_stay_true();
	test_it_comes_back();
	return checks_done();
}
