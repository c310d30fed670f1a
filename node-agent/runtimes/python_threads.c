/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/runtimes/python_threads.h"

#include <string.h>

#include "node-agent/runtimes/python_layout.h"

enum {
	STATE_BYTES_MAX = 512, /* of a thread's state */
	PAGE_BYTES = 4096,
	/* Around the thread pointer: on one side the thread-local variables of the program and its
	 * libraries, on the other one the C library's own words of the thread. The former are below
	 * on x86-64, the latter on arm64, where pthread_self() is their beginning. */
	VARIABLES_BYTES = 1024,
	THREAD_BYTES = 1792, /* glibc's words are 2304, in its first 1552 all slots */
	AROUND_WORDS = (VARIABLES_BYTES + THREAD_BYTES) / 8,
	DEEP_BYTES = 1024, /* a second block of slots: 512 of glibc's, 1024 of musl's */
	CANDIDATES_MAX = 128,
	LOWEST_ADDRESS = 65536,
	RELEASE_LEVEL_CANDIDATE = 0xc0,
};

struct state {
	uint64_t address, pointer; /* the thread's */
};

struct candidate {
	int64_t at;
	int32_t in; /* −1: the word is there itself */
	uint32_t hits;
};

struct search {
	const struct python_memory *memory;
	struct python_layout layout;
	uint64_t current_at;
	uint32_t thread_bytes, below; /* as in struct runtime_symbols; of `around` */
	struct python_threads *out;
	uint32_t interpreter_count, state_count, candidate_count;
	uint64_t interpreters[PYTHON_INTERPRETERS_MAX];
	struct state states[PYTHON_THREADS_MAX];
	struct candidate candidates[CANDIDATES_MAX];
	uint64_t around[AROUND_WORDS]; /* of one thread; 0 where nothing is mapped */
};

const char *python_found_text(enum python_found found)
{
	static const char *const texts[PYTHON_FOUND_COUNT] = {
		[PYTHON_FOUND] = "found",
		[PYTHON_NOT_STARTED] = "no threads yet",
		[PYTHON_NO_PLACE] = "no pointer in its threads",
		[PYTHON_CONTRADICTED] = "not what it looks like",
		[PYTHON_NO_POINTER] = "a C library that does not say where thread pointers are",
		[PYTHON_TOO_NEW] = "newer than this agent knows: a newer agent reads it",
		[PYTHON_UNRELEASED] = "a pre-release, unlike its release, which is read",
		[PYTHON_COPIED] = "3.14 and newer without the GIL: one with it is read",
		[PYTHON_UNKNOWN] = "a version or build that is not known",
	};

	return texts[found];
}

bool python_found_is_unknown(enum python_found found)
{
	return found >= PYTHON_NO_POINTER;
}

/* --- memory --- */

static bool read_bytes(struct search *search, uint64_t address, void *to, size_t bytes)
{
	if (search->out->reads == PYTHON_READS_MAX || address < LOWEST_ADDRESS ||
	    address + bytes < address)
		return false;
	search->out->reads++;
	return search->memory->read(search->memory->context, address, to, bytes);
}

static bool read_word(struct search *search, uint64_t address, uint64_t *word)
{
	return read_bytes(search, address, word, sizeof *word);
}

/* Page by page: what is not mapped reads 0. */
static void read_some(struct search *search, uint64_t address, void *to, size_t bytes)
{
	uint8_t *at = to;

	memset(to, 0, bytes);
	while (bytes) {
		size_t now = PAGE_BYTES - address % PAGE_BYTES;

		now = now < bytes ? now : bytes;
		read_bytes(search, address, at, now);
		at += now;
		address += now;
		bytes -= now;
	}
}

/* --- the layout --- */

static bool is_release(uint32_t version)
{
	return !(version & 0xffff) || (version & 0xf0) >= RELEASE_LEVEL_CANDIDATE;
}

/* Those from 3.13 on describe themselves; where they are not there yet, nothing has started. */
static enum python_found find_layout(struct search *search, const struct runtime_symbols *symbols,
				     uint64_t state)
{
	uint8_t bytes[PYTHON_DEBUG_OFFSETS_BYTES];

	search->out->version = symbols->version;
#if !defined(__x86_64__)
	if (!symbols->thread_bytes)
		return PYTHON_NO_POINTER;
#endif
	if (symbols->version >= PYTHON_VERSIONS_END)
		return PYTHON_TOO_NEW;
	if (!is_release(symbols->version))
		return PYTHON_UNRELEASED;
	if (symbols->version < 0x030d0000) {
		if (!python_layout_find(symbols->version, &search->layout))
			return PYTHON_UNKNOWN;
		if (symbols->flags & RUNTIME_TRACES_REFERENCES)
			python_layout_trace(&search->layout);
		return PYTHON_FOUND;
	}
	if (!read_bytes(search, state, bytes, sizeof bytes))
		return PYTHON_NOT_STARTED;
	if (!python_layout_decode(bytes, sizeof bytes, &search->layout))
		return PYTHON_UNKNOWN;
	if (search->layout.flags & PYTHON_CODE_IS_COPIED) /* positions would mean nothing */
		return PYTHON_COPIED;
	search->out->version = search->layout.version;
	return PYTHON_FOUND;
}

static bool layout_fits(const struct python_layout *layout)
{
	return layout->tstate_thread_id <= STATE_BYTES_MAX - 8 &&
	       layout->tstate_next <= STATE_BYTES_MAX - 8 &&
	       layout->tstate_interp <= STATE_BYTES_MAX - 8;
}

static void set_layout(const struct python_layout *from, struct runtime_layout *to)
{
	*to = (struct runtime_layout){
		.tstate_thread_id = from->tstate_thread_id,
		.tstate_frame = from->tstate_frame,
		.cframe_frame = from->cframe_frame,
		.frame_code = from->frame_code,
		.frame_previous = from->frame_previous,
		.frame_instr = from->frame_instr,
		.frame_entry = from->frame_entry,
		.code_argcount = from->code_argcount,
		.code_kwonly = from->code_kwonly,
		.code_flags = from->code_flags,
		.code_firstline = from->code_firstline,
		.code_bytes = from->code_bytes,
		.tstate_interp = from->tstate_interp,
		.code_name = python_layout_name(from),
		.code_filename = from->code_filename,
		.code_lines = from->code_lines,
		.text_length = (uint8_t)from->unicode_length,
		.text_state = (uint8_t)from->unicode_state,
		.text_kind = (uint8_t)from->unicode_kind_bit,
		.text_data = (uint8_t)from->unicode_compact_data,
		.entry_value = (uint8_t)from->entry_value,
	};
	if (from->flags & PYTHON_INSTR_IS_POINTER)
		to->flags |= RUNTIME_INSTR_IS_POINTER;
	if (from->flags & PYTHON_INSTR_IS_UNITS)
		to->flags |= RUNTIME_INSTR_IS_UNITS;
	if (from->flags & PYTHON_ENTRY_IS_SHIM)
		to->flags |= RUNTIME_ENTRY_IS_SHIM;
	runtime_layout_spans(to);
}

/* --- the list of states --- */

static uint64_t word_of(const uint8_t *bytes, size_t at)
{
	uint64_t word;

	memcpy(&word, bytes + at, sizeof word);
	return word;
}

/* False: it is none of that interpreter's. */
static bool read_state(struct search *search, uint64_t address, uint64_t interpreter,
		       uint64_t *thread, uint64_t *next)
{
	const struct python_layout *layout = &search->layout;
	uint8_t bytes[STATE_BYTES_MAX];
	size_t length = layout->tstate_thread_id;

	length = layout->tstate_next > length ? layout->tstate_next : length;
	length = layout->tstate_interp > length ? layout->tstate_interp : length;
	if (!read_bytes(search, address, bytes, length + 8) ||
	    word_of(bytes, layout->tstate_interp) != interpreter)
		return false;
	*thread = word_of(bytes, layout->tstate_thread_id);
	*next = word_of(bytes, layout->tstate_next);
	return true;
}

/* One without a thread has just been made. */
static bool add_states(struct search *search, uint64_t interpreter)
{
	uint64_t address, thread, next;

	if (!read_word(search, interpreter + search->layout.interp_threads_head, &address))
		return false;
	for (uint32_t seen = 0; address; address = next) {
		if (search->state_count == PYTHON_THREADS_MAX || seen++ == PYTHON_THREADS_MAX) {
			search->out->is_cut = true;
			return true;
		}
		if (!read_state(search, address, interpreter, &thread, &next))
			return false;
		if (thread)
			search->states[search->state_count++] =
				(struct state){address, thread + search->thread_bytes};
	}
	return true;
}

/* The newest is the first of the list, the process' first one its last. */
static enum python_found add_interpreters(struct search *search, uint64_t interpreter)
{
	while (interpreter) {
		if (search->interpreter_count == PYTHON_INTERPRETERS_MAX ||
		    search->state_count == PYTHON_THREADS_MAX) {
			search->out->is_cut = true;
			break;
		}
		search->interpreters[search->interpreter_count++] = interpreter;
		if (!add_states(search, interpreter) ||
		    !read_word(search, interpreter + search->layout.interp_next, &interpreter))
			return PYTHON_CONTRADICTED;
	}
	if (!interpreter && search->interpreter_count)
		search->out->place.first_interpreter =
			search->interpreters[search->interpreter_count - 1];
	return search->state_count ? PYTHON_FOUND : PYTHON_NOT_STARTED;
}

/* 3.6 has a pointer to the state that runs, and no other beginning that a stripped file tells of:
 * while none runs there is none to be found. */
static enum python_found find_states(struct search *search, uint64_t state)
{
	uint64_t interpreter;

	if (search->out->version >= 0x03070000) {
		if (!read_word(search, state + search->layout.runtime_interpreters_head,
			       &interpreter))
			return PYTHON_NOT_STARTED;
		if (search->out->version < 0x030c0000)
			search->current_at = state + search->layout.runtime_tstate_current;
		return add_interpreters(search, interpreter);
	}
	search->current_at = state;
	if (!read_word(search, state, &state) || !state)
		return PYTHON_NOT_STARTED;
	if (!read_word(search, state + search->layout.tstate_interp, &interpreter))
		return PYTHON_CONTRADICTED;
	return add_interpreters(search, interpreter);
}

/* What runs now is a state of one of the interpreters, or nothing. */
static bool is_current(struct search *search)
{
	uint64_t state, thread, next;

	if (!search->current_at || !read_word(search, search->current_at, &state))
		return false;
	for (uint32_t i = 0; state && i < search->interpreter_count; i++)
		if (read_state(search, state, search->interpreters[i], &thread, &next))
			return true;
	return !state;
}

/* --- where threads have them --- */

static void hit(struct search *search, int64_t at, int32_t in)
{
	for (uint32_t i = 0; i < search->candidate_count; i++)
		if (search->candidates[i].at == at && search->candidates[i].in == in) {
			search->candidates[i].hits++;
			return;
		}
	if (search->candidate_count < CANDIDATES_MAX)
		search->candidates[search->candidate_count++] = (struct candidate){at, in, 1};
}

static int64_t offset_of(const struct search *search, uint32_t word)
{
	return (int64_t)word * 8 - search->below;
}

/* False: nothing of the thread is there. */
static bool read_around(struct search *search, const struct state *state)
{
	if (state->pointer % 8 || state->pointer < LOWEST_ADDRESS + search->below)
		return false;
	read_some(search, state->pointer - search->below, search->around, sizeof search->around);
	return search->around[search->below / 8];
}

static void look_near(struct search *search, const struct state *state)
{
	if (!read_around(search, state))
		return;
	for (uint32_t i = 0; i < AROUND_WORDS; i++)
		if (search->around[i] == state->address && offset_of(search, i))
			hit(search, offset_of(search, i), -1);
}

/* Behind each of the C library's words of the thread; musl's lead into what is near in all but the
 * first thread. */
static void look_deep(struct search *search, const struct state *state)
{
	const uint32_t first = search->thread_bytes ? 0 : search->below / 8;
	uint64_t words[DEEP_BYTES / 8];

	if (!read_around(search, state))
		return;
	for (uint32_t i = first; i < first + THREAD_BYTES / 8; i++) {
		const uint64_t to = search->around[i];

		if (to % 8 || to < LOWEST_ADDRESS || to >> 47 || !offset_of(search, i))
			continue;
		read_some(search, to, words, sizeof words);
		for (uint32_t j = 0; j < DEEP_BYTES / 8; j++)
			if (words[j] == state->address)
				hit(search, offset_of(search, i), (int32_t)j * 8);
	}
}

static uint32_t looked_at(const struct search *search, const struct candidate *candidate)
{
	return candidate->in < 0 || search->state_count < PYTHON_DEEP_THREADS ? search->state_count
									      : PYTHON_DEEP_THREADS;
}

/* How many more of the threads that were looked at have it there. */
static int compare(const struct search *search, const struct candidate *a,
		   const struct candidate *b)
{
	return (int)(a->hits * looked_at(search, b)) - (int)(b->hits * looked_at(search, a));
}

/* A slot before a variable: it keeps its state while the thread waits for the interpreter. */
static bool is_better(const struct search *search, const struct candidate *a,
		      const struct candidate *b)
{
	const int more = compare(search, a, b);

	if (more)
		return more > 0;
	if ((a->in < 0) != (b->in < 0))
		return a->in < 0;
	if ((a->at > 0) != (b->at > 0))
		return (a->at > 0) != (search->thread_bytes > 0);
	return a->at < b->at;
}

static const struct candidate *best_but(const struct search *search, const struct candidate *but)
{
	const struct candidate *best = NULL;

	for (uint32_t i = 0; i < search->candidate_count; i++) {
		const struct candidate *one = &search->candidates[i];

		if (one != but && (!best || is_better(search, one, best)))
			best = one;
	}
	return best;
}

/* Near some threads there are stacks, which may have the address by chance. */
static void look(struct search *search)
{
	const struct candidate *best;

	for (uint32_t i = 0; i < search->state_count; i++)
		look_near(search, &search->states[i]);
	best = best_but(search, NULL);
	if (best && best->hits == search->state_count)
		return;
	for (uint32_t i = 0; i < search->state_count && i < PYTHON_DEEP_THREADS; i++)
		look_deep(search, &search->states[i]);
}

static bool find_places(struct search *search)
{
	struct runtime_place *place = &search->out->place;
	const struct candidate *best, *other;

	look(search);
	best = best_but(search, NULL);
	other = best ? best_but(search, best) : NULL;
	place->thread_in = place->other_in = -1;
	if (!best)
		return false;
	search->out->states = looked_at(search, best);
	search->out->placed = best->hits;
	place->thread_at = best->at;
	place->thread_in = best->in;
	if (other && !compare(search, other, best)) {
		place->other_at = other->at;
		place->other_in = other->in;
	}
	return true;
}

enum python_found python_threads_find(const struct python_memory *memory,
				      const struct runtime_symbols *symbols, uint64_t base,
				      struct python_threads *out)
{
	struct search search = {
		.memory = memory,
		.out = out,
		.thread_bytes = symbols->thread_bytes,
		.below = symbols->thread_bytes ? THREAD_BYTES : VARIABLES_BYTES,
	};
	enum python_found found;

	*out = (struct python_threads){
		.place.language = RUNTIME_CPYTHON,
		.place.thread_id_minus_tp = -(int64_t)symbols->thread_bytes,
	};
	found = find_layout(&search, symbols, base + symbols->state);
	if (found != PYTHON_FOUND)
		return found;
	if (!layout_fits(&search.layout))
		return PYTHON_UNKNOWN;
	found = find_states(&search, base + symbols->state);
	out->states = search.state_count;
	if (found != PYTHON_FOUND)
		return found;
	out->layout = search.layout;
	set_layout(&search.layout, &out->place.layout);
	if (is_current(&search))
		out->place.current_at = search.current_at;
	return find_places(&search) ? PYTHON_FOUND : PYTHON_NO_PLACE;
}
