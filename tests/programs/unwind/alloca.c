/* SPDX-License-Identifier: Apache-2.0 */
/* Functions with alloca() and arrays of variable length, whose frame hangs on rbp, between others
 * whose frame hangs on rsp and that use rbp as any register. */
#include <alloca.h>
#include <string.h>

#include "tests/programs/unwind/until.h"

static NOINLINE uint64_t plain(uint64_t x, uint64_t y, uint64_t z)
{
	uint64_t a = x * y, b = y * z, c = z * x, d = x + y, e = y + z, f = z + x;

	x = work(x, 30);
	return work(a ^ b ^ c ^ d ^ e ^ f ^ x, 10);
}

static NOINLINE uint64_t with_array(uint64_t x, unsigned count)
{
	volatile uint64_t room[count];

	for (unsigned i = 0; i < count; i++)
		room[i] = plain(x, i, count);
	return work(room[x % count], 10);
}

static NOINLINE uint64_t between(uint64_t x, unsigned count)
{
	uint64_t before = work(x, 5);

	return with_array(x, count) * before + work(x, 5);
}

static NOINLINE uint64_t with_alloca(uint64_t x, unsigned bytes)
{
	char *room = alloca(bytes);
	uint64_t got;

	memset(room, (int)x, bytes);
	got = between(x, bytes / 64 + 1);
	sink += (uint64_t)room[got % bytes];
	return got + plain(x, got, bytes);
}

int main(int argc, char **argv)
{
	until_start(argc, argv);
	while (until_goes_on())
		for (unsigned bytes = 16; bytes < 4096; bytes *= 2)
			sink += with_alloca(sink, bytes);
	return 0;
}
