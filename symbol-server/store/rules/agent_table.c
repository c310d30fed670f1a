/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/store/rules/agent_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "symbol-server/store/rules/tallies.h"

enum { HOST_BYTES = 255, VERSION_BYTES = 63, KERNEL_BYTES = 127 };

void agent_table_init(struct agent_table *table)
{
	memset(table, 0, sizeof *table);
	hash_table_init(&table->index, AGENTS_MAX);
}

static void free_state(struct agent_state *state)
{
	free((char *)state->host);
	free((char *)state->version);
	free((char *)state->kernel);
	free(state->lost_by);
	free(state->stacks);
}

static void free_row(struct agent_row *row)
{
	if (!row)
		return;
	free_state(&row->state);
	free(row);
}

void agent_table_release(struct agent_table *table)
{
	for (uint32_t i = 0; i < table->count; i++)
		free_row(table->rows[i]);
	free(table->rows);
	hash_table_release(&table->index);
	agent_table_init(table);
}

static uint64_t agent_hash(uint32_t tenant, const uint8_t id[16])
{
	return hash_bytes(id, 16, tenant);
}

static struct agent_row *find(const struct agent_table *table, uint32_t tenant,
			      const uint8_t id[16])
{
	uint64_t hash = agent_hash(tenant, id);

	HASH_TABLE_EACH(i, &table->index, hash)
		if (table->rows[i]->tenant == tenant && !memcmp(table->rows[i]->id, id, 16))
			return table->rows[i];
	return NULL;
}

const char *const agent_lack_names[AGENT_LACK_COUNT] = {
#define NAME(name_) #name_,
	AGENT_LACKS(NAME)
#undef NAME
};

void agent_table_note(struct agent_table *table, uint32_t tenant, const uint8_t id[16],
		      const uint64_t lacks[AGENT_LACK_COUNT], uint64_t clock_jumps, uint64_t cpus)
{
	struct agent_row *row = find(table, tenant, id);

	if (!row)
		return;
	memcpy(row->state.lacks, lacks, sizeof row->state.lacks);
	row->state.clock_jumps = clock_jumps;
	row->state.cpus = cpus;
}

static int compare_name(const void *name, const void *at)
{
	return strcmp(name, *(const char *const *)at);
}

uint64_t agent_table_cpus(const struct agent_table *table, uint32_t tenant,
			  const char *const *names, uint32_t count)
{
	const struct agent_state **last = calloc((size_t)count + 1, sizeof *last);
	uint64_t cpus = 0;
	uint32_t i;

	for (i = 0; last && i < table->count; i++) {
		const struct agent_state *agent = &table->rows[i]->state;
		const char *const *found = table->rows[i]->tenant == tenant && agent->host
						   ? bsearch(agent->host, names, count,
							     sizeof *names, compare_name)
						   : NULL;

		if (found && (!last[found - names] || last[found - names]->heard < agent->heard))
			last[found - names] = agent;
	}
	for (i = 0; last && i < count && last[i] && last[i]->cpus; i++)
		cpus += last[i]->cpus;
	free(last);
	return i == count ? cpus : 0;
}

static bool is_before(const struct agent_state *a, const struct agent_state *b)
{
	return a->heard != b->heard ? a->heard < b->heard : a->last_seen_ms < b->last_seen_ms;
}

/* The place of the agent not heard for longest, its row freed and forgotten. */
static uint32_t make_room(struct agent_table *table)
{
	uint32_t oldest = 0;

	for (uint32_t i = 1; i < table->count; i++)
		if (is_before(&table->rows[i]->state, &table->rows[oldest]->state))
			oldest = i;
	hash_table_remove(&table->index,
			  agent_hash(table->rows[oldest]->tenant, table->rows[oldest]->id), oldest);
	free_row(table->rows[oldest]);
	table->rows[oldest] = NULL;
	return oldest;
}

/* The last row takes the place of one that goes. */
static void remove_row(struct agent_table *table, uint32_t at)
{
	struct agent_row *row = table->rows[at], *last = table->rows[--table->count];

	hash_table_remove(&table->index, agent_hash(row->tenant, row->id), at);
	free_row(row);
	if (row == last)
		return;
	hash_table_remove(&table->index, agent_hash(last->tenant, last->id), table->count);
	table->rows[at] = last;
	hash_table_add(&table->index, agent_hash(last->tenant, last->id), at);
}

void agent_table_forget(struct agent_table *table, int64_t silent_since_ms,
			bool (*forgets)(void *context, const char *host), void *context)
{
	for (uint32_t i = table->count; i--;) {
		const struct agent_state *agent = &table->rows[i]->state;

		if (agent->last_seen_ms < silent_since_ms && agent->host &&
		    forgets(context, agent->host))
			remove_row(table, i);
	}
}

static struct agent_row *add(struct agent_table *table, uint32_t tenant, const uint8_t id[16])
{
	struct agent_row *row = calloc(1, sizeof *row);
	bool is_full = table->count >= AGENTS_MAX;
	uint32_t place;

	if (!row || (!is_full && !ARRAY_GROW(table->rows, table->count, table->capacity))) {
		free(row);
		return NULL;
	}
	place = is_full ? make_room(table) : table->count;
	row->tenant = tenant;
	memcpy(row->id, id, 16);
	table->rows[place] = row;
	if (!is_full)
		table->count++;
	if (hash_table_add(&table->index, agent_hash(tenant, id), place))
		return row;
	table->rows[place] = table->rows[--table->count];
	free(row);
	return NULL;
}

/* Without memory it stays as it was. */
static void set_text(const char **to, const char *text, size_t most)
{
	char *copy;

	if (*to && !strncmp(*to, text, most) && strlen(text) <= most)
		return;
	copy = strndup(text, most);
	if (!copy)
		return;
	free((char *)*to);
	*to = copy;
}

static bool copy_counts(struct named_count **to, const struct named_count *from, unsigned count)
{
	*to = malloc((count + 1) * sizeof **to);
	if (*to && count)
		memcpy(*to, from, count * sizeof **to);
	return *to;
}

static bool replace(struct agent_row *to, const struct agent_row *row)
{
	const struct agent_state *from = &row->state;
	struct agent_row copy = *row;

	copy.state.host = copy.state.version = copy.state.kernel = NULL;
	copy.state.stacks = NULL;
	if (!copy_counts(&copy.state.lost_by, from->lost_by, from->lost_count) ||
	    !copy_counts(&copy.state.stacks, from->stacks, from->stacks_count)) {
		free_state(&copy.state);
		return false;
	}
	set_text(&copy.state.host, from->host ? from->host : "", HOST_BYTES);
	set_text(&copy.state.version, from->version ? from->version : "", VERSION_BYTES);
	set_text(&copy.state.kernel, from->kernel ? from->kernel : "", KERNEL_BYTES);
	free_state(&to->state);
	*to = copy;
	return true;
}

bool agent_table_put(struct agent_table *table, const struct agent_row *row)
{
	struct agent_row *to = find(table, row->tenant, row->id);

	if (!to)
		to = add(table, row->tenant, row->id);
	if (to && !replace(to, row))
		return false;
	if (table->heard < row->state.heard)
		table->heard = row->state.heard;
	if (table->newest_ms < row->state.last_seen_ms)
		table->newest_ms = row->state.last_seen_ms;
	return to;
}

static bool copy_text(const char *text, struct arena *arena, const char **to)
{
	*to = text ? arena_text(arena, text, strlen(text)) : "";
	return *to;
}

bool agent_row_copy(const struct agent_row *row, struct arena *arena, struct agent_row *to)
{
	const struct agent_state *from = &row->state;
	struct agent_state *state = &to->state;

	*to = *row;
	state->lost_by = arena_copy(arena, from->lost_by, from->lost_count * sizeof *from->lost_by);
	state->stacks = arena_copy(arena, from->stacks, from->stacks_count * sizeof *from->stacks);
	return state->lost_by && state->stacks && copy_text(from->host, arena, &state->host) &&
	       copy_text(from->version, arena, &state->version) &&
	       copy_text(from->kernel, arena, &state->kernel);
}

/* Moves a cumulative counter forward; an older report's smaller value adds nothing. */
static uint64_t advance(uint64_t *last, uint64_t now)
{
	uint64_t added = now > *last ? now - *last : 0;

	*last += added;
	return added;
}

static unsigned find_count(const struct named_count *counts, unsigned used, const char *name)
{
	unsigned i = 0;

	while (i < used && strncmp(counts[i].name, name, COUNT_NAME_BYTES - 1))
		i++;
	return i;
}

/* The same as its place. */
static unsigned take_place(struct named_count *counts, unsigned *used, unsigned room,
			   const char *name)
{
	unsigned i = find_count(counts, *used, name);

	if (i == *used && *used + 1 >= room)
		i = find_count(counts, *used, name = "other");
	if (i == *used && *used >= room)
		i--;
	if (i == *used) {
		snprintf(counts[i].name, sizeof counts[i].name, "%s", name);
		counts[i].count = 0;
		++*used;
	}
	return i;
}

uint64_t *named_count_take(struct named_count *counts, unsigned *used, unsigned room,
			   const char *name)
{
	return &counts[take_place(counts, used, room, name)].count;
}

enum { NOWHERE = BATCH_STACK_RESULTS };

/* Its place in an array with room for as many as are used: it grows by one. NOWHERE: no memory, or
 * a tally that would be a loss there. */
static unsigned place_of(struct named_count **counts, unsigned *used, unsigned room,
			 const char *name)
{
	unsigned i = find_count(*counts, *used, name);
	struct named_count *more = *counts;

	if (i < *used)
		return i;
	if (*used + 1 >= room && tally_find(name))
		return NOWHERE;
	if (*used < room)
		more = realloc(*counts, (*used + 1) * sizeof *more);
	if (!more)
		return NOWHERE;
	*counts = more;
	return take_place(more, used, room, name);
}

/* What each of them adds; those that share a place are counted as one, of which the first has it.
 */
static void advance_all(struct named_count **counts, unsigned *used, unsigned room,
			const char *const *names, const uint64_t *now, unsigned count,
			uint64_t *added)
{
	uint64_t sums[NOWHERE + 1] = {0};
	unsigned places[NOWHERE];

	for (unsigned i = 0; i < count; i++) {
		places[i] = place_of(counts, used, room, names[i]);
		sums[places[i]] += now[i];
	}
	for (unsigned i = 0; i < count; i++)
		added[i] = places[i] == NOWHERE
				   ? 0
				   : advance(&(*counts)[places[i]].count, sums[places[i]]);
}

static void advance_named(struct agent_row *row, const struct agent_report *report,
			  struct agent_delta *delta)
{
	const struct agent_numbers *numbers = report->numbers;
	struct agent_state *state = &row->state;

	advance_all(&state->lost_by, &state->lost_count, BATCH_LOST_REASONS, report->lost,
		    numbers->lost, numbers->lost_count, delta->lost);
	advance_all(&state->stacks, &state->stacks_count, BATCH_STACK_RESULTS, report->stacks,
		    numbers->stacks, numbers->stacks_count, delta->stacks);
}

static void keep_facts(struct agent_table *table, struct agent_row *row,
		       const struct agent_report *report)
{
	const struct agent_numbers *numbers = report->numbers;
	struct agent_state *state = &row->state;
	bool is_next = numbers->seq > row->seq || !numbers->seq;

	if (is_next)
		state->heard = ++table->heard;
	if (numbers->seq >= row->seq) {
		row->seq = numbers->seq;
		state->rate_hz = numbers->rate_hz;
		state->lag_ms = numbers->received_ms - agent_numbers_end_ms(numbers);
		set_text(&state->host, report->host, HOST_BYTES);
		set_text(&state->version, report->version, VERSION_BYTES);
		set_text(&state->kernel, report->kernel, KERNEL_BYTES);
	}
	if (numbers->sent_ms) {
		state->has_skew = true;
		state->skew_ms = numbers->sent_ms - numbers->received_ms;
	}
	if (is_next || numbers->received_ms > state->last_seen_ms)
		state->last_seen_ms = numbers->received_ms;
	if (table->newest_ms < state->last_seen_ms)
		table->newest_ms = state->last_seen_ms;
	row->is_dirty = true;
}

/* An agent that was heard by this server before, whose counts the server forgot: what it counted
 * until now is not known to be missing, so only this report's own samples count. */
static void start_here(struct agent_row *row, const struct agent_report *report)
{
	const struct agent_numbers *numbers = report->numbers;
	struct agent_delta unknown;

	row->state.taken = numbers->taken > report->own_samples
				   ? numbers->taken - report->own_samples
				   : 0;
	row->idle = numbers->idle;
	advance_named(row, report, &unknown);
}

bool agent_table_apply(struct agent_table *table, const struct agent_report *report,
		       struct agent_delta *delta)
{
	struct agent_row *row = find(table, report->tenant, report->id);
	const struct agent_numbers *numbers = report->numbers;

	memset(delta, 0, sizeof *delta);
	delta->taken = report->own_samples;
	delta->is_next = !row || !numbers->seq || numbers->seq > row->seq;
	if (!row) {
		row = add(table, report->tenant, report->id);
		if (!row)
			return false;
		if (numbers->acknowledged)
			start_here(row, report);
	}
	delta->taken = advance(&row->state.taken, numbers->taken);
	delta->idle = advance(&row->idle, numbers->idle);
	advance_named(row, report, delta);
	keep_facts(table, row, report);
	return true;
}

void agent_report_count(const struct agent_report *report, const struct agent_delta *delta,
			struct samples_counters *to)
{
	for (unsigned i = 0; i < report->numbers->stacks_count; i++)
		*named_count_take(to->walks, &to->walk_count, BATCH_STACK_RESULTS,
				  report->stacks[i]) += delta->stacks[i];
	for (unsigned i = 0; i < report->numbers->lost_count; i++)
		if (!tally_find(report->lost[i]))
			*named_count_take(to->lost, &to->lost_count, BATCH_LOST_REASONS,
					  report->lost[i]) += delta->lost[i];
}
