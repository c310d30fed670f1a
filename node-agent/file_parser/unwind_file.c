/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/file_parser/unwind_file.h"

#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/file_content.h"
#include "node-agent/file_parser/code/bare_code.h"
#include "node-agent/file_parser/frames/call_frames.h"
#include "node-agent/file_parser/code/code_file.h"
#include "node-agent/file_parser/go/go_labels.h"
#include "node-agent/file_parser/go/go_memory.h"
#include "node-agent/file_parser/go/go_table.h"
#include "node-agent/file_parser/code/known_code.h"
#include "node-agent/file_parser/probe_notes.h"
#include "node-agent/file_parser/runtime_file.h"
#include "node-agent/file_parser/tls_file.h"
#include "node-agent/file_parser/malloc_names.h"
#include "node-agent/file_parser/python_malloc.h"

#if defined(__aarch64__)
enum { THIS_MACHINE = EM_AARCH64 };
#else
enum { THIS_MACHINE = EM_X86_64 };
#endif

enum {
	GO_ALIGNMENT = 32, /* of functions: what is shorter between two is nobody's code */
	GO_GAPS_MAX = 64,  /* of one page; Go's code and C's each lie together */
};

struct unwind_file {
	struct code_file code;
	enum row_failure failure; /* of the whole file */
	bool has_tried_frames;
	struct call_frames *frames;
	struct go_table *go;
};

struct unwind_file *unwind_file_open(int fd)
{
	struct unwind_file *file = calloc(1, sizeof *file);

	if (!file) {
		close(fd);
		return NULL;
	}
	if (!code_file_open(&file->code, fd) || file->code.machine != THIS_MACHINE) {
		file->code.fd = fd;
		file->failure = ROW_FAILURE_NOT_CODE;
		return file;
	}
	file->go = go_table_open(&file->code, &file->failure);
	return file;
}

void unwind_file_close(struct unwind_file *file)
{
	if (!file)
		return;
	go_table_close(file->go);
	call_frames_close(file->frames);
	code_file_close(&file->code);
	if (file->code.fd >= 0)
		close(file->code.fd);
	free(file);
}

size_t unwind_file_bytes(const struct unwind_file *file)
{
	return sizeof *file + code_file_memory(&file->code) +
	       (file->frames ? call_frames_bytes(file->frames) : 0) +
	       (file->go ? go_table_bytes(file->go) : 0);
}

void unwind_file_tls(struct unwind_file *file, struct tls_symbol *out)
{
	*out = (struct tls_symbol){0};
	if (file->failure != ROW_FAILURE_NOT_CODE)
		tls_file_read(&file->code, out);
	if (file->go)
		go_labels_find(&file->code, file->go, &out->go);
}

/* Opened when first asked: most of a Go program's pages never need it. */
static struct call_frames *frames_of(struct unwind_file *file)
{
	enum row_failure failure = ROW_FAILURE_NONE;

	if (file->has_tried_frames)
		return file->frames;
	file->has_tried_frames = true;
	file->frames = call_frames_open(&file->code, &failure);
	if (failure != ROW_FAILURE_NONE)
		file->failure = failure;
	return file->frames;
}

void unwind_file_runtime(struct unwind_file *file, struct runtime_symbols *out)
{
	*out = (struct runtime_symbols){0};
	if (file->failure == ROW_FAILURE_NOT_CODE || file->go)
		return;
	runtime_file_read(&file->code, out);
	if (out->language)
		runtime_file_loop(&file->code, frames_of(file), out);
}

/* --- pages --- */

struct page_walk {
	struct unwind_file *file;
	struct page_rows *out;
	uint64_t at, limit; /* where the next piece may begin, and has to end */
	unsigned gaps;
	enum row_failure failure;
};

static bool add_bare(void *context, uint64_t start, uint64_t end, const struct unwind_rule *rule)
{
	struct page_walk *walk = context;

	return row_builder_add(walk->out, start, end, rule);
}

/* The known pieces of a hole; code around them is told by its instructions. */
struct hole {
	struct page_walk *walk;
	struct bare_code *bare;
	uint64_t at;
};

static bool add_known(void *context, uint64_t start, uint64_t end, const struct unwind_rule *rule)
{
	struct hole *hole = context;

	if (!bare_code_pieces(hole->bare, hole->at, start, add_bare, hole->walk))
		return false;
	hole->at = end;
	return row_builder_add(hole->walk->out, start, end, rule);
}

/* Up to end nothing is described. */
static bool fill_hole(struct page_walk *walk, uint64_t end)
{
	struct hole hole = {.walk = walk, .at = walk->at};
	bool wants_more;

	if (end <= hole.at)
		return true;
	walk->at = end;
	hole.bare = bare_code_open(&walk->file->code, hole.at, end);
	wants_more = known_code_pieces(&walk->file->code, hole.at, end, add_known, &hole) &&
		     bare_code_pieces(hole.bare, hole.at, end, add_bare, walk);
	bare_code_close(hole.bare);
	return wants_more;
}

static bool add_piece(void *context, uint64_t start, uint64_t end, const struct unwind_rule *rule)
{
	struct page_walk *walk = context;
	const struct unwind_rule *known = NULL;

	end = end < walk->limit ? end : walk->limit;
	if (start > walk->at)
		known = known_code_behind_gap(&walk->file->code, start, end);
	if (known) {
		start--;
		rule = known;
	}
	if (!fill_hole(walk, start))
		return false;
	walk->at = end > walk->at ? end : walk->at;
	return row_builder_add(walk->out, start, end, rule);
}

/* What lies between Go's functions is C's. */
static bool fill_gap(struct page_walk *walk, uint64_t end)
{
	struct call_frames *frames = frames_of(walk->file);

	if (walk->gaps++ == GO_GAPS_MAX)
		walk->failure = ROW_FAILURE_LIMIT;
	walk->limit = end;
	if (walk->failure == ROW_FAILURE_NONE && frames && end > walk->at)
		walk->failure = call_frames_pieces(frames, walk->at, end, add_piece, walk);
	return walk->failure == ROW_FAILURE_NONE && fill_hole(walk, end) &&
	       walk->out->state != UNWIND_PAGE_FAILED;
}

static bool add_go_piece(void *context, uint64_t start, uint64_t end,
			 const struct unwind_rule *rule)
{
	struct page_walk *walk = context;

	if (start > walk->at && start - walk->at >= GO_ALIGNMENT && !fill_gap(walk, start))
		return false;
	if (end > walk->at)
		walk->at = end;
	return row_builder_add(walk->out, start, end, rule);
}

void unwind_file_page(struct unwind_file *file, uint32_t page, struct page_rows *out)
{
	uint64_t start = (uint64_t)page << UNWIND_PAGE_BITS,
		 end = start + (UINT64_C(1) << UNWIND_PAGE_BITS);
	struct page_walk walk = {.file = file, .out = out, .at = start};
	enum row_failure failure = ROW_FAILURE_NONE;

	row_builder_begin(out, page);
	if (file->failure == ROW_FAILURE_NOT_CODE)
		failure = file->failure;
	else if (file->go)
		failure = go_table_pieces(file->go, start, end, add_go_piece, &walk);
	if (walk.failure == ROW_FAILURE_NONE)
		walk.failure = failure;
	if (walk.failure == ROW_FAILURE_NONE && out->state != UNWIND_PAGE_FAILED)
		fill_gap(&walk, end);
	row_builder_end(out);
	if (walk.failure == ROW_FAILURE_NONE && out->state == UNWIND_PAGE_EMPTY)
		walk.failure = file->failure;
	if (walk.failure == ROW_FAILURE_NONE || out->state == UNWIND_PAGE_FAILED)
		return;
	out->state = UNWIND_PAGE_FAILED;
	out->failure = (uint8_t)walk.failure;
	out->count = out->rule_count = 0;
}

void unwind_file_memory(struct unwind_file *file, struct memory_places *places)
{
	struct runtime_symbols runtime;
	struct file_content content;

	for (unsigned i = 0; i < file->code.segment_count; i++) {
		const Elf64_Phdr *segment = &file->code.segments[i];

		if (segment->p_type != PT_LOAD)
			continue;
		memory_place_add(places, MEMORY_BASE, segment->p_vaddr - segment->p_offset);
		break;
	}
	if (file->go)
		go_memory_places(&file->code, file->go, places);
	probe_notes_places(&file->code, places);
	malloc_names_find(&file->code, places);
	runtime_file_read(&file->code, &runtime);
	if (runtime.language == RUNTIME_CPYTHON)
		python_malloc_find(&file->code, frames_of(file), runtime.version, places);
	if (!file->go && malloc_names_are_gone(&file->code, places) &&
	    file_content_read(file->code.fd, &content, NULL))
		places->nameless = content.image.gnu;
}

void unwind_file_functions(struct unwind_file *file, const struct memory_functions *functions,
			   struct memory_places *places)
{
	struct call_frames *frames = file->failure == ROW_FAILURE_NOT_CODE ? NULL : frames_of(file);

	for (uint32_t i = 0; i < functions->count; i++) {
		const struct memory_function *function = &functions->items[i];
		uint64_t end;

		if (!frames || !call_frames_begins(frames, function->address, &end) ||
		    !malloc_names_add(&file->code, function, end - function->address, places))
			places->refused++;
	}
}
