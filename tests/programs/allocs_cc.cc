// SPDX-License-Identifier: Apache-2.0
/* allocs_cc: waits for a line, takes memory by new, new[] and a vector, each in a function of its own, gives
 * back half, prints "SITE TAKEN IN_USE BLOCKS" in bytes and "kept", and waits for another line. */
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#define SITE __attribute__((noinline, noclone))

enum { ROUNDS = 16000 };

struct record {
	char text[700];
};

static std::vector<char *> arrays;
static std::vector<record *> records;
static std::vector<std::vector<uint64_t>> vectors;

SITE static char *site_new_array(size_t size)
{
	return new char[size];
}

SITE static record *site_new()
{
	return new record();
}

SITE static std::vector<uint64_t> site_vector(size_t count)
{
	return std::vector<uint64_t>(count, 1);
}

int main()
{
	uint64_t taken[3] = {}, kept[3] = {};
	char line[8];

	puts("ready");
	fflush(stdout);
	if (!fgets(line, sizeof line, stdin))
		return 0;
	for (unsigned i = 0; i < ROUNDS; i++) {
		const size_t size = 100 + i * 7919 % 1500;
		char *array = site_new_array(size);
		record *one = site_new();
		std::vector<uint64_t> many = site_vector(size / 8);
		const uint64_t bytes[3] = {size, sizeof *one, size / 8 * 8};

		for (int k = 0; k < 3; k++) {
			taken[k] += bytes[k];
			kept[k] += i % 2 ? bytes[k] : 0;
		}
		if (i % 2) {
			arrays.push_back(array);
			records.push_back(one);
			vectors.push_back(std::move(many));
		} else {
			delete[] array;
			delete one;
		}
	}
	const char *const names[3] = {"site_new_array", "site_new", "site_vector"};
	for (int k = 0; k < 3; k++)
		printf("%s %llu %llu 0\n", names[k], (unsigned long long)taken[k], (unsigned long long)kept[k]);
	puts("kept");
	fflush(stdout);
	return fgets(line, sizeof line, stdin) ? 0 : 0;
}
