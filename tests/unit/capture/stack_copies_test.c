/* SPDX-License-Identifier: Apache-2.0 */
/* Copied stacks and their samples find each other, over a ring that is written here as the kernel
 * writes it. */
#include <linux/bpf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "node-agent/capture/stack_copies.h"
#include "tests/check.h"

enum { RING = 1 << 20, SECOND = 1000000000, CPUS = 4 };

static uint64_t consumer, producer;
static uint8_t *data;
static struct stack_copies copies;
static uint64_t last_taken[CPUS];
static uint64_t now_ns = SECOND;
static unsigned mismatched;

static uint64_t delivered(const void *context, uint32_t cpu)
{
	(void)context;
	return last_taken[cpu];
}

static void world_clear(void)
{
	const struct sample_ring ring = {
		.consumer = &consumer, .producer = &producer, .data = data, .bytes = RING};

	consumer = producer = 0;
	memset(last_taken, 0, sizeof last_taken);
	stack_copies_init(&copies, &ring);
}

static uint32_t *header_at(uint64_t position)
{
	return (uint32_t *)(void *)(data + position % RING);
}

/* Returns its place; bits: BPF_RINGBUF_…_BIT. Nothing here wraps within a record. */
static uint64_t copy_put(uint32_t cpu, uint64_t cpu_taken, uint32_t length, uint32_t bits)
{
	struct stack_copy_event *copy = (void *)(data + producer % RING + 8);
	uint64_t at = producer;

	*header_at(at) = length | bits;
	*copy = (struct stack_copy_event){
		.type = EVENT_STACK_COPY,
		.size = length,
		.cpu = cpu,
		.cpu_taken = cpu_taken,
		.stack_bytes = length - (uint32_t)sizeof *copy,
	};
	producer += 8 + (length + 7) / 8 * 8;
	return at;
}

static const uint32_t small = sizeof(struct stack_copy_event) + STACK_COPY_BYTES_MIN;

/* 1: found, 0: there is none, −1: it may still come */
static int take(uint32_t cpu, uint64_t cpu_taken)
{
	bool is_coming;
	const struct stack_copy_event *copy = stack_copies_take(&copies, cpu, cpu_taken, now_ns,
								&is_coming);

	last_taken[cpu] = copy || !is_coming ? cpu_taken : last_taken[cpu];
	mismatched += copy && (copy->cpu != cpu || copy->cpu_taken != cpu_taken || is_coming);
	return copy ? 1 : is_coming ? -1 : 0;
}

static void settle(void)
{
	stack_copies_settle(&copies, delivered, NULL, now_ns);
}

/* Two CPUs may write their samples in the other order. */
static void test_pairs(void)
{
	world_clear();
	copy_put(0, 11, small, 0);
	copy_put(1, 5, small, 0);
	copy_put(0, 12, small, 0);
	CHECK_NUMBER(take(1, 5), 1);
	settle();
	CHECK_NUMBER(consumer, 0); /* the oldest is still wanted */
	CHECK_NUMBER(take(0, 11), 1);
	CHECK_NUMBER(take(0, 12), 1);
	CHECK_NUMBER(take(0, 12), 0);
	settle();
	CHECK_NUMBER(consumer, producer);
	CHECK_NUMBER(copies.taken, 3);
	CHECK_NUMBER(copies.unmatched, 0);
	CHECK_NUMBER(copies.bytes, 3 * small);
}

static void test_still_written(void)
{
	uint64_t at;

	world_clear();
	copy_put(0, 1, small, 0);
	at = copy_put(2, 1, small, BPF_RINGBUF_BUSY_BIT);
	copy_put(1, 1, small, 0);
	CHECK_NUMBER(take(0, 1), 1);
	CHECK_NUMBER(take(1, 1), -1); /* behind one that is being written */
	settle();
	CHECK_NUMBER(consumer, at);
	*header_at(at) &= ~BPF_RINGBUF_BUSY_BIT;
	CHECK_NUMBER(take(1, 1), 1);
	CHECK_NUMBER(take(2, 1), 1);
	settle();
	CHECK_NUMBER(consumer, producer);
	CHECK_NUMBER(take(1, 2), 0);
}

/* Their samples found no room. */
static void test_orphans(void)
{
	world_clear();
	copy_put(0, 1, small, 0);
	copy_put(1, 1, small, 0);
	copy_put(0, 3, small, 0);
	CHECK_NUMBER(take(0, 3), 1);
	settle(); /* the CPU is past 1 */
	CHECK_NUMBER(copies.unmatched, 1);
	CHECK_NUMBER(consumer, 8 + small);
	now_ns += STACK_COPIES_WAIT_MS * 1000000ULL;
	settle();
	CHECK_NUMBER(copies.unmatched, 1);
	now_ns += 1;
	settle(); /* nothing comes from the other one any more */
	CHECK_NUMBER(copies.unmatched, 2);
	CHECK_NUMBER(consumer, producer);
	CHECK_NUMBER(copies.count, 0);
}

/* Seen with an earlier sample, and the agent was busy before it looked at their own: the first of
 * them does not make the others late. */
static void test_seen_early(void)
{
	world_clear();
	copy_put(0, 1, small, 0);
	copy_put(0, 2, small, 0);
	copy_put(1, 1, small, 0);
	CHECK_NUMBER(take(2, 1), 0);
	settle();
	now_ns += (STACK_COPIES_WAIT_MS + 50) * 1000000ULL;
	CHECK_NUMBER(take(0, 1), 1);
	stack_copies_release(&copies, delivered, NULL);
	CHECK_NUMBER(consumer, 8 + small);
	CHECK_NUMBER(take(0, 2), 1);
	CHECK_NUMBER(take(1, 1), 1);
	settle();
	CHECK_NUMBER(consumer, producer);
	CHECK_NUMBER(copies.taken, 3);
	CHECK_NUMBER(copies.unmatched, 0);
}

static void test_not_copies(void)
{
	uint64_t at;

	world_clear();
	at = copy_put(0, 1, small, 0);
	((struct stack_copy_event *)(void *)(data + at + 8))->stack_bytes = STACK_COPY_BYTES_MIN +
									    1;
	at = copy_put(0, 2, small, 0);
	((struct stack_copy_event *)(void *)(data + at + 8))->size = small + 8;
	at = copy_put(0, 3, small, 0);
	((struct stack_copy_event *)(void *)(data + at + 8))->type = EVENT_SAMPLE_CPU;
	at = copy_put(0, 4, small, 0);
	*header_at(at) = 16;
	producer = at + 8 + 16;
	copy_put(0, 5, small, BPF_RINGBUF_DISCARD_BIT);
	copy_put(0, 6, small, 0);
	for (uint64_t taken = 1; taken <= 5; taken++)
		CHECK_NUMBER(take(0, taken), 0);
	CHECK_NUMBER(take(0, 6), 1);
	settle();
	CHECK_NUMBER(copies.unmatched, 4);
	CHECK_NUMBER(consumer, producer);
}

/* More than can be noted at once, round and round the ring. */
static void test_many(void)
{
	uint64_t taken = 0, asked = 0;
	unsigned found = 0;

	world_clear();
	for (int round = 0; round < 20; round++) {
		for (int i = 0; i < STACK_COPIES_HELD + 20; i++) {
			if (producer % RING + 8 + small > RING) /* see copy_put() */
				break;
			copy_put(3, ++taken, small, 0);
		}
		while (asked < taken) {
			int result = take(3, asked + 1);

			if (result < 0)
				settle();
			else
				found += (unsigned)result, asked++;
		}
		settle();
		CHECK_NUMBER(consumer, producer);
		producer = consumer = (producer + RING - 1) / RING * RING;
		copies.position = producer;
	}
	CHECK_NUMBER(found, taken);
	CHECK(taken > 20 * STACK_COPIES_HELD);
	CHECK_NUMBER(copies.unmatched, 0);
}

int main(void)
{
	data = calloc(1, RING);
	if (!data)
		return 1;
	test_pairs();
	test_still_written();
	test_orphans();
	test_seen_early();
	test_not_copies();
	test_many();
	CHECK_NUMBER(mismatched, 0);
	free(data);
	return checks_done();
}
