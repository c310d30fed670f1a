/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/file_parser/row_builder.h"

#include <string.h>

enum { PAGE_BYTES = 1 << UNWIND_PAGE_BITS, PLACES = 2 * PAGE_RULES_MAX };

static const struct unwind_rule no_rule = {.cfa = UNWIND_CFA_NONE};

void row_builder_begin(struct page_rows *out, uint32_t page)
{
	out->page = page;
	out->state = UNWIND_PAGE_LOADED;
	out->failure = ROW_FAILURE_NONE;
	out->count = out->rule_count = out->end = 0;
	memset(out->places, 0, sizeof out->places);
}

static bool fail(struct page_rows *out)
{
	out->state = UNWIND_PAGE_FAILED;
	out->failure = ROW_FAILURE_LIMIT;
	out->count = out->rule_count = 0;
	return false;
}

/* The page's number of the rule; −1: there are too many. */
static int rule_number(struct page_rows *out, const struct unwind_rule *rule)
{
	uint64_t words[2];
	uint32_t place;

	_Static_assert(sizeof words == sizeof *rule, "no padding in a rule");
	memcpy(words, rule, sizeof words);
	words[0] = (words[0] ^ words[1] * 0x9e3779b97f4a7c15) * 0xff51afd7ed558ccd;
	for (place = words[0] >> 32;; place++) {
		uint16_t *number = &out->places[place % PLACES];

		if (*number && memcmp(&out->rules[*number - 1], rule, sizeof *rule) == 0)
			return *number - 1;
		if (*number)
			continue;
		if (out->rule_count == PAGE_RULES_MAX)
			return -1;
		out->rules[out->rule_count] = *rule;
		*number = (uint16_t)++out->rule_count;
		return *number - 1;
	}
}

static bool add_row(struct page_rows *out, uint32_t low, const struct unwind_rule *rule)
{
	int number = rule_number(out, rule);

	if (number < 0)
		return fail(out);
	if (out->count && out->rows[out->count - 1].rule == number)
		return true;
	if (out->count == UNWIND_PAGE_ROWS_MAX)
		return fail(out);
	out->rows[out->count++] = (struct unwind_row){.low = (uint16_t)low,
						      .rule = (uint16_t)number};
	return true;
}

bool row_builder_add(struct page_rows *out, uint64_t start, uint64_t end,
		     const struct unwind_rule *rule)
{
	uint64_t base = (uint64_t)out->page << UNWIND_PAGE_BITS;

	if (out->state == UNWIND_PAGE_FAILED)
		return false;
	if (end <= base || start >= base + PAGE_BYTES)
		return true;
	start = start < base ? 0 : start - base;
	end = end > base + PAGE_BYTES ? PAGE_BYTES : end - base;
	if (start < out->end)
		start = out->end;
	if (start >= end)
		return true;
	if (start > out->end && !add_row(out, out->end, &no_rule))
		return false;
	out->end = (uint32_t)end;
	return add_row(out, (uint32_t)start, rule);
}

void row_builder_end(struct page_rows *out)
{
	if (out->state == UNWIND_PAGE_FAILED)
		return;
	if (!out->count)
		out->state = UNWIND_PAGE_EMPTY;
	else if (out->end < PAGE_BYTES)
		add_row(out, out->end, &no_rule);
}

const struct unwind_rule *page_rows_find(const struct page_rows *rows, uint64_t address)
{
	uint32_t low = 0, high = rows->count;

	if (rows->state != UNWIND_PAGE_LOADED || address >> UNWIND_PAGE_BITS != rows->page)
		return NULL;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (rows->rows[middle].low <= (uint16_t)address)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || rows->rows[low - 1].rule >= rows->rule_count)
		return NULL;
	return &rows->rules[rows->rows[low - 1].rule];
}
