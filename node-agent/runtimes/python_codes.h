/* SPDX-License-Identifier: Apache-2.0 */
/* Code objects that were read, by {process, address, cookie}: each is read once while it is in use.
 * Bounded in bytes: in two halves, of which the older one is given up when the newer one is nearly
 * full, and what is asked for again moves to the newer one. What could not be read is remembered as
 * well and tried again a few times. How often a process has objects read is bounded too, so that
 * one that makes up new ones all the time costs its own names only. */
#ifndef NODE_AGENT_RUNTIMES_PYTHON_CODES_H
#define NODE_AGENT_RUNTIMES_PYTHON_CODES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "node-agent/processes/process_key.h"
#include "node-agent/runtimes/python_code.h"
#include "node-agent/runtimes/python_told.h"

enum {
	PYTHON_CODES_BYTES = 3 << 19, /* as a rule, of both halves */
	PYTHON_CODES_BURST = 2000,    /* objects read of one process at once … */
	PYTHON_CODES_A_SECOND = 200,  /* … and later */
	PYTHON_CODE_TRIES = 3,
};

struct python_codes_counters {
	uint64_t read; /* code objects, */
	uint64_t told; /* of these those that the kernel side had copied */
	uint64_t names_cut, lines_cut;
	uint64_t gone; /* another object was there: frames without a name */
	uint64_t unread;
	uint64_t
		refused; /* frames of objects that were not read, by the bounds in time and bytes */
	uint64_t given_up; /* halves */
	size_t bytes;      /* now */
};

struct python_codes *python_codes_new(size_t limit_bytes);
void python_codes_free(struct python_codes *codes);

/* A stack begins: what was lent before is not used any more. */
void python_codes_begin(struct python_codes *codes);

/* memory: of that process. now_ns: of any clock that only goes forward. NULL: it has no name; the
 * result is lent until the next stack begins. */
const struct python_code *python_codes_find(struct python_codes *codes,
					    const struct process_key *process,
					    const struct python_memory *memory,
					    const struct python_layout *layout, uint64_t address,
					    uint16_t cookie, uint64_t now_ns);

/* One that was copied at a sample (runtimes/python_told.h), unless it is known already. */
void python_codes_tell(struct python_codes *codes, const struct process_key *process,
		       const struct python_memory *memory, const struct python_layout *layout,
		       const struct runtime_code_event *told, uint64_t now_ns);

void python_codes_counters(const struct python_codes *codes, struct python_codes_counters *out);

#endif
