/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes are where a process is said to have its interpreter's frames, and how they look, then
 * its memory. */
#include <stdint.h>
#include <stdlib.h>
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

#define RUNTIME_READ(to, bytes, from) read_memory(to, bytes, from)

#include "bpf/python_walk.bpf.h"
#include "tests/fuzz/fuzz.h"

static void check(const struct runtime_walk *walk, const uint64_t *words)
{
	uint32_t frames = 0, at, next;

	if (walk->count > RUNTIME_WORDS_MAX || walk->frames > walk->limit)
		abort();
	for (at = 0; at < walk->count; at = next, frames++) {
		next = stack_frame_next(words, walk->count, at);
		if (stack_frame_kind(words[at]) != STACK_FRAME_PYTHON)
			break;
	}
	if (frames != walk->frames ||
	    (at < walk->count &&
	     (stack_frame_kind(words[at]) != STACK_FRAME_RUNTIME_END || at + 1 != walk->count)))
		abort();
}

static void fuzz_one(const uint8_t *bytes, size_t length)
{
	uint64_t *words = malloc(RUNTIME_WORDS_MAX * sizeof *words);
	struct runtime_walk walk = {.limit = RUNTIME_FRAMES_MAX};
	struct runtime_place place;

	if (length >= sizeof place && words) {
		memcpy(&place, bytes, sizeof place);
		place.language = RUNTIME_CPYTHON;
		memory = bytes + sizeof place;
		memory_bytes = length - sizeof place;
		if (!python_walk_begin(&walk, (__u64 *)words, &place, MEMORY_AT))
			while (!python_walk_step(&walk, (__u64 *)words))
				;
		check(&walk, words);
	}
	free(words);
}
