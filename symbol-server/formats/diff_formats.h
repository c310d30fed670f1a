/* SPDX-License-Identifier: Apache-2.0 */
/* Two sides of samples → bytes. Pure. */
#ifndef SYMBOL_SERVER_FORMATS_DIFF_FORMATS_H
#define SYMBOL_SERVER_FORMATS_DIFF_FORMATS_H

#include "symbol-server/flamegraph/diff_table.h"
#include "symbol-server/flamegraph/diff_tree.h"
#include "symbol-server/formats/flame_formats.h"

struct diff_answer {
	struct flame_answer flame;          /* of the compared side; with the tree of both */
	struct flame_answer base;           /* type, match, times and accounting */
	const struct diff_table *functions; /* tested */
	size_t functions_limit;
	bool by_total;      /* what was tested */
	const char *norm;   /* "per_second", "share", "raw" */
	int64_t overlap_ms; /* of time whose samples are on both sides; 0: none, or they are meant
			     */
	const char *noise_from; /* what clusters are: "time", "hosts"; "none" without them */
};

enum { DIFF_WARNING = 300 };

/* What a reader has to know before the numbers mean anything. false: nothing. */
bool diff_warning(const struct diff_answer *answer, char text[DIFF_WARNING]);

/* {"type",…,"base":{…},"names",…,"nodes":{…,"base_self","base_total"},"functions":[…]} */
bool diff_json(const struct diff_answer *answer, struct buffer *out);
/* A row per function. */
bool diff_csv(const struct diff_answer *answer, struct buffer *out);
/* A page for people: both sides, what changed, what is only noise. */
bool diff_markdown(const struct diff_answer *answer, struct buffer *out);

#endif
