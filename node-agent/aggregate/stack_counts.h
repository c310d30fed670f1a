/* SPDX-License-Identifier: Apache-2.0 */
/* Equal stacks counted once per report interval. */
#ifndef NODE_AGENT_AGGREGATE_STACK_COUNTS_H
#define NODE_AGENT_AGGREGATE_STACK_COUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "common/profile.h"

/* One frame as main hands it over after locating. mapping: a number the caller chose for the file
 * (an executable's index), resolved by the callback of stack_counts_take(). */
struct counted_frame {
	enum profile_frame_kind kind;
	uint32_t mapping;
	uint64_t address;
	const char *function, *file, *type; /* PROFILE_FRAME_NAMED */
	uint32_t line;
};

/* Under a published key: of a process or of the request that a thread serves. */
struct counted_attribute {
	const char *key, *value;
};

struct counted_process {
	const char *name, *executable, *container_id, *service, *pod,
		*namespace_; /* "" or NULL: none */
	const char *waker;   /* the same: of off-cpu, which process or interrupt ended the wait */
	const char *wait;    /* what was waited for, enum wait_class */
	const char *fault;   /* of page-fault: "minor", "major" */
	const struct counted_attribute *attributes;
	size_t attribute_count;
};

/* Who ran, and for which request. */
struct counted_thread {
	const char *name;
	uint32_t id;              /* 0: not known */
	struct profile_link link; /* all zero: none */
	const struct counted_attribute *attributes;
	size_t attribute_count;
};

struct stack_counts;

/* limit_bytes bounds everything the interval keeps. */
struct stack_counts *stack_counts_new(size_t limit_bytes, struct error *err);

/* Adds one sample of type 0. incomplete: the sentence, or "" / NULL. false: the limit is reached,
 * the sample is not counted (the caller counts the loss "aggregate_full"). Nothing is allocated for
 * a known stack. */
bool stack_counts_add(struct stack_counts *counts, const struct counted_process *process,
		      const struct counted_thread *thread, const struct counted_frame *frames,
		      size_t depth, const char *incomplete, uint64_t count, uint64_t value);

/* The same of another type, as struct profile_sample has it. */
bool stack_counts_add_type(struct stack_counts *counts, uint32_t type,
			   const struct counted_process *process,
			   const struct counted_thread *thread, const struct counted_frame *frames,
			   size_t depth, const char *incomplete, uint64_t count, uint64_t value);

/* When the sample that was added last was taken, on a clock of the caller's. A time without room is
 * left out and counted: the sample itself stays. */
void stack_counts_add_time(struct stack_counts *counts, uint64_t time_ns);
uint64_t stack_counts_lost_times(const struct stack_counts *counts); /* since the start */

/* Fills one mapping's row of the profile for the number given to stack_counts_add(). add_text puts
 * a text in the profile's string table and returns its index. */
struct stack_counts_strings;
uint32_t stack_counts_text(struct stack_counts_strings *strings, const char *text);
typedef void stack_counts_mapping_fn(void *context, uint32_t mapping, struct profile_mapping *row,
				     struct stack_counts_strings *strings);

/* The interval so far as a profile that borrows the table's memory: valid until
 * stack_counts_clear(), and no sample can be added until then. types, units, times, period and id
 * are the caller's to fill. samples of the same process and stack stand together. false: memory. */
bool stack_counts_take(struct stack_counts *counts, stack_counts_mapping_fn *fill_mapping,
		       void *context, struct profile *profile, struct error *err);

/* Samples whose attributes were left out because there was no room for more: since the start. */
uint64_t stack_counts_lost_attributes(const struct stack_counts *counts);

/* Sum of counts added of type 0: the type of which every sample is accounted for. */
uint64_t stack_counts_samples(const struct stack_counts *counts);

/* Starts the next interval; memory is kept up to what the last intervals needed. */
void stack_counts_clear(struct stack_counts *counts);
void stack_counts_free(struct stack_counts *counts);

#endif
