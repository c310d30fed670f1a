/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/file_parser/go/go_table.h"

#include <stdlib.h>
#include <string.h>

#include "node-agent/file_parser/go/go_code.h"
#include "node-agent/file_parser/go/go_place.h"

enum {
	WINDOW_BYTES = 4096,
	STEPS_MAX = 1 << 20,      /* of one function's pcsp table */
	PAGE_STEPS_MAX = 4 << 20, /* of one call's */
	PAGE_FUNCTIONS_MAX = 1 << 17,
	DEPTH_MAX = INT32_MAX - 8, /* reflection has a function of 1 GiB */
	CHECKED_FUNCTIONS = 64,    /* to know the text's start from another address */
};

/* What lies near to what was read last is read with it: a page's functions, their tables and names
 * mostly follow one another. */
enum window_of { ENTRIES, FUNCTIONS, TABLES, NAMES, CODE, WINDOWS };
struct window {
	uint64_t at; /* in the file */
	size_t length;
	uint8_t bytes[WINDOW_BYTES];
};

struct go_table {
	struct go_place place;
	uint64_t text;
	uint64_t code_start, code_end; /* of the segment that has it */
	struct window windows[WINDOWS];
};

/* Up to want bytes of the left ones at the file's offset, at least least; NULL: they end before. */
static const uint8_t *window_bytes(struct go_table *table, enum window_of which, uint64_t at,
				   uint64_t left, size_t least, size_t want, size_t *got)
{
	struct window *window = &table->windows[which];
	uint64_t skip = at - window->at;

	if (want > left)
		want = (size_t)left;
	if (want < least)
		return NULL;
	if (at < window->at || skip > window->length || want > window->length - skip) {
		window->at = at;
		window->length = left < WINDOW_BYTES ? (size_t)left : WINDOW_BYTES;
		skip = 0;
		if (!code_file_read(table->place.file, at, window->bytes, window->length)) {
			window->length = 0;
			return NULL;
		}
	}
	*got = want;
	return window->bytes + skip;
}

static const uint8_t *table_bytes(struct go_table *table, enum window_of which, uint64_t at,
				  size_t least, size_t want, size_t *got)
{
	if (at >= table->place.bytes)
		return NULL;
	return window_bytes(table, which, table->place.offset + at, table->place.bytes - at, least,
			    want, got);
}

/* Empty, not NULL, where the file has no code. */
static const uint8_t *code_bytes(struct go_table *table, uint64_t address, size_t want, size_t *got)
{
	uint64_t offset, left = code_file_offset(table->place.file, address, &offset);
	const uint8_t *bytes = left ? window_bytes(table, CODE, offset, left, 1, want, got) : NULL;

	if (!bytes)
		*got = 0;
	return bytes ? bytes : table->windows[CODE].bytes;
}

/* --- functions --- */

/* ftab's entry: where the function begins and what is said of it; where the next one begins, or the
 * last one ends. */
struct entry {
	uint64_t start, end, function;
};

static bool entry_read(struct go_table *table, uint64_t index, struct entry *entry)
{
	const struct go_layout *layout = table->place.layout;
	size_t size = layout->pc_bytes, got;
	const uint8_t *bytes = table_bytes(table, ENTRIES, table->place.ftab + index * 2 * size,
					   3 * size, 3 * size, &got);

	*entry = (struct entry){0};
	if (!bytes)
		return false;
	memcpy(&entry->start, bytes, size);
	memcpy(&entry->function, bytes + size, size);
	memcpy(&entry->end, bytes + 2 * size, size);
	if (entry->end < entry->start || entry->function >= table->place.bytes ||
	    entry->end > UINT64_MAX - table->text)
		return false;
	entry->start += table->text;
	entry->end += table->text;
	entry->function += table->place.functions;
	return true;
}

static void name_read(struct go_table *table, int32_t name_at, char name[GO_NAME_BYTES])
{
	size_t got;
	const uint8_t *bytes = NULL;

	if (name_at >= 0)
		bytes = table_bytes(table, NAMES, table->place.names + (uint32_t)name_at, 1,
				    GO_NAME_BYTES, &got);
	memset(name, 0, GO_NAME_BYTES);
	if (!bytes)
		return;
	if (got > GO_NAME_BYTES - 1)
		got = GO_NAME_BYTES - 1;
	memcpy(name, bytes, strnlen((const char *)bytes, got));
}

static enum row_failure function_read(struct go_table *table, uint64_t index,
				      struct go_function *function)
{
	const struct go_layout *layout = table->place.layout;
	struct entry entry;
	const uint8_t *bytes;
	int32_t name_at;
	size_t got;

	if (!entry_read(table, index, &entry) || entry.start < table->code_start ||
	    entry.end > table->code_end)
		return ROW_FAILURE_DAMAGED;
	bytes = table_bytes(table, FUNCTIONS, entry.function, layout->function_bytes,
			    layout->function_bytes, &got);
	if (!bytes)
		return ROW_FAILURE_DAMAGED;
	function->start = entry.start;
	function->end = entry.end;
	memcpy(&name_at, bytes + layout->name_at, sizeof name_at);
	memcpy(&function->pcsp, bytes + layout->pcsp_at, sizeof function->pcsp);
	function->flags = layout->flags_at ? bytes[layout->flags_at] : 0;
	function->has_flags = layout->is_relative;
	name_read(table, name_at, function->name);
	return ROW_FAILURE_NONE;
}

void go_table_find(struct go_table *table, const char *const *names, unsigned count,
		   struct go_span *spans)
{
	struct go_function function;
	unsigned missing = count;

	memset(spans, 0, count * sizeof *spans);
	for (uint64_t index = 0; missing && index < table->place.count; index++) {
		if (function_read(table, index, &function) != ROW_FAILURE_NONE)
			continue;
		for (unsigned i = 0; i < count; i++) {
			if (spans[i].end || strcmp(function.name, names[i]) != 0)
				continue;
			spans[i] = (struct go_span){function.start, function.end};
			missing--;
		}
	}
}

/* The last function that begins at or below the address; the first one when none does. */
static bool find_function(struct go_table *table, uint64_t address, uint64_t *index)
{
	uint64_t low = 0, high = table->place.count;
	struct entry entry;

	while (high - low > 1) {
		uint64_t middle = low + (high - low) / 2;

		if (!entry_read(table, middle, &entry))
			return false;
		if (entry.start <= address)
			low = middle;
		else
			high = middle;
	}
	*index = low;
	return true;
}

/* --- pcsp: pairs of a change of the depth and a number of bytes for which it holds then --- */

struct depths {
	struct go_table *table;
	uint64_t at, pc, end; /* pc: up to where it is known; end: of the function */
	int64_t depth;
	uint32_t steps;
	bool is_first, bad;
};

static uint64_t depths_number(struct depths *depths)
{
	enum { NUMBER_BYTES = 5 };
	uint64_t value = 0;
	size_t got;
	const uint8_t *bytes = table_bytes(depths->table, TABLES, depths->at, 1, NUMBER_BYTES,
					   &got);

	for (size_t i = 0; bytes && i < got && i < NUMBER_BYTES; i++) {
		value |= (uint64_t)(bytes[i] & 0x7f) << (7 * i);
		if (!(bytes[i] & 0x80)) {
			depths->at += i + 1;
			return value & UINT32_MAX;
		}
	}
	depths->bad = true;
	return 0;
}

static void depths_begin(struct depths *depths, struct go_table *table,
			 const struct go_function *function)
{
	*depths = (struct depths){.table = table,
				  .at = table->place.pcs + function->pcsp,
				  .pc = function->start,
				  .end = function->end,
				  .depth = -1,
				  .is_first = true};
}

/* The next stretch, from *from up to depths->pc. False: that was all, or it is bad. */
static bool depths_next(struct depths *depths, uint64_t *from)
{
	uint64_t change, length;

	*from = depths->pc;
	if (depths->pc >= depths->end)
		return false;
	change = depths_number(depths);
	if (depths->bad || (!change && !depths->is_first))
		return false;
	depths->is_first = false;
	depths->depth += change & 1 ? -(int64_t)((change >> 1) + 1) : (int64_t)(change >> 1);
	length = depths_number(depths);
	if (depths->bad || ++depths->steps > STEPS_MAX || depths->depth > DEPTH_MAX ||
	    depths->depth < -DEPTH_MAX) {
		depths->bad = true;
		return false;
	}
	depths->pc += length;
	if (depths->pc > depths->end) /* no function goes on behind the next one's beginning */
		depths->pc = depths->end;
	return true;
}

/* address: behind the instruction that has lowered the stack pointer by depth. */
static struct go_frame frame_read(struct go_table *table, uint64_t address, int64_t depth)
{
	size_t got;
	const uint8_t *code = code_bytes(table, address - 1, GO_PROLOGUE_BYTES, &got);

	return go_frame_read(code, depth >= 8 ? got : 0, address, (uint64_t)depth);
}

/* --- rows --- */

/* The piece that was found last is kept back: what it joins, and what cuts its end, comes next. */
struct pieces {
	struct go_table *table;
	uint64_t start, end, reached;
	call_frames_add add;
	void *context;
	struct {
		uint64_t start, end;
		struct unwind_rule rule;
	} last;
	bool stopped;
};

static void pieces_flush(struct pieces *pieces)
{
	if (!pieces->stopped && pieces->last.end > pieces->last.start &&
	    pieces->last.end > pieces->start && pieces->last.start < pieces->end)
		pieces->stopped = !pieces->add(pieces->context, pieces->last.start,
					       pieces->last.end, &pieces->last.rule);
	if (pieces->last.end > pieces->reached)
		pieces->reached = pieces->last.end;
	pieces->last.start = pieces->last.end = 0;
}

static void pieces_add(struct pieces *pieces, uint64_t start, uint64_t end,
		       const struct unwind_rule *rule)
{
	if (start < pieces->reached) /* only where the table is damaged */
		start = pieces->reached;
	if (start >= end || end <= pieces->start)
		return;
	if (pieces->last.end >= start && !memcmp(&pieces->last.rule, rule, sizeof *rule)) {
		pieces->last.end = end;
		return;
	}
	if (pieces->last.end > start)
		pieces->last.end = start;
	pieces_flush(pieces);
	pieces->last.start = start;
	pieces->last.end = end;
	pieces->last.rule = *rule;
}

/* One stretch of one depth, cut where another part begins and where the frame pointer is saved. */
static void add_stretch(struct pieces *pieces, const struct go_function *function, uint64_t from,
			uint64_t to, int64_t depth, const struct go_frame *frame)
{
	while (from < to) {
		const struct go_part *part = &function->parts[0];
		uint64_t end = to;
		struct unwind_rule rule;

		for (unsigned i = 0; i < function->part_count; i++)
			if (function->parts[i].from <= from)
				part = &function->parts[i];
			else if (function->parts[i].from < end)
				end = function->parts[i].from;
		if (frame->saved > from && frame->saved < end)
			end = frame->saved;
		rule = go_rule(function, part, depth, from, frame);
		/* Nobody calls what returns from a signal: the address before it is looked up. */
		pieces_add(pieces, from - (part->way == GO_WAY_SIGNAL && from == function->start),
			   end, &rule);
		from = end;
	}
}

/* The two functions that tell it lie near each other, being of one file of the runtime's. */
static void find_descriptor(struct go_table *table, struct go_function *function, uint64_t index)
{
	enum { NEAR = 12 };
	uint64_t first = index < NEAR ? 0 : index - NEAR;
	struct go_descriptor found = {0};
	struct go_function other;

	for (uint64_t i = first; i < table->place.count && i <= index + NEAR; i++) {
		uint64_t want;
		const uint8_t *code;
		size_t got;

		if (function_read(table, i, &other) != ROW_FAILURE_NONE ||
		    !go_function_leaves(&other))
			continue;
		want = other.end - other.start;
		code = code_bytes(table, other.start,
				  want < GO_FUNCTION_BYTES ? (size_t)want : GO_FUNCTION_BYTES,
				  &got);
		go_descriptor_read(&found, &other, code, got);
	}
	function->descriptor = found;
}

bool go_table_descriptor(struct go_table *table, struct go_descriptor *descriptor)
{
	struct go_function function;

	for (uint64_t index = 0; index < table->place.count; index++) {
		if (function_read(table, index, &function) != ROW_FAILURE_NONE ||
		    strcmp(function.name, "runtime.systemstack") != 0 ||
		    !go_function_leaves(&function))
			continue;
		find_descriptor(table, &function, index);
		*descriptor = function.descriptor;
		return descriptor->has_g && descriptor->has_curg;
	}
	return false;
}

static void function_parts(struct go_table *table, struct go_function *function, uint64_t index)
{
	uint64_t want = function->end - function->start;
	const uint8_t *code = NULL;
	size_t got = 0;

	if (go_function_leaves(function))
		find_descriptor(table, function, index);
	if (!go_function_is_plain(function))
		code = code_bytes(table, function->start,
				  want < GO_FUNCTION_BYTES ? (size_t)want : GO_FUNCTION_BYTES,
				  &got);
	go_function_parts(function, code, got);
}

static enum row_failure function_pieces(struct pieces *pieces, struct go_function *function,
					uint64_t index, uint32_t *steps)
{
	struct go_frame frame = {UINT64_MAX, UINT64_MAX};
	struct depths depths;
	bool is_known = false;
	uint64_t from;

	function_parts(pieces->table, function, index);
	depths_begin(&depths, pieces->table, function);
	while (!pieces->stopped && depths_next(&depths, &from)) {
		if (++*steps > PAGE_STEPS_MAX)
			return ROW_FAILURE_LIMIT;
		if (depths.depth > 0 && !is_known) {
			frame = frame_read(pieces->table, from, depths.depth);
			is_known = true;
		}
		add_stretch(pieces, function, from, depths.pc, depths.depth, &frame);
		if (depths.pc > pieces->end)
			break;
	}
	if (depths.bad) /* the rest of this one function is unknown */
		pieces_add(pieces, depths.pc, function->end,
			   &(struct unwind_rule){.cfa = UNWIND_CFA_NONE});
	return ROW_FAILURE_NONE;
}

enum row_failure go_table_pieces(struct go_table *table, uint64_t start, uint64_t end,
				 call_frames_add add, void *context)
{
	struct pieces pieces = {
		.table = table, .start = start, .end = end, .add = add, .context = context};
	enum row_failure failure = ROW_FAILURE_NONE;
	struct go_function function;
	uint32_t steps = 0, functions = 0;
	uint64_t index;

	if (start >= end || start >= table->code_end || end <= table->code_start)
		return ROW_FAILURE_NONE;
	if (!find_function(table, start, &index))
		return ROW_FAILURE_DAMAGED;
	/* One that begins at the end may have its row before it. */
	for (; index < table->place.count && !pieces.stopped; index++) {
		enum row_failure one = function_read(table, index, &function);

		if (one == ROW_FAILURE_NONE && function.start > end)
			break;
		if (++functions > PAGE_FUNCTIONS_MAX)
			return ROW_FAILURE_LIMIT;
		if (one == ROW_FAILURE_NONE && function.pcsp && function.end > start)
			one = function_pieces(&pieces, &function, index, &steps);
		if (one == ROW_FAILURE_LIMIT)
			return one;
		if (failure == ROW_FAILURE_NONE)
			failure = one;
	}
	pieces_flush(&pieces);
	return failure;
}

/* --- opening --- */

/* The segment of code that has all functions, when they count from the text. */
static bool take_text(struct go_table *table, uint64_t text)
{
	struct entry first, last;

	table->text = text;
	if (!entry_read(table, 0, &first) || !entry_read(table, table->place.count - 1, &last) ||
	    last.end < first.start)
		return false;
	for (unsigned i = 0; i < table->place.file->segment_count; i++) {
		const Elf64_Phdr *segment = &table->place.file->segments[i];

		if (segment->p_type == PT_LOAD && segment->p_flags & PF_X &&
		    first.start >= segment->p_vaddr &&
		    last.end - segment->p_vaddr <= segment->p_filesz) {
			table->code_start = segment->p_vaddr;
			table->code_end = segment->p_vaddr + segment->p_filesz;
			return true;
		}
	}
	return false;
}

/* Whether the code does what the table says: most functions that lower the stack pointer save the
 * frame pointer with it. */
static bool check_text(struct go_table *table)
{
	uint64_t step = table->place.count / CHECKED_FUNCTIONS + 1;
	unsigned lowered = 0, saved = 0;

	for (uint64_t index = 0; index < table->place.count; index += step) {
		struct go_function function;
		struct depths depths;
		uint64_t from;

		if (function_read(table, index, &function) != ROW_FAILURE_NONE)
			return false;
		if (!function.pcsp)
			continue;
		depths_begin(&depths, table, &function);
		while (depths_next(&depths, &from) && depths.depth <= 0)
			;
		if (depths.bad)
			return false;
		if (depths.depth <= 0)
			continue;
		lowered++;
		saved += frame_read(table, from, depths.depth).saved != UINT64_MAX;
	}
	return lowered && saved >= lowered - lowered / 4;
}

struct go_table *go_table_open(const struct code_file *file, enum row_failure *failure)
{
	struct go_table *table = calloc(1, sizeof *table);
	uint64_t texts[GO_TEXTS_MAX];
	unsigned count;

	*failure = ROW_FAILURE_LIMIT;
	if (!table || !go_place_find(file, &table->place, failure)) {
		free(table);
		return NULL;
	}
	count = go_place_texts(&table->place, texts);
	for (unsigned i = 0; i < count; i++)
		if (take_text(table, texts[i]) && check_text(table))
			return table;
	free(table);
	*failure = ROW_FAILURE_DAMAGED;
	return NULL;
}

void go_table_close(struct go_table *table)
{
	free(table);
}

size_t go_table_bytes(const struct go_table *table)
{
	return sizeof *table;
}
