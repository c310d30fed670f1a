// SPDX-License-Identifier: Apache-2.0
// overloads_cc SECONDS: three functions of one name, whose CPU seconds it prints: work(int), work(long),
// work(const char *).
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>

static volatile uint64_t sink;

static double cpu_seconds()
{
	timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return double(now.tv_sec) + double(now.tv_nsec) / 1e9;
}

__attribute__((noinline)) void work(int rounds)
{
	for (int i = 0; i < rounds; i++)
		sink = sink * 3 + 1;
}

__attribute__((noinline)) void work(long rounds)
{
	for (long i = 0; i < 2 * rounds; i++)
		sink = sink * 5 + 1;
}

__attribute__((noinline)) void work(const char *text)
{
	long rounds = 3 * atol(text);

	for (long i = 0; i < rounds; i++)
		sink = sink * 7 + 1;
}

int main(int count, char **arguments)
{
	double end = count > 1 ? atof(arguments[1]) : 5, used[4] = {cpu_seconds()}, sums[3] = {};

	while (sums[0] + sums[1] + sums[2] < end) {
		work(1000000);
		used[1] = cpu_seconds();
		work(1000000L);
		used[2] = cpu_seconds();
		work("1000000");
		used[3] = cpu_seconds();
		for (int i = 0; i < 3; i++)
			sums[i] += used[i + 1] - used[i];
		used[0] = used[3];
	}
	printf("%.3f %.3f %.3f\n", sums[0], sums[1], sums[2]);
}
