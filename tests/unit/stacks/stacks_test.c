/* SPDX-License-Identifier: Apache-2.0 */
/* Every sample is handed on exactly once, whatever its stack waits for. The walker, the pages and
 * the table of processes are made up: a copy's first register says which pages its walk needs, one
 * bit each, lowest first. */
#include "tests/check.h"

#include <time.h>

#include "bpf/thread_context.h"
#include "node-agent/runtimes/runtimes.h"
#include "node-agent/stacks/stacks.h"
#include "node-agent/stacks/waiting_stacks.h"
#include "node-agent/unwind/stack_finish.h"

/* --- pages --- */

enum { PAGES = 64, CODE = 7, MADE_CODE = 0x900000 };

static enum unwind_page_state states[PAGES];
static bool is_asked[PAGES];
static unsigned asks;
static uint64_t answers; /* pages whose rows have come, to be taken */

enum unwind_page_state code_pages_want(struct code_pages *pages, uint32_t executable, uint32_t page)
{
	(void)pages;
	asks += executable == CODE && states[page] == UNWIND_PAGE_ABSENT && !is_asked[page];
	is_asked[page] = true;
	return states[page];
}

bool code_pages_next(struct code_pages *pages)
{
	(void)pages;
	if (!answers)
		return false;
	states[__builtin_ctzll(answers)] = UNWIND_PAGE_LOADED;
	answers &= answers - 1;
	return true;
}

static int worker_fd = -1;
static uint64_t worker_started;

int code_pages_fd(const struct code_pages *pages)
{
	(void)pages;
	return worker_fd;
}

struct row_pages *code_pages_rows(struct code_pages *pages)
{
	(void)pages;
	return NULL;
}

void code_pages_set_time(struct code_pages *pages, int64_t now_ms)
{
	(void)pages, (void)now_ms;
}

uint64_t code_pages_workers(const struct code_pages *pages)
{
	(void)pages;
	return worker_started;
}

/* --- the walker --- */

struct stack_finished stack_finish(const struct stack_finish *input, struct row_pages *pages)
{
	uint64_t needed = input->copy->registers[0];

	(void)pages;
	for (; needed; needed &= needed - 1) {
		uint32_t page = (uint32_t)__builtin_ctzll(needed);

		if (states[page] == UNWIND_PAGE_ABSENT)
			return (struct stack_finished){
				.is_waiting = true, .executable = CODE, .page = page};
		input->frames[input->count] = 0x1000 + page;
	}
	return (struct stack_finished){
		.result = WALK_complete, .count = input->count + 1, .is_guessed = true};
}

/* --- the table --- */

static uint32_t generation = 3;

uint32_t process_table_generation(struct process_table *table, const struct process_key *key,
				  uint64_t time_ns)
{
	(void)table, (void)key, (void)time_ns;
	return generation;
}

size_t process_table_mappings(struct process_table *table, const struct process_key *key,
			      uint64_t time_ns, struct process_mapping *out, size_t room,
			      uint32_t *of)
{
	(void)table, (void)key, (void)time_ns, (void)out, (void)room;
	*of = generation;
	return 0;
}

size_t process_table_locate(struct process_table *table, const struct process_key *key,
			    uint64_t time_ns, const uint64_t *addresses, size_t count,
			    bool is_interrupted_leaf, struct located_frame *out)
{
	static const struct executable executable = {.index = CODE};

	(void)table, (void)key, (void)time_ns;
	for (size_t i = 0; i < count; i++)
		out[i] = (struct located_frame){.place = PLACE_FILE,
						.executable = &executable,
						.address = addresses[i] - !is_interrupted_leaf};
	for (size_t i = 0; i < count; i++)
		if (addresses[i] >= MADE_CODE)
			out[i] = (struct located_frame){.place = PLACE_ANONYMOUS};
	return count;
}

struct processes *process_table_processes(struct process_table *table)
{
	(void)table;
	return NULL;
}

uint32_t process_table_files(const struct process_table *table)
{
	(void)table;
	return 0;
}

bool process_table_read_code(struct process_table *table, const struct process_key *key,
			     uint64_t address, void *to, size_t length)
{
	(void)table, (void)key, (void)address, (void)to, (void)length;
	return false;
}

int capture_map(const struct capture *capture, enum kernel_map map)
{
	(void)capture, (void)map;
	return -1;
}

/* --- names of code in no file: all that was told before that time is known --- */

static uint64_t told_until_ns;
static uint32_t progress;

bool jit_files_is_coming(struct jit_files *files, const struct process_key *process,
			 uint64_t time_ns, bool is_urgent)
{
	(void)files, (void)process, (void)is_urgent;
	return time_ns >= told_until_ns;
}

uint32_t jit_files_progress(const struct jit_files *files)
{
	(void)files;
	return progress;
}

void jit_files_run(struct jit_files *files, int64_t now_ms)
{
	(void)files, (void)now_ms;
}

/* --- interpreters: whether the process has one is known from that time on --- */

static bool is_known_interpreter;

bool runtimes_is_new(const struct runtimes *runtimes, const struct process_key *process)
{
	(void)runtimes, (void)process;
	return !is_known_interpreter;
}

bool runtimes_is_unsure(struct runtimes *runtimes, const struct process_key *process,
			const struct located_frame *frames, size_t count)
{
	(void)runtimes, (void)process;
	return !is_known_interpreter && count && frames[0].place == PLACE_FILE;
}

bool runtimes_hotspot_place(const struct runtimes *runtimes, const struct process_key *process,
			    struct hotspot_place *place)
{
	(void)runtimes, (void)process, (void)place;
	return false;
}

uint32_t runtimes_progress(const struct runtimes *runtimes)
{
	(void)runtimes;
	return is_known_interpreter;
}

/* --- where samples go --- */

static struct {
	unsigned as_it_was, finished;
	uint64_t last_frame;
	uint16_t flags, user_count;
	uint8_t result;
	size_t kernel_side_count;
	uint64_t runtime[3];
	uint8_t span_id;
} handed;

static void note(const struct sample_event *sample)
{
	const struct thread_context *context;
	uint32_t bytes;

	handed.flags = sample->flags;
	handed.user_count = sample->user_count;
	handed.result = sample->result;
	handed.last_frame = sample->frames[sample->kernel_count + sample->user_count - 1];
	for (uint32_t i = 0; i < sample->runtime_count && i < 3; i++)
		handed.runtime[i] = sample_runtime_frames(sample)[i];
	context = sample_event_context(sample, &bytes);
	handed.span_id = context ? context->span_id[7] : 0;
}

void samples_add(struct samples *samples, const struct sample_event *sample)
{
	(void)samples;
	handed.as_it_was++;
	note(sample);
}

void samples_add_finished(struct samples *samples, const struct sample_event *sample,
			  size_t kernel_side_count)
{
	(void)samples;
	handed.finished++;
	handed.kernel_side_count = kernel_side_count;
	note(sample);
}

/* --- samples --- */

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* One kernel frame, two of the user; age: how long ago it was taken. */
static struct sample_event *sample_of(uint8_t result, uint64_t age_ms)
{
	static uint64_t room[64];
	struct sample_event *sample = (struct sample_event *)room;

	memset(room, 0, sizeof room);
	sample->size = sizeof *sample + 3 * sizeof sample->frames[0];
	sample->time_ns = now_ns() - age_ms * 1000000;
	sample->type = EVENT_SAMPLE_CPU;
	sample->result = result;
	sample->flags = result == WALK_not_loaded ? SAMPLE_HAS_COPY : 0;
	sample->kernel_count = 1;
	sample->user_count = 2;
	sample->frames[2] = 0x50001;
	return sample;
}

static struct sample_event *sample_from(uint32_t tgid)
{
	struct sample_event *sample = sample_of(WALK_not_loaded, 0);

	sample->tgid = tgid;
	return sample;
}

static struct stack_copy_event *copy_of(uint64_t needed, uint32_t stack_bytes)
{
	static union {
		struct stack_copy_event event;
		uint8_t room[sizeof(struct stack_copy_event) + (64 << 10)];
	} copy;

	copy.event.size = sizeof copy.event + stack_bytes;
	copy.event.stack_bytes = stack_bytes;
	copy.event.registers[0] = needed;
	return &copy.event;
}

static struct stacks *new_stacks(void)
{
	static int something; /* that is there */
	static const struct stacks_sources from = {.max_frames = 100,
						   .jit = (struct jit_files *)&something,
						   .runtimes = (struct runtimes *)&something};

	memset(states, 0, sizeof states);
	memset(is_asked, 0, sizeof is_asked);
	memset(&handed, 0, sizeof handed);
	asks = 0;
	answers = 0;
	told_until_ns = 0;
	is_known_interpreter = true;
	return stacks_new(&from, NULL);
}

static struct stacks_counters counters_of(const struct stacks *stacks)
{
	struct stacks_counters counters;

	stacks_counters(stacks, &counters);
	return counters;
}

/* --- tests --- */

static void test_nothing_to_wait_for(void)
{
	struct stacks *stacks = new_stacks();

	stacks_add(stacks, sample_of(WALK_complete, 0), NULL);
	stacks_add(stacks, sample_of(WALK_no_table, 0), NULL);
	CHECK_NUMBER(handed.as_it_was, 2);
	CHECK_NUMBER(asks, 0);
	stacks_add(stacks, sample_of(WALK_not_loaded, 0),
		   NULL); /* its page is wanted all the same */
	CHECK_NUMBER(handed.as_it_was, 3);
	CHECK_NUMBER(asks, 1);
	CHECK(is_asked[0x50000 >> UNWIND_PAGE_BITS]);
	states[1] = UNWIND_PAGE_LOADED;
	stacks_add(stacks, sample_of(WALK_not_loaded, 0), copy_of(1 << 1, 4096));
	CHECK_NUMBER(handed.as_it_was, 3);
	CHECK_NUMBER(handed.finished, 1);
	CHECK_NUMBER(handed.user_count, 3);
	CHECK_NUMBER(handed.last_frame, 0x1001);
	CHECK_NUMBER(handed.result, WALK_complete);
	CHECK_NUMBER(handed.flags, SAMPLE_FRAME_GUESSED);
	CHECK_NUMBER(handed.kernel_side_count, 2);
	stacks_free(stacks);
}

static void test_waiting(void)
{
	struct stacks *stacks = new_stacks();

	stacks_add(stacks, sample_of(WALK_not_loaded, 0), copy_of(1 << 1 | 1 << 2, 4096));
	stacks_add(stacks, sample_of(WALK_not_loaded, 0), copy_of(1 << 2, 4096));
	stacks_add(stacks, sample_of(WALK_not_loaded, 0), copy_of(1 << 3, 4096));
	CHECK_NUMBER(counters_of(stacks).waiting, 3);
	CHECK_NUMBER(asks, 3);
	answers = 1 << 1;
	stacks_run(stacks); /* the first goes on to its second page */
	CHECK_NUMBER(counters_of(stacks).waiting, 3);
	CHECK_NUMBER(handed.finished, 0);
	answers = 1 << 2;
	stacks_run(stacks);
	CHECK_NUMBER(counters_of(stacks).waiting, 1);
	CHECK_NUMBER(handed.finished, 2);
	states[3] = UNWIND_PAGE_FAILED; /* also an answer */
	stacks_run(stacks);
	CHECK_NUMBER(counters_of(stacks).waiting, 0);
	CHECK_NUMBER(counters_of(stacks).waiting_bytes, 0);
	CHECK_NUMBER(handed.finished, 3);
	CHECK_NUMBER(handed.as_it_was, 0);
	CHECK_NUMBER(counters_of(stacks).finished, 3);
	stacks_free(stacks);
}

/* What came behind the native frames comes behind those that were found later, also after a wait.
 */
static void test_interpreter(void)
{
	struct stacks *stacks = new_stacks();

	for (unsigned page = 1; page <= 2; page++) {
		struct sample_event *sample = sample_of(WALK_not_loaded, 0);
		struct thread_context *context = (void *)&sample->frames[6];

		sample->runtime_count = 3;
		for (unsigned i = 0; i < 3; i++)
			((uint64_t *)sample->frames)[3 + i] = 0x100 * page + i;
		context->span_id[7] = (uint8_t)page;
		sample->flags |= SAMPLE_HAS_CONTEXT;
		sample->size = sample_event_frames_end(sample) +
			       (THREAD_CONTEXT_HEADER + 7) / 8 * 8;
		states[1] = UNWIND_PAGE_LOADED;
		stacks_add(stacks, sample, copy_of(1 << page, 4096));
		if (page == 2) {
			CHECK_NUMBER(counters_of(stacks).waiting, 1);
			answers = 1 << 2;
			stacks_run(stacks);
		}
		CHECK_NUMBER(handed.finished, page);
		CHECK_NUMBER(handed.user_count, 3);
		CHECK_NUMBER(handed.last_frame, 0x1000 + page);
		for (unsigned i = 0; i < 3; i++)
			CHECK_NUMBER(handed.runtime[i], 0x100 * page + i);
		CHECK_NUMBER(handed.span_id, page);
	}
	stacks_free(stacks);
}

static struct sample_event *sample_in_made_code(uint16_t type)
{
	struct sample_event *sample = sample_of(WALK_complete, 0);

	sample->type = type;
	sample->flags = SAMPLE_FRAME_GUESSED;
	sample->frames[1] = MADE_CODE + 5;
	return sample;
}

/* Until what its program had told by then is known; what is in files does not wait, nor what is
 * counted later anyway. */
static void test_names(void)
{
	struct stacks *stacks = new_stacks();
	struct sample_event *sample;

	stacks_add(stacks, sample_in_made_code(EVENT_SAMPLE_CPU), NULL);
	CHECK_NUMBER(handed.as_it_was, 0);
	CHECK_NUMBER(counters_of(stacks).waiting, 1);
	stacks_add(stacks, sample_of(WALK_complete, 0), NULL);
	stacks_add(stacks, sample_in_made_code(EVENT_SAMPLE_SWITCH), NULL);
	CHECK_NUMBER(handed.as_it_was, 2);
	stacks_run(stacks);
	CHECK_NUMBER(handed.as_it_was, 2);
	told_until_ns = now_ns();
	stacks_run(stacks); /* nobody said so */
	CHECK_NUMBER(handed.as_it_was, 2);
	progress++;
	stacks_run(stacks);
	CHECK_NUMBER(handed.as_it_was, 3);
	CHECK_NUMBER(counters_of(stacks).waiting, 0);
	told_until_ns = 0; /* finished from its copy, and named then */
	sample = sample_of(WALK_not_loaded, 0);
	sample->frames[1] = MADE_CODE + 5;
	states[1] = UNWIND_PAGE_LOADED;
	stacks_add(stacks, sample, copy_of(1 << 1, 4096));
	CHECK_NUMBER(handed.finished, 0);
	progress++;
	told_until_ns = UINT64_MAX;
	stacks_run(stacks);
	CHECK_NUMBER(handed.finished, 1);
	CHECK_NUMBER(handed.kernel_side_count, 2);
	CHECK_NUMBER(handed.user_count, 3);
	told_until_ns = 0; /* for two seconds at most, and for nothing at the end */
	sample = sample_in_made_code(EVENT_SAMPLE_CPU);
	sample->time_ns -= 2100000000;
	stacks_add(stacks, sample, NULL);
	stacks_run(stacks);
	CHECK_NUMBER(handed.as_it_was, 4);
	for (int i = 0; i < 300; i++)
		stacks_add(stacks, sample_in_made_code(EVENT_SAMPLE_FAULT), NULL);
	CHECK_NUMBER(handed.as_it_was, 4 + 300 - 192);
	stacks_drain(stacks, 0);
	CHECK_NUMBER(handed.as_it_was, 304);
	stacks_free(stacks);
}

/* Until it is known whether its file is an interpreter; what has a list, or is counted later
 * anyway, does not wait. */
static void test_new_interpreter(void)
{
	struct stacks *stacks = new_stacks();
	struct sample_event *sample;

	is_known_interpreter = false;
	stacks_add(stacks, sample_of(WALK_complete, 0), NULL);
	states[1] = UNWIND_PAGE_LOADED;
	stacks_add(stacks, sample_of(WALK_not_loaded, 0), copy_of(1 << 1, 4096));
	CHECK_NUMBER(counters_of(stacks).waiting, 2);
	sample = sample_of(WALK_complete, 0);
	sample->runtime_count = 1;
	sample->size += sizeof sample->frames[0];
	stacks_add(stacks, sample, NULL);
	sample = sample_of(WALK_complete, 0);
	sample->type = EVENT_SAMPLE_SWITCH;
	stacks_add(stacks, sample, NULL);
	CHECK_NUMBER(handed.as_it_was, 2);
	stacks_run(stacks);
	CHECK_NUMBER(handed.as_it_was, 2);
	is_known_interpreter = true;
	stacks_run(stacks);
	CHECK_NUMBER(handed.as_it_was, 3);
	CHECK_NUMBER(handed.finished, 1);
	CHECK_NUMBER(counters_of(stacks).waiting, 0);
	is_known_interpreter = false; /* for two seconds at most */
	stacks_add(stacks, sample_of(WALK_complete, 2100), NULL);
	stacks_run(stacks);
	CHECK_NUMBER(handed.as_it_was, 4);
	stacks_free(stacks);
}

static void test_too_late(void)
{
	struct stacks *stacks = new_stacks();

	stacks_add(stacks, sample_of(WALK_not_loaded, 1900), copy_of(1 << 1, 4096));
	stacks_add(stacks, sample_of(WALK_not_loaded, 2500), copy_of(1 << 2, 4096));
	stacks_run(stacks);
	CHECK_NUMBER(handed.as_it_was, 1);
	CHECK_NUMBER(handed.result, WALK_not_loaded);
	CHECK_NUMBER(handed.user_count, 2);
	CHECK_NUMBER(counters_of(stacks).expired, 1);
	CHECK_NUMBER(counters_of(stacks).waiting, 1);
	stacks_free(stacks);
}

static void test_no_room(void)
{
	struct stacks *stacks = new_stacks();
	unsigned waiting;

	for (int i = 0; i < 400; i++)
		stacks_add(stacks, sample_from((uint32_t)(i % 5)), copy_of(1 << 1, 4096));
	CHECK_NUMBER(counters_of(stacks).waiting, WAITING_STACKS_MAX);
	CHECK_NUMBER(counters_of(stacks).refused, 400 - WAITING_STACKS_MAX);
	CHECK_NUMBER(handed.as_it_was, 400 - WAITING_STACKS_MAX);
	answers = 1 << 1;
	stacks_run(stacks);
	CHECK_NUMBER(handed.finished, WAITING_STACKS_MAX);
	for (int i = 0; i < 300; i++)
		stacks_add(stacks, sample_from((uint32_t)(i % 5)), copy_of(1 << 2, 64 << 10));
	waiting = counters_of(stacks).waiting;
	CHECK(waiting >= 28 && waiting <= 32);
	CHECK(counters_of(stacks).waiting_bytes <= WAITING_BYTES_MAX);
	stacks_drain(stacks, 0); /* nobody answers any more */
	CHECK_NUMBER(counters_of(stacks).waiting, 0);
	CHECK_NUMBER(handed.finished + handed.as_it_was, 700);
	stacks_free(stacks);
}

/* One process leaves room for others, and takes no more while they wait. */
static void test_shares(void)
{
	struct stacks *stacks = new_stacks();

	for (int i = 0; i < 300; i++)
		stacks_add(stacks, sample_from(1), copy_of(1 << 1, 4096));
	CHECK_NUMBER(counters_of(stacks).waiting, 192);
	for (int i = 0; i < 300; i++)
		stacks_add(stacks, sample_from(2), copy_of(1 << 2, 4096));
	CHECK_NUMBER(counters_of(stacks).waiting, 256);
	answers = 1 << 1;
	stacks_run(stacks);
	CHECK_NUMBER(counters_of(stacks).waiting, 64);
	for (int i = 0; i < 300; i++)
		stacks_add(stacks, sample_from(1), copy_of(1 << 3, 4096));
	CHECK_NUMBER(counters_of(stacks).waiting, 128);
	stacks_drain(stacks, 0);
	for (int i = 0; i < 300; i++)
		stacks_add(stacks, sample_from(1), copy_of(1 << 3, 64 << 10));
	CHECK(counters_of(stacks).waiting_bytes <= WAITING_BYTES_MAX / 4 * 3);
	CHECK(counters_of(stacks).waiting_bytes > WAITING_BYTES_MAX / 4 * 3 - (66 << 10));
	stacks_free(stacks);
}

/* At the end answers still come, for so long as there is time. */
static void test_drain(void)
{
	struct stacks *stacks = new_stacks();
	uint64_t before = now_ns();

	stacks_add(stacks, sample_of(WALK_not_loaded, 0), copy_of(1 << 1, 4096));
	answers = 1 << 1;
	stacks_drain(stacks, 5000);
	CHECK(now_ns() - before < 2000000000);
	CHECK_NUMBER(handed.finished, 1);
	stacks_add(stacks, sample_of(WALK_not_loaded, 0), copy_of(1 << 2, 4096));
	before = now_ns();
	stacks_drain(stacks, 100);
	CHECK(now_ns() - before >= 100000000);
	CHECK_NUMBER(handed.as_it_was, 1);
	CHECK_NUMBER(counters_of(stacks).expired, 1);
	stacks_free(stacks);
}

/* What does not fit together is not looked into. */
static void test_unfit(void)
{
	struct stacks *stacks = new_stacks();
	struct sample_event *sample = sample_of(WALK_not_loaded, 0);
	struct stack_copy_event *copy = copy_of(1 << 1, 4096);

	copy->stack_bytes++;
	stacks_add(stacks, sample, copy);
	CHECK_NUMBER(handed.as_it_was, 1);
	sample = sample_of(WALK_not_loaded, 0);
	sample->user_count = 0;
	stacks_add(stacks, sample, copy_of(1 << 1, 4096));
	CHECK_NUMBER(handed.as_it_was, 2);
	CHECK_NUMBER(counters_of(stacks).waiting, 0);
	stacks_free(stacks);
}

static void test_descriptor(void)
{
	struct stacks *stacks = new_stacks();
	int fd;

	CHECK(!stacks_descriptor(stacks, &fd));
	CHECK_NUMBER(fd, -1);
	worker_fd = 5;
	worker_started = 1;
	CHECK(stacks_descriptor(stacks, &fd) && fd == 5);
	CHECK(!stacks_descriptor(stacks, &fd));
	worker_started = 2; /* another child's, with the same number */
	CHECK(stacks_descriptor(stacks, &fd) && fd == 5);
	worker_fd = -1;
	CHECK(stacks_descriptor(stacks, &fd) && fd == -1);
	stacks_free(stacks);
}

int main(void)
{
	test_nothing_to_wait_for();
	test_waiting();
	test_names();
	test_new_interpreter();
	test_interpreter();
	test_too_late();
	test_no_room();
	test_shares();
	test_drain();
	test_unfit();
	test_descriptor();
	return checks_done();
}
