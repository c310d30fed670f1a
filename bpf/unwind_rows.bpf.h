/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Address → unwind rule, by page. Maps of bpf/unwind_rows.h. */
#ifndef BPF_UNWIND_ROWS_BPF_H
#define BPF_UNWIND_ROWS_BPF_H

#include "bpf/kernel_types.h"
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

#endif
