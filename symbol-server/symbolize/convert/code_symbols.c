/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/symbolize/convert/code_symbols.h"

#include <stdlib.h>
#include <string.h>

enum { NESTING_MAX = 64 };

const struct code_section *code_section_find(const struct code_section *sections, size_t count,
					     uint64_t address)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (sections[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low && address < sections[low - 1].end ? &sections[low - 1] : NULL;
}

static bool is_second_choice(const char *name)
{
	return !strncmp(name, "__GI_", 5) || strchr(name, '@');
}

static int compare_names(const char *a, const char *b)
{
	size_t a_length = strlen(a), b_length = strlen(b);
	size_t a_underscores = strspn(a, "_"), b_underscores = strspn(b, "_");

	if (a_underscores != b_underscores)
		return a_underscores < b_underscores ? -1 : 1;
	if (a_length != b_length)
		return a_length < b_length ? -1 : 1;
	return strcmp(a, b);
}

static int compare_symbols(const void *left, const void *right, void *texts)
{
	const struct code_symbol *a = left, *b = right;
	const char *a_name = (const char *)texts + a->name, *b_name = (const char *)texts + b->name;
	bool a_second, b_second;

	if (a->address != b->address)
		return a->address < b->address ? -1 : 1;
	if (a->size != b->size)
		return a->size > b->size ? -1 : 1;
	if (!a->name || !b->name)
		return a->name ? -1 : b->name != 0;
	if (a->is_function != b->is_function)
		return a->is_function ? -1 : 1;
	a_second = is_second_choice(a_name);
	b_second = is_second_choice(b_name);
	if (a_second != b_second)
		return b_second ? -1 : 1;
	if (a->binding != b->binding)
		return a->binding < b->binding ? -1 : 1;
	return compare_names(a_name, b_name);
}

size_t code_symbols_sort(struct code_symbol *symbols, size_t count, const char *texts)
{
	size_t kept = 0;

	if (count)
		qsort_r(symbols, count, sizeof(*symbols), compare_symbols, (void *)texts);
	for (size_t i = 0; i < count; i++) {
		if (kept && symbols[kept - 1].address == symbols[i].address &&
		    symbols[kept - 1].size == symbols[i].size)
			continue;
		symbols[kept++] = symbols[i];
	}
	return kept;
}

/* ---- extents ---- */

struct open_symbol {
	uint64_t end;
	uint32_t name;
};

struct sweep {
	struct open_symbol open[NESTING_MAX]; /* innermost last */
	unsigned depth;
	uint64_t at; /* everything before is written */
	struct code_extent *extents;
	size_t count;
};

static void sweep_write(struct sweep *sweep, uint64_t until, uint32_t name)
{
	struct code_extent *last = sweep->count ? &sweep->extents[sweep->count - 1] : NULL;

	if (until <= sweep->at)
		return;
	if (last && last->high == sweep->at && last->name == name)
		last->high = until;
	else
		sweep->extents[sweep->count++] =
			(struct code_extent){.low = sweep->at, .high = until, .name = name};
	sweep->at = until;
}

/* Writes what open symbols cover up to there. */
static void sweep_to(struct sweep *sweep, uint64_t until)
{
	while (sweep->depth && sweep->at < until) {
		const struct open_symbol *inner = &sweep->open[sweep->depth - 1];

		sweep_write(sweep, inner->end < until ? inner->end : until, inner->name);
		if (inner->end > until)
			break;
		sweep->depth--;
	}
	while (sweep->depth && sweep->open[sweep->depth - 1].end <= until)
		sweep->depth--;
	if (sweep->at < until)
		sweep->at = until;
}

static void sweep_open(struct sweep *sweep, uint64_t end, uint32_t name)
{
	if (sweep->depth == NESTING_MAX)
		return;
	/* One that outlasts those around it is kept whole: they end where it ends or earlier. */
	sweep->open[sweep->depth++] = (struct open_symbol){.end = end, .name = name};
}

size_t code_symbols_extents(const struct code_symbol *symbols, size_t count,
			    const struct code_section *sections, size_t section_count,
			    struct code_extent *extents)
{
	struct sweep sweep = {.extents = extents};

	for (size_t i = 0; i < count; i++) {
		const struct code_symbol *symbol = &symbols[i];
		const struct code_section *section = code_section_find(sections, section_count,
								       symbol->address);
		uint64_t end;

		if (!section || !symbol->name)
			continue;
		sweep_to(&sweep, symbol->address);
		end = section->end;
		if (symbol->size && symbol->size < end - symbol->address)
			end = symbol->address + symbol->size;
		if (!symbol->size) {
			/* Labels inside of a sized function are not functions. Sorted behind
			 * sized ones of the same address. */
			if (sweep.depth)
				continue;
			if (i + 1 < count && symbols[i + 1].address < end)
				end = symbols[i + 1].address;
		}
		sweep_open(&sweep, end, symbol->name);
	}
	sweep_to(&sweep, UINT64_MAX);
	return sweep.count;
}
