/* SPDX-License-Identifier: Apache-2.0 */
/* Two sides of samples → bytes. Pure. */
#ifndef SYMBOL_SERVER_FORMATS_DIFF_FORMATS_H
#define SYMBOL_SERVER_FORMATS_DIFF_FORMATS_H

#include "symbol-server/flamegraph/diff_table.h"
#include "symbol-server/flamegraph/diff_tree.h"
#include "symbol-server/formats/flame_formats.h"

struct diff_host {
	const char *name; /* borrowed */
	bool is_common;   /* both sides have it */
	uint64_t value;
};

struct diff_answer {
	struct flame_answer flame;          /* of the compared side; with the tree of both */
	struct flame_answer base;           /* type, match, times and accounting */
	const struct diff_table *functions; /* tested */
	size_t functions_limit;
	bool by_total;      /* what was compared */
	const char *norm;   /* "per_second", "share", "raw" */
	bool is_base_moved; /* it overlapped the other range */
	uint32_t hosts_common;
	const struct diff_host *hosts[DIFF_SIDES]; /* those of that side alone, the largest first */
	uint32_t hosts_alone[DIFF_SIDES];
};

enum { DIFF_PROCESSES_MAX = 100, DIFF_HOSTS_MAX = 100 }; /* in an answer */

/* {"type",…,"base":{…},"names",…,"nodes":{…,"base_self","base_total"},"functions":[…]} */
bool diff_json(const struct diff_answer *answer, struct buffer *out);
/* A row per function. */
bool diff_csv(const struct diff_answer *answer, struct buffer *out);
/* A page for people: both sides, what differs most, and what is known of that. */
bool diff_markdown(const struct diff_answer *answer, struct buffer *out);

#endif
