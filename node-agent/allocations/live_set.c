/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/allocations/live_set.h"

#include <stdlib.h>
#include <string.h>

#include "bpf/results.h"
#include "bpf/thread_context.h"
#include "common/hash_table.h"

enum {
	PIECES_MAX = 1 << 16,
	STACKS_MAX = 1 << 14,
	STACK_BYTES_MAX = 4 << 20,
	OWNERS_MAX = 4096,
	NONE = 0, /* indices are kept + 1 */
};

struct piece {
	uint64_t key, time_ns;
	uint64_t bytes, objects; /* of one */
	uint64_t count;
	uint64_t bounded_ns;   /* the count was right then; 0: it is by what was told */
	struct owner *owner;   /* NULL: no piece */
	uint32_t older, newer; /* of the same owner; NONE: no more */
	uint32_t stack;        /* NONE: it has not come */
	bool is_bucket;
};

struct stack {
	struct sample_event *sample;
	size_t walked;
	uint64_t hash, bytes, objects; /* in use now */
	uint32_t pieces;               /* that have it */
};

struct owner { /* what hangs on the registry's entry */
	struct process *process;
	uint32_t at; /* in owners */
	uint32_t pieces, newest;
};

/* Items of one kind: those given back are used first. */
struct room {
	uint32_t *free;
	uint32_t free_count, count, allocated, limit;
};

struct live_set {
	struct live_counters counters;
	struct processes *processes; /* borrowed */
	uint32_t room;               /* the registry's number of this */
	struct hash_table piece_index, stack_index;
	struct piece *pieces;
	struct stack *stacks;
	struct owner *owners[OWNERS_MAX]; /* the last fills a gap */
	struct room piece_room, stack_room;
};

/* --- items --- */

/* Room for one more. NONE: there is none. */
static uint32_t room_take(struct room *room, void **items, size_t size)
{
	if (room->free_count)
		return room->free[--room->free_count];
	if (room->count == room->allocated) {
		const uint32_t more = room->allocated ? 2 * room->allocated : 64;
		uint32_t *free_list;
		void *moved;

		if (more > room->limit)
			return NONE;
		free_list = realloc(room->free, more * sizeof *free_list);
		if (!free_list)
			return NONE;
		room->free = free_list;
		moved = realloc(*items, more * size);
		if (!moved)
			return NONE;
		*items = moved;
		room->allocated = more;
	}
	return ++room->count;
}

static void room_give(struct room *room, uint32_t item)
{
	room->free[room->free_count++] = item;
}

/* --- owners --- */

static struct owner *owner_of(const struct live_set *set, const struct process *process)
{
	return process ? process->states[set->room] : NULL;
}

static struct owner *owner_find(const struct live_set *set, const struct process_key *key)
{
	return owner_of(set, processes_find(set->processes, key));
}

static struct owner *owner_take(struct live_set *set, const struct process_key *key,
				uint64_t time_ns)
{
	struct process *process = processes_for_sample(set->processes, key, time_ns);
	struct owner *owner = owner_of(set, process);

	if (owner || !process || set->counters.owners == OWNERS_MAX)
		return owner;
	owner = calloc(1, sizeof *owner);
	if (!owner)
		return NULL;
	*owner = (struct owner){.process = process, .at = set->counters.owners++};
	set->owners[owner->at] = owner;
	processes_hang(set->processes, process, set->room, owner);
	return owner;
}

static void owner_unuse(struct live_set *set, struct owner *owner)
{
	struct owner *last;

	if (owner->pieces)
		return;
	last = set->owners[--set->counters.owners];
	last->at = owner->at;
	set->owners[last->at] = last;
	processes_hang(set->processes, owner->process, set->room, NULL);
	free(owner);
}

/* --- stacks --- */

static size_t frame_bytes(const struct sample_event *sample)
{
	return sample_event_words(sample) * sizeof sample->frames[0];
}

static uint64_t stack_hash(const struct sample_event *sample)
{
	uint64_t hash = hash_bytes(sample->frames, frame_bytes(sample), sample->tgid);

	hash = hash_bytes(sample->comm, sizeof sample->comm, hash);
	return hash_word(hash, sample->start_time_ns);
}

static bool is_same_stack(const struct stack *stack, const struct sample_event *sample,
			  size_t walked)
{
	const struct sample_event *have = stack->sample;
	const struct process_key one = process_key_of(have), other = process_key_of(sample);

	return stack->walked == walked && process_key_is_same(&one, &other) &&
	       have->kernel_count == sample->kernel_count &&
	       have->user_count == sample->user_count &&
	       have->runtime_count == sample->runtime_count && have->result == sample->result &&
	       !memcmp(have->comm, sample->comm, sizeof have->comm) &&
	       !memcmp(have->frames, sample->frames, frame_bytes(sample));
}

static uint32_t stack_find(const struct live_set *set, const struct sample_event *sample,
			   size_t walked, uint64_t hash)
{
	HASH_TABLE_EACH(i, &set->stack_index, hash)
		if (is_same_stack(&set->stacks[i], sample, walked))
			return i + 1;
	return NONE;
}

static uint32_t stack_add(struct live_set *set, const struct sample_event *sample, size_t walked,
			  uint64_t hash)
{
	const uint32_t bytes = sample_event_frames_end(sample);
	struct sample_event *copy;
	uint32_t added;

	if (set->counters.stack_bytes + bytes > STACK_BYTES_MAX)
		return NONE;
	copy = malloc(bytes);
	if (!copy)
		return NONE;
	added = room_take(&set->stack_room, (void **)&set->stacks, sizeof *set->stacks);
	if (added && !hash_table_add(&set->stack_index, hash, added - 1)) {
		room_give(&set->stack_room, added);
		added = NONE;
	}
	if (!added) {
		free(copy);
		return NONE;
	}
	memcpy(copy, sample, bytes);
	copy->size = bytes; /* what is in use is no request's */
	copy->flags &= (__u16)~SAMPLE_HAS_CONTEXT;
	set->stacks[added - 1] = (struct stack){.sample = copy, .walked = walked, .hash = hash};
	set->counters.stacks++;
	set->counters.stack_bytes += bytes;
	return added;
}

static void stack_unuse(struct live_set *set, uint32_t at)
{
	struct stack *stack = &set->stacks[at - 1];

	if (--stack->pieces)
		return;
	hash_table_remove(&set->stack_index, stack->hash, at - 1);
	set->counters.stack_bytes -= stack->sample->size;
	set->counters.stacks--;
	free(stack->sample);
	stack->sample = NULL;
	room_give(&set->stack_room, at);
}

/* --- pieces --- */

static uint64_t piece_hash(const struct owner *owner, uint64_t key)
{
	return hash_word((uintptr_t)owner, key);
}

static uint32_t piece_find(const struct live_set *set, const struct owner *owner, uint64_t key)
{
	const uint64_t hash = piece_hash(owner, key);

	if (!owner)
		return NONE;
	HASH_TABLE_EACH(i, &set->piece_index, hash)
		if (set->pieces[i].owner == owner && set->pieces[i].key == key)
			return i + 1;
	return NONE;
}

/* Adds so much of what one has, or takes it away. */
static void piece_weigh(struct live_set *set, const struct piece *piece, uint64_t count)
{
	struct stack *stack = piece->stack ? &set->stacks[piece->stack - 1] : NULL;

	if (!stack)
		return;
	stack->bytes += piece->bytes * count;
	stack->objects += piece->objects * count;
}

static void piece_link(struct live_set *set, struct owner *owner, uint32_t at)
{
	struct piece *piece = &set->pieces[at - 1];

	piece->owner = owner;
	piece->older = owner->newest;
	piece->newer = NONE;
	if (owner->newest)
		set->pieces[owner->newest - 1].newer = at;
	owner->newest = at;
	owner->pieces++;
}

static void piece_unlink(struct live_set *set, const struct piece *piece)
{
	if (piece->older)
		set->pieces[piece->older - 1].newer = piece->newer;
	if (piece->newer)
		set->pieces[piece->newer - 1].older = piece->older;
	else
		piece->owner->newest = piece->older;
	piece->owner->pieces--;
}

static void piece_drop(struct live_set *set, uint32_t at)
{
	struct piece *piece = &set->pieces[at - 1];

	piece_weigh(set, piece, -piece->count);
	if (piece->stack)
		stack_unuse(set, piece->stack);
	hash_table_remove(&set->piece_index, piece_hash(piece->owner, piece->key), at - 1);
	piece_unlink(set, piece);
	owner_unuse(set, piece->owner);
	piece->owner = NULL;
	room_give(&set->piece_room, at);
	set->counters.pieces--;
}

static bool piece_add(struct live_set *set, struct owner *owner, const struct live_piece *piece)
{
	uint32_t at = room_take(&set->piece_room, (void **)&set->pieces, sizeof *set->pieces);

	if (at && !hash_table_add(&set->piece_index, piece_hash(owner, piece->key), at - 1)) {
		room_give(&set->piece_room, at);
		at = NONE;
	}
	if (!at)
		return false;
	set->pieces[at - 1] = (struct piece){.key = piece->key,
					     .time_ns = piece->time_ns,
					     .bytes = piece->bytes,
					     .objects = piece->objects,
					     .count = 1,
					     .is_bucket = piece->is_bucket};
	piece_link(set, owner, at);
	set->counters.pieces++;
	return true;
}

/* One more of a bucket that is known. The weight may have changed: it is one for all that is in use
 * of the bucket, as the runtime's own profile has it. */
static void piece_again(struct live_set *set, struct piece *known, const struct live_piece *piece)
{
	piece_weigh(set, known, -known->count);
	known->bytes = piece->bytes;
	known->objects = piece->objects;
	known->count++;
	piece_weigh(set, known, known->count);
}

void live_set_take(struct live_set *set, const struct live_piece *piece)
{
	struct owner *owner = owner_take(set, &piece->owner, piece->time_ns);
	const uint32_t known = piece_find(set, owner, piece->key);

	set->counters.taken++;
	if (known && piece->is_bucket && piece->time_ns <= set->pieces[known - 1].bounded_ns)
		return;
	if (known && piece->is_bucket) {
		piece_again(set, &set->pieces[known - 1], piece);
		return;
	}
	if (known) {
		owner->pieces++; /* it stays, whatever goes */
		piece_drop(set, known);
		owner->pieces--;
		set->counters.replaced++;
	}
	if (!owner || !piece_add(set, owner, piece)) {
		set->counters.refused++;
		if (owner)
			owner_unuse(set, owner);
	}
}

/* A bucket's first stacks may have stopped for want of unwind rows: a whole one is better. */
static bool wants_stack(const struct live_set *set, const struct piece *piece,
			const struct sample_event *sample)
{
	if (!piece->is_bucket)
		return !piece->stack && piece->time_ns == sample->time_ns;
	return !piece->stack || (sample->result == WALK_complete &&
				 set->stacks[piece->stack - 1].sample->result != WALK_complete);
}

void live_set_stack(struct live_set *set, uint64_t key, const struct sample_event *sample,
		    size_t walked)
{
	const struct process_key who = process_key_of(sample);
	const uint32_t at = piece_find(set, owner_find(set, &who), key);
	const uint64_t hash = stack_hash(sample);
	struct piece *piece = at ? &set->pieces[at - 1] : NULL;
	uint32_t stack;

	if (!piece || !wants_stack(set, piece, sample))
		return;
	stack = stack_find(set, sample, walked, hash);
	if (!stack)
		stack = stack_add(set, sample, walked, hash);
	if (!stack && piece->stack)
		return;
	if (!stack) {
		set->counters.refused += piece->count;
		piece_drop(set, at);
		return;
	}
	if (piece->stack) {
		piece_weigh(set, piece, -piece->count);
		stack_unuse(set, piece->stack);
	}
	piece->stack = stack;
	set->stacks[stack - 1].pieces++;
	piece_weigh(set, piece, piece->count);
}

void live_set_give(struct live_set *set, const struct process_key *owner, uint64_t key,
		   uint64_t time_ns)
{
	const uint32_t at = piece_find(set, owner_find(set, owner), key);
	struct piece *piece = at ? &set->pieces[at - 1] : NULL;

	if (piece && time_ns <= piece->bounded_ns)
		return;
	if (!piece || !piece->count) {
		set->counters.unknown++;
		return;
	}
	set->counters.freed++;
	if (piece->count == 1) {
		piece_drop(set, at);
		return;
	}
	piece_weigh(set, piece, -UINT64_C(1));
	piece->count--;
}

uint64_t live_set_bound(struct live_set *set, uint32_t tgid, live_set_most most, void *context,
			uint64_t now_ns)
{
	const struct owner *owner = owner_of(set, processes_current(set->processes, tgid));
	uint64_t gone = 0, now;

	for (uint32_t at = owner ? owner->newest : NONE; at; at = set->pieces[at - 1].older) {
		struct piece *piece = &set->pieces[at - 1];

		if (!piece->is_bucket)
			continue;
		now = most(context, piece->key);
		if (now >= piece->count)
			continue;
		piece_weigh(set, piece, now - piece->count);
		gone += piece->count - now;
		piece->count = now;
		piece->bounded_ns = now_ns;
	}
	return gone;
}

/* --- processes that end --- */

static void owner_end(struct live_set *set, const struct owner *owner)
{
	for (uint32_t left = owner ? owner->pieces : 0; left; left--)
		piece_drop(set, owner->newest); /* the owner goes with the last */
}

static void end(void *context, struct process *process)
{
	struct live_set *set = context;

	owner_end(set, owner_of(set, process));
}

void live_set_end(struct live_set *set, uint32_t tgid)
{
	owner_end(set, owner_of(set, processes_current(set->processes, tgid)));
}

struct live_set *live_set_new(struct processes *processes, struct error *err)
{
	struct live_set *set = calloc(1, sizeof *set);

	if (!set) {
		error_set(err, ERROR_MEMORY, "no memory for what processes have in use");
		return NULL;
	}
	hash_table_init(&set->piece_index, PIECES_MAX);
	hash_table_init(&set->stack_index, STACKS_MAX);
	set->piece_room.limit = PIECES_MAX;
	set->stack_room.limit = STACKS_MAX;
	set->processes = processes;
	set->room = processes_room(
		processes, &(struct process_room){.end = end, .context = set, .holds = true});
	return set;
}

void live_set_free(struct live_set *set)
{
	if (!set)
		return;
	while (set->counters.owners)
		owner_end(set, set->owners[0]);
	processes_leave(set->processes, set->room);
	for (uint32_t i = 0; i < set->stack_room.count; i++)
		if (set->stacks[i].pieces)
			free(set->stacks[i].sample);
	hash_table_release(&set->piece_index);
	hash_table_release(&set->stack_index);
	free(set->pieces);
	free(set->stacks);
	free(set->piece_room.free);
	free(set->stack_room.free);
	free(set);
}

void live_set_report(const struct live_set *set, live_set_add add, void *context)
{
	for (uint32_t i = 0; i < set->stack_room.count; i++) {
		const struct stack *stack = &set->stacks[i];

		if (stack->sample && stack->bytes)
			add(context, stack->sample, stack->walked, stack->bytes, stack->objects);
	}
}

void live_set_counters(const struct live_set *set, struct live_counters *out)
{
	*out = set->counters;
}
