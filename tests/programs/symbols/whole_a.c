/* SPDX-License-Identifier: Apache-2.0 */
/* With whole_b.c: inlined across files by link-time optimization. */
extern int shared_step(int, int);
extern int shared_walk(const int *, int);

int whole_entry(const int *values, int count)
{
	int sum = shared_walk(values, count);

	for (int i = 0; i < count; i++)
		sum = shared_step(sum, values[i]);
	return sum;
}
