/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes are where a process is said to have its JVM's code, where a thread of it stands, then
 * its memory. */
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/read_memory.h"

#define STACK_WALK_READ(to, bytes, from) read_memory(to, bytes, (uint64_t)(from))

#include "bpf/hotspot_walk.bpf.h"
#include "tests/fuzz/fuzz.h"

struct start {
	uint64_t ip, sp, fp;
	uint64_t registers[UNWIND_REGISTERS];
	uint32_t is_interrupted, reserved;
};

/* Whole frames, each behind the last. */
static void check(const struct stack_walk *walk, const __u64 *frames)
{
	uint32_t at = 0;

	if (walk->count > walk->limit || walk->result >= WALK_RESULT_COUNT)
		abort();
	while (at < walk->count) {
		if (stack_frame_kind(frames[at]) != STACK_FRAME_NATIVE &&
		    !stack_frame_is_java(frames[at]))
			abort();
		at += stack_frame_words(frames[at]);
	}
	if (at != walk->count)
		abort();
}

static void walk_on(const struct hotspot_place *place, const struct start *start)
{
	__u64 *frames = calloc(STACK_FRAMES_ROOM, sizeof *frames);
	struct hotspot_walk java = {.low = place->low, .bytes = place->high - place->low};
	struct stack_walk walk = {
		.ip = start->ip,
		.sp = start->sp,
		.fp = start->fp,
		.known = (1ULL << UNWIND_REGISTERS) - 1,
		.count = 1,
		.limit = 64,
		.is_interrupted = start->is_interrupted & 1,
	};

	if (!frames)
		return;
	memcpy(walk.registers, start->registers, sizeof walk.registers);
	frames[0] = stack_frame_native(walk.ip);
	while (hotspot_has(&java, walk.ip) && !hotspot_step(&walk, &java, place, frames))
		;
	check(&walk, frames);
	free(frames);
}

static void fuzz_one(const uint8_t *bytes, size_t length)
{
	struct hotspot_place place;
	struct start start;

	if (length < sizeof place + sizeof start)
		return;
	memcpy(&place, bytes, sizeof place);
	memcpy(&start, bytes + sizeof place, sizeof start);
	memory = bytes + sizeof place + sizeof start;
	memory_bytes = length - sizeof place - sizeof start;
	walk_on(&place, &start);
}
