/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/runtimes/python_places.h"

#include <inttypes.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "node-agent/kernel/stranger_reader.h"
#include "node-agent/processes/process_files.h"

/* Its first thread may be just being made: then it is what it looks like no longer. */
enum { FAILURES_MAX = 4 };

void python_places_init(struct python_places *places, int map, int pids_map)
{
	*places = (struct python_places){0};
	runtime_places_init(&places->table, map, pids_map);
}

void python_places_release(struct python_places *places)
{
	runtime_places_release(&places->table);
}

/* --- the kernel's table --- */

void python_places_write(struct python_places *places, struct python_process *python,
			 const struct process *process)
{
	struct runtime_place *place = &python->place;
	struct error err = {0};

	python->has_identity = process->is_identified;
	place->start_time_ns = process->is_identified ? process->key.start_time_ns : 0;
	place->exec_id = process->is_identified ? process->key.exec_id : 0;
	if (runtime_places_put(&places->table, process->key.tgid, place, &err)) {
		if (!python->placed_ns)
			python->placed_ns = monotonic_ns();
		return;
	}
	if (!places->counters.refused++)
		log_warn("an interpreter's frames are not read", "pid=%u why=\"%s\"",
			 process->key.tgid, err.message);
}

void python_places_remove(struct python_places *places, struct python_process *python,
			  const struct process *process)
{
	if (!python->is_placed && !python->is_expected)
		return;
	runtime_places_remove(&places->table, process->key.tgid, python->place.start_time_ns,
			      python->place.exec_id);
	places->counters.places -= python->is_placed;
	python->is_placed = python->is_expected = false;
}

void python_places_inherit(struct python_places *places, struct python_process *python,
			   const struct process *process, const struct python_process *parent)
{
	python->place = parent->place;
	python->layout = parent->layout;
	python->has_layout = true;
	python->state = parent->state;
	python->lock = parent->lock;
	python->lock_bytes = parent->lock_bytes;
	python->version = parent->version;
	python->found = PYTHON_FOUND;
	python->is_placed = true;
	places->counters.places++;
	places->counters.located++;
	python_places_write(places, python, process);
}

/* --- looking --- */

static bool read_memory(void *context, uint64_t address, void *to, size_t bytes)
{
	return stranger_memory_read(*(const int *)context, address, to, bytes);
}

static void count_found(struct python_places *places, struct python_process *python,
			const struct process *process)
{
	struct python_places_counters *counters = &places->counters;
	char version[PYTHON_VERSION_TEXT];

	if (python->found == PYTHON_FOUND || python->found == PYTHON_NOT_STARTED)
		return;
	if (++python->failures != FAILURES_MAX)
		return;
	python->is_declared = true;
	counters->unknown += python_found_is_unknown(python->found);
	counters->not_located += python->found == PYTHON_NO_PLACE;
	counters->contradicted += python->found == PYTHON_CONTRADICTED;
	python_version_text(python->version, version);
	log_info("Python's frames are not read", "pid=%u version=%s why=\"%s\"", process->key.tgid,
		 version, python_found_text(python->found));
}

static uint64_t age_us(const struct process *process)
{
	const uint64_t now_ns = monotonic_ns();

	return now_ns > process->born_ns ? (now_ns - process->born_ns) / 1000 : 0;
}

/* Of one that has not started, as of the one before with that file. */
static void expect_place(struct python_places *places, struct python_process *python,
			 const struct process *process,
			 const struct python_interpreter *interpreter)
{
	struct known_place known;

	if (python->is_expected ||
	    !known_places_find(&places->known, interpreter->executable, interpreter->base, &known))
		return;
	python->is_expected = true;
	python->place = known.place;
	python->layout = known.layout;
	python->has_layout = true;
	python->version = known.version;
	python_places_write(places, python, process);
	log_debug("Python expected", "pid=%u version=%x after_us=%" PRIu64, process->key.tgid,
		  known.version, age_us(process));
}

static void take_place(struct python_places *places, struct python_process *python,
		       const struct process *process, const struct python_interpreter *interpreter,
		       const struct python_threads *threads)
{
	const struct runtime_place *place = &threads->place;

	if (!python->is_placed) {
		places->counters.located++;
		places->counters.places++;
		python->is_placed = true;
	}
	python->is_expected = false;
	python->place = *place;
	python->layout = threads->layout;
	python->has_layout = true;
	python->state = interpreter->base + interpreter->symbols.state;
	python->lock = interpreter->base + interpreter->symbols.lock;
	python->lock_bytes = interpreter->symbols.lock_bytes;
	python_places_write(places, python, process);
	known_places_put(&places->known,
			 &(struct known_place){interpreter->executable, python->version,
					       interpreter->base, *place, threads->layout});
	log_debug("Python located",
		  "pid=%u version=%x threads=%u/%u current=%#" PRIx64 " thread=%" PRId64
		  ",%d other=%" PRId64 ",%d reads=%u after_us=%" PRIu64,
		  process->key.tgid, python->version, threads->placed, threads->states,
		  (uint64_t)place->current_at, (int64_t)place->thread_at, place->thread_in,
		  (int64_t)place->other_at, place->other_in, threads->reads, age_us(process));
}

uint32_t python_places_find(struct python_places *places, struct python_process *python,
			    const struct process *process,
			    const struct python_interpreter *interpreters, uint32_t count)
{
	int directory = process_directory_open("/proc", process->key.tgid,
					       process->is_identified ? process->key.start_time_ns
								      : 0);
	const struct python_memory memory = {read_memory, &directory};
	struct python_threads threads;
	uint32_t reads = 0;

	for (uint32_t i = 0; directory >= 0 && i < count; i++) {
		enum python_found found = python_threads_find(&memory, &interpreters[i].symbols,
							      interpreters[i].base, &threads);

		reads += threads.reads;
		if (found == PYTHON_NOT_STARTED && !python->is_placed)
			expect_place(places, python, process, &interpreters[i]);
		if (i && found == PYTHON_NOT_STARTED)
			continue;
		python->found = found;
		python->version = threads.version;
		if (found != PYTHON_FOUND)
			continue;
		take_place(places, python, process, &interpreters[i], &threads);
		break;
	}
	if (directory >= 0)
		close(directory);
	places->counters.others += count > 1 && !python->has_others;
	python->has_others = count > 1;
	count_found(places, python, process);
	return reads;
}
