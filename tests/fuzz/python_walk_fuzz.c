/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes are where a process is said to have its interpreter's frames, and how they look, then
 * its memory. */
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/read_memory.h"

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
		runtime_layout_spans(&place.layout);
		memory = bytes + sizeof place;
		memory_bytes = length - sizeof place;
		if (!python_walk_begin(&walk, (__u64 *)words, &place, MEMORY_AT))
			while (!python_walk_step(&walk, (__u64 *)words))
				;
		check(&walk, words);
	}
	free(words);
}
