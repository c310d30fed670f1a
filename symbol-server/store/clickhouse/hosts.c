/* SPDX-License-Identifier: Apache-2.0 */
/* The accounts of hosts: samples from the series' sums, taken and lost as differences of what
 * agents counted. An agent's counts only rise, so what it counted in a range is the difference of
 * the largest count in it and the largest before it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbol-server/store/clickhouse/scope.h"
#include "symbol-server/store/rules/agent_table.h"
#include "symbol-server/store/rules/tallies.h"

enum { LOOK_BACK_S = 3600 };

struct agent_span { /* one agent in the range */
	char id[16];
	const char *host;
	uint64_t taken, idle, before_taken, before_idle; /* largest counts */
	uint64_t first_taken, first_idle, first_own;     /* of the first report known */
	uint64_t least_acknowledged, first_seq;
	bool has_before;
};

struct host_sums {
	struct scope *scope;
	struct arena *arena;
	struct host_accounting *hosts;
	size_t room;
	uint32_t count;
	struct hash_table index;
	struct agent_span *agents;
	size_t agent_count, agent_room;
	struct hash_table agent_index;
	bool has_irregular;
	struct agent_table irregular; /* has the one whose reports are being read */
};

static struct host_accounting *host_of(struct host_sums *sums, const char *host)
{
	uint64_t hash = hash_bytes(host, strlen(host), 0);
	uint32_t probe = 0;

	for (uint32_t i = hash_table_first(&sums->index, hash, &probe); i != HASH_TABLE_NONE;
	     i = hash_table_next(&sums->index, hash, &probe))
		if (!strcmp(sums->hosts[i].host, host))
			return &sums->hosts[i];
	host = arena_text(sums->arena, host, strlen(host));
	if (!host || !SCOPE_GROW(sums->hosts, sums->count, sums->room) ||
	    !hash_table_add(&sums->index, hash, sums->count)) {
		sums->scope->is_full = true;
		return NULL;
	}
	sums->hosts[sums->count] = (struct host_accounting){.host = host};
	return &sums->hosts[sums->count++];
}

static const char *terminated(struct host_sums *sums, struct text text)
{
	const char *copy = arena_text(sums->arena, text.at, text.length);

	sums->scope->is_full |= !copy;
	return copy ? copy : "";
}

static void add_loss(struct host_sums *sums, struct host_accounting *host, struct text reason,
		     uint64_t count)
{
	sums->scope->is_full |= !losses_add(host, reason, count, sums->arena);
}

/* What agents take and lose are samples of on-cpu. */
static bool counts_samples(const struct host_sums *sums)
{
	return sums->scope->type <= 0;
}

static bool has_tally(const struct host_accounting *host)
{
	for (unsigned i = 0; i < TALLY_COUNT; i++)
		if (host->tallies[i])
			return true;
	return host->has_exact;
}

static void add_counted(struct host_sums *sums, const char *host_name, struct text name,
			uint64_t count)
{
	struct host_accounting tallied = {0}, *host;
	char text[COUNT_NAME_BYTES];
	bool is_tally;

	snprintf(text, sizeof text, "%.*s", (int)name.length, name.at);
	is_tally = tallies_add(&tallied, sums->scope->type, text, count);
	if (is_tally ? !has_tally(&tallied) : !counts_samples(sums))
		return;
	host = host_of(sums, host_name);
	if (host && is_tally)
		tallies_add(host, sums->scope->type, text, count);
	else if (host)
		add_loss(sums, host, name, count);
}

/* What adder_define_other() made; a program of that name without any other label looks the same. */
static bool is_other(const struct series_labels *labels)
{
	return labels->count == 3 && !strcmp(labels->names[0], "host") &&
	       !strcmp(labels->names[1], "process") && !strcmp(labels->values[1], "other") &&
	       !strcmp(labels->names[2], "service") && !strcmp(labels->values[2], "other");
}

static void add_series(struct host_sums *sums)
{
	for (size_t i = 0; i < sums->scope->series_count; i++) {
		const struct series_sum *sum = &sums->scope->series[i];
		const char *name = scope_series(sums->scope, sum)->host;
		struct host_accounting *host = host_of(sums, name);

		if (!host)
			return;
		host->samples += sum->samples;
		host->taken += sum->taken;
		if (is_other(&scope_series(sums->scope, sum)->labels))
			host->folded_series += sum->samples;
	}
}

static struct text refused_by(const struct series_labels *labels)
{
	for (uint32_t i = 0; i < labels->count; i++)
		if (!strcmp(labels->names[i], clickhouse_lost_label))
			return (struct text){labels->values[i],
					     (uint32_t)strlen(labels->values[i])};
	return (struct text){"series_limit", 12};
}

/* After what agents lost. */
static void add_missing(struct host_sums *sums)
{
	static const struct text deleted = {"deleted", 7};

	for (size_t i = 0; i < sums->scope->series_count; i++) {
		const struct series_sum *sum = &sums->scope->series[i];
		struct host_accounting *host = NULL;

		if (sum->refused || sum->deleted)
			host = host_of(sums, scope_series(sums->scope, sum)->host);
		if (host && sum->refused)
			add_loss(sums, host, refused_by(&scope_series(sums->scope, sum)->labels),
				 sum->refused);
		if (host && sum->deleted)
			add_loss(sums, host, deleted, sum->deleted);
	}
}

/* --- agents --- */

static uint64_t agent_hash(const char id[16])
{
	return hash_bytes(id, 16, 0);
}

static struct agent_span *find_agent(struct host_sums *sums, const char id[16])
{
	uint64_t hash = agent_hash(id);
	uint32_t probe = 0;

	for (uint32_t i = hash_table_first(&sums->agent_index, hash, &probe); i != HASH_TABLE_NONE;
	     i = hash_table_next(&sums->agent_index, hash, &probe))
		if (!memcmp(sums->agents[i].id, id, 16))
			return &sums->agents[i];
	return NULL;
}

static bool keep_agent(void *context, struct row_reader *row)
{
	struct host_sums *sums = context;
	struct text id = row_fixed(row, 16), host = row_text(row);
	uint64_t in_range = row_number(row, 8), before = row_number(row, 8), numbers[9];
	struct agent_span agent = {0};

	for (unsigned i = 0; i < 9; i++)
		numbers[i] = row_number(row, 8);
	if (row->is_short || !in_range)
		return true;
	agent = (struct agent_span){.taken = numbers[0],
				    .idle = numbers[1],
				    .before_taken = numbers[2],
				    .before_idle = numbers[3],
				    .first_taken = numbers[4],
				    .first_idle = numbers[5],
				    .first_own = numbers[6],
				    .least_acknowledged = numbers[7],
				    .first_seq = numbers[8],
				    .has_before = before > 0};
	memcpy(agent.id, id.at, 16);
	agent.host = arena_text(sums->arena, host.at, host.length);
	if (!agent.host || !SCOPE_GROW(sums->agents, sums->agent_count, sums->agent_room) ||
	    !hash_table_add(&sums->agent_index, agent_hash(agent.id),
			    (uint32_t)sums->agent_count)) {
		sums->scope->is_full = true;
		return false;
	}
	sums->agents[sums->agent_count++] = agent;
	return true;
}

static const char *global(const struct host_sums *sums)
{
	return *clickhouse_address(sums->scope->store->client)->cluster ? "GLOBAL " : "";
}

static void put_regular(const struct host_sums *sums, struct buffer *sql)
{
	if (sums->has_irregular)
		buffer_printf(sql,
			      " AND agent %sNOT IN (SELECT agent FROM irregular_agents WHERE "
			      "tenant = %u)",
			      global(sums), sums->scope->query->tenant);
}

/* Reports, those too of which only the first and the last of ten minutes are kept: the largest
 * counts are the same. */
static void put_reports(const struct host_sums *sums, struct buffer *sql, const char *where)
{
	static const char columns[] = "agent, minute, seq, host, acknowledged, taken, idle, "
				      "own_samples, lost_names, lost_counts";

	if (!rollup_outlives_minutes(sums->scope->store->keep_ms)) {
		buffer_printf(sql, "(SELECT %s FROM reports WHERE %s)", columns, where);
		return;
	}
	buffer_printf(
		sql,
		"(SELECT %s FROM reports WHERE %s UNION ALL SELECT %s FROM reports_kept WHERE "
		"%s)",
		columns, where, columns, where);
}

static void put_span(const struct host_sums *sums, struct buffer *sql)
{
	long long from = (long long)sums->scope->kept_from_ms / 1000;
	struct buffer where;

	buffer_init(&where, 1024);
	buffer_printf(&where,
		      "tenant = %u AND minute >= toDateTime(%lld) AND minute < toDateTime(%lld)",
		      sums->scope->query->tenant, from > LOOK_BACK_S ? from - LOOK_BACK_S : 0,
		      (long long)sums->scope->until_ms / 1000);
	put_regular(sums, &where);
	buffer_append_char(&where, '\0');
	if (!where.failed)
		put_reports(sums, sql, (const char *)where.bytes);
	sql->failed |= where.failed;
	buffer_release(&where);
}

static bool ask(struct host_sums *sums, struct buffer *sql, const struct buffer *set,
		bool (*row)(void *context, struct row_reader *row), struct error *err)
{
	const struct samples_query *query = sums->scope->query;
	struct clickhouse_set agents = {"agent FixedString(16)", set};
	bool ok;

	buffer_append_char(sql, '\0');
	ok = !sql->failed || error_set(err, ERROR_MEMORY, "no memory for a question");
	ok = ok && clickhouse_ask(sums->scope->store->client,
				  &(struct clickhouse_question){
					  .sql = (const char *)sql->bytes,
					  .set = set ? &agents : NULL,
					  .limits = &query->limits,
					  .is_cancelled = query->is_cancelled,
					  .cancel_context = query->context,
					  .row = row,
					  .context = sums,
				  },
				  err);
	buffer_release(sql);
	return ok;
}

static bool read_agents(struct host_sums *sums, struct error *err)
{
	long long from = (long long)sums->scope->kept_from_ms / 1000;
	struct buffer sql;

	buffer_init(&sql, 4096);
	buffer_printf(
		&sql,
		"SELECT agent, argMax(host, seq), countIf(minute >= toDateTime(%lld)), "
		"countIf(minute < toDateTime(%lld)), maxIf(taken, minute >= toDateTime(%lld)), "
		"maxIf(idle, minute >= toDateTime(%lld)), maxIf(taken, minute < "
		"toDateTime(%lld)), maxIf(idle, minute < toDateTime(%lld)), ",
		from, from, from, from, from, from);
	buffer_append_text(&sql, "argMin(taken, seq), argMin(idle, seq), argMin(own_samples, seq), "
				 "min(acknowledged), min(seq) FROM ");
	put_span(sums, &sql);
	buffer_append_text(&sql, " GROUP BY agent");
	return ask(sums, &sql, NULL, keep_agent, err);
}

/* Agents that were not heard in the hour before the range may have been before that. */
static void put_unknown(const struct host_sums *sums, struct buffer *ids)
{
	for (size_t i = 0; i < sums->agent_count; i++)
		if (!sums->agents[i].has_before && sums->agents[i].least_acknowledged)
			buffer_append(ids, sums->agents[i].id, 16);
}

static bool keep_before(void *context, struct row_reader *row)
{
	struct text id = row_fixed(row, 16);
	uint64_t taken = row_number(row, 8), idle = row_number(row, 8);
	struct agent_span *agent;

	if (row->is_short)
		return true;
	agent = find_agent(context, id.at);
	if (agent) {
		agent->has_before = true;
		agent->before_taken = taken;
		agent->before_idle = idle;
	}
	return true;
}

static bool read_before(struct host_sums *sums, const struct buffer *unknown, struct error *err)
{
	struct buffer sql;
	char where[200];

	snprintf(where, sizeof where,
		 "tenant = %u AND agent IN wanted AND minute < toDateTime(%lld)",
		 sums->scope->query->tenant, (long long)sums->scope->kept_from_ms / 1000);
	buffer_init(&sql, 4096);
	buffer_append_text(&sql, "SELECT agent, max(taken), max(idle) FROM ");
	put_reports(sums, &sql, where);
	buffer_append_text(&sql, " GROUP BY agent");
	return ask(sums, &sql, unknown, keep_before, err);
}

static uint64_t rise(uint64_t top, uint64_t base)
{
	return top > base ? top - base : 0;
}

/* schema/README.md has the rule: an id never seen with nothing acknowledged counts from zero, one
 * that was acknowledged before starts at its first report's own samples. */
static void add_agents(struct host_sums *sums)
{
	for (size_t i = 0; counts_samples(sums) && i < sums->agent_count; i++) {
		struct agent_span *agent = &sums->agents[i];
		struct host_accounting *host = host_of(sums, agent->host);

		if (!host)
			return;
		if (!agent->has_before && agent->least_acknowledged) {
			agent->before_taken = rise(agent->first_taken, agent->first_own);
			agent->before_idle = agent->first_idle;
		}
		host->taken += rise(agent->taken, agent->before_taken);
		host->idle += rise(agent->idle, agent->before_idle);
	}
}

/* --- losses --- */

/* One agent's one reason: counts in the range, before it, and at its first report. */
static bool add_lost(void *context, struct row_reader *row)
{
	struct host_sums *sums = context;
	struct text id = row_fixed(row, 16), reason = row_text(row);
	uint64_t top = row_number(row, 8), before = row_number(row, 8), first = row_number(row, 8);
	uint64_t first_seq = row_number(row, 8);
	struct agent_span *agent;

	if (row->is_short)
		return true;
	agent = find_agent(sums, id.at);
	if (!agent)
		return true;
	if (!agent->has_before)
		before = agent->least_acknowledged && first_seq == agent->first_seq ? first : 0;
	if (rise(top, before))
		add_counted(sums, agent->host, reason, rise(top, before));
	return !sums->scope->is_full;
}

/* With far: agents whose count before the range is not in the hour before it. */
static bool read_lost(struct host_sums *sums, const struct buffer *far, bool is_far,
		      struct error *err)
{
	long long from = (long long)sums->scope->kept_from_ms / 1000;
	long long until = (long long)sums->scope->until_ms / 1000;
	struct buffer sql;
	char where[200];

	if (is_far && !far->length)
		return true;
	buffer_init(&sql, 4096);
	buffer_printf(&sql,
		      "SELECT agent, reason, maxIf(lost, minute >= toDateTime(%lld)), maxIf(lost, "
		      "minute < toDateTime(%lld)), argMin(lost, seq), min(seq) FROM (SELECT agent, "
		      "minute, seq, lost_names, lost_counts FROM ",
		      from, from);
	snprintf(where, sizeof where, "tenant = %u AND minute < toDateTime(%lld)",
		 sums->scope->query->tenant, until);
	if (is_far)
		put_reports(sums, &sql, where);
	else
		put_span(sums, &sql);
	if (far->length)
		buffer_printf(&sql, " WHERE agent %s wanted", is_far ? "IN" : "NOT IN");
	buffer_append_text(&sql, ") ARRAY JOIN lost_names AS reason, lost_counts AS lost "
				 "GROUP BY agent, reason ORDER BY agent, reason");
	return ask(sums, &sql, far->length ? far : NULL, add_lost, err);
}

/* --- agents whose reports do not follow each other in time: report by report --- */

static bool note_irregular(void *context, struct row_reader *row)
{
	uint64_t count = row_number(row, 8);

	if (!row->is_short)
		((struct host_sums *)context)->has_irregular = count > 0;
	return true;
}

static bool look_for_irregular(struct host_sums *sums, struct error *err)
{
	struct buffer sql;

	buffer_init(&sql, 256);
	buffer_printf(&sql, "SELECT count() FROM irregular_agents WHERE tenant = %u",
		      sums->scope->query->tenant);
	return ask(sums, &sql, NULL, note_irregular, err);
}

struct irregular_report {
	struct text id, host;
	uint32_t minute;
	uint64_t own;
	struct agent_numbers numbers;
	struct text reasons[BATCH_LOST_REASONS];
};

static bool read_report(struct row_reader *row, struct irregular_report *report)
{
	struct agent_numbers *numbers = &report->numbers;
	uint32_t count, same;

	memset(report, 0, sizeof *report);
	report->id = row_fixed(row, 16);
	report->host = row_text(row);
	report->minute = (uint32_t)row_number(row, 4);
	numbers->acknowledged = row_number(row, 8);
	numbers->taken = row_number(row, 8);
	numbers->idle = row_number(row, 8);
	report->own = row_number(row, 8);
	count = row_array(row);
	if (count > BATCH_LOST_REASONS)
		row->is_bad = row->is_short = true;
	for (uint32_t i = 0; !row->is_short && i < count; i++)
		report->reasons[i] = row_text(row);
	same = row_array(row);
	if (same != count && !row->is_short)
		row->is_bad = row->is_short = true;
	for (uint32_t i = 0; !row->is_short && i < same; i++)
		numbers->lost[i] = row_number(row, 8);
	numbers->lost_count = count;
	return !row->is_short;
}

/* What it adds, by the rule of all agents. */
static void advance_agent(struct host_sums *sums, const struct irregular_report *report,
			  struct agent_delta *delta)
{
	char names[BATCH_LOST_REASONS][COUNT_NAME_BYTES];
	struct agent_report known = {.id = (const uint8_t *)report->id.at,
				     .host = "",
				     .version = "",
				     .kernel = "",
				     .own_samples = report->own,
				     .numbers = &report->numbers};

	for (uint32_t i = 0; i < report->numbers.lost_count; i++) {
		snprintf(names[i], sizeof names[i], "%.*s", (int)report->reasons[i].length,
			 report->reasons[i].at);
		known.lost[i] = names[i];
	}
	if (sums->irregular.count && memcmp(sums->irregular.rows[0]->id, known.id, 16) != 0)
		agent_table_release(&sums->irregular);
	if (!agent_table_apply(&sums->irregular, &known, delta))
		sums->scope->is_full = true;
}

static bool add_report(void *context, struct row_reader *row)
{
	struct host_sums *sums = context;
	struct host_accounting *host = NULL;
	struct irregular_report report;
	struct agent_delta delta;
	bool in_range;

	if (!read_report(row, &report))
		return true;
	advance_agent(sums, &report, &delta);
	in_range = report.minute * 1000ll >= sums->scope->kept_from_ms &&
		   report.minute * 1000ll < sums->scope->until_ms;
	if (in_range && counts_samples(sums))
		host = host_of(sums, terminated(sums, report.host));
	if (host) {
		host->taken += delta.taken;
		host->idle += delta.idle;
	}
	for (uint32_t i = 0; i < report.numbers.lost_count; i++)
		if (in_range && delta.lost[i])
			add_counted(sums, terminated(sums, report.host), report.reasons[i],
				    delta.lost[i]);
	return !sums->scope->is_full;
}

static bool read_irregular(struct host_sums *sums, struct error *err)
{
	struct buffer sql;
	char where[300];

	if (!sums->has_irregular)
		return true;
	snprintf(
		where, sizeof where,
		"tenant = %u AND agent %sIN (SELECT agent FROM irregular_agents WHERE tenant = %u)",
		sums->scope->query->tenant, global(sums), sums->scope->query->tenant);
	buffer_init(&sql, 4096);
	buffer_append_text(&sql, "SELECT agent, host, minute, acknowledged, taken, idle, "
				 "own_samples, lost_names, lost_counts FROM ");
	put_reports(sums, &sql, where);
	buffer_append_text(&sql, " ORDER BY agent, seq LIMIT 1 BY agent, seq");
	return ask(sums, &sql, NULL, add_report, err);
}

static bool read_reports(struct host_sums *sums, struct error *err)
{
	struct buffer far;
	bool ok;

	buffer_init(&far, SCOPE_BYTES_MAX);
	ok = look_for_irregular(sums, err) && read_agents(sums, err) && read_irregular(sums, err);
	put_unknown(sums, &far);
	if (ok && far.length)
		ok = read_before(sums, &far, err);
	add_agents(sums);
	ok = ok && read_lost(sums, &far, false, err) && read_lost(sums, &far, true, err);
	buffer_release(&far);
	return ok;
}

/* --- all of it --- */

/* With chosen series: the hosts that have one of them. */
static uint32_t keep_wanted(struct host_sums *sums)
{
	struct hash_table wanted;
	uint32_t kept = 0;

	hash_table_init(&wanted, UINT32_MAX >> 1);
	for (size_t i = 0; i < sums->scope->series_count; i++) {
		const struct series_sum *sum = &sums->scope->series[i];
		const char *host = scope_series(sums->scope, sum)->host;
		uint64_t hash = hash_bytes(host, strlen(host), 0);
		uint32_t probe = 0;

		if (sum->is_wanted && *host &&
		    hash_table_first(&wanted, hash, &probe) == HASH_TABLE_NONE)
			hash_table_add(&wanted, hash, 0);
	}
	for (uint32_t i = 0; i < sums->count; i++) {
		const char *host = sums->hosts[i].host;
		uint32_t probe = 0;

		if (hash_table_first(&wanted, hash_bytes(host, strlen(host), 0), &probe) !=
		    HASH_TABLE_NONE)
			sums->hosts[kept++] = sums->hosts[i];
	}
	hash_table_release(&wanted);
	return kept;
}

bool scope_hosts(struct scope *scope, struct arena *arena, struct host_accounting **hosts,
		 uint32_t *count, struct error *err)
{
	struct host_sums sums = {.scope = scope, .arena = arena};
	bool ok = true;

	hash_table_init(&sums.index, UINT32_MAX >> 1);
	hash_table_init(&sums.agent_index, UINT32_MAX >> 1);
	agent_table_init(&sums.irregular);
	add_series(&sums);
	if (counts_samples(&sums) || tallies_has_type(scope->type))
		ok = read_reports(&sums, err);
	add_missing(&sums);
	if (ok && scope->is_full)
		ok = error_set(err, ERROR_LIMIT, "the answer has too many hosts");
	if (scope->query->series_wanted)
		sums.count = keep_wanted(&sums);
	hosts_sort(sums.hosts, sums.count);
	hash_table_release(&sums.index);
	hash_table_release(&sums.agent_index);
	agent_table_release(&sums.irregular);
	free(sums.agents);
	*hosts = sums.hosts;
	*count = sums.count;
	return ok;
}
