/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/api/host_cpus.h"

#include <stdlib.h>
#include <string.h>

#include "symbol-server/api/api.h"

static int compare(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

uint64_t host_cpus(struct samples_store *store, const struct host_accounting *hosts,
		   uint32_t host_count, const struct host_step *steps, uint32_t step_count)
{
	const char **names = calloc((size_t)host_count + 1, sizeof *names);
	uint32_t count = 0;
	uint64_t cpus = 0;

	for (uint32_t i = 0; names && i < step_count; i++)
		if (steps[i].reported_ms && steps[i].host < host_count)
			names[steps[i].host] = hosts[steps[i].host].host;
	for (uint32_t i = 0; names && i < host_count; i++)
		if (names[i])
			names[count++] = names[i];
	if (count) {
		qsort(names, count, sizeof *names, compare);
		cpus = samples_cpus(store, API_TENANT, names, count);
	}
	free(names);
	return cpus;
}
