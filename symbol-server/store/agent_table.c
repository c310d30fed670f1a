/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/store/agent_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void agent_table_init(struct agent_table *table)
{
	memset(table, 0, sizeof *table);
	hash_table_init(&table->index, AGENTS_MAX);
}

void agent_table_release(struct agent_table *table)
{
	for (uint32_t i = 0; i < table->count; i++)
		free(table->rows[i]);
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
	free(table->rows[oldest]);
	table->rows[oldest] = NULL;
	return oldest;
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

bool agent_table_put(struct agent_table *table, const struct agent_row *row)
{
	struct agent_row *to = find(table, row->tenant, row->id);

	if (!to)
		to = add(table, row->tenant, row->id);
	if (to)
		*to = *row;
	if (table->heard < row->heard)
		table->heard = row->heard;
	return to;
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
	if (i == room)
		return NULL;
	if (i == *used) {
		snprintf(counts[i].name, sizeof counts[i].name, "%s", name);
		counts[i].count = 0;
		++*used;
	}
	return &counts[i].count;
}

static uint64_t *lost_of(struct agent_row *row, const char *reason)
{
	return named_count_take(row->lost, &row->lost_count, BATCH_LOST_REASONS, reason);
}

static uint64_t *stacks_of(struct agent_row *row, const char *name)
{
	return named_count_take(row->stacks, &row->stacks_count, BATCH_STACK_RESULTS, name);
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
		snprintf(row->host, sizeof row->host, "%s", report->host);
		snprintf(row->version, sizeof row->version, "%s", report->version);
		snprintf(row->kernel, sizeof row->kernel, "%s", report->kernel);
	}
	if (report->sent_ms) {
		row->has_skew = true;
		row->skew_ms = report->sent_ms - report->received_ms;
	}
	if (is_next || report->received_ms > row->last_seen_ms)
		row->last_seen_ms = report->received_ms;
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
