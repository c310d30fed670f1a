// SPDX-License-Identifier: Apache-2.0
// takes_cc SECONDS [ROUNDS]: as takes.c, by C++'s operators and containers.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

#define SITE __attribute__((noinline, noclone))

static uint64_t taken[3];
static void *volatile kept;

SITE static void by_new(size_t bytes)
{
	struct block {
		char room[200];
	};
	block *one = new block;

	kept = one;
	taken[0] += sizeof *one;
	delete one;
	(void)bytes;
}

SITE static void by_new_array(size_t bytes)
{
	char *all = new char[bytes];

	kept = all;
	taken[1] += bytes;
	delete[] all;
}

SITE static void by_vector(size_t bytes)
{
	std::vector<char> all;

	all.reserve(2 * bytes);
	kept = all.data();
	taken[2] += 2 * bytes;
}

int main(int argc, char **argv)
{
	const std::chrono::duration<double> seconds(argc > 1 ? atof(argv[1]) : 1);
	const long rounds = argc > 2 ? atol(argv[2]) : 10000;
	uint64_t turns = 0;

	puts("ready");
	fflush(stdout);
	if (getchar() == EOF)
		return 1;
	const auto begin = std::chrono::steady_clock::now();
	do {
		const size_t bytes = 64 + turns * 2654435761U % 1000;

		by_new(bytes);
		by_new_array(bytes);
		by_vector(bytes);
		for (volatile long i = 0; i < rounds; i = i + 1)
			;
		turns++;
	} while (std::chrono::steady_clock::now() - begin < seconds);
	printf("by_new %llu\nby_new_array %llu\nby_vector %llu\n", (unsigned long long)taken[0],
	       (unsigned long long)taken[1], (unsigned long long)taken[2]);
	return 0;
}
