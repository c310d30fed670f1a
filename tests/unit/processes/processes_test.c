/* SPDX-License-Identifier: Apache-2.0 */
/* Stories of pids: what runs when, told by events and samples that may be late or missing; and what
 * rooms hear of it. */
#include "node-agent/processes/processes.h"

#include "tests/check.h"
#include "tests/unit/processes/process_times.h"

static struct process *sample(struct processes *processes, struct process_key key, unsigned ms)
{
	return processes_for_sample(processes, &key, at(ms));
}

static struct processes_counters counted(const struct processes *processes)
{
	struct processes_counters counters;

	processes_counters(processes, &counters);
	return counters;
}

static uint32_t count(const struct processes *processes)
{
	return counted(processes).count;
}

static void test_fork_exec_exit(void)
{
	struct processes *processes = processes_new(100, NULL);
	struct process *shell, *child, *tool;

	shell = sample(processes, key_of(10, 0, 3), 5);
	CHECK(shell && shell->origin == PROCESS_SEEN);
	processes_fork(processes, 20, 10, at(10));
	child = sample(processes, key_of(20, 10, 3), 11);
	CHECK(child && child != shell && child->origin == PROCESS_FORKED);
	CHECK(processes_parent(processes, child) == shell);
	processes_exec(processes, 20, at(12));
	tool = sample(processes, key_of(20, 10, 4), 13);
	CHECK(tool && tool != child && tool->origin == PROCESS_EXECED);
	CHECK(child->gone_ns && !child->is_current && tool->is_current);
	/* one more of the child's, late */
	CHECK(sample(processes, key_of(20, 10, 3), 11) == child);
	CHECK(sample(processes, key_of(20, 10, 4), 14) == tool);
	processes_exit(processes, 20, at(20));
	CHECK(sample(processes, key_of(20, 10, 4), 20) == tool);
	CHECK_NUMBER(count(processes), 3);
	processes_sweep(processes, at(1000));
	CHECK_NUMBER(count(processes), 3);
	processes_sweep(processes, at(5000));
	CHECK_NUMBER(count(processes), 1);
	CHECK(sample(processes, key_of(10, 0, 3), 5001) == shell);
	processes_free(processes);
}

static void test_exec_before_first_sample(void)
{
	struct processes *processes = processes_new(100, NULL);
	struct process *forked, *execed;

	processes_fork(processes, 20, 10, at(0));
	forked = processes_current(processes, 20);
	processes_exec(processes, 20, at(5));
	execed = processes_current(processes, 20);
	CHECK(forked && execed && forked != execed);
	/* samples of both come only now, the older one last */
	CHECK(sample(processes, key_of(20, 0, 8), 7) == execed);
	CHECK(sample(processes, key_of(20, 0, 7), 3) == forked);
	processes_free(processes);
}

static void test_sample_from_before_what_is_known(void)
{
	struct processes *processes = processes_new(100, NULL);

	/* a process nobody knew execs; a sample from before that comes late */
	processes_exec(processes, 20, at(1005));
	CHECK(!sample(processes, key_of(20, 0, 7), 1003));
	CHECK(sample(processes, key_of(20, 0, 8), 1006) == processes_current(processes, 20));
	CHECK(!sample(processes, key_of(20, 0, 7), 1007)); /* its exec id says so too */
	CHECK_NUMBER(count(processes), 1);
	processes_free(processes);
}

static void test_reused_pid(void)
{
	struct processes *processes = processes_new(100, NULL);
	struct process *first, *second, *third;

	first = sample(processes, key_of(20, 0, 1), 1);
	processes_exit(processes, 20, at(100));
	processes_fork(processes, 20, 10, at(200));
	second = sample(processes, key_of(20, 200, 1), 201);
	CHECK(second && second != first);
	/* neither exit nor fork of the next one was seen */
	third = sample(processes, key_of(20, 9000, 1), 9001);
	CHECK(third && third != second && third->origin == PROCESS_SEEN);
	CHECK(!second->is_current);
	processes_free(processes);
}

/* A fork event whose process ended unseen; a later process of the same pid must not take its
 * memory. */
static void test_unidentified_is_not_adopted_by_a_stranger(void)
{
	struct processes *processes = processes_new(100, NULL);
	struct process *forked, *stranger;

	processes_fork(processes, 20, 10, at(0));
	forked = processes_current(processes, 20);
	stranger = sample(processes, key_of(20, 8000, 1), 8001);
	CHECK(stranger && stranger != forked && !forked->is_identified);
	processes_exec(processes, 30, at(0));
	stranger = sample(processes, key_of(30, 8000, 1), 8001); /* started after that exec */
	CHECK(stranger && stranger->origin == PROCESS_SEEN);
	processes_free(processes);
}

static void test_events_behind_samples(void)
{
	struct processes *processes = processes_new(100, NULL);
	struct process *process = sample(processes, key_of(20, 10, 2), 15);

	processes_fork(processes, 20, 10, at(10));
	processes_exec(processes, 20, at(12));
	CHECK(processes_current(processes, 20) == process);
	CHECK(sample(processes, key_of(20, 10, 2), 16) == process);
	processes_exec(processes, 20, at(20));
	CHECK(processes_current(processes, 20) != process);
	processes_free(processes);
}

/* Who goes on being sampled has not ended: its first thread has, or the end was another's. */
static void test_sampled_after_its_end(void)
{
	struct processes *processes = processes_new(100, NULL);
	struct process *seen, *execed;

	seen = sample(processes, key_of(20, 0, 1), 1);
	processes_exit(processes, 20, at(100));
	CHECK(sample(processes, key_of(20, 0, 1), 150) == seen && seen->ended_ns);
	CHECK(sample(processes, key_of(20, 0, 1), 300) == seen && !seen->ended_ns);

	/* the identity passes to what is known of the program */
	processes_exec(processes, 20, at(400));
	execed = processes_current(processes, 20);
	CHECK(sample(processes, key_of(20, 0, 1), 450) == seen && !execed->is_identified);
	CHECK(sample(processes, key_of(20, 0, 1), 600) == execed && !seen->is_identified);

	/* … which has none: the old one runs again */
	processes_exec(processes, 20, at(700));
	processes_fork(processes, 20, 10, at(701));
	processes_exit(processes, 20, at(702));
	sample(processes, key_of(20, 0, 9), 703);
	CHECK(sample(processes, key_of(20, 0, 1), 900) == execed && !execed->is_current);
	processes_free(processes);

	processes = processes_new(100, NULL);
	seen = sample(processes, key_of(20, 0, 1), 1);
	processes_fork(processes, 20, 10, at(5000)); /* of a pid that is not free */
	CHECK(sample(processes, key_of(20, 0, 1), 6000) == seen);
	CHECK(seen->is_current && !seen->ended_ns && !seen->gone_ns);
	processes_free(processes);
}

static void test_limit(void)
{
	struct processes *processes = processes_new(16, NULL);
	struct process *busy;

	sample(processes, key_of(1, 0, 1), 1);
	for (uint32_t tgid = 100; tgid < 300; tgid++) {
		sample(processes, key_of(tgid, 0, 1), tgid);
		sample(processes, key_of(1, 0, 1), tgid);
	}
	CHECK_NUMBER(count(processes), 16);
	CHECK_NUMBER(counted(processes).pushed_out, 201 - 16);
	busy = processes_current(processes, 1);
	CHECK(busy && busy->is_identified); /* who is sampled often stays */
	CHECK(!processes_current(processes, 100) && processes_current(processes, 299));
	processes_free(processes);
	processes_free(NULL);
}

static void test_check_of_silent_ones(void)
{
	struct processes *processes = processes_new(16, NULL);

	sample(processes, key_of(1, 0, 1), 1);
	sample(processes, key_of(2, 0, 1), 70000);
	CHECK(!processes_next_to_check(processes, at(60000)));
	CHECK(processes_next_to_check(processes, at(70000)) == processes_current(processes, 1));
	processes_free(processes);
}

/* --- rooms --- */

/* What a room was told, in its order: "fork 20<10", "exec 20", "end 20", "again 20", "forget 20".
 */
struct told {
	struct processes *processes;
	uint32_t room;
	char text[512];
	bool asks;      /* at each end, for a process that is new */
	bool hangs_not; /* of its own accord */
};

static void note(struct told *told, const char *what, const struct process *process)
{
	const size_t length = strlen(told->text);

	snprintf(told->text + length, sizeof told->text - length, "%s%s %u", length ? ", " : "",
		 what, process->key.tgid);
}

static void on_begin(void *context, struct process *process, struct process *from)
{
	struct told *told = context;

	note(told, process->origin == PROCESS_EXECED ? "exec" : "fork", process);
	if (from && from->key.tgid != process->key.tgid)
		snprintf(strchr(told->text, '\0'), 8, "<%u", from->key.tgid);
	if (!told->hangs_not)
		processes_hang(told->processes, process, told->room, told);
}

static void on_end(void *context, struct process *process)
{
	struct told *told = context;
	static uint32_t next = 1000;

	note(told, "end", process);
	for (int i = 0; told->asks && i < 3; i++)
		CHECK(sample(told->processes, key_of(next++, 0, 1), 50000));
	CHECK(process->states[told->room] == told); /* it is still there */
}

static void on_again(void *context, struct process *process)
{
	note(context, "again", process);
}

static void on_forget(void *context, struct process *process)
{
	note(context, "forget", process);
}

static struct processes *with_room(struct told *told, size_t limit, bool holds)
{
	*told = (struct told){.processes = processes_new(limit, NULL)};
	told->room = processes_room(told->processes, &(struct process_room){.begin = on_begin,
									    .end = on_end,
									    .again = on_again,
									    .forget = on_forget,
									    .context = told,
									    .holds = holds});
	return told->processes;
}

static void is_told(struct told *told, const char *text)
{
	CHECK_TEXT(told->text, text);
	told->text[0] = '\0';
}

static void test_room_hears_a_life(void)
{
	struct told told;
	struct processes *processes = with_room(&told, 100, false);

	processes_fork(processes, 20, 10, at(10));
	processes_exec(processes, 20, at(12)); /* in place: one ends, another begins */
	is_told(&told, "fork 20<10, end 20, exec 20");
	processes_exit(processes, 20, at(20));
	processes_exit(processes, 20, at(21));
	is_told(&told, "end 20"); /* once */
	processes_sweep(processes, at(5000));
	is_told(&told, "forget 20, forget 20");
	CHECK_NUMBER(count(processes), 1); /* the parent, which nothing was hung on */
	processes_fork(processes, 30, 10, at(5001));
	told.text[0] = '\0';
	processes_free(processes);
	is_told(&told, "forget 30");
}

static void test_room_hears_of_a_reused_pid(void)
{
	struct told told;
	struct processes *processes = with_room(&told, 100, false);

	processes_fork(processes, 20, 10, at(0));
	CHECK(sample(processes, key_of(20, 0, 1), 1));
	told.text[0] = '\0';
	CHECK(sample(processes, key_of(20, 9000, 1), 9001)); /* nobody saw the first one's end */
	is_told(&told, "end 20");
	processes_fork(processes, 20, 10,
		       at(12000)); /* nor the second one's, on which nothing is */
	is_told(&told, "fork 20<10");
	processes_fork(processes, 20, 10, at(13000));
	is_told(&told, "end 20, fork 20<10");
	told.text[0] = '\0';
	processes_free(processes);
}

static void test_room_of_who_ends_before_its_first_sample(void)
{
	struct told told;
	struct processes *processes = with_room(&told, 100, false);
	struct process *late;

	processes_fork(processes, 20, 10, at(0));
	processes_exit(processes, 20, at(5));
	is_told(&told, "fork 20<10, end 20");
	late = sample(processes, key_of(20, 0, 1), 4);
	CHECK(late && late->states[told.room] == &told); /* what was hung on it is found */
	is_told(&told, "");
	processes_free(processes);
}

/* The sample comes first, and the room hears of the fork all the same. */
static void test_room_hears_what_is_known(void)
{
	struct told told;
	struct processes *processes = with_room(&told, 100, false);
	struct process *process = sample(processes, key_of(20, 0, 1), 5);

	processes_fork(processes, 20, 10, at(1));
	is_told(&told, "fork 20");
	CHECK(process->origin == PROCESS_SEEN && process->states[told.room] == &told);
	processes_free(processes);
}

static void test_room_hears_who_runs_again(void)
{
	struct told told;
	struct processes *processes = with_room(&told, 100, false);

	processes_fork(processes, 20, 10, at(0));
	CHECK(sample(processes, key_of(20, 0, 1), 1));
	processes_exit(processes, 20, at(100));
	CHECK(sample(processes, key_of(20, 0, 1), 300));
	is_told(&told, "fork 20<10, end 20, again 20");
	processes_exit(processes, 20, at(400));
	is_told(&told, "end 20");
	processes_free(processes);
}

/* What is hung on a process after its end hears of the next one's begin. */
static void test_room_comes_late(void)
{
	struct told told;
	struct processes *processes = with_room(&told, 100, true);
	struct process *process = sample(processes, key_of(20, 0, 1), 1);

	processes_exit(processes, 20, at(10));
	is_told(&told, "");
	CHECK(!processes_next_to_check(processes, at(70000)));
	processes_hang(processes, process, told.room, &told);
	CHECK(processes_next_to_check(processes, at(70000)) == process);
	CHECK(sample(processes, key_of(20, 9000, 1), 9001) != process);
	is_told(&told, "end 20");
	processes_free(processes);
}

static void test_room_holds(void)
{
	struct told told;
	struct processes *processes = with_room(&told, 4, true);
	struct process *held;

	told.hangs_not = true;
	for (uint32_t tgid = 1; tgid <= 4; tgid++) {
		held = sample(processes, key_of(tgid, 0, 1), tgid);
		processes_hang(processes, held, told.room, &told);
	}
	CHECK(!sample(processes, key_of(5, 0, 1), 10)); /* full: counted */
	CHECK_NUMBER(counted(processes).refused, 1);
	CHECK_NUMBER(counted(processes).pushed_out, 0);
	processes_exit(processes, 4, at(20));
	processes_sweep(processes, at(9000));
	CHECK_NUMBER(count(processes), 4); /* the room wants it still */
	processes_hang(processes, held, told.room, NULL);
	CHECK(sample(processes, key_of(5, 0, 1), 9001));
	CHECK_NUMBER(counted(processes).pushed_out, 1);
	CHECK(!processes_current(processes, 4) && processes_current(processes, 1));
	is_told(&told, "end 4"); /* it has let it go itself */
	processes_free(processes);
}

/* Rooms ask for others while they are told, of a table that is full of those. */
static void test_room_asks(void)
{
	struct told told;
	struct processes *processes = with_room(&told, 4, false);

	processes_fork(processes, 20, 10, at(0));
	told.asks = true;
	processes_exec(processes, 20, at(5));
	is_told(&told, "fork 20<10, end 20, exec 20");
	processes_exit(processes, 20, at(9));
	CHECK(sample(processes, key_of(20, 9000, 1), 60000));
	told.text[0] = '\0';
	processes_leave(processes, told.room);
	processes_free(processes);
	is_told(&told, "");
}

int main(void)
{
	times_begin();
	test_fork_exec_exit();
	test_exec_before_first_sample();
	test_sample_from_before_what_is_known();
	test_reused_pid();
	test_unidentified_is_not_adopted_by_a_stranger();
	test_events_behind_samples();
	test_sampled_after_its_end();
	test_limit();
	test_check_of_silent_ones();
	test_room_hears_a_life();
	test_room_hears_of_a_reused_pid();
	test_room_of_who_ends_before_its_first_sample();
	test_room_hears_what_is_known();
	test_room_hears_who_runs_again();
	test_room_comes_late();
	test_room_holds();
	test_room_asks();
	return checks_done();
}
