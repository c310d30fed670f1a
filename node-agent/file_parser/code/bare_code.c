/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/file_parser/code/bare_code.h"

#include <stdlib.h>
#include <string.h>

#include "node-agent/file_parser/code/x86_code.h"

enum {
	LEAST_BYTES = 16,    /* what is shorter fills the space up to the next function */
	AROUND_BYTES = 4096, /* looked at on either side, where a page's end cuts */
	WINDOW_BYTES = (1 << UNWIND_PAGE_BITS) + 2 * AROUND_BYTES,
	ROUNDS = 6,        /* of following branches back */
	FRAME_MAX = 32000, /* fits the rule's fields */
	FP_SAME = 0,
	FP_LEAST = 16, /* prologues with a frame pointer, */
	FP_SHARE = 4,  /* one for so many returns */
	NOBODY = UINT32_MAX,
};

enum base { BASE_NONE, BASE_SP, BASE_FP, BASE_TWO /* ways disagree */ };

/* The CFA is base + offset; the caller's frame pointer at CFA − fp, or FP_SAME. */
struct height {
	uint8_t base;
	int16_t offset, fp;
};

struct step {
	uint32_t at; /* in the window */
	uint32_t to; /* the step a jump or branch goes to, or NOBODY */
	struct x86_instruction code;
	struct height height; /* before it */
	bool is_jumped_to, is_called;
};

struct bare_code {
	const struct code_file *file;
	uint64_t start; /* address of the window */
	bool is_whole;  /* it begins behind what is described: with a function */
	uint8_t *bytes;
	size_t length;
	struct step *steps;
	uint32_t count;
};

static const struct height entry_height = {BASE_SP, 8, FP_SAME};

static bool is_equal(const struct height *a, const struct height *b)
{
	return a->base == b->base && a->offset == b->offset && a->fp == b->fp;
}

static struct height checked(int base, int offset, int fp)
{
	if (offset > FRAME_MAX || offset < -FRAME_MAX || fp > FRAME_MAX ||
	    (base == BASE_SP && offset < 8))
		return (struct height){BASE_NONE, 0, 0};
	return (struct height){(uint8_t)base, (int16_t)offset, (int16_t)fp};
}

/* --- one instruction --- */

/* What was before it, if that is what comes after it. */
static struct height height_before(const struct x86_instruction *code, struct height after)
{
	const struct height none = {BASE_NONE, 0, 0};
	bool by_sp = after.base == BASE_SP;

	switch ((enum x86_effect)code->effect) {
	case X86_RETURN:
		return entry_height;
	case X86_LEAVE: /* the saved frame pointer is where the register points to */
		return by_sp ? checked(BASE_FP, after.offset + 8, after.offset + 8) : none;
	case X86_POP_FP:
		return by_sp ? checked(BASE_SP, after.offset + 8, after.offset + 8) : none;
	case X86_PUSH_FP:
		if (after.fp == after.offset && by_sp)
			after.fp = FP_SAME;
		return by_sp ? checked(BASE_SP, after.offset - 8, after.fp) : after;
	case X86_MOVE_SP:
		return by_sp ? checked(BASE_SP, after.offset + code->value, after.fp) : after;
	case X86_SP_FROM_FP:
		return by_sp ? checked(BASE_FP, after.offset + code->value, after.fp) : after;
	case X86_FP_FROM_SP:
		return by_sp ? after : checked(BASE_SP, after.offset + code->value, after.fp);
	case X86_SP_LOST:
		return by_sp ? none : after;
	case X86_FP_LOST:
		return by_sp ? after : none;
	case X86_CALL: /* what follows a call that does not return is another function */
		return by_sp && after.offset % 16 ? none : after;
	case X86_BAD:
	case X86_STOP:
	case X86_JUMP_SOMEWHERE:
		return none;
	default:
		return after;
	}
}

/* The other way round. */
static struct height height_after(const struct x86_instruction *code, struct height before)
{
	const struct height none = {BASE_NONE, 0, 0};
	bool by_sp = before.base == BASE_SP;

	switch ((enum x86_effect)code->effect) {
	case X86_POP_FP:
		return by_sp && before.fp == before.offset
			       ? checked(BASE_SP, before.offset - 8, FP_SAME)
			       : none;
	case X86_PUSH_FP:
		if (by_sp && before.fp == FP_SAME)
			before.fp = (int16_t)(before.offset + 8);
		return by_sp ? checked(BASE_SP, before.offset + 8, before.fp) : before;
	case X86_MOVE_SP:
		return by_sp ? checked(BASE_SP, before.offset - code->value, before.fp) : before;
	case X86_FP_FROM_SP: /* from now on both tell; functions that do this return by it */
		return by_sp ? checked(BASE_FP, before.offset - code->value, before.fp) : none;
	case X86_SP_LOST:
		return by_sp ? none : before;
	case X86_FP_LOST:
		return by_sp && before.fp != FP_SAME ? before : none;
	case X86_CALL:
		return by_sp && before.offset % 16 ? none : before;
	case X86_OTHER:
	case X86_NOP:
	case X86_BRANCH:
	case X86_JUMP:
		return before;
	default:
		return none;
	}
}

/* --- the steps --- */

static uint32_t step_at(const struct bare_code *now, int64_t at)
{
	uint32_t low = 0, high = now->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (now->steps[middle].at < at)
			low = middle + 1;
		else
			high = middle;
	}
	return low < now->count && now->steps[low].at == at ? low : NOBODY;
}

static void link_steps(struct bare_code *now)
{
	for (uint32_t i = 0; i < now->count; i++) {
		struct step *step = &now->steps[i];
		bool is_call = step->code.effect == X86_CALL && step->code.is_direct;

		step->to = NOBODY;
		if (step->code.effect != X86_JUMP && step->code.effect != X86_BRANCH && !is_call)
			continue;
		step->to = step_at(now, (int64_t)step->at + step->code.length + step->code.value);
		if (step->to != NOBODY && is_call)
			now->steps[step->to].is_called = true;
		else if (step->to != NOBODY)
			now->steps[step->to].is_jumped_to = true;
	}
}

static bool read_steps(struct bare_code *now)
{
	now->steps = malloc(now->length * sizeof *now->steps);
	if (!now->steps)
		return false;
	for (size_t at = 0; at < now->length;) {
		struct step *step = &now->steps[now->count++];

		*step = (struct step){.at = (uint32_t)at};
		step->code = x86_decode(now->bytes + at, now->length - at);
		at += step->code.length;
	}
	link_steps(now);
	return true;
}

static bool is_end(const struct step *step)
{
	return step->code.effect == X86_RETURN || step->code.effect == X86_JUMP ||
	       step->code.effect == X86_JUMP_SOMEWHERE || step->code.effect == X86_STOP ||
	       step->code.effect == X86_BAD;
}

/* --- back from the returns --- */

static struct height merged(struct height a, struct height b)
{
	if (a.base == BASE_NONE || b.base == BASE_TWO)
		return b;
	if (b.base == BASE_NONE || a.base == BASE_TWO || is_equal(&a, &b))
		return a;
	return (struct height){BASE_TWO, 0, 0};
}

static struct height height_at(const struct bare_code *now, uint32_t number)
{
	return number < now->count ? now->steps[number].height : (struct height){BASE_NONE, 0, 0};
}

static bool go_back(struct bare_code *now)
{
	bool has_changed = false;

	for (uint32_t i = now->count; i-- > 0;) {
		struct step *step = &now->steps[i];
		struct height height = {BASE_NONE, 0, 0};

		if (!is_end(step))
			height = height_at(now, i + 1);
		if (step->code.effect == X86_JUMP || step->code.effect == X86_BRANCH)
			height = merged(height, height_at(now, step->to));
		if (height.base != BASE_TWO &&
		    (height.base != BASE_NONE || step->code.effect == X86_RETURN))
			height = height_before(&step->code, height);
		height = merged(step->height, height);
		if (!is_equal(&height, &step->height)) {
			step->height = height;
			has_changed = true;
		}
	}
	return has_changed;
}

/* --- on from the entries --- */

static bool begins_frame(const struct step *step)
{
	return step->code.effect == X86_PUSH_FP ||
	       (step->code.effect == X86_MOVE_SP && step->code.value < 0);
}

/* May the next step come after this one? Behind a call that does not return comes another
 * function. */
static bool goes_on(const struct bare_code *now, uint32_t number)
{
	const struct step *step = &now->steps[number], *next = step + 1;

	if (is_end(step) || number + 1 == now->count)
		return false;
	return step->code.effect != X86_CALL || next->is_jumped_to ||
	       !(begins_frame(next) || (next->code.effect == X86_NOP && next->code.length > 1));
}

/* Does a function begin here, to which no return has led back? It comes after another's end, is
 * nobody's branch, and begins as functions do. */
static bool is_entry(const struct bare_code *now, uint32_t number)
{
	const struct step *step = &now->steps[number];
	uint32_t before = number;

	if (step->height.base != BASE_NONE)
		return false;
	if (step->is_called)
		return true;
	if (step->is_jumped_to || !begins_frame(step))
		return false;
	while (before > 0 && now->steps[before - 1].code.effect == X86_NOP)
		before--;
	if (!before)
		return now->is_whole;
	return is_end(&now->steps[before - 1]) || now->steps[before - 1].code.effect == X86_CALL;
}

/* Straight on from an entry: does every call find the stack as a function of such a beginning
 * leaves it, and what is known already agree? */
static bool is_entry_sound(const struct bare_code *now, uint32_t from)
{
	struct height height = entry_height;

	for (uint32_t i = from; i < now->count && height.base != BASE_NONE; i++) {
		const struct step *step = &now->steps[i];

		if (step->height.base == height.base) /* else the call before does not return */
			return is_equal(&step->height, &height) ||
			       (i > from && step[-1].code.effect == X86_CALL);
		if (step->code.effect == X86_CALL && height.base == BASE_SP && height.offset % 16)
			return false;
		if (!goes_on(now, i))
			return true;
		height = height_after(&step->code, height);
	}
	return true;
}

static bool set_height(struct bare_code *now, uint32_t number, struct height height)
{
	if (number >= now->count || now->steps[number].height.base != BASE_NONE)
		return false;
	now->steps[number].height = height;
	return true;
}

static bool go_on(struct bare_code *now)
{
	bool has_changed = false;

	for (uint32_t i = 0; i < now->count; i++) {
		const struct step *step = &now->steps[i];
		struct height height = step->height;

		if (height.base == BASE_NONE || height.base == BASE_TWO)
			continue;
		height = height_after(&step->code, height);
		if (height.base == BASE_NONE)
			continue;
		if (goes_on(now, i))
			has_changed |= set_height(now, i + 1, height);
		if (step->code.effect == X86_JUMP || step->code.effect == X86_BRANCH)
			has_changed |= set_height(now, step->to, height);
	}
	return has_changed;
}

static void analyse(struct bare_code *now)
{
	for (int i = 0; i < ROUNDS && go_back(now); i++)
		;
	for (uint32_t i = 0; i < now->count; i++)
		if (is_entry(now, i) && is_entry_sound(now, i))
			now->steps[i].height = entry_height;
	for (int i = 0; i < ROUNDS && go_on(now); i++)
		;
}

/* --- what comes of it --- */

static struct unwind_rule rule_of(const struct height *height)
{
	struct unwind_rule rule = {
		.cfa = UNWIND_CFA_REGISTER,
		.cfa_register = height->base == BASE_FP ? 6 : 7,
		.cfa_offset = height->offset,
		.ra = UNWIND_RA_AT_CFA,
		.ra_offset = -8,
		.kept = UNWIND_KEPT_UNDEFINED,
		.flags = UNWIND_RULE_GUESSED,
	};

	if (height->fp != FP_SAME) {
		rule.fp = UNWIND_FP_AT_CFA;
		rule.fp_offset = (int16_t)-height->fp;
	}
	return rule;
}

static bool is_ruled(const struct height *height)
{
	return height->base == BASE_SP || height->base == BASE_FP;
}

bool bare_code_pieces(const struct bare_code *now, uint64_t start, uint64_t end,
		      call_frames_add add, void *context)
{
	if (!now)
		return true;
	for (uint32_t i = 0, last; i < now->count; i = last) {
		const struct step *step = &now->steps[i];
		struct unwind_rule rule = rule_of(&step->height);
		uint64_t from = now->start + step->at, to;

		for (last = i + 1;
		     last < now->count && is_equal(&now->steps[last].height, &step->height); last++)
			;
		to = now->start + (last < now->count ? now->steps[last].at : now->length);
		from = from > start ? from : start;
		to = to < end ? to : end;
		if (is_ruled(&step->height) && from < to && !add(context, from, to, &rule))
			return false;
	}
	return true;
}

/* Code compiled to keep frame pointers: the walk gets along by these, and whole browsers are built
 * so, of which every page would be followed here. 0xc3 is a return, or now and then part of
 * something else. */
static bool has_frame_pointers(const struct bare_code *now)
{
	static const uint8_t prologue[] = {0x55, 0x48, 0x89, 0xe5}; /* push rbp; mov rbp, rsp */
	size_t prologues = 0, returns = 0;

	for (size_t i = 0; i + sizeof prologue <= now->length; i++) {
		returns += now->bytes[i] == 0xc3;
		prologues += now->bytes[i] == prologue[0] &&
			     !memcmp(now->bytes + i, prologue, sizeof prologue);
	}
	return prologues >= FP_LEAST && prologues * FP_SHARE >= returns;
}

static const Elf64_Phdr *code_segment(const struct code_file *file, uint64_t address)
{
	for (unsigned i = 0; i < file->segment_count; i++) {
		const Elf64_Phdr *segment = &file->segments[i];

		if (segment->p_type == PT_LOAD && segment->p_flags & PF_X &&
		    address - segment->p_vaddr < segment->p_filesz)
			return segment;
	}
	return NULL;
}

/* Of [start, end) and, where a page's border cuts, of what lies around. */
static bool read_window(struct bare_code *now, uint64_t start, uint64_t end)
{
	const uint64_t page = (UINT64_C(1) << UNWIND_PAGE_BITS) - 1;
	const Elf64_Phdr *segment = code_segment(now->file, start);
	uint64_t offset, left, before = start & page ? 0 : AROUND_BYTES;

	if (before > start - segment->p_vaddr)
		before = start - segment->p_vaddr;
	end += end & page ? 0 : AROUND_BYTES;
	now->start = start - before;
	now->is_whole = !before;
	left = code_file_offset(now->file, now->start, &offset);
	now->length = (size_t)(end - now->start < left ? end - now->start : left);
	if (!now->length || now->length > WINDOW_BYTES)
		return false;
	now->bytes = malloc(now->length);
	return now->bytes && code_file_read(now->file, offset, now->bytes, now->length);
}

/* The first address of code in [start, end), or end. */
static uint64_t first_code(const struct code_file *file, uint64_t start, uint64_t end)
{
	uint64_t first = end;

	if (code_segment(file, start))
		return start;
	for (unsigned i = 0; i < file->segment_count; i++)
		if (file->segments[i].p_vaddr > start && file->segments[i].p_vaddr < first &&
		    code_segment(file, file->segments[i].p_vaddr))
			first = file->segments[i].p_vaddr;
	return first;
}

struct bare_code *bare_code_open(const struct code_file *file, uint64_t start, uint64_t end)
{
	struct bare_code *now;

	start = first_code(file, start, end);
	if (file->machine != EM_X86_64 || end - start < LEAST_BYTES || start >= end)
		return NULL;
	now = calloc(1, sizeof *now);
	if (!now)
		return NULL;
	now->file = file;
	if (!read_window(now, start, end) || has_frame_pointers(now) || !read_steps(now)) {
		bare_code_close(now);
		return NULL;
	}
	analyse(now);
	return now;
}

void bare_code_close(struct bare_code *bare)
{
	if (!bare)
		return;
	free(bare->bytes);
	free(bare->steps);
	free(bare);
}
