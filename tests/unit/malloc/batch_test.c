/* SPDX-License-Identifier: Apache-2.0 */
/* Samples that wait in the program, and what the agent makes of what it is told of them: probes are
 * functions of this test, the stack is this thread's. */
#include "node-agent/malloc/batch.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "node-agent/capture/alloc_batch.h"
#include "node-agent/malloc/probes.h"
#include "node-agent/malloc/sampled_blocks.h"
#include "tests/check.h"

enum { SINGLES = 100, STORED = 64 };

volatile uint16_t probe_alloc_listeners = 1, probe_free_listeners = 1, probe_batch_listeners = 1;

static union {
	struct sample_event event;
	uint8_t room[sizeof(struct sample_event) + ALLOC_BATCH_BYTES];
} told;
static unsigned batches, frees;
static uintptr_t freed, ends_meanwhile;

void probe_alloc(uintptr_t user, uint64_t size, uint64_t weighted)
{
	(void)user, (void)size, (void)weighted;
}

void probe_free(uintptr_t user)
{
	freed = user;
	frees++;
}

void probe_batch(const void *records, uint64_t bytes, uint64_t number)
{
	unsigned tag;

	told.event = (struct sample_event){.type = EVENT_ALLOC_BATCH,
					   .size = (uint32_t)(sizeof told.event + bytes),
					   .time_ns = UINT64_MAX,
					   .batch = {.bytes = bytes, .number = (uint32_t)number}};
	memcpy((uint8_t *)&told.event + sizeof told.event, records, bytes);
	batches++;
	if (ends_meanwhile)
		CHECK(sampled_blocks_remove(ends_meanwhile, &tag) && tag);
}

static uintptr_t address_of(size_t number)
{
	return 0x7f1000001010 + number * 208;
}

/* The samples of the last batch. */
static uint32_t read_batch(struct alloc_batch_sample *samples)
{
	uint32_t at = 0, count = 0;

	CHECK(alloc_batch_is_whole(&told.event, told.event.size));
	while (count < STORED && alloc_batch_next(&told.event, &at, &samples[count]))
		count++;
	CHECK_NUMBER(at, told.event.batch.bytes);
	return count;
}

/* Now and then one is to be told by itself, and more have to wait for room. */
static bool wait_in(size_t number, uint64_t bytes, uint64_t weighted)
{
	for (int i = 0; i < SINGLES; i++, usleep(1000))
		if (batch_add(address_of(number), bytes, weighted))
			return true;
	return false;
}

static void test_the_first_are_told_by_themselves(void)
{
	unsigned singles = 0;

	CHECK(!batch_add(address_of(1), 100, 1000));
	CHECK(!batch_add(address_of(1), 100, 1000));
	usleep(1100000);
	while (singles < SINGLES * 2 && !batch_add(address_of(1), 100, 1000))
		singles++;
	CHECK(singles >= SINGLES && singles < SINGLES * 2);
	batch_flush();
	CHECK_NUMBER(batches, 1);
}

static const uint64_t *word_at(const struct stack_copy_event *copy, const void *address)
{
	const uint64_t at = (uint64_t)(uintptr_t)address - copy->sp;

	return at < copy->stack_bytes ? (const uint64_t *)(copy->stack + at) : NULL;
}

/* Registers and stack: the return address of the caller's caller lies where it lay; a number does
 * not. */
__attribute__((noinline)) static void check_stack(struct alloc_batch_sample *samples)
{
	void *volatile code = __builtin_return_address(0);
	volatile uint64_t number = 42;

	CHECK(wait_in(2, 300, 4000));
	batch_flush();
	CHECK_NUMBER(read_batch(samples), 1);
	CHECK_NUMBER(samples->sample.event.alloc.bytes, 4000);
	CHECK_NUMBER(samples->sample.event.alloc.size, 300);
	CHECK_NUMBER(samples->sample.event.alloc.key, address_of(2));
	CHECK_NUMBER(samples->sample.event.frames[0], samples->copy.event.ip);
	CHECK(samples->copy.event.sp < (uintptr_t)&code);
	CHECK(word_at(&samples->copy.event, (const void *)&code) &&
	      *word_at(&samples->copy.event, (const void *)&code) == (uintptr_t)code);
	CHECK(word_at(&samples->copy.event, (const void *)&number) &&
	      *word_at(&samples->copy.event, (const void *)&number) == 0);
}

static void test_one(void)
{
	static struct alloc_batch_sample samples[STORED];
	unsigned tag = 1;

	check_stack(samples);
	CHECK(sampled_blocks_remove(address_of(2), &tag) && !tag);
}

static void test_ends(void)
{
	static struct alloc_batch_sample samples[STORED];
	unsigned tag, before = frees;

	CHECK(wait_in(3, 1, 1) && wait_in(4, 1, 1) && wait_in(5, 1, 1));
	CHECK(sampled_blocks_remove(address_of(4), &tag) && tag); /* it needs no telling */
	CHECK(sampled_blocks_add(address_of(4), 0));              /* another one's */
	ends_meanwhile = address_of(5);
	batch_flush();
	ends_meanwhile = 0;
	CHECK_NUMBER(read_batch(samples), 3);
	CHECK_NUMBER(samples[0].sample.event.alloc.key, address_of(3));
	CHECK_NUMBER(samples[1].sample.event.alloc.key, ALLOC_KEY_ENDED);
	CHECK_NUMBER(samples[2].sample.event.alloc.key, address_of(5));
	CHECK_NUMBER(frees, before + 1);
	CHECK_NUMBER(freed, address_of(5));
	CHECK(sampled_blocks_remove(address_of(3), &tag) && !tag);
	CHECK(sampled_blocks_remove(address_of(4), &tag) && !tag);
}

static void test_many(void)
{
	const unsigned before = batches;
	unsigned tag, added = 0;

	for (unsigned i = 0; i < 200; i++)
		added += wait_in(10 + i, 1, 1);
	batch_flush();
	printf("# %u in %u batches\n", added, batches - before);
	CHECK(added == 200 && batches - before > 1 && batches - before < 40);
	for (unsigned i = 0; i < 200; i++)
		CHECK(sampled_blocks_remove(address_of(10 + i), &tag) && !tag);
}

/* Its thread's end leaves it behind: others tell it, as another's. */
static void *add_one(void *argument)
{
	return (void *)(uintptr_t)wait_in((size_t)(uintptr_t)argument, 1, 1);
}

static void test_threads(void)
{
	static struct alloc_batch_sample samples[STORED];
	pthread_t thread;
	void *added;

	pthread_create(&thread, NULL, add_one, (void *)6);
	pthread_join(thread, &added);
	CHECK(added);
	batch_flush();
	CHECK_NUMBER(read_batch(samples), 1);
	CHECK(told.event.batch.number & ALLOC_BATCH_FOREIGN);
	CHECK_NUMBER(samples->sample.event.tid, 0);
	CHECK(wait_in(7, 1, 1));
	batch_flush();
	CHECK(!(told.event.batch.number & ALLOC_BATCH_FOREIGN));
}

static void test_fork(void)
{
	const unsigned before = batches;
	int status = 1;
	pid_t child;

	CHECK(wait_in(8, 1, 1));
	child = fork();
	if (!child) {
		batch_flush();
		_exit(batches == before ? 0 : 1);
	}
	CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
	batch_flush();
	CHECK_NUMBER(batches, before + 1);
}

static volatile unsigned handled;

static void handle(int number)
{
	(void)number;
	handled += batch_add(address_of(300 + handled % 100), 1, 1) || true;
}

/* A handler that allocates, wherever it comes. */
static void test_signals(void)
{
	const struct itimerspec often = {{0, 50000}, {0, 50000}};
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
	uint32_t at = 0, count = 0;
	static struct alloc_batch_sample one;
	timer_t timer;

	signal(SIGUSR1, handle);
	CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
	timer_settime(timer, 0, &often, NULL);
	for (unsigned i = 0; i < 200000 || handled < 20; i++)
		batch_add(address_of(500 + i % 100), 1, 1);
	timer_delete(timer);
	signal(SIGUSR1, SIG_DFL);
	batch_flush();
	while (alloc_batch_next(&told.event, &at, &one))
		count++;
	CHECK_NUMBER(at, told.event.batch.bytes);
	CHECK_NUMBER(count, told.event.batch.number & ALLOC_BATCH_COUNT);
}

static void test_nobody_listens(void)
{
	const unsigned before = batches;

	CHECK(wait_in(9, 1, 1));
	probe_alloc_listeners = probe_batch_listeners = 0;
	CHECK(!batch_add(address_of(9), 1, 1));
	batch_drop();
	probe_alloc_listeners = probe_batch_listeners = 1;
	batch_flush();
	CHECK_NUMBER(batches, before);
}

static void test_what_is_damaged(void)
{
	static struct alloc_batch_sample one;
	struct alloc_record *record = (struct alloc_record *)(void *)told.event.frames;
	uint32_t at = 0;

	CHECK(!batch_add(address_of(9), 1, 1)); /* somebody new listens */
	usleep(1100000);
	CHECK(wait_in(9, 1, 1) || wait_in(9, 1, 1));
	batch_flush();
	CHECK(alloc_batch_next(&told.event, &at, &one));
	record->words = ALLOC_STACK_WORDS; /* more than are there */
	at = 0;
	CHECK(!alloc_batch_next(&told.event, &at, &one));
	record->words = 0;
	record->size++;
	at = 0;
	CHECK(!alloc_batch_next(&told.event, &at, &one));
}

/* What waits is told, and nothing more waits. */
static void test_end(void)
{
	const unsigned before = batches;

	CHECK(wait_in(9, 1, 1) || wait_in(9, 1, 1));
	batch_end();
	CHECK(!wait_in(9, 1, 1) && !wait_in(9, 1, 1));
	batch_flush();
	CHECK_NUMBER(batches, before + 1);
}

int main(void)
{
	batch_init();
	test_the_first_are_told_by_themselves();
	test_one();
	test_ends();
	test_many();
	test_threads();
	test_fork();
	test_signals();
	test_nobody_listens();
	test_what_is_damaged();
	test_end();
	return checks_done();
}
