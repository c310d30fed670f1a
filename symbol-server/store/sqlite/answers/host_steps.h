/* SPDX-License-Identifier: Apache-2.0 */
/* What each host reported and lost in each step of a query's time. */
#ifndef SYMBOL_SERVER_STORE_SQLITE_ANSWERS_HOST_STEPS_H
#define SYMBOL_SERVER_STORE_SQLITE_ANSWERS_HOST_STEPS_H

#include "common/arena.h"
#include "common/hash_table.h"
#include "symbol-server/store/samples_query.h"

enum { HOST_STEPS_MAX = 1 << 20 }; /* more are left out, all of them */

struct host_steps {
	int64_t step_ms;
	struct host_step *at;
	size_t count, room;
	struct hash_table index;
	bool is_full;
};

void host_steps_init(struct host_steps *steps, const struct samples_query *query);
void host_steps_add(struct host_steps *steps, uint32_t host, int64_t time_ms, uint64_t reported_ms,
		    uint64_t lost);
/* Sorted, in the arena; hosts have their place in the array of them by number. */
struct host_step *host_steps_settle(struct host_steps *steps, struct arena *arena,
				    const uint32_t *places, uint32_t *count);
void host_steps_release(struct host_steps *steps);

#endif
