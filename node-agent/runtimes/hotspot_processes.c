/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/runtimes/hotspot_processes.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/array.h"
#include "common/clock.h"
#include "common/log.h"
#include "node-agent/kernel/hotspot_places.h"
#include "node-agent/kernel/stranger_reader.h"
#include "node-agent/processes/process_files.h"
#include "node-agent/runtimes/hotspot_place.h"

enum {
	FOLLOWED_MAX = 1024,
	LOOKS_A_RUN = 4,
	KNOWN_MAX = 16, /* files whose layout is known */
	/* A machine has its code cache 10 to 30 ms after its file is mapped. Twice as long after
	 * each look, … */
	AGAIN_MS = 4,
	AGAIN_DOUBLINGS = 9, /* … up to 2 s, */
	DECLARED_TRIES = 12, /* after 8 s it is declared, */
	TRIES_MAX = 24,      /* and after 30 s let be until it is mapped again */
};

struct followed {
	struct process *process;
	uint32_t at;    /* in items */
	int64_t due_ms; /* 0: not by itself */
	uint32_t tries;
	uint32_t executable;
	uint64_t base;
	struct runtime_symbols symbols;
	bool has_layout, is_placed, has_identity, is_declared;
	struct hotspot_layout layout;
	struct hotspot_place place;
};

/* A file's, as it was where that base was added. */
struct known {
	uint32_t executable; /* 0: none */
	uint64_t base;
	struct hotspot_layout layout;
};

struct hotspot_processes {
	struct processes *processes;
	struct hotspot_places places;
	bool is_off;
	uint32_t room;
	struct followed **items; /* [count]; the last fills a gap */
	uint32_t count, allocated, next;
	int64_t now_ms, due_ms; /* the earliest; INT64_MAX: none */
	struct known known[KNOWN_MAX];
	uint32_t known_next;
	struct hotspot_processes_counters counters;
};

/* --- the kernel's table --- */

/* The first sample says who the process is; until then only its pid is known. */
static void write_place(struct hotspot_processes *hotspots, struct followed *followed)
{
	const struct process *process = followed->process;
	struct hotspot_place *place = &followed->place;
	struct error err = {0};

	followed->has_identity = process->is_identified;
	place->start_time_ns = process->is_identified ? process->key.start_time_ns : 0;
	place->exec_id = process->is_identified ? process->key.exec_id : 0;
	if (hotspot_places_put(&hotspots->places, process->key.tgid, place, &err))
		return;
	if (!hotspots->counters.refused++)
		log_warn("Java's frames are not read", "pid=%u why=\"%s\"", process->key.tgid,
			 err.message);
}

static void remove_place(struct hotspot_processes *hotspots, struct followed *followed)
{
	if (!followed->is_placed)
		return;
	hotspot_places_remove(&hotspots->places, followed->process->key.tgid,
			      followed->place.start_time_ns, followed->place.exec_id);
	hotspots->counters.places--;
	followed->is_placed = false;
}

/* --- processes --- */

static struct followed *followed_of(const struct hotspot_processes *hotspots,
				    const struct process *process)
{
	return process ? process->states[hotspots->room] : NULL;
}

static void wait_until(struct hotspot_processes *hotspots, struct followed *followed,
		       int64_t due_ms)
{
	followed->due_ms = due_ms;
	if (due_ms && due_ms < hotspots->due_ms)
		hotspots->due_ms = due_ms;
}

static struct followed *follow(struct hotspot_processes *hotspots, struct process *process)
{
	struct followed *followed = NULL;

	if (hotspots->count < FOLLOWED_MAX &&
	    ARRAY_GROW(hotspots->items, hotspots->count, hotspots->allocated))
		followed = calloc(1, sizeof *followed);
	if (!followed) {
		hotspots->counters.refused++;
		return NULL;
	}
	followed->process = process;
	followed->at = hotspots->count;
	hotspots->items[hotspots->count++] = followed;
	processes_hang(hotspots->processes, process, hotspots->room, followed);
	return followed;
}

static void leave(struct hotspot_processes *hotspots, struct followed *followed)
{
	struct followed *last = hotspots->items[--hotspots->count];

	remove_place(hotspots, followed);
	last->at = followed->at;
	hotspots->items[last->at] = last;
	processes_hang(hotspots->processes, followed->process, hotspots->room, NULL);
	free(followed);
}

/* A child of fork() has its parent's memory. */
static void begin(void *context, struct process *process, struct process *from)
{
	struct hotspot_processes *hotspots = context;
	const struct followed *parent = followed_of(hotspots, from);
	struct followed *followed;

	if (process->origin != PROCESS_FORKED || !parent || !parent->is_placed ||
	    followed_of(hotspots, process))
		return;
	followed = follow(hotspots, process);
	if (!followed)
		return;
	followed->executable = parent->executable;
	followed->base = parent->base;
	followed->symbols = parent->symbols;
	followed->layout = parent->layout;
	followed->place = parent->place;
	followed->has_layout = followed->is_placed = true;
	hotspots->counters.places++;
	hotspots->counters.located++;
	write_place(hotspots, followed);
}

static void end(void *context, struct process *process)
{
	struct hotspot_processes *hotspots = context;
	struct followed *followed = followed_of(hotspots, process);

	if (!followed)
		return;
	remove_place(hotspots, followed);
	followed->due_ms = 0;
}

static void again(void *context, struct process *process)
{
	struct hotspot_processes *hotspots = context;
	struct followed *followed = followed_of(hotspots, process);

	if (followed)
		wait_until(hotspots, followed, hotspots->now_ms);
}

static void forget(void *context, struct process *process)
{
	struct hotspot_processes *hotspots = context;
	struct followed *followed = followed_of(hotspots, process);

	if (followed)
		leave(hotspots, followed);
}

struct hotspot_processes *hotspot_processes_new(struct processes *processes, int places_map,
						struct error *err)
{
	struct hotspot_processes *hotspots = calloc(1, sizeof *hotspots);

	if (!hotspots) {
		error_no_memory(err);
		return NULL;
	}
	hotspots->processes = processes;
	hotspots->is_off = places_map < 0;
	hotspot_places_init(&hotspots->places, places_map);
	hotspots->now_ms = monotonic_ms();
	hotspots->due_ms = INT64_MAX;
	hotspots->room = processes_room(processes, &(struct process_room){.begin = begin,
									  .end = end,
									  .again = again,
									  .forget = forget,
									  .context = hotspots});
	return hotspots;
}

void hotspot_processes_free(struct hotspot_processes *hotspots)
{
	if (!hotspots)
		return;
	while (hotspots->count)
		leave(hotspots, hotspots->items[hotspots->count - 1]);
	processes_leave(hotspots->processes, hotspots->room);
	hotspot_places_release(&hotspots->places);
	free(hotspots->items);
	free(hotspots);
}

/* --- layouts --- */

static bool known_find(const struct hotspot_processes *hotspots, struct followed *followed)
{
	for (size_t i = 0; i < KNOWN_MAX; i++) {
		const struct known *known = &hotspots->known[i];

		if (!known->executable || known->executable != followed->executable)
			continue;
		followed->layout = known->layout;
		hotspot_layout_move(&followed->layout, followed->base - known->base);
		return true;
	}
	return false;
}

static void known_put(struct hotspot_processes *hotspots, const struct followed *followed)
{
	hotspots->known[hotspots->known_next++ % KNOWN_MAX] =
		(struct known){followed->executable, followed->base, followed->layout};
}

static bool find_layout(struct hotspot_processes *hotspots, struct followed *followed,
			const struct python_memory *memory, struct error *err)
{
	struct hotspot_structs *structs;

	if (followed->has_layout || known_find(hotspots, followed)) {
		followed->has_layout = true;
		return true;
	}
	structs = hotspot_structs_read(memory, &followed->symbols, followed->base, err);
	if (!structs)
		return false;
	followed->has_layout = hotspot_layout_fill(structs, memory, &followed->layout, err);
	hotspot_structs_free(structs);
	if (followed->has_layout)
		known_put(hotspots, followed);
	return followed->has_layout;
}

/* --- looking --- */

static bool read_memory(void *context, uint64_t address, void *to, size_t bytes)
{
	return stranger_memory_read(*(const int *)context, address, to, bytes);
}

static void take_place(struct hotspot_processes *hotspots, struct followed *followed,
		       const struct hotspot_place *place)
{
	const uint64_t now_ns = monotonic_ns();
	const struct process *process = followed->process;

	followed->place = *place;
	write_place(hotspots, followed);
	if (followed->is_placed)
		return;
	followed->is_placed = true;
	hotspots->counters.located++;
	hotspots->counters.places++;
	log_debug("Java located", "pid=%u version=%u heaps=%u after_us=%" PRIu64, process->key.tgid,
		  followed->layout.version, place->heap_count,
		  now_ns > process->born_ns ? (now_ns - process->born_ns) / 1000 : 0);
}

/* False: not all of it is known yet. */
static bool find_place(struct hotspot_processes *hotspots, struct followed *followed,
		       const struct python_memory *memory, struct error *err)
{
	struct hotspot_place place;

	if (!find_layout(hotspots, followed, memory, err))
		return false;
	switch (hotspot_place_read(memory, &followed->layout, &place)) {
	case HOTSPOT_FOUND:
		take_place(hotspots, followed, &place);
		return place.interpreter.low;
	case HOTSPOT_NOT_STARTED:
		return error_set(err, ERROR_NOT_FOUND, "it has no code cache yet");
	case HOTSPOT_WRONG:
		break;
	}
	return error_set(err, ERROR_UNSUPPORTED, "its code cache is none that is known");
}

static void declare(struct hotspot_processes *hotspots, struct followed *followed,
		    const struct error *err)
{
	followed->is_declared = true;
	hotspots->counters.unknown++;
	log_info("Java's frames are not read", "pid=%u why=\"%s\"", followed->process->key.tgid,
		 err->message);
}

static void look(struct hotspot_processes *hotspots, struct followed *followed)
{
	const struct process *process = followed->process;
	int directory = process_directory_open("/proc", process->key.tgid,
					       process->is_identified ? process->key.start_time_ns
								      : 0);
	const struct python_memory memory = {read_memory, &directory};
	const uint32_t doublings = followed->tries < AGAIN_DOUBLINGS ? followed->tries
								     : AGAIN_DOUBLINGS;
	struct error err = {0};

	hotspots->counters.looks++;
	followed->tries++;
	followed->due_ms = 0;
	if (directory < 0)
		return;
	if (!find_place(hotspots, followed, &memory, &err) && followed->tries < TRIES_MAX)
		wait_until(hotspots, followed, hotspots->now_ms + ((int64_t)AGAIN_MS << doublings));
	if (!followed->is_placed && !followed->is_declared && followed->tries >= DECLARED_TRIES)
		declare(hotspots, followed, &err);
	close(directory);
}

int64_t hotspot_processes_run(struct hotspot_processes *hotspots, int64_t now_ms)
{
	uint32_t looks = 0;

	hotspots->now_ms = now_ms;
	if (now_ms < hotspots->due_ms)
		return hotspots->due_ms;
	hotspots->due_ms = INT64_MAX;
	for (uint32_t seen = hotspots->count; seen && hotspots->count; seen--) {
		struct followed *followed;

		if (hotspots->next >= hotspots->count)
			hotspots->next = 0;
		followed = hotspots->items[hotspots->next++];
		if (!followed->due_ms)
			continue;
		if (now_ms >= followed->due_ms && looks++ < LOOKS_A_RUN)
			look(hotspots, followed);
		else if (followed->due_ms < hotspots->due_ms)
			hotspots->due_ms = followed->due_ms;
	}
	return hotspots->due_ms;
}

/* --- what is heard of them --- */

void hotspot_processes_mapped(struct hotspot_processes *hotspots, struct process *process,
			      uint32_t executable, uint64_t base,
			      const struct runtime_symbols *symbols)
{
	struct followed *followed = followed_of(hotspots, process);

	if (hotspots->is_off || (followed && followed->is_placed))
		return;
	if (!followed)
		followed = follow(hotspots, process);
	if (!followed || (followed->executable == executable && followed->base == base &&
			  followed->tries < TRIES_MAX))
		return;
	followed->tries = 0;
	followed->has_layout = followed->is_declared = false;
	followed->executable = executable;
	followed->base = base;
	followed->symbols = *symbols;
	wait_until(hotspots, followed, hotspots->now_ms);
}

void hotspot_processes_other(struct hotspot_processes *hotspots, struct process *process)
{
	struct followed *followed = followed_of(hotspots, process);
	struct error err = {0};

	if (hotspots->is_off || followed)
		return;
	followed = follow(hotspots, process);
	if (!followed)
		return;
	error_set(&err, ERROR_UNSUPPORTED, "its virtual machine is not HotSpot");
	declare(hotspots, followed, &err);
}

void hotspot_processes_sampled(struct hotspot_processes *hotspots, struct process *process)
{
	struct followed *followed = followed_of(hotspots, process);

	if (followed && followed->is_placed && !followed->has_identity)
		write_place(hotspots, followed);
}

/* --- what is known --- */

bool hotspot_processes_has(const struct hotspot_processes *hotspots, const struct process *process)
{
	const struct followed *followed = followed_of(hotspots, process);

	return followed && followed->has_layout;
}

bool hotspot_processes_layout(const struct hotspot_processes *hotspots,
			      const struct process *process, struct hotspot_layout *layout)
{
	const struct followed *followed = followed_of(hotspots, process);

	if (!followed || !followed->has_layout)
		return false;
	*layout = followed->layout;
	return true;
}

bool hotspot_processes_place(const struct hotspot_processes *hotspots,
			     const struct process *process, struct hotspot_place *place)
{
	const struct followed *followed = followed_of(hotspots, process);

	if (!followed || !followed->is_placed)
		return false;
	*place = followed->place;
	return true;
}

void hotspot_processes_counters(const struct hotspot_processes *hotspots,
				struct hotspot_processes_counters *out)
{
	*out = hotspots->counters;
}
