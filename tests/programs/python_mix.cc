/* SPDX-License-Identifier: Apache-2.0 */
/* For python_mix.py: C++ between frames of Python's, with an exception in flight and one that was
 * caught. */
#define KEPT __attribute__((noinline))

extern "C" {
int (*call)(int); /* into Python */

KEPT int mix_plain(int number)
{
	return call(number) + 1;
}

struct mix_guard {
	int number;
	KEPT ~mix_guard();
};

KEPT int mix_in_flight(int number)
{
	return call(number) + 2;
}

static volatile int result;

KEPT int mix_throws(int number)
{
	mix_guard guard = {number};

	throw number;
}

KEPT int mix_catches(int number)
{
	try {
		return mix_throws(number);
	} catch (int thrown) {
		return call(-thrown) + 3;
	}
}
}

mix_guard::~mix_guard()
{
	result = mix_in_flight(number);
}
