/* SPDX-License-Identifier: Apache-2.0 */
/* For the symbol tests: inlined calls that are split, cold, one behind the other on a line. */
extern int outside(int);
extern _Noreturn __attribute__((cold)) void give_up(const char *);

/* clang-format off */
static inline __attribute__((always_inline)) int first(int x) { return outside(x) * 3; } static inline __attribute__((always_inline)) int second(int x) { return first(x) ^ x; }
int on_one_line(int x) { int a = first(x), b = second(a), c = first(b); return a + b * c; }
/* clang-format on */

static inline __attribute__((always_inline)) int checked(const int *values, int at, int count)
{
	if (__builtin_expect(at >= count, 0)) {
		outside(at);
		outside(count);
		give_up("out of bounds");
	}
	return values[at];
}

int hot_and_cold(const int *values, int count)
{
	int sum = 0;

	for (int i = 0; i < count; i += 2)
		sum += checked(values, i, count) * checked(values, i + 1, count);
	return sum;
}

int last_call_never_returns(int x)
{
	if (x > 3)
		return second(x);
	give_up("too small");
}

int rows_before(int x)
{
	return first(x) + 1;
}
