/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/unwind/stack_finish.h"

#include <string.h>

/* The walker's macros carry no context: one walk at a time per thread. */
static _Thread_local struct finish *now;

static int read_memory(void *to, size_t bytes, uint64_t from);
static int read_stack(void *to, size_t bytes, uint64_t from);
struct stack_walk;
static int find_rule(struct stack_walk *walk, uint64_t address);
static uint64_t thread_pointer(void);

#define STACK_WALK_READ(to, bytes, from) read_memory(to, bytes, (uint64_t)(from))
#define STACK_WALK_WORD(walk, to, from)  read_stack(to, sizeof(uint64_t), (uint64_t)(from))
#define STACK_WALK_RULE(walk, address)   find_rule(walk, address)
#define STACK_WALK_TLS(walk)             thread_pointer()
#include "bpf/hotspot_walk.bpf.h"
#include "bpf/stack_walk.bpf.h"

enum { STACK_BYTES_MAX = 64 << 20 }; /* a read this far above the stack pointer is of the stack */

struct finish {
	const struct stack_finish *input;
	struct row_pages *pages;
	struct stack_finished *out;
	/* Why no rule is there although nobody waits for one; WALK_complete: that is not so. */
	enum walk_result stopped;
	bool is_short; /* in the last step a read went above the copy */
	bool is_java;  /* the step is of a JVM's frame */
	struct hotspot_walk walk;
};

/* There was room for more than could be copied: memory ends there. */
static bool is_end_of_memory(const struct stack_copy_event *copy, uint64_t at)
{
	return at == copy->stack_bytes && copy->stack_bytes < copy->size - sizeof *copy;
}

static int read_stack(void *to, size_t bytes, uint64_t from)
{
	const struct stack_copy_event *copy = now->input->copy;
	uint64_t start = copy->sp + (uint64_t)(int64_t)copy->stack_gap, at = from - start;

	if (from >= start && at <= copy->stack_bytes && bytes <= copy->stack_bytes - at) {
		memcpy(to, copy->stack + at, bytes);
		return 0;
	}
	if (from >= start && at < STACK_BYTES_MAX && !is_end_of_memory(copy, at))
		now->is_short = true;
	return -1;
}

static bool read_elsewhere(void *to, size_t bytes, uint64_t from)
{
	const struct stack_finish *input = now->input;

	if (now->is_java)
		return input->read_java(input->context, from, to, (uint32_t)bytes);
	return input->read_code && input->read_code(input->context, from, to, (uint32_t)bytes);
}

static int read_memory(void *to, size_t bytes, uint64_t from)
{
	const bool was_short = now->is_short;

	if (!read_stack(to, bytes, from))
		return 0;
	if (!read_elsewhere(to, bytes, from))
		return -1;
	now->is_short = was_short;
	return 0;
}

static uint64_t thread_pointer(void)
{
	return now->input->copy->tls;
}

static int find_in_file(struct stack_walk *walk, const struct stack_code *code, uint64_t address)
{
	uint64_t page = (address - code->base) >> UNWIND_PAGE_BITS;
	bool is_asked;

	if (page > UINT32_MAX)
		return STACK_RULE_NO_TABLE;
	switch (row_pages_state(now->pages, code->executable, (uint32_t)page, now->input->now_s,
				&is_asked)) {
	case UNWIND_PAGE_ABSENT:
		now->out->is_waiting = true;
		now->out->executable = code->executable;
		now->out->page = (uint32_t)page;
		return STACK_RULE_ABSENT;
	case UNWIND_PAGE_LOADED:
		return row_pages_rule(now->pages, code->executable, address - code->base,
				      &walk->rule)
			       ? STACK_RULE_FOUND
			       : STACK_RULE_FAILED;
	case UNWIND_PAGE_EMPTY:
		return STACK_RULE_NO_TABLE;
	case UNWIND_PAGE_FAILED:
		break;
	}
	return STACK_RULE_FAILED;
}

static int find_rule(struct stack_walk *walk, uint64_t address)
{
	const struct stack_code code = now->input->locate(now->input->context, address);

	switch (code.place) {
	case STACK_CODE_FILE:
		return find_in_file(walk, &code, address);
	case STACK_CODE_ANONYMOUS:
		return STACK_RULE_ANONYMOUS;
	case STACK_CODE_NONE:
		now->stopped = walk->count > 1 ? WALK_not_code : WALK_leaf_not_code;
		break;
	case STACK_CODE_UNKNOWN:
		now->stopped = WALK_no_mapping;
		break;
	case STACK_CODE_CHANGED:
		now->stopped = WALK_mappings_changed;
		break;
	case STACK_CODE_ASKED:
		*now->out = (struct stack_finished){.is_waiting = true, .count = now->out->count};
		break;
	case STACK_CODE_UPROBE:
		now->stopped = WALK_uprobe;
		break;
	}
	return STACK_RULE_ABSENT;
}

/* Whether the result may be another where more can be read. */
static bool is_of_memory(const struct stack_walk *walk)
{
	return walk->result == WALK_read_fault ||
	       (walk->result == WALK_complete && !walk->is_end_guessed);
}

static struct stack_walk walk_of(const struct stack_finish *input)
{
	const struct stack_copy_event *copy = input->copy;
	struct stack_walk walk = {
		.ip = copy->ip,
		.sp = copy->sp,
		.fp = copy->fp,
		.known = copy->known,
		.count = input->count,
		.limit = input->limit,
		.is_interrupted = copy->is_interrupted,
		.is_guessed = copy->is_guessed,
	};

	memcpy(walk.registers, copy->registers, sizeof(walk.registers));
	return walk;
}

static int step(struct finish *finish, struct stack_walk *walk, uint64_t *frames)
{
	int ended = HOTSPOT_UNTOLD;

	finish->is_short = false;
	if (STACK_WALK_X86 && hotspot_has(&finish->walk, walk->ip)) {
		finish->is_java = true;
		ended = hotspot_step(walk, &finish->walk, finish->input->java, (__u64 *)frames);
		finish->is_java = false;
	}
	return ended == HOTSPOT_UNTOLD ? stack_walk_step(walk, (__u64 *)frames) : ended;
}

struct stack_finished stack_finish(const struct stack_finish *input, struct row_pages *pages)
{
	struct stack_walk walk = walk_of(input);
	struct stack_finished out = {.count = input->count};
	struct finish finish = {.input = input, .pages = pages, .out = &out};
	uint64_t last = input->frames[input->count ? input->count - 1 : 0];

	if (input->java) {
		finish.walk.low = input->java->low;
		finish.walk.bytes = input->java->high - input->java->low;
	}
	now = &finish;
	while (!step(&finish, &walk, input->frames))
		;
	now = NULL;
	if (out.is_waiting) {
		input->frames[input->count ? input->count - 1 : 0] = last;
		return out;
	}
	out.result = (enum walk_result)walk.result;
	if (finish.stopped != WALK_complete && out.result == WALK_not_loaded)
		out.result = finish.stopped;
	else if (finish.is_short && is_of_memory(&walk))
		out.result = WALK_copy_short;
	out.count = walk.count;
	out.is_guessed = walk.is_guessed;
	out.is_end_guessed = walk.is_end_guessed;
	return out;
}
