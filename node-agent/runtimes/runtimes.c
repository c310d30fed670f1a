/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/runtimes/runtimes.h"

#include <stdlib.h>

#include "common/array.h"
#include "common/clock.h"
#include "node-agent/processes/processes.h"
#include "node-agent/runtimes/hotspot_processes.h"
#include "node-agent/runtimes/python_places.h"
#include "node-agent/runtimes/runtime_files.h"

enum {
	FOLLOWED_MAX = 4096,
	MAPPINGS_MAX = 1024,
	IN_ONE_PROCESS_MAX = 4,
	LOOKS_A_RUN = 8,
	/* A look that has read so much of a process, 20 µs each, is followed by a rest of half as
	 * many milliseconds as there were reads. Real ones read 3 times a thread, and twice that
	 * with musl. */
	DEAR_READS = 100,
	/* An interpreter has its first thread some 10 ms after its exec; an embedded one when its
	 * program wants it. Twice as long each time, up to … */
	AGAIN_MS = 2,
	AGAIN_DOUBLINGS = 15,    /* … 65 s */
	FILES_TRIES = 10,        /* 4 s: then it is let be until another interpreter is known */
	CHECK_AGAIN_MS = 1000,   /* of a place: by then it has more threads, or they have ended */
	DECLARED_AGAIN_MS = 200, /* and twice as long each time, of what is declared, … */
	DECLARED_DOUBLINGS = 9,  /* … up to 102 s */
	SAMPLED_AGAIN_MS = 500,
};

/* What hangs on processes that have none. */
static char nothing;

struct followed {
	struct process *process;
	uint32_t at;               /* in items */
	int64_t due_ms, last_ms;   /* due_ms 0: not by itself */
	uint32_t tries;            /* since something new was mapped */
	bool is_unsure, is_let_be; /* not all of its files were known the last time; nor for long */
	bool is_hinted;            /* it is due since some are known by now */
	struct python_process python;
};

struct runtimes {
	struct runtimes_sources from;
	struct runtime_files *files;
	struct processes *processes;
	struct hotspot_processes *hotspots;
	int64_t hotspots_due_ms;
	struct runtimes_counters counters;
	uint32_t room;
	struct followed **items; /* [count]; the last fills a gap */
	uint32_t count, allocated, next;
	int64_t now_ms, due_ms; /* the earliest; INT64_MAX: none */
	int64_t rest_until_ms;
	uint32_t reads;                 /* of the last look */
	uint32_t progress, files_known; /* runtimes_progress(), interpreters, when asked last */
	struct python_places python;
};

/* --- processes --- */

static struct followed *followed_of(const struct runtimes *runtimes, const struct process *process)
{
	void *state = process ? process->states[runtimes->room] : NULL;

	return state == &nothing ? NULL : state;
}

static void wait_until(struct runtimes *runtimes, struct followed *followed, int64_t due_ms)
{
	followed->due_ms = due_ms;
	if (due_ms && due_ms < runtimes->due_ms)
		runtimes->due_ms = due_ms;
}

static struct followed *follow(struct runtimes *runtimes, struct process *process)
{
	struct followed *followed = NULL;

	if (runtimes->count < FOLLOWED_MAX &&
	    ARRAY_GROW(runtimes->items, runtimes->count, runtimes->allocated))
		followed = calloc(1, sizeof *followed);
	if (!followed) {
		runtimes->counters.refused++;
		return NULL;
	}
	*followed = (struct followed){.process = process, .at = runtimes->count};
	runtimes->items[runtimes->count++] = followed;
	processes_hang(runtimes->processes, process, runtimes->room, followed);
	return followed;
}

static void leave(struct runtimes *runtimes, struct followed *followed, void *instead)
{
	struct followed *last = runtimes->items[--runtimes->count];

	python_places_remove(&runtimes->python, &followed->python, followed->process);
	last->at = followed->at;
	runtimes->items[last->at] = last;
	processes_hang(runtimes->processes, followed->process, runtimes->room, instead);
	free(followed);
}

/* A child of fork() has its parent's memory, and one of its threads. */
static void begin(void *context, struct process *process, struct process *from)
{
	struct runtimes *runtimes = context;
	const struct followed *parent = followed_of(runtimes, from);
	struct followed *followed;

	if (process->origin != PROCESS_FORKED || !parent || followed_of(runtimes, process))
		return;
	followed = follow(runtimes, process);
	if (!followed)
		return;
	if (!parent->python.is_placed) {
		wait_until(runtimes, followed, runtimes->now_ms + AGAIN_MS);
		return;
	}
	python_places_inherit(&runtimes->python, &followed->python, process, &parent->python);
}

static void end(void *context, struct process *process)
{
	struct runtimes *runtimes = context;
	struct followed *followed = followed_of(runtimes, process);

	if (!followed)
		return;
	python_places_remove(&runtimes->python, &followed->python, followed->process);
	followed->due_ms = 0;
}

static void again(void *context, struct process *process)
{
	struct runtimes *runtimes = context;
	struct followed *followed = followed_of(runtimes, process);

	if (followed)
		wait_until(runtimes, followed, runtimes->now_ms);
}

static void forget(void *context, struct process *process)
{
	struct runtimes *runtimes = context;
	struct followed *followed = followed_of(runtimes, process);

	if (followed)
		leave(runtimes, followed, NULL);
}

struct runtimes *runtimes_new(const struct runtimes_sources *from, struct error *err)
{
	struct runtimes *runtimes = calloc(1, sizeof *runtimes);

	if (!runtimes) {
		error_set(err, ERROR_MEMORY, "no memory for interpreters");
		return NULL;
	}
	runtimes->from = *from;
	python_places_init(&runtimes->python, from->places_map, from->pids_map);
	runtimes->now_ms = monotonic_ms();
	runtimes->due_ms = INT64_MAX;
	runtimes->files = runtime_files_new(from->table, from->pages, err);
	if (!runtimes->files) {
		free(runtimes);
		return NULL;
	}
	runtimes->processes = process_table_processes(from->table);
	runtimes->room = processes_room(runtimes->processes,
					&(struct process_room){.begin = begin,
							       .end = end,
							       .again = again,
							       .forget = forget,
							       .context = runtimes});
	runtimes->hotspots = hotspot_processes_new(runtimes->processes, from->hotspots_map, err);
	if (!runtimes->hotspots) {
		runtimes_free(runtimes);
		return NULL;
	}
	return runtimes;
}

void runtimes_free(struct runtimes *runtimes)
{
	if (!runtimes)
		return;
	while (runtimes->count)
		leave(runtimes, runtimes->items[runtimes->count - 1], NULL);
	processes_leave(runtimes->processes, runtimes->room);
	hotspot_processes_free(runtimes->hotspots);
	runtime_files_free(runtimes->files);
	python_places_release(&runtimes->python);
	free(runtimes->items);
	free(runtimes);
}

/* --- looking --- */

/* *is_unsure: some file has not been read yet. */
static uint32_t find_files(struct runtimes *runtimes, struct process *process,
			   struct python_interpreter found[IN_ONE_PROCESS_MAX], bool *is_unsure)
{
	struct process_mapping *mappings = calloc(MAPPINGS_MAX, sizeof *mappings);
	uint32_t count = 0, thread_bytes = 0, generation;
	size_t mapping_count = 0;

	*is_unsure = false;
	if (mappings && process->is_identified)
		mapping_count = process_table_mappings(runtimes->from.table, &process->key,
						       monotonic_ns(), mappings, MAPPINGS_MAX,
						       &generation);
	else if (mappings)
		mapping_count = process_table_current_mappings(runtimes->from.table,
							       process->key.tgid, monotonic_ns(),
							       mappings, MAPPINGS_MAX);
	*is_unsure = !mapping_count;
	for (size_t i = 0; i < mapping_count && count < IN_ONE_PROCESS_MAX; i++) {
		const uint32_t executable = mappings[i].executable;
		const struct runtime_symbols *symbols = NULL;

		if (executable == EXECUTABLE_ANONYMOUS ||
		    (count && found[count - 1].executable == executable))
			continue;
		*is_unsure |= executable == EXECUTABLE_NONE ||
			      !runtime_files_find(runtimes->files, executable, &symbols);
		if (symbols && symbols->language == RUNTIME_HOTSPOT) {
			hotspot_processes_mapped(runtimes->hotspots, process, executable,
						 mappings[i].base, symbols);
			runtimes->hotspots_due_ms = runtimes->now_ms;
		} else if (symbols) {
			found[count++] = (struct python_interpreter){executable, mappings[i].base,
								     *symbols};
		} else if (executable != EXECUTABLE_NONE) {
			thread_bytes |= runtime_files_thread_bytes(runtimes->files, executable);
			if (runtime_files_is_other_jvm(runtimes->files, executable))
				hotspot_processes_other(runtimes->hotspots, process);
		}
	}
	for (uint32_t i = 0; i < count; i++)
		found[i].symbols.thread_bytes = thread_bytes;
	free(mappings);
	return count;
}

static void look(struct runtimes *runtimes, struct followed *followed)
{
	struct python_interpreter interpreters[IN_ONE_PROCESS_MAX];
	const uint32_t most = followed->python.is_declared ? DECLARED_DOUBLINGS : AGAIN_DOUBLINGS;
	const uint32_t doublings = followed->tries < most ? followed->tries : most;
	const bool was_placed = followed->python.is_placed;
	bool is_unsure;
	uint32_t count = find_files(runtimes, followed->process, interpreters, &is_unsure);

	runtimes->counters.looks++;
	followed->tries += !followed->is_hinted;
	followed->is_hinted = false;
	followed->is_unsure = is_unsure;
	followed->is_let_be = !count && followed->tries > FILES_TRIES;
	followed->last_ms = runtimes->now_ms;
	if (!count && !is_unsure) {
		leave(runtimes, followed, &nothing);
		return;
	}
	if (count && runtimes->from.has_no_lists)
		followed->is_let_be = true;
	else if (count)
		runtimes->reads += python_places_find(&runtimes->python, &followed->python,
						      followed->process, interpreters, count);
	if (followed->is_let_be) {
		followed->due_ms = 0;
	} else if (!followed->python.is_placed) {
		wait_until(runtimes, followed,
			   runtimes->now_ms +
				   ((int64_t)(followed->python.is_declared ? DECLARED_AGAIN_MS
									   : AGAIN_MS)
				    << doublings));
	} else if (!was_placed) {
		wait_until(runtimes, followed, runtimes->now_ms + CHECK_AGAIN_MS);
	} else {
		followed->due_ms = 0;
	}
}

/* --- what is heard of them --- */

static void look_soon(struct runtimes *runtimes, struct process *process)
{
	struct followed *followed = followed_of(runtimes, process);

	if (!followed)
		followed = follow(runtimes, process);
	if (!followed)
		return;
	followed->tries = 0;
	wait_until(runtimes, followed, runtimes->now_ms);
}

void runtimes_mapping(struct runtimes *runtimes, const struct mapping_event *mapping)
{
	struct process *process;

	if (!runtime_files_may_be(runtimes->files, mapping))
		return;
	process = processes_current(runtimes->processes, mapping->tgid);
	if (process && !process->ended_ns)
		look_soon(runtimes, process);
}

void runtimes_sampled(struct runtimes *runtimes, const struct process_key *key)
{
	struct process *process = processes_find(runtimes->processes, key);
	struct followed *followed = followed_of(runtimes, process);

	hotspot_processes_sampled(runtimes->hotspots, process);
	if (!process || process->states[runtimes->room] == &nothing || process->ended_ns)
		return;
	if (!followed) {
		look_soon(runtimes, process);
		return;
	}
	if ((followed->python.is_placed || followed->python.is_expected) &&
	    !followed->python.has_identity)
		python_places_write(&runtimes->python, &followed->python, process);
	if (!followed->python.is_placed && !followed->python.is_declared && !followed->is_let_be &&
	    runtimes->now_ms > followed->last_ms + SAMPLED_AGAIN_MS)
		wait_until(runtimes, followed, runtimes->now_ms);
}

/* Files are known that were not: of those that were let be, or found, if another interpreter's are
 * among them. */
static void take_hint(struct runtimes *runtimes)
{
	const uint32_t progress = runtimes_progress(runtimes);
	const uint32_t known = runtime_files_known(runtimes->files);

	for (uint32_t i = 0; progress != runtimes->progress && i < runtimes->count; i++) {
		struct followed *followed = runtimes->items[i];

		if (!followed->is_unsure || followed->process->ended_ns ||
		    ((followed->is_let_be || followed->python.is_placed) &&
		     known == runtimes->files_known))
			continue;
		followed->is_hinted = true;
		wait_until(runtimes, followed, runtimes->now_ms);
	}
	runtimes->progress = progress;
	runtimes->files_known = known;
}

/* Returns whether others may be looked at now, too. */
static bool look_and_rest(struct runtimes *runtimes, struct followed *followed)
{
	runtimes->reads = 0;
	look(runtimes, followed);
	if (runtimes->reads < DEAR_READS)
		return true;
	runtimes->rest_until_ms = runtimes->now_ms + runtimes->reads / 2;
	return false;
}

static void look_at_due(struct runtimes *runtimes, int64_t now_ms)
{
	uint32_t looks = 0;

	if (now_ms < runtimes->due_ms || now_ms < runtimes->rest_until_ms)
		return;
	runtimes->due_ms = INT64_MAX;
	for (uint32_t seen = runtimes->count; seen && runtimes->count; seen--) {
		struct followed *followed;

		if (runtimes->next >= runtimes->count)
			runtimes->next = 0;
		followed = runtimes->items[runtimes->next++];
		if (!followed->due_ms)
			continue;
		if (now_ms < followed->due_ms) {
			if (followed->due_ms < runtimes->due_ms)
				runtimes->due_ms = followed->due_ms;
		} else if (!look_and_rest(runtimes, followed) || ++looks == LOOKS_A_RUN) {
			runtimes->due_ms = now_ms; /* the next in turn goes on */
			break;
		}
	}
}

void runtimes_run(struct runtimes *runtimes, int64_t now_ms)
{
	runtimes->now_ms = now_ms;
	take_hint(runtimes);
	look_at_due(runtimes, now_ms);
	runtimes->hotspots_due_ms = hotspot_processes_run(runtimes->hotspots, now_ms);
}

int64_t runtimes_wait_ms(const struct runtimes *runtimes, int64_t now_ms, int64_t most_ms)
{
	const int64_t own_ms = runtimes->due_ms > runtimes->rest_until_ms ? runtimes->due_ms
									  : runtimes->rest_until_ms;
	const int64_t due_ms = own_ms < runtimes->hotspots_due_ms ? own_ms
								  : runtimes->hotspots_due_ms;
	const int64_t wait_ms = due_ms > now_ms ? due_ms - now_ms : 0;

	return wait_ms < most_ms ? wait_ms : most_ms;
}

/* --- what is known --- */

bool runtimes_place(struct runtimes *runtimes, const struct process_key *key,
		    struct runtime_place *place, uint32_t *version)
{
	const struct followed *followed = followed_of(runtimes,
						      processes_find(runtimes->processes, key));

	if (!followed || !(followed->python.is_placed || followed->python.is_expected))
		return false;
	*place = followed->python.place;
	*version = followed->python.version;
	return true;
}

bool runtimes_layout(const struct runtimes *runtimes, const struct process_key *key,
		     struct python_layout *layout)
{
	const struct followed *followed = followed_of(runtimes,
						      processes_find(runtimes->processes, key));

	if (!followed || !followed->python.has_layout)
		return false;
	*layout = followed->python.layout;
	return true;
}

bool runtimes_is_new(const struct runtimes *runtimes, const struct process_key *key)
{
	const struct process *process = processes_find(runtimes->processes, key);
	const struct followed *followed = followed_of(runtimes, process);

	return followed ? !followed->python.is_placed && !followed->is_let_be
			: process && process->states[runtimes->room] != &nothing;
}

bool runtimes_is_unsure(struct runtimes *runtimes, const struct process_key *key,
			const struct located_frame *frames, size_t count)
{
	const struct runtime_symbols *symbols;

	if (!runtimes_is_new(runtimes, key))
		return false;
	for (size_t i = 0; i < count; i++)
		if (frames[i].place == PLACE_ASKED ||
		    (frames[i].place == PLACE_FILE &&
		     !runtime_files_find(runtimes->files, frames[i].executable->index, &symbols)))
			return true;
	return false;
}

uint32_t runtimes_progress(const struct runtimes *runtimes)
{
	return runtime_files_answers(runtimes->files) + process_table_files(runtimes->from.table);
}

/* Of one that has ended there is a time, and no place. */
enum frame_merge_result runtimes_why(const struct runtimes *runtimes, const struct process_key *key,
				     uint64_t time_ns)
{
	const struct followed *followed = followed_of(runtimes,
						      processes_find(runtimes->processes, key));

	if (runtimes->from.has_no_lists)
		return MERGE_not_by_perf;
	if (followed && (followed->python.placed_ns || followed->python.is_placed))
		return time_ns < followed->python.placed_ns ? MERGE_early : MERGE_no_list;
	if (!followed || !followed->python.is_declared)
		return MERGE_early;
	if (followed->python.found == PYTHON_TOO_NEW)
		return MERGE_too_new;
	return python_found_is_unknown(followed->python.found) ? MERGE_unknown : MERGE_no_place;
}

uint64_t runtimes_state(const struct runtimes *runtimes, const struct process_key *key)
{
	const struct followed *followed = followed_of(runtimes,
						      processes_find(runtimes->processes, key));

	return followed && followed->python.is_placed ? followed->python.state : 0;
}

bool runtimes_is_lock(const struct runtimes *runtimes, const struct process_key *key,
		      uint64_t address)
{
	const struct followed *followed;

	if (!address)
		return false;
	followed = followed_of(runtimes, processes_find(runtimes->processes, key));
	return followed && followed->python.is_placed && address >= followed->python.lock &&
	       address - followed->python.lock < followed->python.lock_bytes;
}

bool runtimes_is_file(const struct runtimes *runtimes, uint32_t executable)
{
	return runtime_files_is_file(runtimes->files, executable, RUNTIME_CPYTHON);
}

bool runtimes_is_loop(const struct runtimes *runtimes, uint32_t executable, uint64_t address)
{
	return runtime_files_is_loop(runtimes->files, executable, address);
}

bool runtimes_has_greenlets(struct runtimes *runtimes, uint32_t executable)
{
	return runtime_files_has_greenlets(runtimes->files, executable);
}

/* --- HotSpot --- */

bool runtimes_has_hotspot(const struct runtimes *runtimes, const struct process_key *key)
{
	return hotspot_processes_has(runtimes->hotspots, processes_find(runtimes->processes, key));
}

bool runtimes_hotspot_layout(const struct runtimes *runtimes, const struct process_key *key,
			     struct hotspot_layout *layout)
{
	return hotspot_processes_layout(runtimes->hotspots,
					processes_find(runtimes->processes, key), layout);
}

bool runtimes_hotspot_place(const struct runtimes *runtimes, const struct process_key *key,
			    struct hotspot_place *place)
{
	return hotspot_processes_place(runtimes->hotspots, processes_find(runtimes->processes, key),
				       place);
}

bool runtimes_is_hotspot_file(const struct runtimes *runtimes, uint32_t executable)
{
	return runtime_files_is_file(runtimes->files, executable, RUNTIME_HOTSPOT);
}

void runtimes_counters(const struct runtimes *runtimes, struct runtimes_counters *out)
{
	const struct python_places_counters *python = &runtimes->python.counters;

	*out = runtimes->counters;
	out->processes = runtimes->count;
	out->located = python->located;
	out->unknown = python->unknown;
	out->not_located = python->not_located;
	out->contradicted = python->contradicted;
	out->others = python->others;
	out->refused += python->refused;
	out->places = python->places;
	hotspot_processes_counters(runtimes->hotspots, &out->hotspots);
}
