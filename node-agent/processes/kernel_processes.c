/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/processes/kernel_processes.h"

#include <stdlib.h>
#include <string.h>

#include "node-agent/kernel/bpf_map.h"

enum {
	PUSH_OUT_AT_ONCE = PROCESS_HEADS / 16, /* each wait for the kernel's readers is dear */
	READERS_DONE_MS = 1000, /* nearly no walk takes a thousandth of it; see free_left() */
	BLOCKS_SCARCE = PROCESS_BLOCKS / 4, /* with fewer free ones nobody gets more than … */
	SCARCE_BLOCKS_MAX = 8,
};

#define NONE UINT16_MAX

enum head_state { HEAD_FREE, HEAD_PUBLISHED, HEAD_LEFT };

/* A head, with its blocks chained. LEFT: no longer published, but some reader may still be at it.
 */
struct head {
	struct process *process; /* PUBLISHED */
	uint32_t generation;
	uint8_t state; /* enum head_state */
	uint16_t block;
	uint16_t older, newer; /* PUBLISHED: by use; LEFT: by time; FREE: newer alone */
	int64_t left_ms;
};

struct head_list {
	uint16_t oldest, newest;
};

struct kernel_processes {
	struct processes *registry; /* borrowed */
	uint32_t room;              /* its number of this */
	int64_t now_ms;
	int processes_map, heads_map, blocks_map;
	struct head heads[PROCESS_HEADS];
	uint16_t next_block[PROCESS_BLOCKS];
	uint16_t free_head, free_block;
	uint32_t free_blocks;
	struct head_list published, left;
	struct kernel_processes_counters counters;
	struct process_block block; /* being filled */
};

/* --- lists --- */

static void list_append(struct kernel_processes *processes, struct head_list *list, uint16_t at)
{
	struct head *head = &processes->heads[at];

	head->older = list->newest;
	head->newer = NONE;
	if (list->newest != NONE)
		processes->heads[list->newest].newer = at;
	else
		list->oldest = at;
	list->newest = at;
}

static void list_remove(struct kernel_processes *processes, struct head_list *list, uint16_t at)
{
	struct head *head = &processes->heads[at];

	if (head->older != NONE)
		processes->heads[head->older].newer = head->newer;
	else
		list->oldest = head->newer;
	if (head->newer != NONE)
		processes->heads[head->newer].older = head->older;
	else
		list->newest = head->older;
}

static uint16_t find(const struct kernel_processes *processes, const struct process *process)
{
	const struct head *head = process ? process->states[processes->room] : NULL;

	return head ? (uint16_t)(head - processes->heads) : NONE;
}

/* --- giving back --- */

static void free_blocks(struct kernel_processes *processes, struct head *head)
{
	while (head->block != NONE) {
		uint16_t block = head->block;

		head->block = processes->next_block[block];
		processes->next_block[block] = processes->free_block;
		processes->free_block = block;
		processes->free_blocks++;
	}
}

static void free_head(struct kernel_processes *processes, uint16_t at)
{
	struct head *head = &processes->heads[at];

	free_blocks(processes, head);
	head->state = HEAD_FREE;
	head->newer = processes->free_head;
	processes->free_head = at;
}

/* The kernel's map does not name it any more, or names another head. */
static void leave(struct kernel_processes *processes, uint16_t at)
{
	struct head *head = &processes->heads[at];

	list_remove(processes, &processes->published, at);
	processes_hang(processes->registry, head->process, processes->room, NULL);
	processes->counters.heads--;
	head->state = HEAD_LEFT;
	head->left_ms = processes->now_ms;
	list_append(processes, &processes->left, at);
}

/* Frees what was left so long ago that nobody should be at it, or all when readers were waited for.
 * A walk that was preempted for longer finds the head to be nobody's before the blocks are
 * another's. False: the kernel's map refuses that. */
static bool free_left(struct kernel_processes *processes, bool all)
{
	static const struct process_head nobodys;

	while (processes->left.oldest != NONE) {
		uint16_t at = processes->left.oldest;
		uint32_t key = at;

		if (!all && processes->now_ms < processes->heads[at].left_ms + READERS_DONE_MS)
			break;
		if (!bpf_map_write(processes->heads_map, &key, &nobodys, NULL))
			return false;
		list_remove(processes, &processes->left, at);
		free_head(processes, at);
	}
	return true;
}

static void push_out(struct kernel_processes *processes)
{
	for (int i = 0; i < PUSH_OUT_AT_ONCE && processes->published.oldest != NONE; i++) {
		uint16_t at = processes->published.oldest;

		bpf_map_remove(processes->processes_map, &processes->heads[at].process->key.tgid,
			       NULL);
		leave(processes, at);
		processes->counters.pushed_out++;
	}
}

static bool has_room(const struct kernel_processes *processes, uint32_t blocks)
{
	return processes->free_head != NONE && processes->free_blocks >= blocks;
}

static bool make_room(struct kernel_processes *processes, uint32_t blocks)
{
	if (has_room(processes, blocks))
		return true;
	free_left(processes, false);
	while (!has_room(processes, blocks)) {
		if (processes->left.oldest == NONE) {
			if (processes->published.oldest == NONE)
				return false;
			push_out(processes);
		}
		if (!bpf_programs_wait()) /* then only time tells */
			return false;
		if (!free_left(processes, true))
			return false;
	}
	return true;
}

/* --- publishing --- */

static bool joins(const struct process_mapping *before, const struct process_mapping *after)
{
	return before->end == after->start && before->executable == after->executable &&
	       before->base == after->base;
}

static bool write_block(struct kernel_processes *processes, uint16_t at, struct process_head *head,
			uint16_t *last, struct head *own)
{
	uint16_t block = processes->free_block;
	uint32_t key = block;

	if (block == NONE || !bpf_map_write(processes->blocks_map, &key, &processes->block, NULL))
		return false;
	processes->free_block = processes->next_block[block];
	processes->free_blocks--;
	processes->next_block[block] = NONE;
	if (*last == NONE)
		own->block = block;
	else
		processes->next_block[*last] = block;
	*last = block;
	head->first_start[at] = processes->block.mappings[0].start;
	head->blocks[at] = block;
	head->block_count = at + 1;
	memset(&processes->block, 0, sizeof(processes->block));
	return true;
}

/* Neighbours that are the same in all but their place become one. */
static bool write_blocks(struct kernel_processes *processes, struct process_head *head,
			 struct head *own, const struct process_mapping *mappings, size_t count)
{
	uint32_t in_block = 0, blocks = 0;
	uint16_t last = NONE;

	memset(&processes->block, 0, sizeof(processes->block));
	for (size_t i = 0; i < count;) {
		struct process_mapping *to = &processes->block.mappings[in_block++];

		*to = mappings[i];
		for (i++; i < count && joins(to, &mappings[i]); i++)
			to->end = mappings[i].end;
		head->mapping_count++;
		if (in_block < PROCESS_BLOCK_MAPPINGS && i < count)
			continue;
		if (!write_block(processes, (uint16_t)blocks++, head, &last, own))
			return false;
		in_block = 0;
	}
	return true;
}

static bool write_head(struct kernel_processes *processes, uint16_t at, struct process_head *head,
		       const struct process_mapping *mappings, size_t count)
{
	struct head *own = &processes->heads[at];
	uint32_t key = at;

	own->block = NONE;
	return write_blocks(processes, head, own, mappings, count) &&
	       bpf_map_write(processes->heads_map, &key, head, NULL) &&
	       bpf_map_write(processes->processes_map, &own->process->key.tgid, &key, NULL);
}

static size_t cut(struct kernel_processes *processes, size_t count)
{
	size_t limit = PROCESS_BLOCKS_MAX * PROCESS_BLOCK_MAPPINGS;

	if (processes->free_blocks < BLOCKS_SCARCE)
		free_left(processes, false);
	if (processes->free_blocks < BLOCKS_SCARCE)
		limit = SCARCE_BLOCKS_MAX * PROCESS_BLOCK_MAPPINGS;
	if (count <= limit)
		return count;
	processes->counters.cut += count - limit;
	return limit;
}

bool kernel_processes_publish(struct kernel_processes *processes, const struct process_key *key,
			      uint32_t generation, const struct process_mapping *mappings,
			      size_t count)
{
	struct process_head head = {.start_time_ns = key->start_time_ns,
				    .tgid = key->tgid,
				    .exec_id = key->exec_id,
				    .generation = generation};
	struct process *process = processes_find(processes->registry, key);
	uint16_t at, before;
	struct head *own;

	if (!process)
		return false;
	count = cut(processes, count);
	if (!make_room(processes,
		       (uint32_t)(count + PROCESS_BLOCK_MAPPINGS - 1) / PROCESS_BLOCK_MAPPINGS))
		return false;
	at = processes->free_head;
	own = &processes->heads[at];
	processes->free_head = own->newer;
	own->process = process;
	own->generation = generation;
	if (!write_head(processes, at, &head, mappings, count)) {
		free_head(processes, at);
		return false;
	}
	before = find(processes, process);
	if (before != NONE)
		leave(processes, before);
	own->state = HEAD_PUBLISHED;
	list_append(processes, &processes->published, at);
	processes_hang(processes->registry, process, processes->room, own);
	processes->counters.heads++;
	processes->counters.published++;
	return true;
}

uint32_t kernel_processes_generation(struct kernel_processes *processes,
				     const struct process_key *key)
{
	uint16_t at = find(processes, processes_find(processes->registry, key));

	if (at == NONE)
		return 0;
	if (processes->published.newest != at) {
		list_remove(processes, &processes->published, at);
		list_append(processes, &processes->published, at);
	}
	return processes->heads[at].generation;
}

static void end(void *context, struct process *process)
{
	struct kernel_processes *processes = context;

	bpf_map_remove(processes->processes_map, &process->key.tgid, NULL);
	leave(processes, find(processes, process));
}

void kernel_processes_set_time(struct kernel_processes *processes, int64_t now_ms)
{
	processes->now_ms = now_ms;
}

struct kernel_processes *kernel_processes_new(struct processes *registry, int processes_map,
					      int heads_map, int blocks_map, struct error *err)
{
	struct kernel_processes *processes = calloc(1, sizeof(*processes));

	if (!processes) {
		error_set(err, ERROR_MEMORY, "no memory for the table of published processes");
		return NULL;
	}
	processes->processes_map = processes_map;
	processes->heads_map = heads_map;
	processes->blocks_map = blocks_map;
	for (uint16_t i = 0; i < PROCESS_HEADS; i++)
		processes->heads[i].newer = i + 1 < PROCESS_HEADS ? i + 1 : NONE;
	for (uint16_t i = 0; i < PROCESS_BLOCKS; i++)
		processes->next_block[i] = i + 1 < PROCESS_BLOCKS ? i + 1 : NONE;
	processes->free_blocks = PROCESS_BLOCKS;
	processes->published = processes->left = (struct head_list){NONE, NONE};
	processes->registry = registry;
	processes->room = processes_room(
		registry, &(struct process_room){.end = end, .context = processes, .holds = true});
	return processes;
}

void kernel_processes_free(struct kernel_processes *processes)
{
	if (!processes)
		return;
	while (processes->published.oldest != NONE)
		leave(processes, processes->published.oldest);
	processes_leave(processes->registry, processes->room);
	free(processes);
}

void kernel_processes_counters(const struct kernel_processes *processes,
			       struct kernel_processes_counters *out)
{
	*out = processes->counters;
	out->blocks = PROCESS_BLOCKS - processes->free_blocks;
}
