/* SPDX-License-Identifier: Apache-2.0 */
/* CPUs that come and go while they are sampled. */
#ifndef NODE_AGENT_CAPTURE_CPU_PLUG_H
#define NODE_AGENT_CAPTURE_CPU_PLUG_H

#include <stdbool.h>

#include "common/error.h"

struct cpu_plug { /* who uses them */
	bool (*has)(const void *context, unsigned cpu);
	/* Of one that it has. False: its timer stands still, the CPU was away in between. */
	bool (*look)(void *context, unsigned cpu);
	/* Leaves nothing behind on failure. ERROR_NOT_FOUND: it is offline again already. */
	bool (*add)(void *context, unsigned cpu, struct error *err);
	void (*remove)(void *context, unsigned cpu);
};

/* Has exactly those that are online. False: one could not be added; those behind it were not looked
 * at. */
bool cpu_plug_follow(const struct cpu_plug *user, void *context, const bool *is_online,
		     unsigned count, struct error *err);

#endif
