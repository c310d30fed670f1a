/* SPDX-License-Identifier: Apache-2.0 */
/* Calls the functions of ladder.S. */
#include "tests/programs/unwind/until.h"

typedef uint64_t (*function)(uint64_t x);

extern uint64_t frame_pushes(uint64_t x), frame_rbx(uint64_t x), frame_scratch(uint64_t x),
	frame_return_in_register(uint64_t x), frame_deref(uint64_t x), frame_remember(uint64_t x);
extern uint64_t back(uint64_t x);

NOINLINE uint64_t back(uint64_t x)
{
	return work(x, 15);
}

static NOINLINE uint64_t all(uint64_t x)
{
	static const function functions[] = {frame_pushes,  frame_rbx,
					     frame_scratch, frame_return_in_register,
					     frame_deref,   frame_remember};

	for (unsigned i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
		x += functions[i](x + i);
	return x;
}

int main(int argc, char **argv)
{
	until_start(argc, argv);
	while (until_goes_on())
		sink += all(sink);
	return 0;
}
