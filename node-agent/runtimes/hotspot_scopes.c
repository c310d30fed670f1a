/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/runtimes/hotspot_scopes.h"

#include <string.h>

enum {
	MORE_CODES = 64, /* bytes that go on: the highest ones */
	MORE_BITS = 6,
};

bool hotspot_number_read(enum hotspot_coding coding, const uint8_t *bytes, size_t length,
			 size_t *at, uint32_t *value)
{
	const uint32_t excluded = coding == HOTSPOT_CODING_NO_ZERO;

	*value = 0;
	for (unsigned i = 0; i < HOTSPOT_NUMBER_BYTES && *at < length; i++) {
		const uint8_t byte = bytes[*at];

		if (byte < excluded)
			return false;
		(*at)++;
		*value += (byte - excluded) << i * MORE_BITS;
		if (byte < 256 - MORE_CODES || i == HOTSPOT_NUMBER_BYTES - 1)
			return true;
	}
	return false;
}

/* The sign is the lowest bit. */
static bool signed_read(enum hotspot_coding coding, const uint8_t *bytes, size_t length, size_t *at,
			int32_t *value)
{
	uint32_t number;

	if (!hotspot_number_read(coding, bytes, length, at, &number))
		return false;
	*value = (int32_t)(number >> 1 ^ -(number & 1));
	return true;
}

/* --- PcDescs --- */

static int32_t int_of(const struct hotspot_pcs *pcs, uint32_t i, uint32_t at)
{
	int32_t value;

	memcpy(&value, pcs->bytes + (size_t)i * pcs->stride + at, sizeof value);
	return value;
}

bool hotspot_pcs_find(const struct hotspot_pcs *pcs, uint32_t pc, uint32_t *scope)
{
	uint32_t low = 0, high = pcs->count;
	int32_t found = HOTSPOT_SCOPE_NONE;

	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;

		if (int_of(pcs, middle, pcs->pc_at) < (int64_t)pc)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < pcs->count && found <= HOTSPOT_SCOPE_NONE; low++)
		found = int_of(pcs, low, pcs->scope_at);
	*scope = found > HOTSPOT_SCOPE_NONE ? (uint32_t)found : HOTSPOT_SCOPE_NONE;
	return *scope != HOTSPOT_SCOPE_NONE;
}

/* --- scopes --- */

bool hotspot_scope_read(enum hotspot_coding coding, const uint8_t *bytes, size_t length,
			struct hotspot_scope *scope)
{
	size_t at = 0;
	uint32_t bci;

	if (!hotspot_number_read(coding, bytes, length, &at, &scope->sender) ||
	    !hotspot_number_read(coding, bytes, length, &at, &scope->method) ||
	    !hotspot_number_read(coding, bytes, length, &at, &bci))
		return false;
	scope->bci = (int32_t)(bci + (uint32_t)HOTSPOT_BCI_ENTRY); /* the lowest that is written */
	return true;
}

/* --- lines --- */

enum { PAIR_END = 0, PAIR_LONG = 0xff, PAIR_LINE_BITS = 3 };

struct line_pair {
	int64_t bci, line;
};

/* The next pair, by the last one. False: there is none. */
static bool pair_read(enum hotspot_coding coding, const uint8_t *table, size_t length, size_t *at,
		      struct line_pair *pair)
{
	int32_t bci, line;

	if (*at >= length)
		return false;
	const uint8_t first = table[(*at)++];
	if (first == PAIR_END)
		return false;
	if (first != PAIR_LONG) {
		pair->bci += first >> PAIR_LINE_BITS;
		pair->line += first & ((1 << PAIR_LINE_BITS) - 1);
		return true;
	}
	if (!signed_read(coding, table, length, at, &bci) ||
	    !signed_read(coding, table, length, at, &line))
		return false;
	pair->bci += bci;
	pair->line += line;
	return true;
}

uint32_t hotspot_line_find(enum hotspot_coding coding, const uint8_t *table, size_t length,
			   int32_t bci)
{
	const int64_t wanted = bci < 0 ? 0 : bci;
	struct line_pair pair = {0}, best = {0};
	size_t at = 0;

	/* Compilers write them in any order: the nearest before, of several the last one. */
	while (pair_read(coding, table, length, &at, &pair)) {
		if (pair.bci <= wanted && pair.bci >= best.bci)
			best = pair;
		if (pair.bci == wanted)
			break;
	}
	return best.line > 0 && best.line <= UINT16_MAX ? (uint32_t)best.line : 0;
}

size_t hotspot_lines_bytes(enum hotspot_coding coding, const uint8_t *table, size_t length)
{
	struct line_pair pair = {0};
	size_t at = 0;

	while (pair_read(coding, table, length, &at, &pair))
		continue;
	return at;
}
