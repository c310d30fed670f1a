/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/file_parser/python_malloc.h"

#include <stdlib.h>
#include <string.h>

#include "node-agent/file_parser/code/x86_code.h"
#include "node-agent/file_parser/symbol_names.h"

enum {
	BODY_BYTES_MAX = 2048,
	CALLS_MAX = 16,
	/* Functions of one source file lie together: _PyObject_Malloc() near PyObject_Malloc(). */
	NEAR_BYTES = 64 << 10,
	POOL_BYTES = 16384,    /* POOL_SIZE, */
	POOL_BYTES_OLD = 4096, /* before 3.10 */
	POOLS_GREW = 0x030a0000,
	NEXT_POOL = 16, /* struct pool_header: ref, freeblock, nextpool */
	STEPS_MAX = 6,  /* instructions, between two that belong together */
};

/* --- instructions --- */

enum { REX_W = 8, REX_R = 4, REX_B = 1 };

struct operands { /* of one that has a ModRM byte, with 64 bits or 32 */
	uint8_t code;
	bool is_wide;
	unsigned mode, reg, rm; /* registers' numbers */
	int displacement;       /* of mode 1 */
};

static bool operands_read(const uint8_t *code, size_t length, struct operands *out)
{
	unsigned rex = 0;
	size_t at = 0;

	if (length && (code[0] & 0xf0) == 0x40)
		rex = code[at++];
	if (at + 2 > length)
		return false;
	*out = (struct operands){
		.code = code[at],
		.is_wide = rex & REX_W,
		.mode = code[at + 1] >> 6,
		.reg = (code[at + 1] >> 3 & 7) | (rex & REX_R ? 8 : 0),
		.rm = (code[at + 1] & 7) | (rex & REX_B ? 8 : 0),
	};
	if (out->mode != 3 && (out->rm & 7) == 4)
		return false; /* with an index */
	if (out->mode == 1 && at + 3 > length)
		return false;
	out->displacement = out->mode == 1 ? (int8_t)code[at + 2] : 0;
	return true;
}

/* mov 16(pool), next */
static bool is_next_pool(const struct operands *of)
{
	return of->code == 0x8b && of->is_wide && of->mode == 1 && of->displacement == NEXT_POOL;
}

/* cmp next, pool: either way round */
static bool is_compared(const struct operands *of, unsigned pool, unsigned next)
{
	return (of->code == 0x39 || of->code == 0x3b) && of->is_wide && of->mode == 3 &&
	       ((of->reg == pool && of->rm == next) || (of->reg == next && of->rm == pool));
}

/* cmp 16(pool), pool */
static bool is_compared_there(const struct operands *of)
{
	return (of->code == 0x39 || of->code == 0x3b) && of->is_wide && of->mode == 1 &&
	       of->displacement == NEXT_POOL && of->reg == of->rm;
}

/* addl $1, (pool); or incl */
static bool is_counted(const uint8_t *code, size_t length, unsigned pool)
{
	struct operands of;

	return operands_read(code, length, &of) && !of.is_wide && of.rm == pool &&
	       (of.mode == 0 || (of.mode == 1 && !of.displacement)) && !(of.reg & 7) &&
	       (of.code == 0xff || (of.code == 0x83 && code[length - 1] == 1));
}

struct code_view {
	const uint8_t *code;
	size_t length;
};

/* Whether the pool that a register has is taken a piece of there: ++pool->ref.count. */
static bool takes_piece(const struct code_view *view, size_t at, unsigned pool)
{
	for (unsigned i = 0; i < STEPS_MAX && at < view->length; i++) {
		const struct x86_instruction done = x86_decode(view->code + at, view->length - at);

		if (is_counted(view->code + at, done.length, pool))
			return true;
		if (done.effect != X86_OTHER && done.effect != X86_NOP)
			return false;
		at += done.length;
	}
	return false;
}

/* Behind the comparison of a pool with the next one, which is itself where there is none: where it
 * goes on to take a new one. False: it is not that. */
static bool pool_branch(const struct code_view *view, size_t at, unsigned pool, size_t *target)
{
	const struct x86_instruction jump = x86_decode(view->code + at, view->length - at);
	const uint8_t *code = view->code + at;
	const size_t next = at + jump.length;
	const uint64_t there = next + (uint64_t)(int64_t)jump.value;
	unsigned condition;

	if (jump.effect != X86_BRANCH || there >= view->length)
		return false;
	condition = jump.length == 2 ? code[0] & 0xf : code[1] & 0xf;
	if (condition != 4 && condition != 5) /* je, jne */
		return false;
	*target = condition == 4 ? there : next;
	return takes_piece(view, condition == 4 ? next : there, pool);
}

/* The first such branch of a function's code: where it goes, an offset in it. */
static bool pool_branch_find(const struct code_view *view, size_t *target)
{
	unsigned pool = 0, next = 0, left = 0;

	for (size_t at = 0; at < view->length;) {
		const struct x86_instruction done = x86_decode(view->code + at, view->length - at);
		const uint8_t *code = view->code + at;
		struct operands of;

		at += done.length;
		left -= left > 0;
		if (!operands_read(code, done.length, &of))
			continue;
		if (is_next_pool(&of)) {
			pool = of.rm;
			next = of.reg;
			left = STEPS_MAX;
		} else if (left && is_compared(&of, pool, next)) {
			if (pool_branch(view, at, pool, target))
				return true;
		} else if (is_compared_there(&of) && pool_branch(view, at, of.reg, target)) {
			return true;
		}
	}
	return false;
}

/* movl $1, (pool): a pool is taken, and has one piece: pool->ref.count = 1. */
static bool is_taken(const uint8_t *code, size_t length, unsigned *pool)
{
	static const uint8_t one[] = {1, 0, 0, 0};
	struct operands of;

	if (length < 6 || !operands_read(code, length, &of) || of.code != 0xc7 || of.is_wide ||
	    of.mode != 0 || (of.rm & 7) == 5 || of.reg & 7 ||
	    memcmp(code + length - sizeof one, one, sizeof one) != 0)
		return false;
	*pool = of.rm;
	return true;
}

/* --- a function that all have been put into --- */

struct calls {
	unsigned count;
	uint64_t targets[CALLS_MAX];
};

static bool calls_have(const struct calls *calls, uint64_t target)
{
	for (unsigned i = 0; i < calls->count; i++)
		if (calls->targets[i] == target)
			return true;
	return false;
}

static void calls_read(const struct code_view *view, uint64_t address, struct calls *calls)
{
	calls->count = 0;
	for (size_t at = 0; at < view->length;) {
		const struct x86_instruction done = x86_decode(view->code + at, view->length - at);
		uint64_t target;

		at += done.length;
		target = address + at + (uint64_t)(int64_t)done.value;
		if (done.effect == X86_CALL && done.is_direct && calls->count < CALLS_MAX &&
		    !calls_have(calls, target))
			calls->targets[calls->count++] = target;
	}
}

static bool is_in_plt(const struct code_file *file, uint64_t address)
{
	static const char *const names[] = {".plt", ".plt.sec", ".plt.got"};
	struct code_section section;

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (code_file_section(file, names[i], &section) &&
		    address - section.address < section.size)
			return true;
	return false;
}

/* What both call, apart from the C library: allocate_from_new_pool(). 0: there is not exactly one.
 */
static uint64_t called_by_both(const struct code_file *file, struct call_frames *frames,
			       const struct calls *one, const struct calls *other)
{
	uint64_t found = 0, end;

	for (unsigned i = 0; i < one->count; i++) {
		const uint64_t target = one->targets[i];

		if (!calls_have(other, target) || is_in_plt(file, target) ||
		    !call_frames_begins(frames, target, &end))
			continue;
		if (found)
			return 0;
		found = target;
	}
	return found;
}

/* --- places --- */

struct search {
	const struct code_file *file;
	struct call_frames *frames;
	uint32_t pool_bytes;
	struct memory_places *places;
	unsigned count; /* of places */
	uint64_t last;  /* function that has been looked at */
};

/* All of them have the pool in one register. */
static void add(struct search *search, uint64_t address, unsigned pool)
{
	struct memory_places *places = search->places;
	uint64_t offset;

	if (search->count == PYTHON_POOL_PLACES_MAX || places->count == MEMORY_PLACES_MAX ||
	    (search->count && places->items[places->count - 1].reg != pool) ||
	    !code_file_offset(search->file, address, &offset))
		return;
	memory_place_add(places, MEMORY_PYTHON_POOL, offset);
	places->items[places->count - 1].bytes = search->pool_bytes;
	places->items[places->count - 1].reg = pool;
	search->count++;
}

static bool code_read(const struct search *search, uint64_t start, uint64_t end, uint8_t *code,
		      size_t most, struct code_view *view)
{
	const uint64_t length = end > start ? end - start : 0;
	uint64_t offset;

	*view = (struct code_view){code, length < most ? length : most};
	return code_file_offset(search->file, start, &offset) >= view->length &&
	       code_file_read(search->file, offset, code, view->length);
}

static void look_at(struct search *search, uint64_t start, uint64_t end)
{
	uint8_t code[BODY_BYTES_MAX];
	struct code_view view;
	unsigned pool;

	if (start == search->last || !code_read(search, start, end, code, sizeof code, &view))
		return;
	search->last = start;
	for (size_t at = 0; at < view.length;) {
		const struct x86_instruction done = x86_decode(code + at, view.length - at);

		if (is_taken(code + at, done.length, &pool))
			add(search, start + at, pool);
		at += done.length;
	}
}

/* PyObject_Malloc() has all of it in it, and so have others; but not how a pool is taken. */
static void find_called(struct search *search, const struct code_view *malloc_, uint64_t address,
			const Elf64_Sym *other)
{
	uint8_t code[BODY_BYTES_MAX];
	struct code_view view;
	struct calls one, both;
	uint64_t function, end;

	calls_read(malloc_, address, &one);
	if (!code_read(search, other->st_value, other->st_value + other->st_size, code, sizeof code,
		       &view))
		return;
	calls_read(&view, other->st_value, &both);
	function = called_by_both(search->file, search->frames, &one, &both);
	if (function && call_frames_begins(search->frames, function, &end))
		look_at(search, function, end);
}

/* In this function, or in what it calls there. */
static void find_behind(struct search *search, const struct code_view *view, uint64_t start,
			size_t target)
{
	uint64_t end;

	for (unsigned i = 0; i < STEPS_MAX && target < view->length; i++) {
		const struct x86_instruction done = x86_decode(view->code + target,
							       view->length - target);

		target += done.length;
		if (done.effect != X86_CALL || !done.is_direct)
			continue;
		start += target + (uint64_t)(int64_t)done.value;
		if (call_frames_begins(search->frames, start, &end))
			look_at(search, start, end);
		return;
	}
	look_at(search, start, start + view->length);
}

/* In the functions near PyObject_Malloc(). */
static void find_near(struct search *search, uint64_t around)
{
	uint8_t *code = malloc(NEAR_BYTES);
	const uint64_t low = around > NEAR_BYTES ? around - NEAR_BYTES : 0;
	uint64_t start, end;
	size_t target;

	for (uint64_t at = low; code && at<around + NEAR_BYTES; at = end> at ? end : at + 16) {
		struct code_view view;

		end = 0;
		if (call_frames_function(search->frames, at, &start, &end) &&
		    code_read(search, start, end, code, NEAR_BYTES, &view) &&
		    pool_branch_find(&view, &target))
			find_behind(search, &view, start, target);
	}
	free(code);
}

void python_malloc_find(const struct code_file *file, struct call_frames *frames, uint32_t version,
			struct memory_places *places)
{
	const Elf64_Shdr *table = symbol_table(file, SHT_DYNSYM);
	struct search search = {
		.file = file,
		.frames = frames,
		.pool_bytes = version < POOLS_GREW ? POOL_BYTES_OLD : POOL_BYTES,
		.places = places,
	};
	Elf64_Sym object, other, symbol;
	uint8_t code[BODY_BYTES_MAX];
	struct code_view view;
	size_t target;

	if (!table || !symbol_find(file, table, "PyObject_Malloc", &object))
		table = symbol_table(file, SHT_SYMTAB);
	if (!table || !frames || !version || file->machine != EM_X86_64 ||
	    !symbol_find(file, table, "PyObject_Malloc", &object) ||
	    !symbol_find(file, table, "PyMem_Malloc", &other) ||
	    symbol_find(file, table, "_Py_DecRefShared", &symbol)) /* free-threaded */
		return;
	if (code_read(&search, object.st_value, object.st_value + object.st_size, code, sizeof code,
		      &view) &&
	    pool_branch_find(&view, &target))
		find_called(&search, &view, object.st_value, &other);
	else
		find_near(&search, object.st_value);
}
