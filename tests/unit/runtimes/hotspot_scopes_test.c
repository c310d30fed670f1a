/* SPDX-License-Identifier: Apache-2.0 */
/* UNSIGNED5, scopes, PcDescs and tables of lines: numbers that were written by the rule that
 * OpenJDK's comments give, and bytes that stood in running JVMs. */
#include "node-agent/runtimes/hotspot_scopes.h"

#include <stdlib.h>
#include <string.h>

#include "tests/check.h"

/* As the comment of unsigned5.hpp has it: while more than fits is left, a byte of the 64 highest.
 */
static size_t number_write(enum hotspot_coding coding, uint32_t value, uint8_t *to)
{
	const uint32_t excluded = coding == HOTSPOT_CODING_NO_ZERO;
	const uint32_t low = 256 - 64 - excluded;
	uint32_t rest = value;
	size_t count = 0;

	for (; rest >= low && count < 4; count++) {
		rest -= low;
		to[count] = (uint8_t)(excluded + low + rest % 64);
		rest /= 64;
	}
	to[count] = (uint8_t)(excluded + rest);
	return count + 1;
}

static void test_numbers(void)
{
	static const uint32_t edges[] = {
		0,     1,     190,     191,        192,      193,        12286,      12287,
		12288, 16000, 1 << 20, 0x7fffffff, 1U << 31, UINT32_MAX, 0xfffffffe, 777777777};
	unsigned wrong = 0, short_ones = 0;
	uint8_t bytes[8];

	for (enum hotspot_coding coding = 0; coding <= HOTSPOT_CODING_NO_ZERO; coding++) {
		for (uint32_t i = 0; i < 40000; i++) {
			const uint32_t value = i < 20000 ? i
					       : i < 20000 + sizeof edges / sizeof *edges
						       ? edges[i - 20000]
						       : i * 2654435761U;
			const size_t length = number_write(coding, value, bytes);
			size_t at = 0;
			uint32_t got;

			wrong += !hotspot_number_read(coding, bytes, length, &at, &got) ||
				 got != value || at != length;
			for (size_t less = 0; less < length; less++) {
				at = 0;
				short_ones += hotspot_number_read(coding, bytes, less, &at, &got);
			}
		}
	}
	CHECK_NUMBER(wrong, 0);
	CHECK_NUMBER(short_ones, 0);
	size_t at = 0;
	uint32_t got;
	CHECK(!hotspot_number_read(HOTSPOT_CODING_NO_ZERO, (const uint8_t[]){0}, 1, &at, &got));
	CHECK(!hotspot_number_read(HOTSPOT_CODING_NO_ZERO, (const uint8_t[]){255, 0}, 2, &at,
				   &got));
}

static void test_pcs(void)
{
	static const int32_t words[][4] = {{-1, 0, 0, 0},  {16, 5, 0, 0},  {16, 6, 0, 0},
					   {40, -7, 0, 0}, {100, 9, 0, 0}, {0x10000000, 0, 0, 0}};
	const struct hotspot_pcs pcs = {(const uint8_t *)words, 6, 16, 0, 4},
				 none = {NULL, 0, 16, 0, 4};
	static const struct {
		uint32_t pc, scope;
	} rows[] = {{0, 5}, {15, 5}, {16, 5}, {17, 9}, {40, 9}, {41, 9}, {100, 9}};
	uint32_t scope;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (CHECK(hotspot_pcs_find(&pcs, rows[i].pc, &scope)))
			CHECK_NUMBER(scope, rows[i].scope);
	CHECK(!hotspot_pcs_find(&pcs, 101, &scope));
	CHECK(!hotspot_pcs_find(&pcs, UINT32_MAX, &scope));
	CHECK(!hotspot_pcs_find(&none, 1, &scope));
}

static void test_scopes(void)
{
	struct hotspot_scope scope;
	uint8_t bytes[HOTSPOT_SCOPE_BYTES];

	for (enum hotspot_coding coding = 0; coding <= HOTSPOT_CODING_NO_ZERO; coding++) {
		size_t length = number_write(coding, 70000, bytes);
		length += number_write(coding, 3, bytes + length);
		length += number_write(coding, 300 + 1, bytes + length);
		CHECK(hotspot_scope_read(coding, bytes, length, &scope));
		CHECK_NUMBER(scope.sender, 70000);
		CHECK_NUMBER(scope.method, 3);
		CHECK_NUMBER(scope.bci, 300);
		CHECK(!hotspot_scope_read(coding, bytes, length - 1, &scope));
		memset(bytes, coding, 3); /* three zeros */
		CHECK(hotspot_scope_read(coding, bytes, 3, &scope));
		CHECK_NUMBER(scope.sender, HOTSPOT_SCOPE_NONE);
		CHECK(scope.bci == HOTSPOT_BCI_ENTRY);
	}
}

static void test_lines(void)
{
	/* 0 → 10, 5 → 11, 40 → 300, 44 → 296, 10 → 400, end */
	uint8_t table[40] = {0xff};
	size_t length = 1;

	for (enum hotspot_coding coding = 0; coding <= HOTSPOT_CODING_NO_ZERO; coding++) {
		length = 1;
		length += number_write(coding, 0, table + length);
		length += number_write(coding, 10 << 1, table + length);
		table[length++] = 5 << 3 | 1;
		table[length++] = 0xff;
		length += number_write(coding, 35 << 1, table + length);
		length += number_write(coding, 289 << 1, table + length);
		table[length++] = 0xff;
		length += number_write(coding, 4 << 1, table + length);
		length += number_write(coding, ~(uint32_t)(-4 * 2), table + length);
		table[length++] = 0xff;
		length += number_write(coding, ~(uint32_t)(-34 * 2), table + length);
		length += number_write(coding, 104 << 1, table + length);
		table[length++] = 0;
		static const int32_t rows[][2] = {{-1, 10},  {0, 10},   {4, 10},    {5, 11},
						  {9, 11},   {10, 400}, {39, 400},  {40, 300},
						  {43, 300}, {44, 296}, {9999, 296}};
		for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
			CHECK_NUMBER(hotspot_line_find(coding, table, length, rows[i][0]),
				     rows[i][1]);
		CHECK_NUMBER(hotspot_lines_bytes(coding, table, sizeof table), length);
		CHECK_NUMBER(hotspot_line_find(coding, table, 3, 0), 10);
		CHECK_NUMBER(hotspot_line_find(coding, table, 2, 0), 0);
		CHECK_NUMBER(hotspot_line_find(coding, NULL, 0, 0), 0);
	}
}

int main(void)
{
	test_numbers();
	test_pcs();
	test_scopes();
	test_lines();
	return checks_done();
}
