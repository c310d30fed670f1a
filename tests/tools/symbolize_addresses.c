/* SPDX-License-Identifier: Apache-2.0 */
/* symbolize_addresses FILE [FILE] < addresses: converts the files as the worker does (without its
 * sandbox) and prints per address what llvm-symbolizer --output-style=LLVM prints: a function and a
 * file:line per frame, innermost first, then an empty line. With --time FILE… it prints CPU seconds
 * and memory of the conversion, the table's sizes and lookups per second, bare and with the frames'
 * texts, instead; with --names FILE… the same of a table of names only. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "symbol-server/naming/demangle.h"
#include "symbol-server/symbolize/convert/debug_reader.h"
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

/* What an answer has to carry: every frame's name, file and line, copied out. */
static size_t copy_frames(const struct symbol_frame *frames, unsigned count, char *out)
{
	char *at = out;

	for (unsigned i = 0; i < count; i++) {
		at = stpcpy(at, frames[i].name) + 1;
		at = stpcpy(at, frames[i].file) + 1;
		memcpy(at, &frames[i].line, sizeof(frames[i].line));
		at += sizeof(frames[i].line);
	}
	return (size_t)(at - out);
}

enum { LIST = 1 << 20, LONGEST = SYMBOL_CHAIN_MAX * 2 * (64 << 10) };

/* Of this program alone: what getrusage() has is of before exec, too. */
static long peak_kb(void)
{
	FILE *status = fopen("/proc/self/status", "r");
	char line[256];
	long kb = 0;

	while (status && fgets(line, sizeof(line), status))
		if (!strncmp(line, "VmHWM:", 6))
			kb = strtol(line + 6, NULL, 10);
	if (status)
		fclose(status);
	return kb;
}

/* Addresses in no order, uniform over all code that has names. */
static uint64_t *some_addresses(const struct symbol_table *table)
{
	uint64_t *addresses = malloc(LIST * sizeof(*addresses));
	uint32_t span = table->starts[table->range_count - 1];
	struct symbol_frame frames[SYMBOL_CHAIN_MAX];
	uint64_t seed = 1;

	for (int i = 0; addresses && i < LIST;) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		addresses[i] = table->first + (seed >> 33) % span;
		i += symbol_table_lookup(table, ADDRESS_ELF, addresses[i], frames) > 0;
	}
	return addresses;
}

static void print_times(const struct symbol_table *table, size_t packed, double convert,
			double unpack)
{
	enum { ROUNDS = 3 };
	struct symbol_frame frames[SYMBOL_CHAIN_MAX];
	uint64_t *addresses = some_addresses(table), found = 0, bytes = 0;
	char *out = malloc(LONGEST);
	double start, bare = 1e9, whole = 1e9;
	long resident_kb = peak_kb();

	if (!addresses || !out)
		exit(1);
	for (int round = 0; round < ROUNDS; round++) {
		start = cpu_seconds();
		for (int i = 0; i < LIST; i++)
			found += symbol_table_lookup(table, ADDRESS_ELF, addresses[i], frames);
		bare = cpu_seconds() - start < bare ? cpu_seconds() - start : bare;
		start = cpu_seconds();
		for (int i = 0; i < LIST; i++)
			bytes += copy_frames(
				frames,
				symbol_table_lookup(table, ADDRESS_ELF, addresses[i], frames), out);
		whole = cpu_seconds() - start < whole ? cpu_seconds() - start : whole;
	}
	printf("convert_s=%.3f resident_kb=%ld unpack_s=%.3f ranges=%u locations=%u nodes=%u "
	       "functions=%u "
	       "table_bytes=%zu packed_bytes=%zu lookups=%.0f texts=%.0f frames=%.2f bytes=%.0f\n",
	       convert, resident_kb, unpack, table->range_count, table->location_count,
	       table->node_count, table->function_count, table->bytes, packed, LIST / bare,
	       LIST / whole, (double)found / ROUNDS / LIST, (double)bytes / ROUNDS / LIST);
	free(addresses);
	free(out);
}

int main(int argc, char **argv)
{
	bool names_only = argc > 1 && !strcmp(argv[1], "--names");
	bool is_timed = names_only || (argc > 1 && !strcmp(argv[1], "--time"));
	struct debug_input inputs[DEBUG_INPUTS_MAX];
	struct symbol_table *table;
	struct buffer packed;
	struct error err = {0};
	size_t count = 0;
	char line[64];
	double convert, unpack;

	for (int i = 1 + is_timed; i < argc && count < DEBUG_INPUTS_MAX; i++)
		if (!map_file(argv[i], &inputs[count++])) {
			perror(argv[i]);
			return 1;
		}
	buffer_init(&packed, (size_t)1 << 30);
	if (!debug_reader_convert(inputs, count, names_only, &packed, &err)) {
		fprintf(stderr, "%s\n", err.message);
		return 1;
	}
	convert = cpu_seconds();
	table = symbol_table_unpack(packed.bytes, packed.length, SIZE_MAX, &err);
	if (!table) {
		fprintf(stderr, "%s\n", err.message);
		return 1;
	}
	unpack = cpu_seconds() - convert;
	fprintf(stderr, "quality %d flags %u\n", table->quality, table->flags);
	if (is_timed)
		print_times(table, packed.length, convert, unpack);
	else
		while (fgets(line, sizeof(line), stdin))
			print_address(table, strtoull(line, NULL, 16));
	symbol_table_release(table);
	buffer_release(&packed);
	return 0;
}
