/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/runtimes/python_thread_names.h"

#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/hash_table.h"

enum {
	PROCESSES_MAX = 512,
	AGAIN_DOUBLINGS = 9, /* 51 s */
};

#define NANOSECONDS UINT64_C(1000000000)
#define AGAIN_NS    UINT64_C(100000000) /* and twice as long each time */

struct named { /* a thread, or, with tid 0, what is known of its process */
	struct process_key process;
	uint32_t tid, tries;
	uint64_t due_ns;
	bool has_table;
	struct python_thread_table table;
	char *name; /* NULL: none */
};

struct named_list {
	struct hash_table index;
	struct named *items;
	uint32_t count, room, most;
};

struct python_thread_names {
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

/* NULL: no memory. A list that is full begins anew: most of it is gone. */
static struct named *list_find(struct named_list *list, const struct process_key *process,
			       uint32_t tid)
{
	const uint64_t hash = hash_word(hash_word(process->start_time_ns, process->tgid), tid);

	HASH_TABLE_EACH (i, &list->index, hash)
		if (list->items[i].tid == tid &&
		    process_key_is_same(&list->items[i].process, process))
			return &list->items[i];
	if (list->count == list->most)
		list_clear(list);
	if (!ARRAY_GROW(list->items, list->count, list->room) ||
	    !hash_table_add(&list->index, hash, list->count))
		return NULL;
	list->items[list->count] = (struct named){.process = *process, .tid = tid};
	return &list->items[list->count++];
}

struct python_thread_names *python_thread_names_new(void)
{
	struct python_thread_names *names = calloc(1, sizeof *names);

	if (!names)
		return NULL;
	names->threads.most = PYTHON_THREAD_NAMES_MAX;
	names->processes.most = PROCESSES_MAX;
	hash_table_init(&names->threads.index, PYTHON_THREAD_NAMES_MAX);
	hash_table_init(&names->processes.index, PROCESSES_MAX);
	return names;
}

void python_thread_names_free(struct python_thread_names *names)
{
	if (!names)
		return;
	list_release(&names->threads);
	list_release(&names->processes);
	free(names);
}

/* --- reading --- */

static void try_later(struct named *named, uint64_t now_ns)
{
	named->due_ns = now_ns + (AGAIN_NS << named->tries);
	named->tries += named->tries < AGAIN_DOUBLINGS;
}

/* False: enough has been read for now. */
static bool spend(struct python_thread_names *names, uint64_t now_ns)
{
	const uint64_t each_ns = NANOSECONDS / PYTHON_THREAD_NAMES_A_SECOND;

	if (names->due_ns < now_ns)
		names->due_ns = now_ns;
	if (names->due_ns - now_ns >= PYTHON_THREAD_NAMES_BURST * each_ns)
		return false;
	names->due_ns += each_ns;
	return true;
}

static const struct python_thread_table *table_of(struct python_thread_names *names,
						  const struct python_thread *thread)
{
	struct named *process = list_find(&names->processes, &thread->process, 0);

	if (!process)
		return NULL;
	if (!process->has_table && thread->now_ns >= process->due_ns) {
		try_later(process, thread->now_ns);
		process->has_table = python_thread_table_find(thread->memory, thread->layout,
							      thread->state, &process->table);
	}
	return process->has_table ? &process->table : NULL;
}

static void read_name(struct python_thread_names *names, struct named *named,
		      const struct python_thread *thread)
{
	const struct python_thread_table *table = table_of(names, thread);
	char text[PYTHON_THREAD_NAME_BYTES], *name;

	if (!table ||
	    !python_thread_name_read(thread->memory, thread->layout, table, thread->thread, text) ||
	    !thread->is_alive(thread->memory->context, thread->tid))
		return;
	named->due_ns = thread->now_ns + PYTHON_THREAD_NAMES_AGAIN_S * NANOSECONDS;
	name = strdup(text);
	if (!name)
		return;
	free(named->name);
	named->name = name;
}

const char *python_thread_names_find(struct python_thread_names *names,
				     const struct python_thread *thread)
{
	struct named *named = list_find(&names->threads, &thread->process, thread->tid);

	if (!named)
		return NULL;
	if (thread->now_ns >= named->due_ns && spend(names, thread->now_ns)) {
		try_later(named, thread->now_ns);
		read_name(names, named, thread);
	}
	return named->name;
}
