/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/api/diff_hosts.h"

#include <stdlib.h>
#include <string.h>

#include "symbol-server/query/selector.h"

static int compare_names(const void *left, const void *right)
{
	const struct diff_host *a = left, *b = right;

	return strcmp(a->name, b->name);
}

static struct diff_host *find(const struct diff_hosts *hosts, const char *name)
{
	struct diff_host key = {.name = name};

	return hosts->count ? bsearch(&key, hosts->list, hosts->count, sizeof(key), compare_names)
			    : NULL;
}

static bool list_hosts(struct diff_hosts *hosts, const struct samples_result *result)
{
	hosts->list = calloc((size_t)result->host_count + 1, sizeof(*hosts->list));
	hosts->of_series = calloc((size_t)result->series_count + 1, sizeof(*hosts->of_series));
	if (!hosts->list || !hosts->of_series)
		return false;
	for (uint32_t i = 0; i < result->host_count; i++)
		hosts->list[hosts->count++].name = result->hosts[i].host;
	if (hosts->count)
		qsort(hosts->list, hosts->count, sizeof(*hosts->list), compare_names);
	for (uint32_t i = 0; i < result->series_count; i++) {
		const struct diff_host *host = find(hosts,
						    series_label(&result->series[i], "host"));

		hosts->of_series[i] = host ? (uint32_t)(host - hosts->list) : hosts->count;
	}
	return true;
}

bool diff_hosts_match(struct diff_hosts hosts[2], const struct samples_result *const results[2])
{
	for (unsigned s = 0; s < 2; s++) {
		diff_hosts_release(&hosts[s]);
		if (!list_hosts(&hosts[s], results[s]))
			return false;
	}
	for (uint32_t i = 0; i < hosts[0].count; i++) {
		struct diff_host *other = find(&hosts[1], hosts[0].list[i].name);

		if (!other)
			continue;
		other->is_common = hosts[0].list[i].is_common = true;
		hosts[0].common = ++hosts[1].common;
	}
	return true;
}

bool diff_hosts_differ(const struct diff_hosts hosts[2])
{
	return hosts[0].common &&
	       (hosts[0].common < hosts[0].count || hosts[1].common < hosts[1].count);
}

struct diff_host *diff_hosts_of(const struct diff_hosts *hosts, uint32_t series)
{
	uint32_t at = hosts->of_series[series];

	return at < hosts->count ? &hosts->list[at] : NULL;
}

static int compare_values(const void *left, const void *right)
{
	const struct diff_host *a = left, *b = right;

	if (a->is_common != b->is_common)
		return a->is_common ? 1 : -1;
	if (a->value != b->value)
		return a->value > b->value ? -1 : 1;
	return strcmp(a->name, b->name);
}

void diff_hosts_sort(struct diff_hosts *hosts)
{
	if (hosts->count)
		qsort(hosts->list, hosts->count, sizeof(*hosts->list), compare_values);
}

void diff_hosts_release(struct diff_hosts *hosts)
{
	free(hosts->list);
	free(hosts->of_series);
	*hosts = (struct diff_hosts){0};
}
