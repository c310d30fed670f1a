/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces of code with their rules → the rows of one page. Pure. */
#ifndef NODE_AGENT_FILE_PARSER_ROW_BUILDER_H
#define NODE_AGENT_FILE_PARSER_ROW_BUILDER_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/unwind_rows.h"

enum { PAGE_RULES_MAX = 2048 }; /* distinct rules of one page; the busiest file seen has 604 */

/* Why a page has no rows although it has unwind information. */
enum row_failure {
	ROW_FAILURE_NONE,
	ROW_FAILURE_NOT_CODE,   /* not an ELF file for this machine */
	ROW_FAILURE_UNREADABLE, /* its bytes could not be read */
	ROW_FAILURE_DAMAGED,    /* its table breaks its format's rules */
	ROW_FAILURE_LIMIT,      /* more rows, rules or bytes than we take */
	ROW_FAILURE_WORKER,     /* the parser died or ran over its limits on this page */
	ROW_FAILURE_COUNT,
};

/* Rows point into this page's own rules. About 100 KB: one of them, reused. */
struct page_rows {
	uint32_t executable, page;
	uint8_t state; /* enum unwind_page_state: LOADED, EMPTY or FAILED */
	uint8_t failure;
	uint32_t count, rule_count;
	struct unwind_row rows[UNWIND_PAGE_ROWS_MAX];
	struct unwind_rule rules[PAGE_RULES_MAX];
	/* The builder's own: where the last piece ended, and the rules by hash (number + 1). */
	uint32_t end;
	uint16_t places[2 * PAGE_RULES_MAX];
};

void row_builder_begin(struct page_rows *out, uint32_t page);

/* From start up to end, ELF addresses, the rule holds; what lies outside the page is cut. Pieces
 * come in ascending order; one that begins before the last one's end is cut there (the first wins).
 * False: no more room, out has failed. */
bool row_builder_add(struct page_rows *out, uint64_t start, uint64_t end,
		     const struct unwind_rule *rule);

/* Closes the gaps with UNWIND_CFA_NONE, merges equal neighbours; EMPTY when nothing was added. */
void row_builder_end(struct page_rows *out);

/* The rule at the address, or NULL when the page is not LOADED. */
const struct unwind_rule *page_rows_find(const struct page_rows *rows, uint64_t address);

#endif
