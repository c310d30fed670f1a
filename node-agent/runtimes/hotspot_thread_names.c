/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/runtimes/hotspot_thread_names.h"

#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/hash_table.h"

enum {
	PROCESSES_MAX = 512,
	AGAIN_DOUBLINGS = 9, /* 51 s */
	LOOKED_AT = 16,      /* JavaThreads in one look */
};

#define NANOSECONDS UINT64_C(1000000000)
#define AGAIN_NS    UINT64_C(100000000) /* and twice as long each time */

struct named { /* a thread, or, with tid 0, what is known of its process */
	struct process_key process;
	uint32_t tid, tries;
	uint64_t due_ns;
	uint64_t thread; /* its JavaThread; 0: not found */
	char *name;      /* NULL: none */
	uint32_t next;   /* the process': JavaThread to be looked at */
	struct hotspot_name_place place;
};

struct named_list {
	struct hash_table index;
	struct named *items;
	uint32_t count, room, most;
};

struct hotspot_thread_names {
	struct named_list threads, processes;
	uint64_t due_ns; /* what was read would have been, at an even pace */
};

/* --- lists --- */

static void list_clear(struct named_list *list)
{
	for (uint32_t i = 0; i < list->count; i++)
		free(list->items[i].name);
	list->count = 0;
	hash_table_clear(&list->index);
}

static void list_release(struct named_list *list)
{
	list_clear(list);
	hash_table_release(&list->index);
	free(list->items);
}

static uint64_t hash_of(const struct process_key *process, uint32_t tid)
{
	return hash_word(hash_word(process->start_time_ns, process->tgid), tid);
}

/* NULL: it is not there. */
static struct named *list_look(struct named_list *list, const struct process_key *process,
			       uint32_t tid)
{
	HASH_TABLE_EACH (i, &list->index, hash_of(process, tid))
		if (list->items[i].tid == tid &&
		    process_key_is_same(&list->items[i].process, process))
			return &list->items[i];
	return NULL;
}

/* NULL: no memory. A list that is full begins anew: most of it is gone. */
static struct named *list_find(struct named_list *list, const struct process_key *process,
			       uint32_t tid)
{
	struct named *named = list_look(list, process, tid);

	if (named)
		return named;
	if (list->count == list->most)
		list_clear(list);
	if (!ARRAY_GROW(list->items, list->count, list->room) ||
	    !hash_table_add(&list->index, hash_of(process, tid), list->count))
		return NULL;
	list->items[list->count] = (struct named){.process = *process, .tid = tid};
	return &list->items[list->count++];
}

struct hotspot_thread_names *hotspot_thread_names_new(void)
{
	struct hotspot_thread_names *names = calloc(1, sizeof *names);

	if (!names)
		return NULL;
	names->threads.most = HOTSPOT_THREAD_NAMES_MAX;
	names->processes.most = PROCESSES_MAX;
	hash_table_init(&names->threads.index, HOTSPOT_THREAD_NAMES_MAX);
	hash_table_init(&names->processes.index, PROCESSES_MAX);
	return names;
}

void hotspot_thread_names_free(struct hotspot_thread_names *names)
{
	if (!names)
		return;
	list_release(&names->threads);
	list_release(&names->processes);
	free(names);
}

/* --- reading --- */

/* False: enough has been read for now. */
static bool spend(struct hotspot_thread_names *names, uint64_t now_ns)
{
	const uint64_t each_ns = NANOSECONDS / HOTSPOT_THREAD_NAMES_A_SECOND;

	if (names->due_ns < now_ns)
		names->due_ns = now_ns;
	if (names->due_ns - now_ns >= HOTSPOT_THREAD_NAMES_BURST * each_ns)
		return false;
	names->due_ns += each_ns;
	return true;
}

/* Looks at the next JavaThreads of the process: they are those of threads that wait for theirs. */
static void look_at_threads(struct hotspot_thread_names *names, struct named *process,
			    const struct hotspot_thread *thread)
{
	uint64_t addresses[LOOKED_AT];
	uint32_t count = hotspot_threads_list(thread->memory, thread->layout, process->next,
					      addresses, LOOKED_AT);

	if (!count && process->next)
		count = hotspot_threads_list(thread->memory, thread->layout, process->next = 0,
					     addresses, LOOKED_AT);
	process->next += count;
	for (uint32_t i = 0; i < count; i++) {
		const uint32_t tid = hotspot_thread_id(thread->memory, thread->layout,
						       addresses[i]);
		struct named *named = tid ? list_look(&names->threads, &thread->process, tid)
					  : NULL;

		if (named && named->thread != addresses[i]) {
			named->thread = addresses[i];
			named->due_ns = 0;
		}
	}
}

static void read_name(struct hotspot_thread_names *names, struct named *named,
		      const struct hotspot_thread *thread)
{
	struct named *process = list_find(&names->processes, &thread->process, 0);
	char text[HOTSPOT_THREAD_NAME_BYTES], *name;

	if (!process)
		return;
	if (!named->thread ||
	    hotspot_thread_id(thread->memory, thread->layout, named->thread) != thread->tid)
		named->thread = 0;
	if (!named->thread)
		look_at_threads(names, process, thread);
	if (!named->thread ||
	    !hotspot_thread_name_read(thread->memory, thread->layout, &process->place,
				      named->thread, thread->kernel, text))
		return;
	named->due_ns = thread->now_ns + HOTSPOT_THREAD_NAMES_AGAIN_S * NANOSECONDS;
	name = strdup(text);
	if (!name)
		return;
	free(named->name);
	named->name = name;
}

const char *hotspot_thread_names_find(struct hotspot_thread_names *names,
				      const struct hotspot_thread *thread)
{
	struct named *named = list_find(&names->threads, &thread->process, thread->tid);

	if (!named)
		return NULL;
	if (named->name && !hotspot_thread_name_fits(named->name, thread->kernel)) {
		free(named->name);
		named->name = NULL;
		named->tries = 0;
		named->due_ns = 0;
	}
	if (thread->now_ns >= named->due_ns && spend(names, thread->now_ns)) {
		named->due_ns = thread->now_ns + (AGAIN_NS << named->tries);
		named->tries += named->tries < AGAIN_DOUBLINGS;
		read_name(names, named, thread);
	}
	return named->name;
}
