/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/store/sqlite/reported_time.h"

#include <string.h>

#include "common/hash_table.h"

/* Reports of two agents lie this far into each other at most; a host's clock that was set back, or
 * one that brings what it kept, does more. */
static const int64_t overlap_most_ms = 3600000;

uint64_t reported_time_take(struct reported_time *reported, uint32_t tenant, const char *host,
			    int64_t from_ms, int64_t until_ms)
{
	uint64_t hash = hash_bytes(host, strlen(host), tenant);
	int64_t known_ms = 0;

	if (until_ms <= from_ms)
		return 0;
	if (reported->hosts[hash % REPORTED_HOSTS].host == hash)
		known_ms = reported->hosts[hash % REPORTED_HOSTS].until_ms;
	if (known_ms > from_ms && known_ms - from_ms <= overlap_most_ms)
		from_ms = known_ms;
	if (until_ms <= from_ms)
		return 0;
	reported->hosts[hash % REPORTED_HOSTS].host = hash;
	reported->hosts[hash % REPORTED_HOSTS].until_ms = until_ms;
	return (uint64_t)(until_ms - from_ms);
}
