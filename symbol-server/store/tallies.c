/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/store/tallies.h"

#include <string.h>

static const struct tally tallies[] = {
	{"off-cpu.exact_ns", "off-cpu:exact", "off-cpu", true},
	{"off-cpu.covered_ns", "off-cpu:covered", "off-cpu", false},
	{"run-queue.exact_ns", "run-queue:exact", "run-queue", true},
	{"run-queue.covered_ns", "run-queue:covered", "run-queue", false},
};

enum { TALLY_COUNT = sizeof tallies / sizeof *tallies };

const struct tally *tally_of_attribute(struct text attribute)
{
	for (int i = 0; i < TALLY_COUNT; i++)
		if (strlen(tallies[i].attribute) == attribute.length &&
		    !memcmp(tallies[i].attribute, attribute.at, attribute.length))
			return &tallies[i];
	return NULL;
}

const struct tally *tally_find(const char *name)
{
	for (int i = 0; i < TALLY_COUNT; i++)
		if (!strcmp(tallies[i].name, name))
			return &tallies[i];
	return NULL;
}

bool tallies_has_type(int type)
{
	for (int i = 0; i < TALLY_COUNT; i++)
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
	host->has_exact = true;
	*(tally->is_exact ? &host->exact : &host->covered) += count;
	return true;
}
