/* SPDX-License-Identifier: Apache-2.0 */
/* C++ exceptions thrown and caught all the time: the unwinder of the C++ runtime, landing pads, clean-ups. */
#include <cstdint>
#include <stdexcept>
#include <string>

#include "tests/programs/unwind/until.h"

struct guard {
	explicit guard(uint64_t value) : value(value) {}
	~guard() { sink = sink + work(value, 10); }
	uint64_t value;
};

struct special : std::runtime_error {
	using std::runtime_error::runtime_error;
};

static NOINLINE uint64_t thrower(uint64_t x)
{
	guard here(x);

	if (x % 3 == 0)
		throw special("special of a length that does not fit into the string itself");
	if (x % 3 == 1)
		throw static_cast<int>(x);
	return work(x, 30);
}

static NOINLINE uint64_t middle(uint64_t x, int depth)
{
	guard here(x + 1);

	return depth > 0 ? middle(work(x, 3) + 1, depth - 1) * 3 + here.value : thrower(x);
}

static NOINLINE uint64_t catcher(uint64_t x)
{
	try {
		return middle(x, static_cast<int>(x % 8));
	} catch (const std::exception &e) {
		return work(std::string(e.what()).size(), 20);
	}
}

int main(int argc, char **argv)
{
	uint64_t x = 88172645463325252ULL;

	until_start(argc, argv);
	while (until_goes_on()) {
		for (int i = 0; i < 50; i++) {
			try {
				x = work(x | 1, 1);
				sink = sink + catcher(x);
			} catch (int value) {
				sink = sink + work(static_cast<uint64_t>(value), 20);
			}
		}
	}
	return 0;
}
