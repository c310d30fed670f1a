/* SPDX-License-Identifier: Apache-2.0 */
/* Stories of pids: what runs when, told by events and samples that may be late or missing. */
#include "node-agent/processes/programs.h"

#include <stdlib.h>
#include <time.h>

#include "tests/check.h"

#define SECOND 1000000000ull

static uint64_t boot_offset_ns; /* boot time − monotonic time, as start times are in boot time */
static uint64_t t0;

static uint64_t clock_now(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec;
}

/* Times are small steps after now, so that the check of start times sees plausible ones. */
static uint64_t at(unsigned ms)
{
	return t0 + ms * 1000000ull;
}

static struct process_key key_of(uint32_t tgid, unsigned started_ms, uint32_t exec_id)
{
	return (struct process_key){tgid, exec_id, at(started_ms) + boot_offset_ns};
}

static struct program *sample(struct programs *programs, struct process_key key, unsigned ms)
{
	return programs_for_sample(programs, &key, at(ms));
}

static void test_fork_exec_exit(void)
{
	struct programs *programs = programs_new(100, NULL);
	struct program *shell, *child, *tool;

	shell = sample(programs, key_of(10, 0, 3), 5);
	CHECK(shell && shell->origin == PROGRAM_SEEN && !shell->is_complete);
	programs_fork(programs, 20, 10, at(10));
	child = sample(programs, key_of(20, 10, 3), 11);
	CHECK(child && child != shell && child->origin == PROGRAM_FORKED);
	CHECK(programs_parent(programs, child) == shell);
	programs_exec(programs, 20, at(12));
	tool = sample(programs, key_of(20, 10, 4), 13);
	CHECK(tool && tool != child && tool->origin == PROGRAM_EXECED && tool->is_complete);
	CHECK(child->gone_ns && !child->is_current && tool->is_current);
	/* one more of the child's, late */
	CHECK(sample(programs, key_of(20, 10, 3), 11) == child);
	CHECK(sample(programs, key_of(20, 10, 4), 14) == tool);
	programs_exit(programs, 20, at(20));
	CHECK(sample(programs, key_of(20, 10, 4), 20) == tool);
	CHECK_NUMBER(programs_count(programs), 3);
	programs_sweep(programs, at(1000));
	CHECK_NUMBER(programs_count(programs), 3);
	programs_sweep(programs, at(5000));
	CHECK_NUMBER(programs_count(programs), 1);
	CHECK(sample(programs, key_of(10, 0, 3), 5001) == shell);
	programs_free(programs);
}

static void test_exec_before_first_sample(void)
{
	struct programs *programs = programs_new(100, NULL);
	struct program *forked, *execed;

	programs_fork(programs, 20, 10, at(0));
	forked = programs_current(programs, 20);
	programs_exec(programs, 20, at(5));
	execed = programs_current(programs, 20);
	CHECK(forked && execed && forked != execed);
	/* samples of both come only now, the older one last */
	CHECK(sample(programs, key_of(20, 0, 8), 7) == execed);
	CHECK(sample(programs, key_of(20, 0, 7), 3) == forked);
	programs_free(programs);
}

static void test_sample_from_before_what_is_known(void)
{
	struct programs *programs = programs_new(100, NULL);

	/* a process nobody knew execs; a sample from before that comes late */
	programs_exec(programs, 20, at(1005));
	CHECK(!sample(programs, key_of(20, 0, 7), 1003));
	CHECK(sample(programs, key_of(20, 0, 8), 1006) == programs_current(programs, 20));
	CHECK(!sample(programs, key_of(20, 0, 7), 1007)); /* its exec id says so too */
	CHECK_NUMBER(programs_count(programs), 1);
	programs_free(programs);
}

static void test_reused_pid(void)
{
	struct programs *programs = programs_new(100, NULL);
	struct program *first, *second, *third;

	first = sample(programs, key_of(20, 0, 1), 1);
	programs_exit(programs, 20, at(100));
	programs_fork(programs, 20, 10, at(200));
	second = sample(programs, key_of(20, 200, 1), 201);
	CHECK(second && second != first);
	/* neither exit nor fork of the next one was seen */
	third = sample(programs, key_of(20, 9000, 1), 9001);
	CHECK(third && third != second && third->origin == PROGRAM_SEEN && !third->is_complete);
	CHECK(!second->is_current);
	programs_free(programs);
}

/* A fork event whose process ended unseen; a later process of the same pid must not take its
 * memory. */
static void test_unidentified_is_not_adopted_by_a_stranger(void)
{
	struct programs *programs = programs_new(100, NULL);
	struct program *forked, *stranger;

	programs_fork(programs, 20, 10, at(0));
	forked = programs_current(programs, 20);
	stranger = sample(programs, key_of(20, 8000, 1), 8001);
	CHECK(stranger && stranger != forked && !forked->is_identified);
	programs_exec(programs, 30, at(0));
	stranger = sample(programs, key_of(30, 8000, 1), 8001); /* started after that exec */
	CHECK(stranger && stranger->origin == PROGRAM_SEEN);
	programs_free(programs);
}

static void test_events_behind_samples(void)
{
	struct programs *programs = programs_new(100, NULL);
	struct program *program = sample(programs, key_of(20, 10, 2), 15);

	programs_fork(programs, 20, 10, at(10));
	programs_exec(programs, 20, at(12));
	CHECK(programs_current(programs, 20) == program);
	CHECK(sample(programs, key_of(20, 10, 2), 16) == program);
	programs_exec(programs, 20, at(20));
	CHECK(programs_current(programs, 20) != program);
	programs_free(programs);
}

/* Who goes on being sampled has not ended: its first thread has, or the end was another's. */
static void test_sampled_after_its_end(void)
{
	struct programs *programs = programs_new(100, NULL);
	struct program *seen, *execed;

	seen = sample(programs, key_of(20, 0, 1), 1);
	programs_exit(programs, 20, at(100));
	CHECK(sample(programs, key_of(20, 0, 1), 150) == seen && seen->ended_ns);
	CHECK(sample(programs, key_of(20, 0, 1), 300) == seen && !seen->ended_ns);

	/* the identity passes to what is known of the program */
	programs_exec(programs, 20, at(400));
	execed = programs_current(programs, 20);
	CHECK(sample(programs, key_of(20, 0, 1), 450) == seen && !execed->is_identified);
	CHECK(sample(programs, key_of(20, 0, 1), 600) == execed && !seen->is_identified);

	/* … which has none: the old one runs again */
	programs_exec(programs, 20, at(700));
	programs_fork(programs, 20, 10, at(701));
	programs_exit(programs, 20, at(702));
	sample(programs, key_of(20, 0, 9), 703);
	CHECK(sample(programs, key_of(20, 0, 1), 900) == execed && !execed->is_current);
	programs_free(programs);

	programs = programs_new(100, NULL);
	seen = sample(programs, key_of(20, 0, 1), 1);
	programs_fork(programs, 20, 10, at(5000)); /* of a pid that is not free */
	CHECK(sample(programs, key_of(20, 0, 1), 6000) == seen);
	CHECK(seen->is_current && !seen->ended_ns && !seen->gone_ns && !seen->is_complete);
	programs_free(programs);
}

static void test_limit(void)
{
	struct programs *programs = programs_new(16, NULL);
	struct program *busy;

	sample(programs, key_of(1, 0, 1), 1);
	for (uint32_t tgid = 100; tgid < 300; tgid++) {
		sample(programs, key_of(tgid, 0, 1), tgid);
		sample(programs, key_of(1, 0, 1), tgid);
	}
	CHECK_NUMBER(programs_count(programs), 16);
	CHECK_NUMBER(programs_pushed_out(programs), 201 - 16);
	busy = programs_current(programs, 1);
	CHECK(busy && busy->is_identified); /* who is sampled often stays */
	CHECK(!programs_current(programs, 100) && programs_current(programs, 299));
	programs_free(programs);
	programs_free(NULL);
}

static void test_check_of_silent_ones(void)
{
	struct programs *programs = programs_new(16, NULL);

	sample(programs, key_of(1, 0, 1), 1);
	sample(programs, key_of(2, 0, 1), 70000);
	CHECK(!programs_next_to_check(programs, at(60000)));
	CHECK(programs_next_to_check(programs, at(70000)) == programs_current(programs, 1));
	programs_free(programs);
}

int main(void)
{
	t0 = clock_now(CLOCK_MONOTONIC);
	boot_offset_ns = clock_now(CLOCK_BOOTTIME) - clock_now(CLOCK_MONOTONIC);
	test_fork_exec_exit();
	test_exec_before_first_sample();
	test_sample_from_before_what_is_known();
	test_reused_pid();
	test_unidentified_is_not_adopted_by_a_stranger();
	test_events_behind_samples();
	test_sampled_after_its_end();
	test_limit();
	test_check_of_silent_ones();
	return checks_done();
}
