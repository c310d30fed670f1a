/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/store/rules/tallies.h"

#include <stdlib.h>
#include <string.h>

static const struct tally tallies[] = {
	{"off-cpu.exact_ns", "off-cpu:exact", "off-cpu", TALLY_EXACT},
	{"off-cpu.covered_ns", "off-cpu:covered", "off-cpu", TALLY_COVERED},
	{"run-queue.exact_ns", "run-queue:exact", "run-queue", TALLY_EXACT},
	{"run-queue.covered_ns", "run-queue:covered", "run-queue", TALLY_COVERED},
	{"mem.windows", "mem-alloc:windows", "mem-alloc", TALLY_WINDOWS},
	{"mem.windows_within", "mem-alloc:within", "mem-alloc", TALLY_WITHIN},
	{"mem.windows_between", "mem-alloc:between", "mem-alloc", TALLY_BETWEEN},
};

enum { TALLIES = sizeof tallies / sizeof *tallies };

const struct tally *tally_of_attribute(struct text attribute)
{
	for (int i = 0; i < TALLIES; i++)
		if (strlen(tallies[i].attribute) == attribute.length &&
		    !memcmp(tallies[i].attribute, attribute.at, attribute.length))
			return &tallies[i];
	return NULL;
}

const struct tally *tally_find(const char *name)
{
	for (int i = 0; i < TALLIES; i++)
		if (!strcmp(tallies[i].name, name))
			return &tallies[i];
	return NULL;
}

bool tallies_has_type(int type)
{
	for (int i = 0; i < TALLIES; i++)
		if (profile_type_find(tallies[i].type, strlen(tallies[i].type)) == type)
			return true;
	return false;
}

bool tallies_add(struct host_accounting *host, int type, const char *name, uint64_t count)
{
	const struct tally *tally = tally_find(name);

	if (!tally) {
		bool is_series = !strcmp(name, TALLY_SERIES_FOLDED);
		bool is_stacks = !strcmp(name, TALLY_STACKS_FOLDED);

		bool is_reported = !strcmp(name, TALLY_REPORTED);

		if (is_reported)
			host->reported_ms += count;
		if (is_series)
			host->folded_series += count;
		if (is_stacks)
			host->folded_stacks += count;
		return is_series || is_stacks || is_reported;
	}
	if (profile_type_find(tally->type, strlen(tally->type)) != type)
		return true;
	host->has_exact |= tally->what == TALLY_EXACT || tally->what == TALLY_COVERED;
	host->tallies[tally->what] += count;
	return true;
}

bool losses_add(struct host_accounting *host, struct text reason, uint64_t count,
		struct arena *arena)
{
	unsigned i = 0;

	while (i < host->lost_count && (strlen(host->lost_by[i].reason) != reason.length ||
					memcmp(host->lost_by[i].reason, reason.at, reason.length)))
		i++;
	if (i == BATCH_LOST_REASONS)
		i--;
	if (i == host->lost_count) {
		const char *kept = arena ? arena_text(arena, reason.at, reason.length) : reason.at;

		if (!kept)
			return false;
		host->lost_by[i].reason = kept;
		host->lost_by[i].count = 0;
		host->lost_count++;
	}
	host->lost_by[i].count += count;
	host->lost += count;
	return true;
}

static int compare_hosts(const void *a, const void *b)
{
	return strcmp(((const struct host_accounting *)a)->host,
		      ((const struct host_accounting *)b)->host);
}

void hosts_sort(struct host_accounting *hosts, uint32_t count)
{
	if (count)
		qsort(hosts, count, sizeof *hosts, compare_hosts);
}
