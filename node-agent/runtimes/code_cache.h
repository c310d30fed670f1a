/* SPDX-License-Identifier: Apache-2.0 */
/* What was read of processes' code, by {process, two words}: read once while it is in use. Bounded
 * in bytes: in two halves, of which the older one is given up when the newer one is nearly full,
 * and what is asked for again moves to the newer one. What could not be read is remembered as well,
 * to be tried again a few times. */
#ifndef NODE_AGENT_RUNTIMES_CODE_CACHE_H
#define NODE_AGENT_RUNTIMES_CODE_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "node-agent/processes/process_key.h"

enum {
	CODE_CACHE_TRIES = 3,
	CODE_CACHE_BURST = 2000,   /* things read of one process at once … */
	CODE_CACHE_A_SECOND = 200, /* … and later */
};

struct code_cache;

struct code_cache *code_cache_new(size_t limit_bytes);
void code_cache_free(struct code_cache *cache);

struct code_cache_key {
	struct process_key process;
	uint64_t words[2];
};

/* A stack begins: what was lent before is not used any more. Returns whether a half was given up.
 */
bool code_cache_begin(struct code_cache *cache);

/* True: *value is what is known, NULL where that is nothing, lent until the next stack begins.
 * False: it is to be read, and what was read to be put. */
bool code_cache_find(struct code_cache *cache, const struct code_cache_key *key,
		     const void **value);

/* One more thing of that process may be read now, or not yet: one that makes up new ones all the
 * time costs its own names only. now_ns: of any clock that only goes forward. */
bool code_cache_may_read(struct code_cache *cache, uint32_t tgid, uint64_t now_ns);

/* value: so many bytes for free(), NULL: it could not be read. Returns the value, lent as above;
 * NULL: there is none, or no room for it, and it is freed. */
const void *code_cache_put(struct code_cache *cache, const struct code_cache_key *key, void *value,
			   size_t bytes);

size_t code_cache_bytes(const struct code_cache *cache);

#endif
