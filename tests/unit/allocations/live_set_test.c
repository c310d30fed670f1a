/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces that are taken and given back, in every order of records, against a tally kept beside it:
 * what is in use of each stack, and nothing when all is given back or its process has ended. */
#include "tests/check.h"

#include <stdlib.h>
#include <string.h>

#include "bpf/results.h"
#include "bpf/thread_context.h"
#include "node-agent/allocations/live_set.h"

static struct {
	uint64_t bytes, objects, by_leaf[8];
	unsigned stacks;
} found;

static void add(void *context, const struct sample_event *sample, size_t walked, uint64_t bytes,
		uint64_t objects)
{
	(void)context, (void)walked;
	found.stacks++;
	found.bytes += bytes;
	found.objects += objects;
	found.by_leaf[sample->frames[0] % 8] += bytes;
}

static struct processes *registry;

static struct live_set *new_set(void)
{
	registry = processes_new(100, NULL);
	return live_set_new(registry, NULL);
}

static void free_set(struct live_set *set)
{
	live_set_free(set);
	processes_free(registry);
}

static void look(const struct live_set *set)
{
	memset(&found, 0, sizeof found);
	live_set_report(set, add, NULL);
}

static const struct sample_event *stack(uint32_t tgid, uint64_t leaf, uint64_t time_ns)
{
	static uint64_t room[64];
	struct sample_event *sample = (struct sample_event *)room;

	memset(room, 0, sizeof room);
	sample->tgid = tgid;
	sample->start_time_ns = 7;
	sample->time_ns = time_ns;
	sample->user_count = 2;
	sample->frames[0] = leaf;
	sample->frames[1] = 99;
	return sample;
}

static struct process_key owner(uint32_t tgid)
{
	return (struct process_key){.tgid = tgid, .start_time_ns = 7};
}

static void take(struct live_set *set, uint32_t tgid, uint64_t key, uint64_t bytes, uint64_t at)
{
	const struct live_piece piece = {owner(tgid), key, at, bytes, LIVE_OBJECT, false};

	live_set_take(set, &piece);
}

static void give(struct live_set *set, uint32_t tgid, uint64_t key)
{
	const struct process_key who = owner(tgid);

	live_set_give(set, &who, key, UINT64_MAX);
}

static void blocks(void)
{
	struct live_set *set = new_set();
	struct live_counters counters;

	take(set, 1, 0x1000, 100, 1);
	live_set_stack(set, 0x1000, stack(1, 1, 1), 2);
	take(set, 1, 0x2000, 10, 2);
	take(set, 1, 0x3000, 5, 3);
	live_set_stack(set, 0x3000, stack(1, 2, 3), 2);
	look(set);
	CHECK(found.bytes == 105 && found.stacks == 2);
	live_set_stack(set, 0x2000, stack(1, 1, 2), 2); /* late, and a stack that is known */
	look(set);
	CHECK(found.bytes == 115 && found.stacks == 2 && found.by_leaf[1] == 110);
	CHECK(found.objects == 3 * LIVE_OBJECT);
	give(set, 1, 0x1000);
	give(set, 1, 0x1000);
	live_set_counters(set, &counters);
	CHECK(counters.unknown == 1 && counters.freed == 1 && counters.pieces == 2);
	take(set, 1, 0x2000, 20, 4);                    /* its end was missed */
	live_set_stack(set, 0x2000, stack(1, 3, 2), 2); /* of the one before */
	look(set);
	CHECK(found.bytes == 5);
	live_set_stack(set, 0x2000, stack(1, 3, 4), 2);
	look(set);
	CHECK(found.bytes == 25 && found.by_leaf[3] == 20);
	give(set, 1, 0x2000);
	give(set, 1, 0x3000);
	look(set);
	live_set_counters(set, &counters);
	CHECK(!found.stacks && !counters.pieces && !counters.stacks && !counters.stack_bytes);
	CHECK(!counters.owners && counters.replaced == 1);
	free_set(set);
}

static void buckets(void)
{
	struct live_set *set = new_set();
	struct live_piece piece = {owner(1), 0xb, 1, 64, LIVE_OBJECT, true};
	const struct sample_event *better;

	for (unsigned i = 0; i < 10; i++, piece.time_ns++)
		live_set_take(set, &piece);
	live_set_stack(set, 0xb, stack(1, 1, 3), 2); /* anyone's is right */
	look(set);
	CHECK(found.bytes == 640 && found.by_leaf[1] == 640);
	better = stack(1, 2, 4);
	((struct sample_event *)better)->result = WALK_read_fault;
	live_set_stack(set, 0xb, better, 2); /* there is a whole one */
	look(set);
	CHECK(found.bytes == 640 && found.by_leaf[1] == 640 && found.objects == 10 * LIVE_OBJECT);
	for (unsigned i = 0; i < 9; i++)
		give(set, 1, 0xb);
	look(set);
	CHECK(found.bytes == 64);
	give(set, 1, 0xb);
	live_set_take(set, &piece);
	better = stack(1, 3, 4);
	((struct sample_event *)better)->result = WALK_read_fault;
	live_set_stack(set, 0xb, better, 2);
	look(set);
	CHECK(found.bytes == 64 && found.by_leaf[3] == 64);
	live_set_stack(set, 0xb, stack(1, 5, 5), 2);
	look(set);
	CHECK(found.bytes == 64 && found.by_leaf[5] == 64);
	piece.bytes = 128; /* the rate has changed */
	live_set_take(set, &piece);
	look(set);
	CHECK(found.bytes == 256);
	give(set, 1, 0xb);
	give(set, 1, 0xb);
	look(set);
	CHECK(!found.stacks);
	free_set(set);
}

static void processes(void)
{
	struct live_set *set = new_set();
	struct live_piece piece = {
		{.tgid = 1, .start_time_ns = 7, .exec_id = 1}, 1, 1, 9, 0, false};
	struct live_counters counters;

	for (uint32_t tgid = 1; tgid <= 3; tgid++) {
		take(set, tgid, 1, 10 * tgid, 1);
		live_set_stack(set, 1, stack(tgid, 1, 1), 2);
	}
	look(set);
	CHECK(found.bytes == 60 && found.stacks == 3); /* one address each: not one piece */
	live_set_end(set, 3);
	look(set);
	CHECK(found.bytes == 30);
	live_set_take(set, &piece); /* execve(): what was before is gone */
	look(set);
	CHECK(found.bytes == 20);
	processes_exit(registry, 1, 100);
	live_set_counters(set, &counters);
	CHECK(counters.owners == 1 && counters.pieces == 1);
	processes_exit(registry, 2, 101);
	live_set_counters(set, &counters);
	CHECK(!counters.owners && !counters.pieces && !counters.stacks);
	free_set(set);
}

static void too_many(void)
{
	struct live_set *set = new_set();
	struct live_counters counters;

	for (uint32_t i = 0; i < 100000; i++) {
		take(set, 1, 16 * (uint64_t)i, 1, i);
		live_set_stack(set, 16 * (uint64_t)i, stack(1, i, i), 2);
	}
	live_set_counters(set, &counters);
	CHECK(counters.refused && counters.pieces + counters.refused == 100000);
	look(set);
	CHECK(found.bytes == counters.pieces);
	CHECK(counters.stack_bytes <= 4 << 20);
	for (uint32_t i = 0; i < 100000; i++)
		give(set, 1, 16 * (uint64_t)i);
	live_set_counters(set, &counters);
	CHECK(!counters.pieces && !counters.stacks && counters.unknown == counters.refused);
	free_set(set);
}

static void at_random(void)
{
	enum { KEYS = 64, STEPS = 200000 };
	struct live_set *set = new_set();
	uint64_t bytes[KEYS] = {0}, leaf[KEYS] = {0}, want[8];
	unsigned seed = 1;

	for (unsigned step = 1; step < STEPS; step++) {
		unsigned i = (unsigned)rand_r(&seed) % KEYS;

		if (bytes[i]) {
			give(set, 1 + i % 3, 16 * i);
			bytes[i] = 0;
		} else {
			bytes[i] = 1 + (unsigned)rand_r(&seed) % 1000;
			leaf[i] = (unsigned)rand_r(&seed) % 8;
			take(set, 1 + i % 3, 16 * i, bytes[i], step);
			live_set_stack(set, 16 * i, stack(1 + i % 3, leaf[i], step), 2);
		}
	}
	memset(want, 0, sizeof want);
	for (unsigned i = 0; i < KEYS; i++)
		want[leaf[i]] += bytes[i];
	look(set);
	CHECK(!memcmp(want, found.by_leaf, sizeof want));
	free_set(set);
}

static void is_self_contained(void *context, const struct sample_event *sample, size_t walked,
			      uint64_t bytes, uint64_t objects)
{
	uint32_t published;

	(void)context, (void)walked, (void)bytes, (void)objects;
	found.stacks++;
	CHECK(sample->size == sample_event_frames_end(sample));
	CHECK(!sample_event_context(sample, &published) && !published);
}

/* A stack is kept for all requests that took memory there: the copy ends with its frames. */
static void of_a_request(void)
{
	struct live_set *set = new_set();
	struct sample_event *sample = (struct sample_event *)stack(1, 1, 1);

	sample->flags = SAMPLE_HAS_CONTEXT;
	sample->size = sample_event_frames_end(sample) + THREAD_CONTEXT_HEADER + 4;
	take(set, 1, 0x1000, 100, 1);
	live_set_stack(set, 0x1000, sample, 2);
	found.stacks = 0;
	live_set_report(set, is_self_contained, NULL);
	CHECK(found.stacks == 1);
	free_set(set);
}

/* One native stack, two interpreted ones. */
static void of_interpreters(void)
{
	struct live_set *set = new_set();

	for (uint32_t i = 0; i < 4; i++) {
		struct sample_event *sample = (struct sample_event *)stack(1, 1, 1);

		sample->user_count = 2 - i % 2;
		sample->runtime_count = i % 2; /* the same word, another kind of frame */
		take(set, 1, 0x1000 + i, 100, 1);
		live_set_stack(set, 0x1000 + i, sample, 1);
	}
	found.stacks = 0;
	live_set_report(set, is_self_contained, NULL);
	CHECK(found.stacks == 2);
	free_set(set);
}

static uint64_t three(void *context, uint64_t key)
{
	(void)context;
	return key == 0xb ? 3 : UINT64_MAX;
}

static void lost_ends(void)
{
	struct live_set *set = new_set();
	struct live_piece piece = {owner(1), 0xb, 1, 64, LIVE_OBJECT, true};
	const struct process_key who = owner(1);

	for (unsigned i = 0; i < 10; i++, piece.time_ns++)
		live_set_take(set, &piece);
	live_set_stack(set, 0xb, stack(1, 1, 1), 2);
	piece.key = 0xc;
	live_set_take(set, &piece);
	live_set_stack(set, 0xc, stack(1, 2, piece.time_ns), 2);
	CHECK_NUMBER(live_set_bound(set, 2, three, NULL, 100), 0);
	CHECK_NUMBER(live_set_bound(set, 1, three, NULL, 100), 7);
	CHECK_NUMBER(live_set_bound(set, 1, three, NULL, 101), 0);
	piece.key = 0xb;
	piece.time_ns = 99; /* of before, and told later: it is counted */
	live_set_take(set, &piece);
	live_set_give(set, &who, 0xb, 100);
	look(set);
	CHECK(found.by_leaf[1] == 3 * 64 && found.by_leaf[2] == 64);
	piece.time_ns = 101;
	live_set_take(set, &piece);
	live_set_give(set, &who, 0xb, 102);
	live_set_give(set, &who, 0xb, 103);
	look(set);
	CHECK(found.by_leaf[1] == 2 * 64);
	live_set_end(set, 1);
	look(set);
	CHECK(!found.stacks);
	free_set(set);
}

int main(void)
{
	lost_ends();
	blocks();
	of_a_request();
	of_interpreters();
	buckets();
	processes();
	too_many();
	at_random();
	return checks_done();
}
