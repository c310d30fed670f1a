/* SPDX-License-Identifier: Apache-2.0 */
/* A process' memory made of the fuzzer's bytes, for headers of bpf/ that read one. */
#ifndef TESTS_FUZZ_READ_MEMORY_H
#define TESTS_FUZZ_READ_MEMORY_H

#include <stdint.h>
#include <string.h>

static const uint8_t *memory;
static uint64_t memory_bytes;
enum { MEMORY_AT = 0x1000 };

static int read_memory(void *to, uint64_t bytes, uint64_t from)
{
	const uint64_t at = from - MEMORY_AT;

	if (from < MEMORY_AT || at > memory_bytes || bytes > memory_bytes - at)
		return 1;
	memcpy(to, memory + at, bytes);
	return 0;
}

#endif
