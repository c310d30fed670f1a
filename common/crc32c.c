/* SPDX-License-Identifier: Apache-2.0 */
#include "common/crc32c.h"

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

uint32_t crc32c(uint32_t crc, const void *bytes, size_t length)
{
	const uint8_t *at = bytes;

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
