/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/store/sqlite/answers/query_run.h"

#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "symbol-server/store/sqlite/answers/host_steps.h"
#include "symbol-server/store/rules/tallies.h"

enum { HOSTS_MAX = 1 << 20, NOT_WANTED = UINT32_MAX };

void query_run_keep_host(void *context, uint32_t host)
{
	struct query_run *run = context;

	query_run_maps(run, run->day)->is_host[host] = 1;
}

/* Names of hosts that took part; only asked when the query chooses series. */
struct host_set {
	struct hash_table index;
	const char **names;
	size_t count, room;
};

struct host_sums {
	struct query_run *run;
	struct host_set wanted;
	struct hash_table index;
	uint32_t *known; /* by string of the day: number of the result + 1, or NOT_WANTED */
	size_t room;
	struct host_steps steps;
	int64_t time_ms;       /* of the row that is being read */
	bool only_reported;    /* of a type that does not have it in its own accounts */
	bool is_full, is_over; /* over: a limit, as the run's err says */
};

static bool has_host(const struct host_set *set, const char *host)
{
	uint64_t hash = hash_bytes(host, strlen(host), 0);

	HASH_TABLE_EACH(i, &set->index, hash)
		if (!strcmp(set->names[i], host))
			return true;
	return false;
}

static bool add_host(struct host_set *set, const char *host)
{
	if (has_host(set, host))
		return true;
	if (!ARRAY_GROW(set->names, set->count, set->room) ||
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
static bool fill_hosts(struct query_run *run, struct host_set *set)
{
	const struct samples_result *result = run->result;

	for (uint32_t i = 0; i < result->series_count; i++)
		if (!limit_watch_goes_on(&run->view.watch, run->err) ||
		    !add_series_hosts(set, &result->series[i]))
			return false;
	for (unsigned i = 0; i < run->view.day_count; i++) {
		const struct view_day *day = &run->view.days[i];

		for (uint32_t n = 1; n < day->mark.count[CATALOG_STRINGS]; n++) {
			if (!limit_watch_goes_on(&run->view.watch, run->err))
				return false;
			if (run->maps[i].is_host[n] &&
			    !add_host(set, catalog_string(day->catalog, n)->text))
				return false;
		}
	}
	return true;
}

/* The result's number + 1; 0: no room. */
static uint32_t number_host(struct host_sums *sums, const char *host)
{
	struct samples_result *result = sums->run->result;
	uint64_t hash = hash_bytes(host, strlen(host), 0);

	if (sums->run->query->series_wanted && !has_host(&sums->wanted, host))
		return NOT_WANTED;
	HASH_TABLE_EACH(i, &sums->index, hash)
		if (!strcmp(result->hosts[i].host, host))
			return i + 1;
	if (sums->only_reported)
		return NOT_WANTED;
	if (!ARRAY_GROW(result->hosts, result->host_count, sums->room) ||
	    !hash_table_add(&sums->index, hash, result->host_count))
		return 0;
	result->hosts[result->host_count] =
		(struct host_accounting){.host = arena_text(&result->arena, host, strlen(host)),
					 .number = result->host_count};
	return result->hosts[result->host_count].host ? ++result->host_count : 0;
}

static void add_counted(struct host_sums *sums, struct host_accounting *host, uint32_t reason,
			uint64_t count)
{
	const char *name = query_run_string(sums->run, sums->run->day, reason);

	if (sums->only_reported && strcmp(name, TALLY_REPORTED))
		return;
	/* It may have been a tally's: samples that are missing for it are unexplained then. */
	if (!strcmp(name, CATALOG_DAMAGED_TEXT))
		return;
	if (!tallies_add(host, sums->run->type, name, count))
		losses_add(host, (struct text){name, (uint32_t)strlen(name)}, count, NULL);
}

/* NULL: nobody asks for it, or there is no room. */
static struct host_accounting *host_of(struct host_sums *sums, const struct packed_account *account)
{
	struct view_day *day = sums->run->day;
	uint32_t *known;

	if (account->host >= day->mark.count[CATALOG_STRINGS])
		return NULL;
	known = &sums->known[account->host];
	if (!*known)
		*known = number_host(sums, catalog_string(day->catalog, account->host)->text);
	sums->is_full |= !*known;
	return *known && *known != NOT_WANTED ? &sums->run->result->hosts[*known - 1] : NULL;
}

static bool add_entry(void *context, const struct packed_account *account)
{
	struct host_sums *sums = context;
	struct view_day *day = sums->run->day;
	struct host_accounting *host = host_of(sums, account);
	uint64_t reported_ms, lost;

	if (!host)
		return !sums->is_full;
	reported_ms = host->reported_ms;
	lost = host->lost;
	host->taken += sums->only_reported ? 0 : account->taken;
	host->idle += sums->only_reported ? 0 : account->idle;
	host->samples += sums->only_reported ? 0 : account->samples;
	for (unsigned i = 0; i < account->lost_count; i++)
		if (account->lost[i].count &&
		    account->lost[i].reason < day->mark.count[CATALOG_STRINGS])
			add_counted(sums, host, account->lost[i].reason, account->lost[i].count);
	if (host->reported_ms != reported_ms || host->lost != lost)
		host_steps_add(&sums->steps, host->number, sums->time_ms,
			       host->reported_ms - reported_ms, host->lost - lost);
	return true;
}

static bool add_account(void *context, const struct view_row *row)
{
	struct host_sums *sums = context;
	struct query_run *run = sums->run;

	sums->time_ms = view_row_ms(row);
	view_each_entry(row, add_entry, context);
	sums->is_over = !limit_watch_goes_on(&run->view.watch, run->err);
	return !sums->is_full && !sums->is_over;
}

static bool add_day(struct host_sums *sums, struct view_day *day, struct error *err)
{
	struct query_run *run = sums->run;
	struct view *view = &run->view;

	if (!day->catalog)
		return true;
	run->day = day;
	sums->known = arena_array(&view->arena, day->mark.count[CATALOG_STRINGS],
				  sizeof *sums->known);
	return sums->known &&
	       view_each_account(view, day, run->query, sums->only_reported ? 0 : run->type,
				 add_account, sums, err) &&
	       !sums->is_full && !sums->is_over;
}

static bool add_days(struct host_sums *sums, struct error *err)
{
	struct view *view = &sums->run->view;
	bool ok = true;

	for (unsigned i = 0; ok && i < view->day_count; i++)
		ok = add_day(sums, &view->days[i], err);
	sums->only_reported = true;
	for (unsigned i = 0; ok && sums->run->type && i < view->day_count; i++)
		ok = add_day(sums, &view->days[i], err);
	return ok;
}

/* By name; what was counted by step is of the hosts where they are then. */
static bool sort_hosts(struct host_sums *sums)
{
	struct samples_result *result = sums->run->result;
	uint32_t *places = arena_array(&sums->run->view.arena, result->host_count, sizeof *places);

	if (!result->host_count)
		return true;
	if (!places)
		return false;
	hosts_sort(result->hosts, result->host_count);
	for (uint32_t i = 0; i < result->host_count; i++)
		places[result->hosts[i].number] = i;
	result->host_steps = host_steps_settle(&sums->steps, &result->arena, places,
					       &result->host_step_count);
	return result->host_steps;
}

bool query_run_put_hosts(struct query_run *run, struct error *err)
{
	struct host_sums sums = {.run = run};
	bool ok;

	hash_table_init(&sums.index, HOSTS_MAX);
	hash_table_init(&sums.wanted.index, HOSTS_MAX);
	host_steps_init(&sums.steps, run->query);
	ok = !run->query->series_wanted || fill_hosts(run, &sums.wanted);
	ok = ok && add_days(&sums, err);
	ok = ok && (sort_hosts(&sums) || !(run->is_full = true));
	hash_table_release(&sums.index);
	hash_table_release(&sums.wanted.index);
	host_steps_release(&sums.steps);
	free(sums.wanted.names);
	return ok && !run->is_full;
}
