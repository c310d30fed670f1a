/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/malloc/site_rates.h"

#include <stddef.h>

enum {
	COST_FIRST_NS = 6000,
	COST_MAX_NS = 50000,
	COST_STEPS = 32,
	FRACTION = 256,   /* of means */
	SMOOTH = 8,       /* decisions */
	FORGET = 64,      /* one part in so many of what was seen, */
	FORGET_TICKS = 8, /* every eighth decision */
	ELAPSED_LEAST_NS = 1000000,
	LOG2_MAX = 32,
	LEVEL_LEAST = FRACTION / 16, /* of each place one in so many decisions is told */
};

void site_rates_init(struct site_rates *rates)
{
	*rates = (struct site_rates){
		.rate = SITE_RATE_LEAST,
		.credit_ns = SITE_CREDIT_NS,
		.allowed_ns = SITE_TICK_NS / SITE_TOLD_SHARE,
		.cost_ns = COST_FIRST_NS,
	};
}

/* What half of them cost at most follows in steps: where the machine is another's for a moment
 * counts for one step too. What is told once more when a block is given back costs half as much. */
bool site_rates_told(struct site_rates *rates, uint64_t cost_ns)
{
	const uint64_t before = __atomic_load_n(&rates->cost_ns, __ATOMIC_RELAXED);
	const uint64_t step = before / COST_STEPS + 1;

	if (cost_ns && cost_ns + cost_ns / 2 > before)
		__atomic_store_n(&rates->cost_ns, before < COST_MAX_NS ? before + step : before,
				 __ATOMIC_RELAXED);
	else if (cost_ns && before > step)
		__atomic_store_n(&rates->cost_ns, before - step, __ATOMIC_RELAXED);
	return __atomic_add_fetch(&rates->told, 1, __ATOMIC_RELAXED) >= SITE_TICK_TOLD;
}

/* --- one decision --- */

static unsigned log2_of(uint32_t number)
{
	return number ? 31 - (unsigned)__builtin_clz(number) : 0;
}

/* A mean follows what the hits of the last SMOOTH * SITE_TICK_NS make it. */
static uint32_t mean_of(uint64_t mean, uint64_t hits, uint64_t elapsed_ns)
{
	const uint64_t whole = (uint64_t)SMOOTH * SITE_TICK_NS;
	const uint64_t part = elapsed_ns < whole / 2 ? elapsed_ns : whole / 2;

	mean -= mean * part / whole;
	mean += hits * FRACTION * part / elapsed_ns / SMOOTH;
	return mean < UINT32_MAX ? (uint32_t)mean : UINT32_MAX;
}

/* Returns all hits since the last one. */
static uint64_t count_hits(struct site_rates *rates, uint64_t elapsed_ns)
{
	const bool is_later = elapsed_ns >= SITE_TICK_NS && ++rates->ticks % FORGET_TICKS == 0;
	uint64_t all = 0;

	for (size_t i = 0; i < SITE_RATES; i++) {
		struct site_rate *site = &rates->sites[i];
		uint64_t hits;

		if (!(site->hits | site->mean | site->seen))
			continue;
		hits = __atomic_exchange_n(&site->hits, 0, __ATOMIC_RELAXED);
		site->mean = mean_of(site->mean, hits, elapsed_ns);
		if (is_later)
			site->seen -= (site->seen + FORGET - 1) / FORGET;
		site->seen += hits < UINT32_MAX / 2 - site->seen ? (uint32_t)hits : 0;
		all += hits;
	}
	return all;
}

/* So many of each place may be told that in all it is budget at most; places that have no more are
 * told in full. */
static uint64_t level_of(const struct site_rates *rates, uint64_t budget)
{
	uint64_t sums[LOG2_MAX] = {0}, less = 0;
	uint32_t counts[LOG2_MAX] = {0}, more = 0;
	unsigned log2 = 0;

	for (size_t i = 0; i < SITE_RATES; i++) {
		const uint32_t mean = rates->sites[i].mean;

		sums[log2_of(mean)] += mean;
		counts[log2_of(mean)] += !!mean;
		more += !!mean;
	}
	while (log2 < LOG2_MAX &&
	       less + sums[log2] + ((more - counts[log2]) * UINT64_C(2) << log2) <= budget) {
		less += sums[log2];
		more -= counts[log2++];
	}
	if (log2 == LOG2_MAX || !more)
		return UINT32_MAX;
	return (budget - less) / more > LEVEL_LEAST ? (budget - less) / more : LEVEL_LEAST;
}

static void spread(struct site_rates *rates, uint64_t level)
{
	for (size_t i = 0; i < SITE_RATES; i++) {
		struct site_rate *site = &rates->sites[i];
		const bool is_new = rates->credit_ns > -SITE_CREDIT_NS &&
				    site->seen < SITE_SEEN_ALL;

		if (site->mean | site->run)
			__atomic_store_n(&site->run,
					 is_new ? 0 : (uint32_t)((site->mean + level / 2) / level),
					 __ATOMIC_RELAXED);
	}
}

/* Samples themselves are to cost no more than their share either; and where all that is told of new
 * places is more than may be, there have to be fewer. */
static void pace_samples(struct site_rates *rates, uint64_t hits, uint64_t used_ns, bool is_whole)
{
	const uint64_t cost = hits * SITE_SAMPLE_NS + 1, allowed = used_ns / SITE_SAMPLED_SHARE + 1;
	uint64_t rate = rates->rate;

	if (rates->credit_ns <= -SITE_CREDIT_NS)
		rate += rate / 4;
	else if (is_whole && cost > allowed + allowed / 4)
		rate = cost > 2 * allowed ? 2 * rate : rate * cost / allowed;
	else if (is_whole && cost < allowed * 3 / 4)
		rate -= rate / 8;
	if (rate < SITE_RATE_LEAST)
		rate = SITE_RATE_LEAST;
	__atomic_store_n(&rates->rate, rate < SITE_RATE_MOST ? rate : SITE_RATE_MOST,
			 __ATOMIC_RELAXED);
}

void site_rates_settle(struct site_rates *rates, uint64_t used_ns, uint64_t elapsed_ns)
{
	const uint64_t told = __atomic_exchange_n(&rates->told, 0, __ATOMIC_RELAXED);
	const uint64_t elapsed = elapsed_ns > ELAPSED_LEAST_NS ? elapsed_ns : ELAPSED_LEAST_NS;
	const uint64_t allowed = used_ns / SITE_TOLD_SHARE;
	const uint64_t hits = count_hits(rates, elapsed);
	uint64_t budget;

	rates->credit_ns += (int64_t)allowed - (int64_t)(told * rates->cost_ns);
	if (rates->credit_ns > SITE_CREDIT_NS)
		rates->credit_ns = SITE_CREDIT_NS;
	if (rates->credit_ns < -SITE_CREDIT_NS)
		rates->credit_ns = -SITE_CREDIT_NS;
	rates->allowed_ns = (rates->allowed_ns * (SMOOTH - 1) + allowed * SITE_TICK_NS / elapsed) /
			    SMOOTH;
	/* A part is left for places that are new. */
	budget = rates->allowed_ns * (rates->credit_ns > 0 ? 3 : 2) / 4;
	spread(rates, level_of(rates, budget * FRACTION / (rates->cost_ns + 1)));
	pace_samples(rates, hits, used_ns, elapsed >= SITE_TICK_NS / 2);
}
