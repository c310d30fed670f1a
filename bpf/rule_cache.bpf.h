/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Rules of return addresses that were met before, on each CPU. Stacks share most of their callers
 * with the ones before them, and finding a rule through page, pool, rows and rules costs a dozen
 * cache misses at production rates; here it is one.
 *
 * Nothing is ever invalid: what rule holds at an address of an executable does not change,
 * executables' indices are not used again, and the rule itself is kept, not where it lay. */
#ifndef BPF_RULE_CACHE_BPF_H
#define BPF_RULE_CACHE_BPF_H

#include "bpf/unwind_rows.h"

enum { RULE_CACHE_ENTRIES = 512 };

struct rule_cache {
	struct cached_rule {
		__u64 key; /* 0: empty */
		struct unwind_rule rule;
	} entries[RULE_CACHE_ENTRIES];
};

/* Index and ELF address; 0: one does not fit, as addresses of files beyond 4 GiB, which are rare.
 */
static __always_inline __u64 rule_cache_key(__u32 executable, __u64 address)
{
	if (executable == EXECUTABLE_ANONYMOUS || address >> 32)
		return 0;
	return (__u64)executable << 32 | address;
}

static __always_inline struct cached_rule *rule_cache_entry(struct rule_cache *cache, __u64 at)
{
	return &cache->entries[at & (RULE_CACHE_ENTRIES - 1)];
}

static __always_inline __u64 rule_cache_place(__u64 key)
{
	return key * 0x9e3779b97f4a7c15ULL >> 55; /* Fibonacci hashing: the upper 9 bits */
}

/* At its place or next to it: two callers of one stack that share a place would else drive each
 * other out at every sample. NULL: it is not there. */
static __always_inline const struct unwind_rule *rule_cache_find(struct rule_cache *cache,
								 __u64 key)
{
	__u64 at = rule_cache_place(key);
	const struct cached_rule *entry = rule_cache_entry(cache, at);

	if (entry->key != key)
		entry = rule_cache_entry(cache, at ^ 1);
	return key && entry->key == key ? &entry->rule : (void *)0;
}

static __always_inline void rule_cache_add(struct rule_cache *cache, __u64 key,
					   const struct unwind_rule *rule)
{
	__u64 at = rule_cache_place(key);
	struct cached_rule *entry = rule_cache_entry(cache, at);

	*rule_cache_entry(cache, at ^ 1) = *entry;
	entry->key = key;
	entry->rule = *rule;
}

#endif
