/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/store/rules/agent_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbol-server/store/rules/tallies.h"

enum { HOST_BYTES = 255, VERSION_BYTES = 63, KERNEL_BYTES = 127 };

void agent_table_init(struct agent_table *table)
{
	memset(table, 0, sizeof *table);
	hash_table_init(&table->index, AGENTS_MAX);
}

static void free_row(struct agent_row *row)
{
	if (!row)
		return;
	free(row->host);
	free(row->version);
	free(row->kernel);
	free(row->lost);
	free(row->stacks);
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
	uint32_t probe = 0;

	for (uint32_t i = hash_table_first(&table->index, hash, &probe); i != HASH_TABLE_NONE;
	     i = hash_table_next(&table->index, hash, &probe))
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
	memcpy(row->lacks, lacks, sizeof row->lacks);
	row->clock_jumps = clock_jumps;
	row->cpus = cpus;
}

static int compare_name(const void *name, const void *at)
{
	return strcmp(name, *(const char *const *)at);
}

uint64_t agent_table_cpus(const struct agent_table *table, uint32_t tenant,
			  const char *const *names, uint32_t count)
{
	const struct agent_row **last = calloc((size_t)count + 1, sizeof *last);
	uint64_t cpus = 0;
	uint32_t i;

	for (i = 0; last && i < table->count; i++) {
		const struct agent_row *row = table->rows[i];
		const char *const *found = row->tenant == tenant && row->host
						   ? bsearch(row->host, names, count, sizeof *names,
							     compare_name)
						   : NULL;

		if (found && (!last[found - names] || last[found - names]->heard < row->heard))
			last[found - names] = row;
	}
	for (i = 0; last && i < count && last[i] && last[i]->cpus; i++)
		cpus += last[i]->cpus;
	free(last);
	return i == count ? cpus : 0;
}

static bool is_before(const struct agent_row *a, const struct agent_row *b)
{
	return a->heard != b->heard ? a->heard < b->heard : a->last_seen_ms < b->last_seen_ms;
}

/* The place of the agent not heard for longest, its row freed and forgotten. */
static uint32_t make_room(struct agent_table *table)
{
	uint32_t oldest = 0;

	for (uint32_t i = 1; i < table->count; i++)
		if (is_before(table->rows[i], table->rows[oldest]))
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
	for (uint32_t i = table->count; i--;)
		if (table->rows[i]->last_seen_ms < silent_since_ms && table->rows[i]->host &&
		    forgets(context, table->rows[i]->host))
			remove_row(table, i);
}

static bool grow(struct agent_table *table)
{
	uint32_t capacity = table->capacity ? table->capacity * 2 : 64;
	struct agent_row **rows;

	if (table->count < table->capacity)
		return true;
	rows = realloc(table->rows, capacity * sizeof *rows);
	if (!rows)
		return false;
	table->rows = rows;
	table->capacity = capacity;
	return true;
}

static struct agent_row *add(struct agent_table *table, uint32_t tenant, const uint8_t id[16])
{
	struct agent_row *row = calloc(1, sizeof *row);
	bool is_full = table->count >= AGENTS_MAX;
	uint32_t place;

	if (!row || (!is_full && !grow(table))) {
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
static void set_text(char **to, const char *text, size_t most)
{
	char *copy;

	if (*to && !strncmp(*to, text, most) && strlen(text) <= most)
		return;
	copy = strndup(text, most);
	if (!copy)
		return;
	free(*to);
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
	struct agent_row copy = *row;

	copy.host = copy.version = copy.kernel = NULL;
	copy.lost = copy.stacks = NULL;
	if (!copy_counts(&copy.lost, row->lost, row->lost_count) ||
	    !copy_counts(&copy.stacks, row->stacks, row->stacks_count)) {
		free(copy.lost);
		return false;
	}
	set_text(&copy.host, row->host ? row->host : "", HOST_BYTES);
	set_text(&copy.version, row->version ? row->version : "", VERSION_BYTES);
	set_text(&copy.kernel, row->kernel ? row->kernel : "", KERNEL_BYTES);
	free(to->host);
	free(to->version);
	free(to->kernel);
	free(to->lost);
	free(to->stacks);
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
	if (table->heard < row->heard)
		table->heard = row->heard;
	if (table->newest_ms < row->last_seen_ms)
		table->newest_ms = row->last_seen_ms;
	return to;
}

static bool copy_text(const char *text, struct arena *arena, char **to)
{
	*to = text ? arena_text(arena, text, strlen(text)) : NULL;
	return *to || !text;
}

bool agent_row_copy(const struct agent_row *row, struct arena *arena, struct agent_row *to)
{
	*to = *row;
	to->lost = arena_copy(arena, row->lost, row->lost_count * sizeof *row->lost);
	to->stacks = arena_copy(arena, row->stacks, row->stacks_count * sizeof *row->stacks);
	return to->lost && to->stacks && copy_text(row->host, arena, &to->host) &&
	       copy_text(row->version, arena, &to->version) &&
	       copy_text(row->kernel, arena, &to->kernel);
}

/* Moves a cumulative counter forward; an older report's smaller value adds nothing. */
static uint64_t advance(uint64_t *last, uint64_t now)
{
	uint64_t added = now > *last ? now - *last : 0;

	*last += added;
	return added;
}

uint64_t *named_count_take(struct named_count *counts, unsigned *used, unsigned room,
			   const char *name)
{
	unsigned i = 0;

	while (i < *used && strncmp(counts[i].name, name, COUNT_NAME_BYTES - 1))
		i++;
	if (i == *used) {
		if (*used >= room)
			return NULL;
		snprintf(counts[i].name, sizeof counts[i].name, "%s", name);
		counts[i].count = 0;
		++*used;
	}
	return &counts[i].count;
}

/* The same in an array with room for as many as are used: it grows by one. */
static uint64_t *count_of(struct named_count **counts, unsigned *used, unsigned room,
			  const char *name)
{
	uint64_t *known = named_count_take(*counts, used, *used, name);
	struct named_count *more;

	if (known || *used == room)
		return known;
	more = realloc(*counts, (*used + 1) * sizeof *more);
	if (!more)
		return NULL;
	*counts = more;
	return named_count_take(more, used, *used + 1, name);
}

static uint64_t *lost_of(struct agent_row *row, const char *reason)
{
	return count_of(&row->lost, &row->lost_count, BATCH_LOST_REASONS, reason);
}

static uint64_t *stacks_of(struct agent_row *row, const char *name)
{
	return count_of(&row->stacks, &row->stacks_count, BATCH_STACK_RESULTS, name);
}

static void keep_facts(struct agent_table *table, struct agent_row *row,
		       const struct agent_report *report)
{
	bool is_next = report->seq > row->seq || !report->seq;

	if (is_next)
		row->heard = ++table->heard;
	if (report->seq >= row->seq) {
		row->seq = report->seq;
		row->rate_hz = report->rate_hz;
		row->lag_ms = report->received_ms - report->end_ms;
		set_text(&row->host, report->host, HOST_BYTES);
		set_text(&row->version, report->version, VERSION_BYTES);
		set_text(&row->kernel, report->kernel, KERNEL_BYTES);
	}
	if (report->sent_ms) {
		row->has_skew = true;
		row->skew_ms = report->sent_ms - report->received_ms;
	}
	if (is_next || report->received_ms > row->last_seen_ms)
		row->last_seen_ms = report->received_ms;
	if (table->newest_ms < row->last_seen_ms)
		table->newest_ms = row->last_seen_ms;
	row->is_dirty = true;
}

/* An agent that was heard by this server before, whose counts the server forgot: what it counted
 * until now is not known to be missing, so only this report's own samples count. */
static void start_here(struct agent_row *row, const struct agent_report *report)
{
	row->taken = report->taken > report->own_samples ? report->taken - report->own_samples : 0;
	row->idle = report->idle;
	for (unsigned i = 0; i < report->lost_count; i++) {
		uint64_t *count = lost_of(row, report->lost[i].reason);

		if (count)
			*count = report->lost[i].count;
	}
	for (unsigned i = 0; i < report->stacks_count; i++) {
		uint64_t *count = stacks_of(row, report->stacks[i].name);

		if (count)
			*count = report->stacks[i].count;
	}
}

bool agent_table_apply(struct agent_table *table, const struct agent_report *report,
		       struct agent_delta *delta)
{
	struct agent_row *row = find(table, report->tenant, report->id);

	memset(delta, 0, sizeof *delta);
	delta->taken = report->own_samples;
	delta->is_next = !row || !report->seq || report->seq > row->seq;
	if (!row) {
		row = add(table, report->tenant, report->id);
		if (!row)
			return false;
		if (report->acknowledged)
			start_here(row, report);
	}
	delta->taken = advance(&row->taken, report->taken);
	delta->idle = advance(&row->idle, report->idle);
	for (unsigned i = 0; i < report->lost_count; i++) {
		uint64_t *count = lost_of(row, report->lost[i].reason);

		if (count)
			delta->lost[i] = advance(count, report->lost[i].count);
	}
	for (unsigned i = 0; i < report->stacks_count; i++) {
		uint64_t *count = stacks_of(row, report->stacks[i].name);

		if (count)
			delta->stacks[i] = advance(count, report->stacks[i].count);
	}
	keep_facts(table, row, report);
	return true;
}

static void add_named(struct named_count *counts, unsigned *used, unsigned room, const char *name,
		      uint64_t added)
{
	uint64_t *count = named_count_take(counts, used, room - 1, name);

	if (!count)
		count = named_count_take(counts, used, room, "other");
	if (count)
		*count += added;
}

void agent_report_count(const struct agent_report *report, const struct agent_delta *delta,
			struct samples_counters *to)
{
	for (unsigned i = 0; i < report->stacks_count; i++)
		add_named(to->walks, &to->walk_count, BATCH_STACK_RESULTS, report->stacks[i].name,
			  delta->stacks[i]);
	for (unsigned i = 0; i < report->lost_count; i++)
		if (!tally_find(report->lost[i].reason))
			add_named(to->lost, &to->lost_count, BATCH_LOST_REASONS,
				  report->lost[i].reason, delta->lost[i]);
}
