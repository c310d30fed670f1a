/* SPDX-License-Identifier: Apache-2.0 */
/* Which pages of code have their rows loaded, and the rows: in the kernel's maps, where the BPF
 * walk finds them, or in memory of our own when there are no maps (capture by perf). */
#ifndef NODE_AGENT_UNWIND_ROW_PAGES_H
#define NODE_AGENT_UNWIND_ROW_PAGES_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "node-agent/file_parser/row_builder.h"

struct row_pages_options {
	/* bpf/unwind_rows.h; −1, all of them: keep the rows in memory. Borrowed. */
	int pages_map, rules_map, pools_map;
	uint64_t limit_bytes; /* of rows; the least used pages go first */
};

struct row_pages;

struct row_pages *row_pages_new(const struct row_pages_options *options, struct error *err);
void row_pages_free(struct row_pages *pages);

/* What is known of the page; counts as a use at now_s. ABSENT with *is_asked: row_pages_asked() was
 * called and no answer has come. FAILED pages become ABSENT again when their retry time has come.
 */
enum unwind_page_state row_pages_state(struct row_pages *pages, uint32_t executable, uint32_t page,
				       uint32_t now_s, bool *is_asked);
void row_pages_asked(struct row_pages *pages, uint32_t executable, uint32_t page, uint32_t now_s);

/* Publishes an answer; false: no room could be made, or the kernel refused: the page is FAILED. */
bool row_pages_put(struct row_pages *pages, const struct page_rows *rows, uint32_t now_s);

/* The rule at an ELF address. False unless its page is LOADED. */
bool row_pages_rule(struct row_pages *pages, uint32_t executable, uint64_t address,
		    struct unwind_rule *rule);

/* The executable is gone: its pages make room. */
void row_pages_forget(struct row_pages *pages, uint32_t executable);

struct row_pages_counters {
	uint64_t loaded, empty, failed; /* answers so far */
	uint64_t by_failure[ROW_FAILURE_COUNT];
	uint64_t evicted;         /* pages, for the limit */
	uint32_t pages, rules;    /* now */
	uint64_t rows, row_bytes; /* now: rows in use, and what their pools take */
};
void row_pages_counters(const struct row_pages *pages, struct row_pages_counters *out);

#endif
