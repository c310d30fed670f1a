/* SPDX-License-Identifier: Apache-2.0 */
/* What became of every timer period of every CPU, also of CPUs that come and go: seen, idle without
 * a tick, missed. See cpu_ticks.h. */
#ifndef NODE_AGENT_CAPTURE_TICK_ACCOUNT_H
#define NODE_AGENT_CAPTURE_TICK_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "node-agent/capture/cpu_ticks.h"

struct tick_totals {
	uint64_t seen, idle_seen;
	uint64_t idle, missed; /* with those that did not come; neither ever falls */
	uint64_t counted_ns;   /* the timers' own counts */
};

struct tick_account;

struct tick_account *tick_account_new(unsigned cpus, uint64_t period_ns, struct error *err);
void tick_account_free(struct tick_account *account); /* NULL is fine */

/* Its timer runs from now on; ticks and idle_ticks: what its counters show already. To be called
 * after tick_account_look(). */
void tick_account_begin(struct tick_account *account, unsigned cpu, uint64_t ticks,
			uint64_t idle_ticks);
/* The counters now. */
void tick_account_ticks(struct tick_account *account, unsigned cpu, uint64_t ticks,
			uint64_t idle_ticks);
/* The timer's own count now. False: it stood still since the last time. */
bool tick_account_count(struct tick_account *account, unsigned cpu, uint64_t counted_ns);
/* Its timer is gone; what it did stays in the totals. */
void tick_account_end(struct tick_account *account, unsigned cpu);

/* Reads how long the CPUs were idle. */
void tick_account_look(struct tick_account *account);
void tick_account_total(struct tick_account *account, struct tick_totals *totals);

#endif
