/* SPDX-License-Identifier: Apache-2.0 */
/* A 32-bit program without any library: only its being declared is of interest. argv is not read;
 * it ends after some 60 s of work. */
static unsigned work(unsigned x, int rounds)
{
	for (int i = 0; i < rounds; i++)
		x = x * 1664525u + 1013904223u;
	return x;
}

void _start(void);

void _start(void)
{
	volatile unsigned sink = 1;

	for (int i = 0; i < 60000; i++)
		sink = work(sink, 1000000);
	__asm__ volatile("int $0x80" ::"a"(1), "b"(0));
	__builtin_unreachable();
}
