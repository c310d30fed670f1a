/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/contexts/contexts.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "node-agent/kernel/bpf_map.h"

enum {
	PROCESSES_MAX = 8192,
	LOOKS_A_RUN = 16,
	/* Programs publish while they start; later ones are found when they are. */
	LOOK_AGAIN_MS = 1000, /* twice that each time, up to … */
	LOOK_DOUBLINGS = 8,   /* … 256 s */
	LOOKS_SOON = 4,       /* the first, while files are being read, come right after another */
	READ_AGAIN_MS = 2000, /* of those that publish: whether it is something else now */
	READ_REFUSED_MS = 64000, /* of those for which there was no room */
	LOCATE_AGAIN_MAX_MS = 64000,
	KEEP_ENDED_MS = 15000, /* stacks that wait are counted later */
	KEEP_UNUSED_MS = 600000,
	BYTES_MAX = 16 << 20, /* of what all processes publish */
};

struct followed {
	struct process *process;
	uint32_t at;                       /* in items */
	int64_t due_ms, used_ms, ended_ms; /* ended_ms 0: it runs */
	uint32_t looks;                    /* without finding anything */
	struct process_context *context;   /* NULL: it publishes none */
	size_t bytes;                      /* of it, as it was read last */
	bool is_stale;                     /* a key is missing */
	bool is_located, has_labels;       /* the latter: where its goroutines' labels are */
	uint32_t locates;                  /* tries that found nothing */
	int64_t locate_ms;
};

struct contexts {
	struct contexts_sources from;
	struct contexts_counters counters;
	uint32_t room;           /* the registry's number of this */
	struct followed **items; /* [count]; the last fills a gap */
	uint32_t count, allocated, at;
	size_t bytes, bytes_max; /* of all contexts */
	int64_t now_ms;
	int places; /* the kernel's table, once there is one; −1 */
	bool has_no_places;
};

/* --- processes --- */

static struct followed *find(struct contexts *contexts, const struct process_key *key)
{
	const struct process *process = processes_find(contexts->from.processes, key);

	return process ? process->states[contexts->room] : NULL;
}

static bool has_room(struct contexts *contexts)
{
	const uint32_t more = contexts->allocated ? 2 * contexts->allocated : 64;
	struct followed **items;

	if (contexts->count < contexts->allocated)
		return true;
	if (more > PROCESSES_MAX)
		return false;
	items = realloc(contexts->items, more * sizeof(*items));
	if (!items)
		return false;
	contexts->items = items;
	contexts->allocated = more;
	return true;
}

static struct followed *add(struct contexts *contexts, struct process *process)
{
	struct followed *followed = has_room(contexts) ? calloc(1, sizeof *followed) : NULL;

	if (!followed) {
		contexts->counters.refused++;
		return NULL;
	}
	*followed = (struct followed){
		.process = process, .at = contexts->count, .due_ms = contexts->now_ms};
	contexts->items[contexts->count++] = followed;
	processes_hang(contexts->from.processes, process, contexts->room, followed);
	return followed;
}

/* The kernel's place is told by the pid alone: another program of it may have its own already. */
static bool read_place(const struct contexts *contexts, const struct process_key *process,
		       struct thread_context_place *place)
{
	return bpf_map_read(contexts->places, &process->tgid, place, NULL) &&
	       process_key_is_same(
		       &(struct process_key){process->tgid, place->exec_id, place->start_time_ns},
		       process);
}

static void leave_place(struct contexts *contexts, struct followed *followed)
{
	struct thread_context_place place;

	if (followed->is_located && read_place(contexts, &followed->process->key, &place))
		bpf_map_remove(contexts->places, &followed->process->key.tgid, NULL);
	contexts->counters.located -= followed->is_located;
	followed->is_located = followed->has_labels = false;
}

static void drop_context(struct contexts *contexts, struct followed *followed)
{
	leave_place(contexts, followed);
	if (!followed->context)
		return;
	process_context_release(followed->context);
	free(followed->context);
	followed->context = NULL;
	contexts->bytes -= followed->bytes;
	followed->bytes = 0;
	contexts->counters.publishing--;
}

static void forget(struct contexts *contexts, struct followed *followed)
{
	struct followed *last = contexts->items[--contexts->count];

	drop_context(contexts, followed);
	last->at = followed->at;
	contexts->items[last->at] = last;
	processes_hang(contexts->from.processes, followed->process, contexts->room, NULL);
	free(followed);
}

static void end(void *context, struct process *process)
{
	struct contexts *contexts = context;
	struct followed *followed = process->states[contexts->room];

	followed->ended_ms = contexts->now_ms + 1;
	leave_place(contexts, followed);
}

static void again(void *context, struct process *process)
{
	struct contexts *contexts = context;
	struct followed *followed = process->states[contexts->room];

	followed->ended_ms = 0;
	followed->due_ms = contexts->now_ms;
}

struct contexts *contexts_new(const struct contexts_sources *from, struct error *err)
{
	struct contexts *contexts = calloc(1, sizeof *contexts);

	if (!contexts) {
		error_set(err, ERROR_MEMORY, "no memory for contexts");
		return NULL;
	}
	contexts->from = *from;
	contexts->places = -1;
	contexts->bytes_max = from->bytes_max ? from->bytes_max : BYTES_MAX;
	contexts->room = processes_room(from->processes, &(struct process_room){.end = end,
										.again = again,
										.context = contexts,
										.holds = true});
	return contexts;
}

void contexts_free(struct contexts *contexts)
{
	if (!contexts)
		return;
	while (contexts->count)
		forget(contexts, contexts->items[contexts->count - 1]);
	processes_leave(contexts->from.processes, contexts->room);
	if (contexts->places >= 0)
		close(contexts->places);
	free(contexts->items);
	free(contexts);
}

const struct process_context *contexts_sampled(struct contexts *contexts,
					       const struct process_key *process)
{
	struct process *entry = processes_find(contexts->from.processes, process);
	struct followed *followed = entry ? entry->states[contexts->room] : NULL;

	if (entry && !followed)
		followed = add(contexts, entry);
	if (!followed)
		return NULL;
	followed->used_ms = contexts->now_ms;
	return followed->context;
}

void contexts_want_keys(struct contexts *contexts, const struct process_key *process)
{
	struct followed *followed = find(contexts, process);

	if (followed)
		followed->is_stale = true;
}

bool contexts_place(struct contexts *contexts, const struct process_key *process,
		    struct thread_context_place *place)
{
	const struct followed *followed = find(contexts, process);

	return followed && followed->is_located && read_place(contexts, process, place);
}

/* --- looking --- */

/* The kernel's table is made for the first process that has a use for it. */
static bool has_places(struct contexts *contexts)
{
	const uint32_t key = 0;
	struct error err = {0};

	if (contexts->places >= 0)
		return true;
	if (contexts->from.places_map < 0 || contexts->has_no_places)
		return false;
	contexts->places = bpf_map_new_hash(sizeof(uint32_t), sizeof(struct thread_context_place),
					    THREAD_CONTEXT_PROCESSES, &err);
	if (contexts->places >= 0 &&
	    bpf_map_write(contexts->from.places_map, &key, &contexts->places, &err))
		return true;
	log_warn("contexts of threads are not read", "why=\"%s\"", err.message);
	contexts->has_no_places = true;
	if (contexts->places >= 0)
		close(contexts->places);
	contexts->places = -1;
	return false;
}

static void put_place(struct contexts *contexts, struct followed *followed,
		      const struct thread_context_place *place)
{
	static const char *const ways[] = {[THREAD_CONTEXT_STATIC] = "static",
					   [THREAD_CONTEXT_DYNAMIC] = "dynamic",
					   [THREAD_CONTEXT_GO_LIST] = "labels",
					   [THREAD_CONTEXT_GO_MAP] = "labels-map"};

	followed->is_located = bpf_map_write(contexts->places, &followed->process->key.tgid, place,
					     NULL);
	followed->has_labels = followed->is_located && place->kind >= THREAD_CONTEXT_GO_LIST;
	contexts->counters.located += followed->is_located;
	contexts->counters.refused += !followed->is_located;
	if (followed->is_located)
		log_debug("context located", "pid=%u way=%s", followed->process->key.tgid,
			  ways[place->kind]);
}

static void locate(struct contexts *contexts, struct followed *followed, int directory)
{
	struct thread_context_place place = {.start_time_ns = followed->process->key.start_time_ns,
					     .exec_id = followed->process->key.exec_id};
	enum context_located located;
	int64_t wait_ms;

	if (followed->has_labels)
		leave_place(contexts, followed);
	if (followed->is_located || contexts->now_ms < followed->locate_ms || !has_places(contexts))
		return;
	located = contexts->from.locate(contexts->from.context, &followed->process->key, directory,
					&place);
	if (located == CONTEXT_LOCATED)
		put_place(contexts, followed, &place);
	if (followed->is_located)
		return;
	followed->due_ms = contexts->now_ms; /* what it waits for comes soon */
	if (located == CONTEXT_LATER)
		return;
	wait_ms = (int64_t)LOOK_AGAIN_MS << followed->locates;
	followed->locates += wait_ms < LOCATE_AGAIN_MAX_MS;
	followed->locate_ms = contexts->now_ms + wait_ms;
}

static void locate_labels(struct contexts *contexts, struct followed *followed)
{
	struct thread_context_place place = {.start_time_ns = followed->process->key.start_time_ns,
					     .exec_id = followed->process->key.exec_id};

	enum context_located located;

	if (followed->is_located || contexts->from.places_map < 0 || contexts->has_no_places)
		return;
	located = contexts->from.locate_labels(contexts->from.context, &followed->process->key,
					       &place);
	if (located == CONTEXT_LOCATED && has_places(contexts))
		put_place(contexts, followed, &place);
	else if (located == CONTEXT_LATER && followed->looks < LOOKS_SOON)
		followed->due_ms = contexts->now_ms;
}

static bool has_begun(struct contexts *contexts, struct followed *followed, int directory)
{
	uint64_t address;

	if (followed->context)
		return true;
	contexts->counters.looks++;
	if (!process_context_find(directory, &address))
		return false;
	followed->context = calloc(1, sizeof *followed->context);
	if (!followed->context)
		return false;
	followed->context->address = address;
	contexts->counters.publishing++;
	return true;
}

/* What has come is kept if there is room. False: it is not any more. */
static bool keep(struct contexts *contexts, struct followed *followed)
{
	const size_t bytes = sizeof *followed->context + followed->context->arena.used;

	contexts->bytes += bytes - followed->bytes;
	followed->bytes = bytes;
	contexts->counters.read++;
	contexts->counters.cut += followed->context->cut;
	if (contexts->bytes <= contexts->bytes_max)
		return true;
	contexts->counters.refused++;
	drop_context(contexts, followed);
	return false;
}

static void look(struct contexts *contexts, struct followed *followed)
{
	int directory = contexts->from.open_process(contexts->from.context,
						    &followed->process->key);

	followed->due_ms = contexts->now_ms + ((int64_t)LOOK_AGAIN_MS << followed->looks);
	followed->looks += followed->looks < LOOK_DOUBLINGS;
	if (directory < 0)
		return;
	if (has_begun(contexts, followed, directory)) {
		enum process_context_state state =
			process_context_read(directory, followed->context, followed->is_stale);

		followed->is_stale = false;
		if (state == PROCESS_CONTEXT_GONE) {
			drop_context(contexts, followed);
		} else {
			followed->due_ms = contexts->now_ms +
					   (state == PROCESS_CONTEXT_LATER ? 0 : READ_AGAIN_MS);
			followed->looks = 0;
		}
		if (state == PROCESS_CONTEXT_NEW && !keep(contexts, followed))
			followed->due_ms = contexts->now_ms + READ_REFUSED_MS;
		if (followed->context && followed->context->has_threads)
			locate(contexts, followed, directory);
		else if (!followed->has_labels)
			leave_place(contexts, followed);
	}
	close(directory);
	if (!followed->context || !followed->context->has_threads)
		locate_labels(contexts, followed);
}

static bool is_over(const struct contexts *contexts, const struct followed *followed)
{
	return (followed->ended_ms && contexts->now_ms > followed->ended_ms + KEEP_ENDED_MS) ||
	       contexts->now_ms > followed->used_ms + KEEP_UNUSED_MS;
}

void contexts_run(struct contexts *contexts, int64_t now_ms)
{
	uint32_t looks = 0;

	contexts->now_ms = now_ms;
	for (uint32_t seen = contexts->count; seen && looks < LOOKS_A_RUN; seen--) {
		struct followed *followed;

		if (contexts->at >= contexts->count)
			contexts->at = 0;
		followed = contexts->items[contexts->at];
		if (is_over(contexts, followed)) {
			forget(contexts, followed);
			continue;
		}
		contexts->at++;
		if (followed->ended_ms || (now_ms < followed->due_ms && !followed->is_stale))
			continue;
		look(contexts, followed);
		looks++;
	}
}

void contexts_counters(const struct contexts *contexts, struct contexts_counters *out)
{
	*out = contexts->counters;
	out->processes = contexts->count;
}
