/* SPDX-License-Identifier: Apache-2.0 */
/* The profile ids seen lately, so that a retried report counts once. Ids of one report count up in
 * their last four bytes: a run of them is one entry. Bounded: the oldest entries make room. */
#ifndef SYMBOL_SERVER_STORE_RULES_REPORT_WINDOW_H
#define SYMBOL_SERVER_STORE_RULES_REPORT_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "common/hash_table.h"

enum { REPORT_WINDOW_MAX = 256 << 10 /* entries */ };

struct report_run {
	uint32_t tenant;
	uint8_t prefix[12];
	uint32_t first, count; /* of the last four bytes, big-endian */
	uint64_t group;        /* commit that holds it; what is not committed yet is pending */
};

struct report_window {
	struct report_run *runs; /* a ring once full */
	uint32_t capacity;
	uint64_t added;     /* ever; run n is at n % capacity */
	uint64_t persisted; /* runs before this one are in the state file */
	struct hash_table index;
};

enum report_seen { REPORT_NEW, REPORT_PENDING, REPORT_SEEN };

void report_window_init(struct report_window *window);
/* committed: groups up to this one are on disk. */
enum report_seen report_window_find(const struct report_window *window, uint32_t tenant,
				    const uint8_t id[16], uint64_t committed);
/* False: no memory. */
bool report_window_add(struct report_window *window, const struct report_run *run);
/* Forgets what was added with groups after this one. */
void report_window_forget(struct report_window *window, uint64_t committed);
/* The nth run ever added; NULL: it made room already. */
const struct report_run *report_window_at(const struct report_window *window, uint64_t n);
void report_window_release(struct report_window *window);

static inline uint32_t report_number(const uint8_t id[16])
{
	return (uint32_t)id[12] << 24 | (uint32_t)id[13] << 16 | (uint32_t)id[14] << 8 | id[15];
}

#endif
