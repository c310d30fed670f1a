/* SPDX-License-Identifier: Apache-2.0 */
/* The file that says what a server must have: one line per thing, read by fleet_check.py.
 *
 *	fleet {"types":[…],"units":[…]}
 *	template N {"profiles":[{"type":…,"labels":{…},"samples":[[thread,folded,count,value],…]}]}
 *	host N {"host":…,"region":…}
 *	report HOST INCARNATION SEQ TEMPLATE TIME_MS FRESH TAKEN LOST STATE
 *
 * In folded, "@" is where the report's fresh address goes. TAKEN and LOST are cumulative since the
 * incarnation's start, and of on-cpu samples. STATE: a answered 200; m sent and never answered (the
 *server may have it or not); p 200 with something rejected; r refused for good. Reports of an
 *incarnation are in the order of their answers, which is that of their sending. */
#ifndef TESTS_TOOLS_FLEET_TALLY_H
#define TESTS_TOOLS_FLEET_TALLY_H

#include <stdio.h>

#include "tests/tools/fleet/world.h"

struct tally_report {
	uint32_t host, incarnation, template; /* template: of all applications' */
	uint64_t seq, fresh, taken, lost;
	int64_t time_ms;
};

/* file NULL: nothing is kept. */
void tally_start(FILE *file, const struct world *world, uint32_t hosts);
void tally_report(FILE *file, const struct tally_report *report, char state);

#endif
