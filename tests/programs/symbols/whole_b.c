/* SPDX-License-Identifier: Apache-2.0 */
static inline int mix(int a, int b)
{
	return (a << 5) ^ (a >> 3) ^ b;
}

int shared_step(int state, int value)
{
	return mix(state, value) + mix(value, state);
}

int shared_walk(const int *values, int count)
{
	int state = 1;

	while (count-- > 0)
		state = shared_step(state, *values++);
	return state;
}
