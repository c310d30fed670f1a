/* SPDX-License-Identifier: Apache-2.0 */
/* What each agent counted when it was last heard: cumulative counters → what a report adds
 * (schema/README.md has the rule). Under the store's lock. */
#ifndef SYMBOL_SERVER_STORE_RULES_AGENT_TABLE_H
#define SYMBOL_SERVER_STORE_RULES_AGENT_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/arena.h"
#include "common/hash_table.h"
#include "symbol-server/store/samples_state.h"

enum {
	AGENTS_MAX = 64 << 10, /* the one not heard for longest makes room */
};

struct agent_row { /* what it points to is the table's, or of whoever made the row */
	uint32_t tenant;
	uint8_t id[16];
	uint64_t seq, idle;
	/* heard is of its last report with a new seq, of all agents' numbered as they came. lost_by
	 * has tallies, too, lost is not kept. The state file has no skew and not what is told as
	 * since this server's start. */
	struct agent_state state;
	bool is_dirty; /* not in the state file as it is */
};

struct agent_table {
	struct agent_row **rows;
	uint32_t count, capacity;
	uint64_t heard;    /* the last number given */
	int64_t newest_ms; /* the largest last_seen_ms that any agent had */
	struct hash_table index;
};

struct agent_report { /* one report's counters with texts */
	uint32_t tenant;
	const uint8_t *id;
	const char *host, *version, *kernel;
	uint64_t own_samples;
	const struct agent_numbers *numbers;
	const char *lost[BATCH_LOST_REASONS], *stacks[BATCH_STACK_RESULTS]; /* names */
};

struct agent_delta { /* what it adds to its host's account, and to all hosts' stacks */
	uint64_t taken, idle;
	uint64_t lost[BATCH_LOST_REASONS], stacks[BATCH_STACK_RESULTS]; /* as in the report */
	bool is_next; /* a report not heard before */
};

/* The counter of that name, made with 0 where there is none. What finds no room is counted under
 * "other", which the last place is kept for; of a full table without it, in the last one. */
uint64_t *named_count_take(struct named_count *counts, unsigned *used, unsigned room,
			   const char *name);

void agent_table_init(struct agent_table *table);
/* False: no memory; delta is then the report's own samples. */
bool agent_table_apply(struct agent_table *table, const struct agent_report *report,
		       struct agent_delta *delta);
/* What an agent that the table has is denied, and how often its clock was set, of the report that
 * is being taken. */
void agent_table_note(struct agent_table *table, uint32_t tenant, const uint8_t id[16],
		      const uint64_t lacks[AGENT_LACK_COUNT], uint64_t clock_jumps, uint64_t cpus);
/* As samples_cpus(). */
uint64_t agent_table_cpus(const struct agent_table *table, uint32_t tenant,
			  const char *const *names, uint32_t count);
/* What the report adds to all agents' counts, for /metrics; what is no loss (tallies.h) is not one.
 */
void agent_report_count(const struct agent_report *report, const struct agent_delta *delta,
			struct samples_counters *to);
/* Puts a copy of a row read from the state file. */
bool agent_table_put(struct agent_table *table, const struct agent_row *row);
/* The same with everything it points to in the arena; texts that are not known are empty. False: no
 * room. */
bool agent_row_copy(const struct agent_row *row, struct arena *arena, struct agent_row *to);
/* Those not heard since then whose host is to be forgotten go. */
void agent_table_forget(struct agent_table *table, int64_t silent_since_ms,
			bool (*forgets)(void *context, const char *host), void *context);
void agent_table_release(struct agent_table *table);

#endif
