/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/store/sqlite/answers/querying.h"

#include <stdlib.h>
#include <string.h>

#include "symbol-server/store/tallies.h"

enum { HOSTS_MAX = 1 << 20, NOT_WANTED = UINT32_MAX };

void querying_keep_host(void *context, uint32_t host)
{
	struct querying *querying = context;

	querying_maps(querying, querying->day)->is_host[host] = 1;
}

/* Names of hosts that took part; only asked when the query chooses series. */
struct host_set {
	struct hash_table index;
	const char **names;
	size_t count, room;
};

struct host_sums {
	struct querying *querying;
	struct host_set wanted;
	struct hash_table index;
	uint32_t *known; /* by string of the day: number of the result + 1, or NOT_WANTED */
	size_t room;
	bool is_full;
};

static bool has_host(const struct host_set *set, const char *host)
{
	uint32_t probe = 0;
	uint64_t hash = hash_bytes(host, strlen(host), 0);

	for (uint32_t i = hash_table_first(&set->index, hash, &probe); i != HASH_TABLE_NONE;
	     i = hash_table_next(&set->index, hash, &probe))
		if (!strcmp(set->names[i], host))
			return true;
	return false;
}

static bool add_host(struct host_set *set, const char *host)
{
	if (has_host(set, host))
		return true;
	if (!querying_grow((void **)&set->names, set->count, &set->room, sizeof *set->names) ||
	    !hash_table_add(&set->index, hash_bytes(host, strlen(host), 0), (uint32_t)set->count))
		return false;
	set->names[set->count++] = host;
	return true;
}

static bool add_series_hosts(struct host_set *set, const struct series_labels *series)
{
	for (uint32_t i = 0; i < series->count; i++)
		if (!strcmp(series->names[i], "host") && !add_host(set, series->values[i]))
			return false;
	return true;
}

/* Of rows that were read: their series say it, or the row does. */
static bool fill_hosts(const struct querying *querying, struct host_set *set)
{
	const struct samples_result *result = querying->result;

	for (uint32_t i = 0; i < result->series_count; i++)
		if (!add_series_hosts(set, &result->series[i]))
			return false;
	for (unsigned i = 0; i < querying->view.day_count; i++) {
		const struct view_day *day = &querying->view.days[i];

		for (uint32_t n = 1; n < day->mark.count[CATALOG_STRINGS]; n++)
			if (querying->maps[i].is_host[n] &&
			    !add_host(set, catalog_string(day->catalog, n)->text))
				return false;
	}
	return true;
}

/* The result's number + 1; 0: no room. */
static uint32_t number_host(struct host_sums *sums, const char *host)
{
	struct samples_result *result = sums->querying->result;
	uint64_t hash = hash_bytes(host, strlen(host), 0);
	uint32_t probe = 0;

	if (sums->querying->query->series_wanted && !has_host(&sums->wanted, host))
		return NOT_WANTED;
	for (uint32_t i = hash_table_first(&sums->index, hash, &probe); i != HASH_TABLE_NONE;
	     i = hash_table_next(&sums->index, hash, &probe))
		if (!strcmp(result->hosts[i].host, host))
			return i + 1;
	if (!querying_grow((void **)&result->hosts, result->host_count, &sums->room,
			   sizeof *result->hosts) ||
	    !hash_table_add(&sums->index, hash, result->host_count))
		return 0;
	result->hosts[result->host_count] =
		(struct host_accounting){.host = arena_text(&result->arena, host, strlen(host))};
	return result->hosts[result->host_count].host ? ++result->host_count : 0;
}

static void add_loss(struct host_accounting *host, const char *reason, uint64_t count)
{
	unsigned i = 0;

	while (i < host->lost_count && strcmp(host->lost_by[i].reason, reason))
		i++;
	if (i == BATCH_LOST_REASONS)
		i--;
	if (i == host->lost_count) {
		host->lost_by[i].reason = reason;
		host->lost_by[i].count = 0;
		host->lost_count++;
	}
	host->lost_by[i].count += count;
	host->lost += count;
}

static void add_counted(struct host_sums *sums, struct host_accounting *host, uint32_t reason,
			uint64_t count)
{
	const char *name = querying_string(sums->querying, sums->querying->day, reason);

	if (!tallies_add(host, sums->querying->type, name, count))
		add_loss(host, name, count);
}

static bool add_entry(void *context, const struct packed_account *account)
{
	struct host_sums *sums = context;
	struct querying *querying = sums->querying;
	struct view_day *day = querying->day;
	struct host_accounting *host;
	uint32_t *known;

	if (account->host >= day->mark.count[CATALOG_STRINGS])
		return true;
	known = &sums->known[account->host];
	if (!*known)
		*known = number_host(sums, catalog_string(day->catalog, account->host)->text);
	if (*known == NOT_WANTED)
		return true;
	sums->is_full |= !*known;
	if (sums->is_full)
		return false;
	host = &querying->result->hosts[*known - 1];
	host->taken += account->taken;
	host->idle += account->idle;
	host->samples += account->samples;
	for (unsigned i = 0; i < account->lost_count; i++)
		if (account->lost[i].count &&
		    account->lost[i].reason < day->mark.count[CATALOG_STRINGS])
			add_counted(sums, host, account->lost[i].reason, account->lost[i].count);
	return true;
}

static bool add_account(void *context, const struct view_row *row)
{
	view_each_entry(row, add_entry, context);
	return !((struct host_sums *)context)->is_full;
}

static int compare_hosts(const void *a, const void *b)
{
	return strcmp(((const struct host_accounting *)a)->host,
		      ((const struct host_accounting *)b)->host);
}

static bool add_day(struct host_sums *sums, struct view_day *day, struct error *err)
{
	struct querying *querying = sums->querying;
	struct view *view = &querying->view;

	if (!day->catalog)
		return true;
	querying->day = day;
	sums->known = arena_array(&view->arena, day->mark.count[CATALOG_STRINGS],
				  sizeof *sums->known);
	return sums->known &&
	       view_each_account(view, day, querying->query, querying->type, add_account, sums,
				 err) &&
	       !sums->is_full;
}

bool querying_put_hosts(struct querying *querying, struct error *err)
{
	struct samples_result *result = querying->result;
	struct host_sums sums = {.querying = querying};
	bool ok;

	hash_table_init(&sums.index, HOSTS_MAX);
	hash_table_init(&sums.wanted.index, HOSTS_MAX);
	ok = !querying->query->series_wanted || fill_hosts(querying, &sums.wanted);
	for (unsigned i = 0; ok && i < querying->view.day_count; i++)
		ok = add_day(&sums, &querying->view.days[i], err);
	hash_table_release(&sums.index);
	hash_table_release(&sums.wanted.index);
	free(sums.wanted.names);
	if (result->host_count)
		qsort(result->hosts, result->host_count, sizeof *result->hosts, compare_hosts);
	return ok && !querying->is_full;
}
