/* SPDX-License-Identifier: Apache-2.0 */
/* What strangers' files may cost the parser, in CPU time: each file by itself, and all those
 * together that have not answered yet. */
#ifndef NODE_AGENT_FILE_PARSER_PARSE_BUDGET_H
#define NODE_AGENT_FILE_PARSER_PARSE_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

enum {
	PARSE_STRIKES_MAX = 3,         /* children that ended over a file, … */
	PARSE_FRUITLESS_MS = 2000,     /* … or so much without any answer, … */
	PARSE_FILE_MS = 10000,         /* … or so much in all: it is not tried … */
	PARSE_REFUSED_MS = 600 * 1000, /* … for so long; so much time forgives as much, too */
	PARSE_ALL_MS = 5000,           /* of all files: over that, new ones wait; … */
	PARSE_ALL_PER_SECOND = 200,    /* … so many ms are forgiven each second */
	PARSE_FILES = 64,              /* whose cost is known: the dearest */
	PARSE_ANSWERED = 1024,         /* that are known to have answered */
};

struct parse_account {
	uint32_t executable, strikes; /* 0: free */
	int64_t used_us, changed_ms, struck_ms;
	int64_t refused_until_ms; /* 0: it is not */
};

/* All zero: nothing used. */
struct parse_budget {
	struct parse_account files[PARSE_FILES];
	uint32_t answered[PARSE_ANSWERED];
	int64_t all_us, changed_ms;
};

/* An answer of that file's came, for so much. */
void parse_budget_answered(struct parse_budget *budget, uint32_t executable, uint32_t used_ms,
			   int64_t now_ms);

/* A child died or was killed over it. */
void parse_budget_strike(struct parse_budget *budget, uint32_t executable, uint32_t used_ms,
			 int64_t now_ms);

enum parse_verdict {
	PARSE_NOW,
	PARSE_LATER,   /* others have used what there was */
	PARSE_REFUSED, /* its pages fail */
};

enum parse_verdict parse_budget_verdict(struct parse_budget *budget, uint32_t executable,
					int64_t now_ms);

#endif
