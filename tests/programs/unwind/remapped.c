/* SPDX-License-Identifier: Apache-2.0 */
/* For remap.c: position-independent code without data or relocations, its frames' size by
 * FRAME_BYTES. */
#include <stdint.h>

uint64_t remapped(uint64_t (*back)(uint64_t), uint64_t x, int rounds);

static __attribute__((noinline, noclone)) uint64_t inner(uint64_t (*back)(uint64_t), uint64_t x)
{
	volatile char room[FRAME_BYTES];

	room[x % FRAME_BYTES] = (char)x;
	return back(x) + (uint64_t)room[x % FRAME_BYTES];
}

uint64_t remapped(uint64_t (*back)(uint64_t), uint64_t x, int rounds)
{
	volatile char room[FRAME_BYTES * 2];

	room[0] = 1;
	for (int i = 0; i < rounds; i++) {
		x += inner(back, x + (uint64_t)i);
		for (int j = 0; j < 200; j++)
			room[j % FRAME_BYTES] = (char)(x += (uint64_t)j);
	}
	return x + (uint64_t)room[0];
}
