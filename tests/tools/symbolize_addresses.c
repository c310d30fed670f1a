/* SPDX-License-Identifier: Apache-2.0 */
/* symbolize_addresses FILE [FILE] < addresses: converts the files as the worker does (without its
 * sandbox) and prints per address what llvm-symbolizer --output-style=LLVM prints: a function and a
 * file:line per frame, innermost first, then an empty line. With --time FILE… it prints conversion
 * time and memory, the table's sizes and lookups per second instead. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

#include "symbol-server/symbolize/debug_reader.h"
#include "symbol-server/symbolize/symbol_table.h"

static double cpu_seconds(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
	       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static bool map_file(const char *path, struct debug_input *input)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat stat;

	if (fd < 0 || fstat(fd, &stat))
		return false;
	input->length = (size_t)stat.st_size;
	input->is_mapping = true;
	input->bytes = mmap(NULL, input->length, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	return input->bytes != MAP_FAILED;
}

static void print_address(const struct symbol_table *table, uint64_t address)
{
	struct symbol_frame frames[SYMBOL_CHAIN_MAX];
	unsigned count = symbol_table_lookup(table, ADDRESS_ELF, address, frames);
	struct arena arena;

	arena_init(&arena, 1 << 20);
	if (!count)
		printf("??\n??:0\n");
	for (unsigned i = 0; i < count; i++)
		printf("%s\n%s:%u\n", demangle(frames[i].name, &arena),
		       *frames[i].file ? frames[i].file : "??", frames[i].line);
	printf("\n");
	arena_release(&arena);
}

static void print_times(const struct symbol_table *table, size_t packed, double seconds)
{
	enum { LOOKUPS = 5000000, LIST = 1 << 16 };
	struct symbol_frame frames[SYMBOL_CHAIN_MAX];
	uint32_t span = table->starts[table->range_count - 1];
	static uint64_t addresses[LIST];
	uint64_t seed = 1, found = 0;
	struct rusage usage;
	double start;

	getrusage(RUSAGE_SELF, &usage);
	for (int i = 0; i < LIST;) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		addresses[i] = table->first + (seed >> 33) % span;
		i += symbol_table_lookup(table, ADDRESS_ELF, addresses[i], frames) > 0;
	}
	start = cpu_seconds();
	for (int i = 0; i < LOOKUPS; i++)
		found += symbol_table_lookup(table, ADDRESS_ELF, addresses[i % LIST], frames);
	printf("convert %.2f s CPU, %ld MB resident; %u ranges, %u locations, %u nodes, %u "
	       "functions; "
	       "%.2f MB in memory, %.2f MB packed; %.1f M lookups/s, %.2f frames each\n",
	       seconds, usage.ru_maxrss >> 10, table->range_count, table->location_count,
	       table->node_count, table->function_count, (double)table->bytes / 1e6,
	       (double)packed / 1e6, LOOKUPS / (cpu_seconds() - start) / 1e6,
	       (double)found / LOOKUPS);
}

int main(int argc, char **argv)
{
	bool is_timed = argc > 1 && !strcmp(argv[1], "--time");
	struct debug_input inputs[DEBUG_INPUTS_MAX];
	struct symbol_table *table;
	struct buffer packed;
	struct error err = {0};
	size_t count = 0;
	char line[64];
	double seconds;

	for (int i = 1 + is_timed; i < argc && count < DEBUG_INPUTS_MAX; i++)
		if (!map_file(argv[i], &inputs[count++])) {
			perror(argv[i]);
			return 1;
		}
	buffer_init(&packed, (size_t)1 << 30);
	if (!debug_reader_convert(inputs, count, false, &packed, &err)) {
		fprintf(stderr, "%s\n", err.message);
		return 1;
	}
	seconds = cpu_seconds();
	table = symbol_table_unpack(packed.bytes, packed.length, SIZE_MAX, &err);
	if (!table) {
		fprintf(stderr, "%s\n", err.message);
		return 1;
	}
	fprintf(stderr, "quality %d flags %u\n", table->quality, table->flags);
	if (is_timed)
		print_times(table, packed.length, seconds);
	else
		while (fgets(line, sizeof(line), stdin))
			print_address(table, strtoull(line, NULL, 16));
	symbol_table_release(table);
	buffer_release(&packed);
	return 0;
}
