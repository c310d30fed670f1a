/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/symbolize/convert/code_symbols.h"

#include <stdlib.h>

#include "tests/check.h"

static const char texts[] = "\0"
			    "outer\0"               /* 1 */
			    "inner\0"               /* 7 */
			    "label\0"               /* 13 */
			    "malloc\0"              /* 19 */
			    "__libc_malloc\0"       /* 26 */
			    "__GI___libc_malloc\0"  /* 40 */
			    "malloc@@GLIBC_2.2.5\0" /* 59 */
			    "bmalloc\0"             /* 79 */
			    "amalloc";              /* 87 */

static const struct code_section text_section = {0x1000, 0x2000};

static size_t extents_of(struct code_symbol *symbols, size_t count, struct code_extent *extents)
{
	count = code_symbols_sort(symbols, count, texts);
	return code_symbols_extents(symbols, count, &text_section, 1, extents);
}

static void an_alias_is_chosen(uint32_t *names, size_t count, const char *want,
			       enum symbol_binding binding)
{
	struct code_symbol symbols[8];

	/* in every rotation: the order of a symbol table says nothing */
	for (size_t turn = 0; turn < count; turn++) {
		for (size_t i = 0; i < count; i++)
			symbols[i] = (struct code_symbol){.address = 0x1000,
							  .size = 16,
							  .name = names[(i + turn) % count],
							  .is_function = true,
							  .binding = binding};
		CHECK_NUMBER(code_symbols_sort(symbols, count, texts), 1);
		CHECK_TEXT(texts + symbols[0].name, want);
	}
}

static void aliases(void)
{
	uint32_t all[] = {40, 59, 26, 19}, versions[] = {40, 59}, equal[] = {79, 87};
	struct code_symbol bound[2] = {
		{.address = 0x1000,
		 .size = 4,
		 .name = 19,
		 .is_function = true,
		 .binding = BINDING_LOCAL},
		{.address = 0x1000,
		 .size = 4,
		 .name = 26,
		 .is_function = true,
		 .binding = BINDING_GLOBAL},
	};

	an_alias_is_chosen(all, 4, "malloc", BINDING_GLOBAL);
	an_alias_is_chosen(versions, 2, "malloc@@GLIBC_2.2.5", BINDING_LOCAL);
	an_alias_is_chosen(equal, 2, "amalloc", BINDING_WEAK);
	CHECK_NUMBER(code_symbols_sort(bound, 2, texts), 1);
	CHECK_TEXT(texts + bound[0].name, "__libc_malloc");
}

static void nesting(void)
{
	struct code_symbol symbols[] = {
		{.address = 0x1100, .size = 0x100, .name = 1, .is_function = true},
		{.address = 0x1140, .size = 0x20, .name = 7, .is_function = true},
		{.address = 0x1180, .size = 0, .name = 13},
	};
	struct code_extent extents[6];

	CHECK_NUMBER(extents_of(symbols, 3, extents), 3);
	CHECK(extents[0].low == 0x1100 && extents[0].high == 0x1140 && extents[0].name == 1);
	CHECK(extents[1].low == 0x1140 && extents[1].high == 0x1160 && extents[1].name == 7);
	/* the label inside is not a function */
	CHECK(extents[2].low == 0x1160 && extents[2].high == 0x1200 && extents[2].name == 1);
}

static void sizes(void)
{
	struct code_symbol symbols[] = {
		{.address = 0x1000, .size = 0, .name = 13},
		{.address = 0x1080, .size = 0x10, .name = 1, .is_function = true},
		{.address = 0x1f00, .size = 0, .name = 19},
		{.address = 0x3000, .size = 8, .name = 7, .is_function = true},
	};
	struct code_symbol long_one = {
		.address = 0x1ff0, .size = UINT64_MAX, .name = 1, .is_function = true};
	struct code_extent extents[8];

	CHECK_NUMBER(extents_of(symbols, 4, extents), 3);
	/* size 0 up to the next symbol; padding after a sized one has no name */
	CHECK(extents[0].low == 0x1000 && extents[0].high == 0x1080);
	CHECK(extents[1].low == 0x1080 && extents[1].high == 0x1090);
	/* up to the section's end; outside of every section there is nothing */
	CHECK(extents[2].low == 0x1f00 && extents[2].high == 0x2000);
	CHECK_NUMBER(extents_of(&long_one, 1, extents), 1);
	CHECK_NUMBER(extents[0].high, 0x2000);
}

/* What has no name (data) ends what has no size, and nothing else. */
static void boundaries(void)
{
	struct code_symbol symbols[] = {
		{.address = 0x1000, .size = 0, .name = 13},
		{.address = 0x1010, .size = 32},
		{.address = 0x1100, .size = 0x40, .name = 1, .is_function = true},
		{.address = 0x1120, .size = 8},
		{.address = 0x1200, .size = 0, .name = 7, .is_function = true},
		{.address = 0x1200, .size = 0},
	};
	struct code_extent extents[12];

	CHECK_NUMBER(extents_of(symbols, 6, extents), 3);
	CHECK(extents[0].low == 0x1000 && extents[0].high == 0x1010 && extents[0].name == 13);
	CHECK(extents[1].low == 0x1100 && extents[1].high == 0x1140 && extents[1].name == 1);
	CHECK(extents[2].low == 0x1200 && extents[2].high == 0x2000 && extents[2].name == 7);
}

/* Against the plain way: for every address, the latest start among the sized symbols that hold it.
 */
static void random_nesting(void)
{
	enum { SYMBOLS = 40, ROUNDS = 200 };
	struct code_symbol symbols[SYMBOLS];
	struct code_extent extents[2 * SYMBOLS];
	unsigned wrong = 0;

	srand(7);
	for (int round = 0; round < ROUNDS; round++) {
		size_t count = 0, extent_count;

		for (int i = 0; i < SYMBOLS; i++) {
			uint64_t start = 0x1000 + (uint64_t)(rand() % 200);

			symbols[count++] = (struct code_symbol){.address = start,
								.size = 1 + (uint64_t)(rand() % 60),
								.name = 1,
								.is_function = true};
		}
		extent_count = extents_of(symbols, count, extents);
		for (uint64_t at = 0x1000; at < 0x1200; at++) {
			bool is_in = false, is_found = false;

			for (size_t i = 0; i < count; i++)
				is_in |= symbols[i].address <= at &&
					 at - symbols[i].address < symbols[i].size;
			for (size_t i = 0; i < extent_count; i++)
				is_found |= extents[i].low <= at && at < extents[i].high;
			wrong += is_in != is_found;
		}
		for (size_t i = 1; i < extent_count; i++)
			wrong += extents[i].low < extents[i - 1].high;
	}
	CHECK_NUMBER(wrong, 0);
}

int main(void)
{
	aliases();
	nesting();
	sizes();
	boundaries();
	random_nesting();
	return checks_done();
}
