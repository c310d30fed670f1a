/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Address → unwind row, by page. Maps of bpf/unwind_rows.h. */
#ifndef BPF_UNWIND_ROWS_BPF_H
#define BPF_UNWIND_ROWS_BPF_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "bpf/unwind_rows.h"

struct unwind_element {
	struct unwind_row rows[UNWIND_ELEMENT_ROWS];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, UNWIND_PAGES_MAX);
	__type(key, struct unwind_page_key);
	__type(value, struct unwind_page);
} unwind_pages SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, UNWIND_RULES_MAX);
	__type(key, __u32);
	__type(value, struct unwind_rule);
} unwind_rules SEC(".maps");

/* User space makes the inner ones; they have to be like this: equal ones are looked up without a
 * call. */
struct unwind_pool {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, UNWIND_POOL_ELEMENTS);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct unwind_element));
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, UNWIND_POOLS_MAX);
	__type(key, __u32);
	__type(value, __u32);
	__array(values, struct unwind_pool);
} unwind_pools SEC(".maps");

enum { UNWIND_ROW_INDEX_MASK = UNWIND_POOLS_MAX * UNWIND_POOL_ELEMENTS * UNWIND_ELEMENT_ROWS - 1 };

static __always_inline struct unwind_element *unwind_element_find(void *pool, __u32 row)
{
	__u32 key = row / UNWIND_ELEMENT_ROWS % UNWIND_POOL_ELEMENTS;

	return bpf_map_lookup_elem(pool, &key);
}

/* The element of the page that has the row which holds at low: the last one whose first row is not
 * above. Only pages in more than one element are searched. */
static __always_inline struct unwind_element *
unwind_element_of(void *pool, const struct unwind_page *page, __u32 low, __u32 *row)
{
	__u32 end = page->first_row + page->count, at = page->first_row;
	__u32 base = at - at % UNWIND_ELEMENT_ROWS;

	if (end - base > UNWIND_ELEMENT_ROWS)
		for (__u32 step = UNWIND_PAGE_ELEMENTS_MAX / 2; step; step /= 2) {
			__u32 next = (base + step * UNWIND_ELEMENT_ROWS) & UNWIND_ROW_INDEX_MASK;
			struct unwind_element *element;

			if (next >= end)
				continue;
			element = unwind_element_find(pool, next);
			if (element && element->rows[0].low <= low)
				at = base = next;
		}
	*row = at;
	return unwind_element_find(pool, at);
}

/* The rule of the row which holds at low: the last one that is not above, of those from row up to
 * end that lie in the element. A page's first row is above nothing. */
static __always_inline int unwind_element_rule(const struct unwind_element *element, __u32 row,
					       __u32 end, __u32 low)
{
	__u32 at = row % UNWIND_ELEMENT_ROWS, count = end - row;

	if (count > UNWIND_ELEMENT_ROWS - at)
		count = UNWIND_ELEMENT_ROWS - at;
	end = at + count;
	for (__u32 step = UNWIND_ELEMENT_ROWS / 2; step; step /= 2) {
		__u32 next = (at + step) % UNWIND_ELEMENT_ROWS;

		if (at + step < end && element->rows[next].low <= low)
			at = next;
	}
	/* The compiler knows the range and would drop the mask; 6.12's verifier has lost it here.
	 */
	__asm__ volatile("" : "+r"(at));
	return element->rows[at % UNWIND_ELEMENT_ROWS].rule;
}

static __always_inline int unwind_rule_find(__u32 executable, __u64 address,
					    struct unwind_rule *rule)
{
	const struct unwind_page_key key = {executable, address >> UNWIND_PAGE_BITS};
	const __u32 low = address & ((1 << UNWIND_PAGE_BITS) - 1);
	const struct unwind_element *element;
	const struct unwind_rule *found;
	const struct unwind_page *page;
	__u32 pool_key, rule_key, row;
	void *pool;

	if (address >> UNWIND_PAGE_BITS >> 32)
		return STACK_RULE_NO_TABLE;
	page = bpf_map_lookup_elem(&unwind_pages, &key);
	if (!page || page->state == UNWIND_PAGE_ABSENT)
		return STACK_RULE_ABSENT;
	if (page->state == UNWIND_PAGE_FAILED)
		return STACK_RULE_FAILED;
	if (page->state != UNWIND_PAGE_LOADED)
		return STACK_RULE_NO_TABLE;
	pool_key = page->first_row / (UNWIND_POOL_ELEMENTS * UNWIND_ELEMENT_ROWS);
	pool = bpf_map_lookup_elem(&unwind_pools, &pool_key);
	if (!pool)
		return STACK_RULE_FAILED;
	element = unwind_element_of(pool, page, low, &row);
	if (!element)
		return STACK_RULE_FAILED;
	rule_key = unwind_element_rule(element, row, page->first_row + page->count, low);
	found = bpf_map_lookup_elem(&unwind_rules, &rule_key);
	if (!found)
		return STACK_RULE_FAILED;
	*rule = *found;
	return found->cfa == UNWIND_CFA_NONE ? STACK_RULE_NO_TABLE : STACK_RULE_FOUND;
}

#endif
