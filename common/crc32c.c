/* SPDX-License-Identifier: Apache-2.0 */
#include "common/crc32c.h"

#include <stdbool.h>
#include <string.h>

static uint32_t table[4][256];

/* Slicing by four: table[k][b] is byte b followed by k zero bytes. Filled before main(). */
__attribute__((constructor)) static void fill_table(void)
{
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t crc = i;

		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
		table[0][i] = crc;
	}
	for (uint32_t i = 0; i < 256; i++)
		for (int k = 1; k < 4; k++)
			table[k][i] = table[k - 1][i] >> 8 ^ table[0][table[k - 1][i] & 0xff];
}

#ifdef __x86_64__
static bool has_instruction;

__attribute__((constructor)) static void look_for_instruction(void)
{
	__builtin_cpu_init();
	has_instruction = __builtin_cpu_supports("sse4.2");
}

__attribute__((target("sse4.2"))) static uint32_t by_instruction(uint32_t crc, const uint8_t *at,
								 size_t length)
{
	uint64_t wide = (uint32_t)~crc, word;

	for (; length >= 8; at += 8, length -= 8) {
		memcpy(&word, at, sizeof word);
		wide = __builtin_ia32_crc32di(wide, word);
	}
	crc = (uint32_t)wide;
	while (length--)
		crc = __builtin_ia32_crc32qi(crc, *at++);
	return ~crc;
}
#endif

uint32_t crc32c(uint32_t crc, const void *bytes, size_t length)
{
	const uint8_t *at = bytes;

#ifdef __x86_64__
	if (has_instruction)
		return by_instruction(crc, at, length);
#endif
	crc = ~crc;
	for (; length >= 4; at += 4, length -= 4) {
		crc ^= (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
		       (uint32_t)at[3] << 24;
		crc = table[3][crc & 0xff] ^ table[2][crc >> 8 & 0xff] ^
		      table[1][crc >> 16 & 0xff] ^ table[0][crc >> 24];
	}
	while (length--)
		crc = crc >> 8 ^ table[0][(crc ^ *at++) & 0xff];
	return ~crc;
}
