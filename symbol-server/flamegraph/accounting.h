/* SPDX-License-Identifier: Apache-2.0 */
/* What every answer about samples says about itself (/api/v1, "accounting"). */
#ifndef SYMBOL_SERVER_FLAMEGRAPH_ACCOUNTING_H
#define SYMBOL_SERVER_FLAMEGRAPH_ACCOUNTING_H

#include <stdbool.h>
#include <stdint.h>

#include "symbol-server/flamegraph/sampling_error.h"

enum {
	ACCOUNTING_REASONS = 32,
	ACCOUNTING_PLACES = 5,
};

struct incomplete_place { /* a module in which walks stopped; borrowed */
	const char *name, *build_id;
	uint64_t samples;
};

struct incomplete_reason {
	const char *reason; /* the sentence; borrowed */
	uint64_t samples;
	struct incomplete_place modules[ACCOUNTING_PLACES]; /* the most samples first */
	unsigned module_count;
};

struct accounting {
	uint64_t value, samples; /* what the answer contains before any cut */
	bool is_sampled;         /* false: nothing of this type is */
	uint64_t error;          /* of value: sampling_error.h */
	double squares;          /* likewise */
	struct sampling sampled;
	uint64_t windows;        /* that samples of memory come from; 0: from none */
	uint64_t taken, lost;    /* of the selected hosts in that time, samples */
	struct {
		const char *reason; /* borrowed */
		uint64_t count;
	} lost_by[ACCOUNTING_REASONS];
	unsigned lost_count;
	int64_t unexplained;                      /* taken − stored − lost; must be 0 */
	uint64_t unwind_incomplete, unsymbolized; /* samples */
	uint64_t nameless_value;   /* of stacks that end in a function without a name */
	uint64_t nameless_modules; /* that these functions are of */
	bool folds_idle;
	uint64_t idle_value; /* of stacks that are folded as idle */
	struct incomplete_reason incomplete_by[ACCOUNTING_REASONS];
	unsigned incomplete_count;
	uint64_t cut;                          /* value */
	uint64_t folded_series, folded_stacks; /* samples: host_accounting */
	uint64_t hosts;
	const char *nothing;                 /* why there is none; NULL: not so, or not known */
	int64_t data_from_ms, data_until_ms; /* there is none: but there; 0: nowhere */
	uint64_t reported_ms;                /* time in which they reported; 0: not known */
	uint64_t cpus;  /* of the hosts that reported, together; 0: not known */
	bool has_exact; /* agents count how much there is of the type, whatever is sampled: */
	uint64_t exact, covered; /* that, and what all their samples stand for; values */
	int64_t resolution_ms;   /* of the coarsest part of the time; 0: not said */
	int64_t threads_from_ms; /* asked for threads: sums without them before; 0: none */
	/* Asked what processes are: samples of which nobody told that, of how many from which
	 * labels of processes selected. 0 of 0: not asked. */
	uint64_t processes_untold, processes_of;
	uint64_t cut_by_memory; /* of cut: stacks that did not fit --query-memory */
	bool is_of_sums; /* no stack was looked at: what is incomplete or without names is left out
			  */
};

/* Samples come from windows, and how these differ is in no error. */
static inline bool accounting_error_is_least(const struct accounting *accounting)
{
	return accounting->is_sampled && accounting->windows && !(accounting->sampled.windows > 0);
}

/* Adds to one reason; with all places taken to the last. */
void accounting_add_lost(struct accounting *accounting, const char *reason, uint64_t count);

/* One reason more, its modules after it; with all places taken it is left out. */
void accounting_add_incomplete(struct accounting *accounting, const char *reason, uint64_t samples);
/* A module of the reason added last: the first places keep those with the most samples. */
void accounting_add_place(struct accounting *accounting, const char *name, const char *build_id,
			  uint64_t samples);
void accounting_sort_incomplete(struct accounting *accounting); /* the most samples first */

#endif
