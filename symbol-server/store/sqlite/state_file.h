/* SPDX-License-Identifier: Apache-2.0 */
/* agents.db: agents' last counts and the profile ids seen lately. Committed after the day files of
 * the same fold, so that replaying the journal from here brings the same differences again. */
#ifndef SYMBOL_SERVER_STORE_SQLITE_STATE_FILE_H
#define SYMBOL_SERVER_STORE_SQLITE_STATE_FILE_H

#include "symbol-server/store/rules/agent_table.h"
#include "symbol-server/store/rules/report_window.h"
#include "symbol-server/store/sqlite/database.h"

struct state_file;

struct state_file *state_file_open(const char *path, struct error *err);
/* Fills both; *folded_through: the journal position they stand for. */
bool state_file_load(struct state_file *file, struct agent_table *agents,
		     struct report_window *window, uint64_t *folded_through, struct error *err);

/* A copy of what changed, taken under the store's lock, and written without it. */
struct state_change {
	struct arena arena; /* has the agents and what they point to */
	struct agent_row *agents;
	uint32_t agent_count;
	struct report_run *runs;
	uint32_t run_count;
	uint64_t last_run; /* runs before this one are in it, as report_window_at() counts */
	uint64_t position;
	int64_t now_ms;
};
/* Runs of groups after committed stay for the next one. */
bool state_change_take(struct state_change *change, struct agent_table *agents,
		       struct report_window *window, uint64_t committed, uint64_t position,
		       int64_t now_ms);
bool state_file_write(struct state_file *file, const struct state_change *change,
		      struct error *err);
void state_change_release(struct state_change *change);
void state_file_close(struct state_file *file); /* NULL is fine */

/* The same of agent_table_forget(): rows go, and what they held. */
bool state_file_forget(struct state_file *file, int64_t silent_since_ms,
		       bool (*forgets)(void *context, const char *host), void *context,
		       struct error *err);

#endif
