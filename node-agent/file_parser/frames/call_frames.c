/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/file_parser/frames/call_frames.h"

#include <stdlib.h>

#include "node-agent/file_parser/frames/frame_machine.h"
#include "node-agent/file_parser/frames/frame_table.h"
#include "node-agent/file_parser/frames/unwind_rule.h"

enum {
	SOURCES = 2,
	HELD_MAX = 64, /* states of one FDE; 99 in 100 have fewer */
	/* What one call may take, many times a page's worth: 64 KiB of code have some ten thousand
	 * instructions about them. */
	BUDGET_INSTRUCTIONS = 2 << 20,
	BUDGET_ENTRIES = 128 << 10,
	BUDGET_BYTES = 64 << 20,
};

/* One section; what an earlier source leaves out the next one is asked for. Code without
 * .eh_frame is linked with start files that have some. A source is opened when it is first asked:
 * next to .eh_frame, .debug_frame mostly has nothing to add, and Go's is large. */
struct source {
	bool is_tried, is_there;
	enum row_failure failure;
	struct frame_section section;
	struct frame_commons commons;
	struct frame_table table;
};

struct call_frames {
	const struct code_file *file;
	struct frame_registers registers;
	struct source sources[SOURCES]; /* .eh_frame, .debug_frame */
};

static bool open_eh_frame(struct source *source, const struct code_file *file)
{
	uint64_t address;

	if (frame_table_section(file, &address) &&
	    frame_section_open_at(&source->section, file, address) &&
	    frame_table_open(&source->table, file, &source->section))
		return true;
	/* No search table; the section's header knows better where it ends. */
	frame_table_release(&source->table);
	if (!frame_section_open(&source->section, file, ".eh_frame", &source->failure) &&
	    (source->failure != ROW_FAILURE_NONE || !frame_table_section(file, &address) ||
	     !frame_section_open_at(&source->section, file, address)))
		return false;
	return frame_table_build(&source->table, &source->section, &source->commons,
				 &source->failure);
}

static bool open_debug_frame(struct source *source, const struct code_file *file)
{
	if (!frame_section_open(&source->section, file, ".debug_frame", &source->failure))
		return false;
	source->section.is_debug = true;
	return frame_table_build(&source->table, &source->section, &source->commons,
				 &source->failure);
}

static void release(struct source *source)
{
	frame_section_release(&source->section);
	frame_commons_release(&source->commons);
	frame_table_release(&source->table);
}

/* Is there such a source? */
static bool source_open(struct call_frames *frames, int number)
{
	struct source *source = &frames->sources[number];

	if (!source->is_tried) {
		source->is_tried = true;
		source->is_there = number ? open_debug_frame(source, frames->file)
					  : open_eh_frame(source, frames->file);
		if (!source->is_there)
			release(source);
		source->section.bytes_read = 0;
	}
	return source->is_there;
}

struct call_frames *call_frames_open(const struct code_file *file, enum row_failure *failure)
{
	struct call_frames *frames = calloc(1, sizeof *frames);

	*failure = ROW_FAILURE_LIMIT;
	if (!frames)
		return NULL;
	*failure = ROW_FAILURE_NOT_CODE;
	frames->file = file;
	if (frame_registers_of(file->machine, &frames->registers)) {
		*failure = ROW_FAILURE_NONE;
		if (source_open(frames, 0) || source_open(frames, 1))
			return frames;
		for (int i = SOURCES; i-- > 0;)
			if (frames->sources[i].failure != ROW_FAILURE_NONE)
				*failure = frames->sources[i].failure;
	}
	call_frames_close(frames);
	return NULL;
}

void call_frames_close(struct call_frames *frames)
{
	if (!frames)
		return;
	for (int i = 0; i < SOURCES; i++)
		release(&frames->sources[i]);
	free(frames);
}

size_t call_frames_bytes(const struct call_frames *frames)
{
	size_t bytes = sizeof *frames;

	for (int i = 0; i < SOURCES; i++) {
		const struct source *source = &frames->sources[i];

		bytes += frame_section_memory(&source->section) +
			 frame_table_memory(&source->table);
		if (source->commons.entries)
			bytes += FRAME_COMMONS * sizeof *source->commons.entries;
	}
	return bytes;
}

/* --- pieces --- */

struct held {
	uint64_t start, end;
	struct unwind_rule rule;
};

struct walk {
	struct call_frames *frames;
	call_frames_add add;
	void *context;
	uint64_t instructions, entries, bytes; /* that are left of the budget */
	bool has_added;
	enum row_failure failure;
	/* of the FDE that is being run: */
	uint64_t low, high;
	bool is_signal;
	/* Its pieces, until it is known that all of it is sound. */
	unsigned held_count;
	struct held held[HELD_MAX];
};

/* A state that holds from start up to end, or what of it is wanted. False: nothing is. */
static bool cut_state(const struct walk *walk, uint64_t start, uint64_t end,
		      const struct frame_state *state, struct held *out)
{
	if (end > walk->high)
		end = walk->high;
	if (start < walk->low)
		start = walk->low;
	if (start >= end)
		return false;
	*out = (struct held){start, end,
			     unwind_rule_of(state, &walk->frames->registers, walk->is_signal)};
	return true;
}

/* False: there are too many. */
static bool hold_state(void *context, uint64_t start, uint64_t end, const struct frame_state *state)
{
	struct walk *walk = context;

	if (walk->held_count == HELD_MAX)
		return false;
	walk->held_count += cut_state(walk, start, end, state, &walk->held[walk->held_count]);
	return true;
}

static bool add_piece(struct walk *walk, const struct held *piece)
{
	walk->has_added = true;
	return walk->add(walk->context, piece->start, piece->end, &piece->rule);
}

static bool add_state(void *context, uint64_t start, uint64_t end, const struct frame_state *state)
{
	struct walk *walk = context;
	struct held piece;

	return !cut_state(walk, start, end, state, &piece) || add_piece(walk, &piece);
}

/* Nothing is added of an FDE that is damaged: the few pieces that most have are held back; what has
 * more is run for that alone first. */
static enum frame_run run_entry(struct walk *walk, const struct frame_entry *entry)
{
	const struct frame_registers *registers = &walk->frames->registers;
	enum frame_run done;

	walk->held_count = 0;
	done = frame_machine_run(entry, registers, walk->high, hold_state, walk,
				 &walk->instructions);
	if (done == FRAME_RUN_STOPPED) {
		done = frame_machine_run(entry, registers, walk->high, NULL, NULL,
					 &walk->instructions);
		return done != FRAME_RUN_DONE
			       ? done
			       : frame_machine_run(entry, registers, walk->high, add_state, walk,
						   &walk->instructions);
	}
	for (unsigned i = 0; done == FRAME_RUN_DONE && i < walk->held_count; i++)
		if (!add_piece(walk, &walk->held[i]))
			return FRAME_RUN_STOPPED;
	return done;
}

/* low up to high are the FDE's. False: no more is wanted, or possible. */
static bool add_entry(struct walk *walk, const struct frame_entry *entry, uint64_t low,
		      uint64_t high)
{
	static const struct unwind_rule none = {.cfa = UNWIND_CFA_NONE};

	walk->low = low;
	walk->high = high;
	walk->is_signal = entry->common->is_signal;
	switch (run_entry(walk, entry)) {
	case FRAME_RUN_DONE:
		return true;
	case FRAME_RUN_STOPPED:
		return false;
	case FRAME_RUN_OVER_BUDGET:
		walk->failure = ROW_FAILURE_LIMIT;
		return false;
	case FRAME_RUN_DAMAGED:
		break;
	}
	return walk->add(walk->context, low, high, &none);
}

static bool walk_sources(struct walk *walk, int number, uint64_t low, uint64_t high);

static bool fail(struct walk *walk, enum row_failure failure)
{
	walk->failure = failure;
	return false;
}

/* Takes one FDE from the budget. */
static bool is_affordable(struct walk *walk, struct source *source)
{
	uint64_t bytes = source->section.bytes_read;

	source->section.bytes_read = 0;
	if (bytes > walk->bytes || !walk->entries)
		return fail(walk, ROW_FAILURE_LIMIT);
	walk->bytes -= bytes;
	walk->entries--;
	return true;
}

/* The FDE at a place, whose code the table has from start up to next: what it covers between low
 * and high. *low goes on to its end. */
static bool walk_entry(struct walk *walk, int number, uint64_t place, uint64_t start, uint64_t next,
		       uint64_t *low, uint64_t high)
{
	struct source *source = &walk->frames->sources[number];
	struct frame_entry entry;
	uint64_t end, ignored;

	if (!is_affordable(walk, source))
		return false;
	if (frame_entry_read(&source->section, &source->commons, place, &entry, &ignored) !=
	    FRAME_FDE) {
		static const struct unwind_rule none = {.cfa = UNWIND_CFA_NONE};

		if (source->section.is_unreadable)
			return fail(walk, ROW_FAILURE_UNREADABLE);
		start = start > *low ? start : *low;
		end = next < high ? next : high;
		*low = end > *low ? end : *low;
		return start >= end || walk->add(walk->context, start, end, &none);
	}
	start = entry.start > start ? entry.start : start;
	start = start > *low ? start : *low;
	end = entry.end < next ? entry.end : next;
	end = end < high ? end : high;
	if (start >= end)
		return true;
	if (start > *low) {
		if (!walk_sources(walk, number + 1, *low, start))
			return false;
	}
	*low = end;
	return add_entry(walk, &entry, start, end);
}

/* Asks the sources from number on. */
static bool walk_sources(struct walk *walk, int number, uint64_t low, uint64_t high)
{
	struct source *source;
	struct frame_table *table;
	uint64_t i, start, place, next_start, next_place;

	if (low >= high)
		return true;
	while (number < SOURCES && !source_open(walk->frames, number))
		number++;
	if (number == SOURCES)
		return true;
	source = &walk->frames->sources[number];
	table = &source->table;
	if (!frame_table_find(table, low, &i) || !frame_table_entry(table, i, &start, &place))
		return fail(walk, ROW_FAILURE_UNREADABLE);
	for (; start < high; i++, start = next_start, place = next_place) {
		next_start = UINT64_MAX;
		next_place = 0;
		if (i + 1 < table->count &&
		    !frame_table_entry(table, i + 1, &next_start, &next_place))
			return fail(walk, ROW_FAILURE_UNREADABLE);
		if (next_start > start && next_start > low &&
		    !walk_entry(walk, number, place, start, next_start, &low, high))
			return false;
		if (i + 1 >= table->count)
			break;
	}
	return walk_sources(walk, number + 1, low, high);
}

enum row_failure call_frames_pieces(struct call_frames *frames, uint64_t start, uint64_t end,
				    call_frames_add add, void *context)
{
	struct walk walk = {
		.frames = frames,
		.add = add,
		.context = context,
		.instructions = BUDGET_INSTRUCTIONS,
		.entries = BUDGET_ENTRIES,
		.bytes = BUDGET_BYTES,
	};

	for (int i = 0; i < SOURCES; i++)
		frames->sources[i].section.bytes_read = 0;
	walk_sources(&walk, 0, start, end);
	/* Only what could not be opened might have had something to say. */
	for (int i = 0; i < SOURCES && !walk.has_added && walk.failure == ROW_FAILURE_NONE; i++)
		walk.failure = frames->sources[i].failure;
	return walk.failure;
}

bool call_frames_function(struct call_frames *frames, uint64_t address, uint64_t *start,
			  uint64_t *end)
{
	for (int i = 0; i < SOURCES; i++) {
		struct source *source = &frames->sources[i];
		uint64_t number, place, ignored;
		struct frame_entry entry;

		if (!source_open(frames, i) ||
		    !frame_table_find(&source->table, address, &number) ||
		    !frame_table_entry(&source->table, number, start, &place) ||
		    *start > address ||
		    frame_entry_read(&source->section, &source->commons, place, &entry, &ignored) !=
			    FRAME_FDE ||
		    entry.start != *start || entry.end <= address)
			continue;
		*end = entry.end;
		return true;
	}
	return false;
}

bool call_frames_begins(struct call_frames *frames, uint64_t address, uint64_t *end)
{
	uint64_t start;

	return call_frames_function(frames, address, &start, end) && start == address;
}
