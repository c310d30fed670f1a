/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What the walk asks for, answered in the kernel: words of the current thread's memory, most of
 * them from the window, and the rule at an address. */
#ifndef BPF_STACK_READ_BPF_H
#define BPF_STACK_READ_BPF_H

#include "bpf/kernel_types.h"
#include "bpf/process_map.bpf.h"
#include "bpf/rule_cache.bpf.h"
#include "bpf/sample_scratch.bpf.h"
#include "bpf/stack_window.bpf.h"
#include "bpf/unwind_rows.bpf.h"

#define STACK_WALK_READ(to, bytes, from) bpf_probe_read_user(to, bytes, (const void *)(from))
#define STACK_WALK_RULE(walk, address)   find_rule(address)
#define STACK_WALK_TLS(walk)             task_thread_pointer()
#define STACK_WALK_WORD(walk, to, from)  scratch_word(walk, to, from)

const volatile __u32 walk_by_rows = 0; /* 0: by frame pointers alone */

/* Each for one scratch, whose place they would else take; they outlive the sample. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SAMPLE_SCRATCH_SLOTS);
	__type(key, __u32);
	__type(value, struct rule_cache);
} rule_caches SEC(".maps");

static __always_inline struct rule_cache *rule_cache_of(const struct sample_scratch *s)
{
	__u32 key = SAMPLE_SCRATCH_SLOTS == 1 ? 0 : (__u32)s->slot;

	return bpf_map_lookup_elem(&rule_caches, &key);
}

int fill_window(unsigned long from);
__attribute__((noinline)) int fill_window(unsigned long from)
{
	struct sample_scratch *s = scratch_find();

	return s ? stack_window_fill(&s->window, from) != 0 : 1;
}

/* A word of the user's stack. 0, or what went wrong. */
static __always_inline int scratch_word(const struct stack_walk *walk, unsigned long long *to,
					unsigned long long from)
{
	const struct sample_scratch *s = (const void *)walk -
					 __builtin_offsetof(struct sample_scratch, walk);

	if (!stack_window_word(&s->window, to, from))
		return 0;
	return fill_window(from) ? 1 : stack_window_word(&s->window, to, from);
}

/* A leaf's address seldom comes again: only callers are kept. */
static __always_inline int cached_rule_find(struct sample_scratch *s, __u32 executable,
					    __u64 address)
{
	__u64 key = s->walk.is_interrupted ? 0 : rule_cache_key(executable, address);
	struct rule_cache *cache = key ? rule_cache_of(s) : 0;
	const struct unwind_rule *cached = cache ? rule_cache_find(cache, key) : 0;
	int found;

	if (cached) {
		s->walk.rule = *cached;
		return STACK_RULE_FOUND;
	}
	found = unwind_rule_find(executable, address, &s->walk.rule);
	if (cache && found == STACK_RULE_FOUND)
		rule_cache_add(cache, key, &s->walk.rule);
	return found;
}

/* A global function is verified once, on its own, whatever the loop around it: that keeps 1024
 * frames within the million instructions a 5.10 verifier looks at, which has no bpf_loop(). Up to
 * then such functions take only numbers, so the scratch is looked up again. */
int find_rule(unsigned long address);
__attribute__((noinline)) int find_rule(unsigned long address)
{
	struct sample_scratch *s = scratch_find();

	if (!walk_by_rows)
		return STACK_RULE_ANONYMOUS;
	if (!s || process_mapping_find(&s->process, address) ||
	    s->process.mapping.executable == EXECUTABLE_NONE)
		return STACK_RULE_ABSENT;
	if (s->process.mapping.executable == EXECUTABLE_ANONYMOUS)
		return STACK_RULE_ANONYMOUS;
	return cached_rule_find(s, s->process.mapping.executable,
				address - s->process.mapping.base);
}

/* The rule of a caller met before, of the kind that nearly all are. */
static __always_inline int known_rule_find(struct sample_scratch *s, struct rule_cache *cache)
{
	const struct process_mapping *mapping = &s->process.mapping;
	const struct unwind_rule *rule;
	__u64 address = s->walk.ip - 1;

	if (s->walk.is_interrupted || !process_mapping_has(mapping, address))
		return 0;
	rule = rule_cache_find(cache, rule_cache_key(mapping->executable, address - mapping->base));
	if (!rule || rule->cfa != UNWIND_CFA_REGISTER || rule->flags)
		return 0;
	s->walk.rule = *rule;
	return 1;
}

#endif
