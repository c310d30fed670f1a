/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks of blocks, their wakers and their ends, in every order: each block counts once, with what
 * it stood for, and nothing is left behind. */
#include "tests/check.h"

#include <string.h>

#include "node-agent/waits/waits.h"

#define SECOND UINT64_C(1000000000)

/* --- samples: remembers what is added --- */

static struct {
	uint64_t value[SAMPLE_TYPE_COUNT], last[SAMPLE_TYPE_COUNT];
	unsigned count[SAMPLE_TYPE_COUNT];
	size_t walked;
	char waker[COMM_LENGTH + 1];
	uint64_t last_frame;
} added;

void samples_add_held(struct samples *samples, const struct sample_event *sample, size_t walked,
		      const struct sample_worth *worth)
{
	(void)samples;
	added.value[worth->type] += worth->value;
	added.last[worth->type] = worth->value;
	added.count[worth->type]++;
	added.walked = walked;
	if (worth->type == SAMPLE_TYPE_off_cpu)
		snprintf(added.waker, sizeof added.waker, "%.16s",
			 worth->other ? worth->other->process_comm : "-");
	added.last_frame = sample->frames[sample->kernel_count + sample->user_count - 1];
}

/* --- the kernel side --- */

static struct thread_switch thread;
static bool is_known = true;

static bool look(void *context, uint32_t tid, struct thread_switch *out)
{
	(void)context, (void)tid;
	*out = thread;
	return is_known;
}

static struct waits *make(uint32_t types)
{
	const struct waits_sources sources = {.types = types, .look = look};

	memset(&added, 0, sizeof added);
	return waits_new(&sources, NULL);
}

static const struct sample_event *stack(uint16_t type, uint32_t tid, uint32_t block,
					uint64_t time_ns)
{
	static uint64_t room[256];
	struct sample_event *sample = (struct sample_event *)room;
	uint64_t *frames = (uint64_t *)sample->frames;

	memset(room, 0, sizeof room);
	sample->type = type;
	sample->wait.tid = tid;
	sample->wait.block = block;
	sample->time_ns = sample->wait.since_ns = time_ns;
	sample->kernel_count = 1;
	sample->user_count = 3;
	sample->size = sizeof *sample + 32;
	frames[3] = 0x77;
	memcpy(sample->process_comm, type == EVENT_SAMPLE_WAKER ? "rooster" : "sleeper", 8);
	return sample;
}

static struct switch_in_event end_of(uint32_t tid, uint32_t block, uint64_t since_ns, uint64_t ns,
				     uint64_t queued_ns, uint8_t weight_log2)
{
	return (struct switch_in_event){.type = EVENT_SWITCH_IN,
					.state = SWITCH_INTERRUPTIBLE,
					.weight_log2 = weight_log2,
					.tid = tid,
					.block = block,
					.since_ns = since_ns,
					.time_ns = since_ns + ns,
					.runnable_ns = queued_ns ? since_ns + ns - queued_ns : 0};
}

static void check_empty(struct waits *waits)
{
	struct waits_counters counters;

	waits_counters(waits, &counters);
	CHECK_NUMBER(counters.kept, 0);
	CHECK_NUMBER(counters.kept_bytes, 0);
	waits_free(waits);
}

/* Every order in which the end is known last, or before the stacks are finished. */
static void check_orders(void)
{
	static const char *const orders[] = {"sShHe", "sSehH", "SshHe", "sSHhe", "sSHeh", "sSeHh"};

	for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
		struct waits *waits = make(~0U);
		struct switch_in_event end = end_of(7, 3, SECOND, 5000, 100, 4);

		for (const char *step = orders[i]; *step; step++) {
			uint16_t type = *step == 's' || *step == 'h' ? EVENT_SAMPLE_SWITCH
								     : EVENT_SAMPLE_WAKER;

			CHECK_NUMBER(added.count[SAMPLE_TYPE_off_cpu], 0);
			if (*step == 'e')
				waits_end(waits, &end);
			else if (*step == 's' || *step == 'S')
				waits_expect(waits, stack(type, 7, 3, SECOND));
			else
				waits_hold(waits, stack(type, 7, 3, SECOND), 2);
		}
		CHECK_NUMBER(added.count[SAMPLE_TYPE_off_cpu], 1);
		CHECK_NUMBER(added.value[SAMPLE_TYPE_off_cpu], 5000 * 16);
		CHECK_NUMBER(added.count[SAMPLE_TYPE_waker], 1);
		CHECK_NUMBER(added.value[SAMPLE_TYPE_waker], 5000 * 16);
		CHECK_NUMBER(added.value[SAMPLE_TYPE_run_queue], 100 * 16);
		CHECK_NUMBER(added.count[SAMPLE_TYPE_still_blocked], 0);
		CHECK_TEXT(added.waker, "rooster");
		CHECK_NUMBER(added.walked, 2);
		CHECK_NUMBER(added.last_frame, 0x77);
		check_empty(waits);
	}
}

static void hold_one(struct waits *waits, uint32_t tid, uint32_t block, uint64_t time_ns)
{
	waits_expect(waits, stack(EVENT_SAMPLE_SWITCH, tid, block, time_ns));
	waits_hold(waits, stack(EVENT_SAMPLE_SWITCH, tid, block, time_ns), 1);
}

/* What does not count as a wait. */
static void check_rules(void)
{
	struct waits *waits = make(~0U);
	struct switch_in_event end = end_of(7, 1, SECOND, SWITCH_WAIT_LIMIT_NS, 0, 0);
	struct waits_counters counters;

	hold_one(waits, 7, 1, SECOND);
	waits_end(waits, &end);
	CHECK_NUMBER(added.count[SAMPLE_TYPE_off_cpu], 1); /* an hour exactly */
	hold_one(waits, 7, 2, SECOND);
	end = end_of(7, 2, SECOND, SWITCH_WAIT_LIMIT_NS + 1, 0, 0);
	waits_end(waits, &end);
	CHECK_NUMBER(added.count[SAMPLE_TYPE_off_cpu], 1);
	waits_counters(waits, &counters);
	CHECK_NUMBER(counters.too_long, 1);
	CHECK_NUMBER(counters.covered_ns, SWITCH_WAIT_LIMIT_NS);
	/* preempted: it did not wait, but it queued */
	hold_one(waits, 7, 3, SECOND);
	end = end_of(7, 3, SECOND, 400, 400, 1);
	end.state = SWITCH_RUNNABLE;
	waits_end(waits, &end);
	CHECK_NUMBER(added.count[SAMPLE_TYPE_off_cpu], 1);
	CHECK_NUMBER(added.last[SAMPLE_TYPE_run_queue], 800);
	/* the end of a block whose stack was lost */
	end = end_of(7, 4, SECOND, 400, 400, 1);
	waits_end(waits, &end);
	CHECK_NUMBER(added.count[SAMPLE_TYPE_off_cpu], 1);
	/* who ended a block that has no stack, and so no weight that holds */
	waits_expect(waits, stack(EVENT_SAMPLE_WAKER, 7, 5, SECOND));
	waits_hold(waits, stack(EVENT_SAMPLE_WAKER, 7, 5, SECOND), 1);
	end = end_of(7, 5, SECOND, 400, 0, 25);
	waits_end(waits, &end);
	CHECK_NUMBER(added.count[SAMPLE_TYPE_waker], 0);
	check_empty(waits);
	waits = make(1 << SAMPLE_TYPE_still_blocked);
	hold_one(waits, 7, 1, SECOND);
	end = end_of(7, 1, SECOND, 400, 400, 1);
	waits_end(waits, &end);
	CHECK_NUMBER(added.count[SAMPLE_TYPE_off_cpu], 0);
	check_empty(waits);
}

/* The agent ends: a wait whose waker's stack is on its way counts without it, one that goes on does
 * not. */
static void check_finish(void)
{
	struct waits *waits = make(~0U);
	struct switch_in_event end = end_of(7, 1, SECOND, 5000, 0, 1);
	struct waits_counters counters;

	hold_one(waits, 7, 1, SECOND);
	waits_expect(waits, stack(EVENT_SAMPLE_WAKER, 7, 1, SECOND));
	waits_end(waits, &end);
	hold_one(waits, 8, 1, SECOND);
	CHECK_NUMBER(added.count[SAMPLE_TYPE_off_cpu], 0);
	waits_finish(waits);
	CHECK_NUMBER(added.count[SAMPLE_TYPE_off_cpu], 1);
	CHECK_NUMBER(added.value[SAMPLE_TYPE_off_cpu], 10000);
	CHECK_NUMBER(added.count[SAMPLE_TYPE_waker], 0);
	waits_counters(waits, &counters);
	CHECK_NUMBER(counters.kept, 1);
	waits_finish(NULL);
	waits_free(waits);
}

static void check_still_blocked(void)
{
	struct waits *waits = make(~0U);
	struct switch_in_event end = end_of(7, 5, SECOND, 40 * SECOND, 0, 0);
	struct waits_counters counters;

	thread = (struct thread_switch){.since_ns = SECOND, .block = 5};
	hold_one(waits, 7, 5, SECOND);
	waits_report(waits, 11 * SECOND - 1);
	CHECK_NUMBER(added.count[SAMPLE_TYPE_still_blocked], 0);
	waits_report(waits, 12 * SECOND);
	CHECK_NUMBER(added.last[SAMPLE_TYPE_still_blocked], 11 * SECOND);
	waits_report(waits, 22 * SECOND);
	CHECK_NUMBER(added.last[SAMPLE_TYPE_still_blocked], 10 * SECOND);
	CHECK_NUMBER(added.count[SAMPLE_TYPE_off_cpu], 0); /* not before it wakes */
	waits_end(waits, &end);
	CHECK_NUMBER(added.count[SAMPLE_TYPE_off_cpu], 1);
	CHECK_NUMBER(added.value[SAMPLE_TYPE_off_cpu], 40 * SECOND);
	waits_report(waits, 52 * SECOND);
	CHECK_NUMBER(added.count[SAMPLE_TYPE_still_blocked], 2);
	/* its end is on its way; its end got lost; it has ended altogether */
	hold_one(waits, 7, 5, SECOND);
	thread.since_ns = 0;
	waits_report(waits, 52 * SECOND);
	CHECK_NUMBER(added.count[SAMPLE_TYPE_still_blocked], 2);
	waits_counters(waits, &counters);
	CHECK_NUMBER(counters.ends_unknown, 0);
	thread = (struct thread_switch){.since_ns = 50 * SECOND, .block = 6};
	waits_report(waits, 52 * SECOND);
	waits_counters(waits, &counters);
	CHECK_NUMBER(counters.ends_unknown, 1);
	hold_one(waits, 7, 6, SECOND);
	is_known = false;
	waits_report(waits, 52 * SECOND);
	is_known = true;
	waits_counters(waits, &counters);
	CHECK_NUMBER(counters.ends_unknown, 2);
	CHECK_NUMBER(added.count[SAMPLE_TYPE_still_blocked], 2);
	check_empty(waits);
}

/* since 1 s, a sweep from 2 s to 2 s + 10: whoever waits through it stands for itself. */
static void check_sweeps(void)
{
	static const struct {
		uint64_t since_ns, ns;
		bool is_swept;
		uint64_t weight;
	} cases[] = {
		{SECOND, 2 * SECOND, false, 1},
		{SECOND, 2 * SECOND, true, 1},
		{SECOND, SECOND + 10, true, 1},
		{SECOND, SECOND + 9, true,
		 0}, /* it ended before the sweep: others like it are missed */
		{SECOND, SECOND + 9, false, 16},
		{2 * SECOND - 49999999, SECOND, false, 16}, /* too young for it */
		{2 * SECOND - 50000000, SECOND, false, 1},
		{3 * SECOND, SECOND, false, 16},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct waits *waits = make(~0U);
		struct sample_event *sample;
		struct switch_in_event end = end_of(7, 1, cases[i].since_ns, cases[i].ns, 0, 4);

		waits_swept(waits, 2 * SECOND, 2 * SECOND + 10);
		sample = (struct sample_event *)stack(EVENT_SAMPLE_SWITCH, 7, 1, cases[i].since_ns);
		sample->wait.is_swept = cases[i].is_swept;
		waits_expect(waits, sample);
		waits_hold(waits, sample, 1);
		waits_end(waits, &end);
		CHECK_NUMBER(added.value[SAMPLE_TYPE_off_cpu], cases[i].ns * cases[i].weight);
		check_empty(waits);
	}
}

/* A stack that chance chose but that lacked its callers is replaced by what a sweep has; the block
 * stands for as many as it did. */
static void check_replaced(void)
{
	struct waits *waits = make(~0U);
	struct switch_in_event end = end_of(7, 1, SECOND, 5000, 0, 4);
	struct sample_event *sample;

	hold_one(waits, 7, 1, SECOND);
	sample = (struct sample_event *)stack(EVENT_SAMPLE_SWITCH, 7, 1, SECOND);
	sample->wait.is_swept = 1;
	((uint64_t *)sample->frames)[3] = 0x99;
	waits_expect(waits, sample);
	waits_hold(waits, sample, 3);
	waits_end(waits, &end);
	CHECK_NUMBER(added.count[SAMPLE_TYPE_off_cpu], 1);
	CHECK_NUMBER(added.value[SAMPLE_TYPE_off_cpu], 5000 * 16);
	CHECK_NUMBER(added.last_frame, 0x99);
	check_empty(waits);
}

/* The other order: what chance chose was waiting for its tables when the sweep's came, and is
 * longer. And one that comes twice. */
static void check_replaced_late(void)
{
	static const struct {
		bool is_swept[2];
		uint64_t weight, last_frame;
	} cases[] = {
		{{true, false}, 16, 0x77},
		{{false, false}, 16, 0x99},
		{{true, true}, 0, 0x99},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct waits *waits = make(~0U);
		struct switch_in_event end = end_of(7, 1, SECOND, 5000, 0, 4);

		for (int k = 0; k < 2; k++) {
			struct sample_event *sample =
				(struct sample_event *)stack(EVENT_SAMPLE_SWITCH, 7, 1, SECOND);

			sample->wait.is_swept = cases[i].is_swept[k];
			sample->size += k * 512;
			((uint64_t *)sample->frames)[3] = k ? 0x99 : 0x77;
			waits_expect(waits, sample);
			waits_hold(waits, sample, 3);
		}
		waits_end(waits, &end);
		CHECK_NUMBER(added.value[SAMPLE_TYPE_off_cpu], 5000 * cases[i].weight);
		if (cases[i].weight)
			CHECK_NUMBER(added.last_frame, cases[i].last_frame);
		check_empty(waits);
	}
}

static void check_bounds(void)
{
	struct waits *waits = make(~0U);
	struct waits_counters counters;

	for (uint32_t tid = 1; tid <= 40000; tid++)
		hold_one(waits, tid, 1, SECOND);
	waits_counters(waits, &counters);
	CHECK(counters.kept >= 8192 && counters.kept <= 16384);
	CHECK(counters.kept_bytes <= 4 << 20);
	CHECK(counters.refused >= 40000 - 16384);
	for (uint32_t tid = 1; tid <= 40000; tid++) {
		struct switch_in_event end = end_of(tid, 1, SECOND, 10, 0, 0);

		waits_end(waits, &end);
	}
	waits_counters(waits, &counters);
	CHECK_NUMBER(added.count[SAMPLE_TYPE_off_cpu], counters.off_cpu);
	CHECK(counters.off_cpu + counters.refused == 40000);
	check_empty(waits);
}

int main(void)
{
	check_orders();
	check_rules();
	check_finish();
	check_still_blocked();
	check_sweeps();
	check_replaced();
	check_replaced_late();
	check_bounds();
	return checks_done();
}
