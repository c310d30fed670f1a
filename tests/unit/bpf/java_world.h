/* SPDX-License-Identifier: Apache-2.0 */
/* A made-up JVM: a stack, a code heap with its segment map, methods. Offsets are those of Debian's
 * 17, but that all is nearer together. */
#ifndef TESTS_UNIT_BPF_JAVA_WORLD_H
#define TESTS_UNIT_BPF_JAVA_WORLD_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "tests/check.h"

#define STACK_WALK_READ(to, bytes, from) memory_read(to, bytes, (uint64_t)(from))
static int memory_read(void *to, size_t bytes, uint64_t from);
#include "bpf/hotspot_walk.bpf.h"

#define STACK 0x7ffc00000000ULL
#define HEAP  0x7f2000000000ULL
#define MAP   0x7f1000000000ULL
#define META  0x7f0000000000ULL /* names, methods */
#define LIBC  0x7f3000000000ULL

enum { STACK_WORDS = 512, HEAP_BYTES = 1 << 20, META_BYTES = 8192, SEGMENT_LOG2 = 7 };
enum { SEGMENTS = HEAP_BYTES >> SEGMENT_LOG2, HEADER = 16, CODE_AT = 400 };

static uint64_t stack[STACK_WORDS];
static uint8_t heap[HEAP_BYTES], map[SEGMENTS], meta[META_BYTES], libc[4096];

static int memory_read(void *to, size_t bytes, uint64_t from)
{
	static const struct {
		uint64_t start;
		const void *bytes;
		size_t length;
	} areas[] = {{STACK, stack, sizeof stack},
		     {HEAP, heap, sizeof heap},
		     {MAP, map, sizeof map},
		     {META, meta, sizeof meta},
		     {LIBC, libc, sizeof libc}};

	for (size_t i = 0; i < sizeof areas / sizeof *areas; i++)
		if (from >= areas[i].start && from - areas[i].start <= areas[i].length &&
		    bytes <= areas[i].length - (from - areas[i].start)) {
			memcpy(to, (const uint8_t *)areas[i].bytes + (from - areas[i].start),
			       bytes);
			return 0;
		}
	memset(to, 0, bytes);
	return -14;
}

static struct hotspot_place place;
static struct hotspot_walk java;
static struct stack_walk walk;
static __u64 frames[STACK_FRAMES_ROOM];

static inline uint64_t word(unsigned index)
{
	return STACK + 8 * (uint64_t)index;
}

static inline void put(void *area, uint64_t at, const void *bytes, size_t length)
{
	memcpy((uint8_t *)area + at, bytes, length);
}

static inline void put_word(void *area, uint64_t at, uint64_t value)
{
	put(area, at, &value, sizeof value);
}

static inline void put_int(void *area, uint64_t at, uint32_t value)
{
	put(area, at, &value, sizeof value);
}

static inline void world_clear(void)
{
	static const char names[] =
		"nmethod\0native nmethod\0Interpreter\0I2C/C2I adapters\0StubRoutines (1)";

	memset(stack, 0, sizeof stack);
	memset(heap, 0x90, sizeof heap);
	memset(map, HOTSPOT_SEGMENT_FREE, sizeof map);
	memset(meta, 0, sizeof meta);
	memset(libc, 0x90, sizeof libc);
	memset(frames, 0, sizeof frames);
	put(meta, 0, names, sizeof names);
	place = (struct hotspot_place){
		.heap_count = 1,
		.low = HEAP,
		.high = HEAP + HEAP_BYTES,
		.return_barrier = HEAP + HEAP_BYTES - 64,
		.heaps = {{HEAP, HEAP + HEAP_BYTES, MAP, SEGMENT_LOG2, HEADER}},
		.layout = {.blob_name = 96,
			   .blob_size = 12,
			   .blob_frame_size = 28,
			   .blob_frame_complete = 20,
			   .blob_code_begin = 32,
			   .nmethod_compile_id = 304,
			   .nmethod_orig_pc = 300,
			   .nmethod_deopt_handler = 128,
			   .nmethod_deopt_mh_handler = HOTSPOT_OFFSET_NONE,
			   .method_const = 8,
			   .const_constants = 8,
			   .const_code_size = 32,
			   .const_name_index = 34,
			   .const_signature_index = 36,
			   .const_size = 48,
			   .slot_sender_sp = -1,
			   .slot_method = -3,
			   .slot_bcp = -8,
			   .flags = HOTSPOT_CODE_BEGIN_IS_POINTER | HOTSPOT_DEOPT_IS_POINTER,
			   .java_version = 17},
	};
	java = (struct hotspot_walk){.low = HEAP, .bytes = HEAP_BYTES};
}

enum {
	NAME_NMETHOD = 0,
	NAME_NATIVE = 8,
	NAME_INTERPRETER = 23,
	NAME_ADAPTERS = 35,
	NAME_STUBS = 52
};

/* A blob of so many segments from that one on. Returns the address of its code. */
static inline uint64_t blob_put(unsigned segment, unsigned segments, unsigned name, uint32_t words,
				uint32_t complete)
{
	const uint64_t at = ((uint64_t)segment << SEGMENT_LOG2) + HEADER,
		       code = HEAP + at + CODE_AT;

	for (unsigned i = 0, back = 0; i < segments; i++, back = back == 254 ? 1 : back + 1)
		map[segment + i] = (uint8_t)back;
	memset(heap + at, 0, CODE_AT);
	put_int(heap, at + 12, (segments << SEGMENT_LOG2) - HEADER);
	put_int(heap, at + 20, complete);
	put_int(heap, at + 28, words);
	put_word(heap, at + 32, code);
	put_word(heap, at + 96, META + name);
	put_word(heap, at + 128, code + 0x60); /* its deoptimization handler */
	put_int(heap, at + 300, 16);           /* where the frame has the address then */
	put_int(heap, at + 304, 0x10000 + segment);
	return code;
}

static inline uint64_t blob_of(uint64_t code)
{
	return code - CODE_AT;
}

/* A call whose return address is that. */
static inline uint64_t call_put(uint64_t address)
{
	heap[address - HEAP - 5] = 0xe8;
	return address;
}

/* A method with so many bytes of bytecode from META + at + 128 + 48 on. */
static inline uint64_t method_put(unsigned at, uint16_t code_size)
{
	const uint16_t members[] = {code_size, 3, 4};

	put_word(meta, at + 8, META + at + 128);
	put_word(meta, at + 128 + 8, META + 4096);
	put(meta, at + 128 + 32, members, sizeof members);
	return META + at;
}

static inline uint64_t bytecode(uint64_t method, unsigned bci)
{
	return method + 128 + 48 + bci;
}

/* Stands at an instruction, with all registers known. */
static inline void stand(uint64_t ip, uint64_t sp, uint64_t fp)
{
	walk = (struct stack_walk){.ip = ip, .sp = sp, .fp = fp, .limit = 64, .is_interrupted = 1};
	walk.known = (1ULL << UNWIND_REGISTERS) - 1;
	walk.count = 1;
	frames[0] = ip;
}

/* The same at a return address, behind one native frame. */
static inline void stand_at_caller(uint64_t address, uint64_t sp, uint64_t fp)
{
	stand(address, sp, fp);
	walk.is_interrupted = 0;
	walk.known = 1ULL << UNWIND_REGISTER_FP;
	walk.count = 2;
	frames[0] = 0x1000;
	frames[1] = address;
}

static inline int step(void)
{
	return hotspot_step(&walk, &java, &place, frames);
}

#endif
