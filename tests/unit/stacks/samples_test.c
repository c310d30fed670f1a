/* SPDX-License-Identifier: Apache-2.0 */
/* What a sample is judged to be and which frames are counted, with a process table that answers as
 * told. Frames are written as addresses: 0x1… lie in a program whose entry point is 0x1000, 0x2… in
 * a library, 0x3… where it was mapped over something else, 0xa… in anonymous memory, 0xd… nowhere,
 * 0xe… in a file that could not be had. */
#include "node-agent/stacks/java_frames.h"
#include "node-agent/stacks/runtime_stack.h"
#include "tests/check.h"

#include "node-agent/report/modules.h"
#include "node-agent/stacks/samples.h"
#include "node-agent/stacks/stack_judge.h"
#include "tests/unit/processes/fake_proc.h"

static const struct executable program = {.index = 1, .entry = 0x1000, .fd = -1};
static const struct executable library = {.index = 2, .entry = 0x2000, .fd = -1};
static const struct executable vmlinux = {.index = 3, .base = ADDRESS_KERNEL_TEXT, .fd = -1};

/* --- the process table --- */

static struct located_frame locate(uint64_t address)
{
	struct located_frame frame = {.place = PLACE_FILE, .address = address};

	switch (address >> 12) {
	case 0x1:
		frame.executable = &program;
		break;
	case 0x2:
		frame.executable = &library;
		break;
	case 0x3: /* a file mapped over another one, with generation 7 */
		frame.executable = &library;
		frame.since = 7;
		break;
	case 0xa:
		frame.place = PLACE_ANONYMOUS;
		break;
	case 0xe:
		frame.place = PLACE_UNKNOWN;
		break;
	default:
		frame.place = PLACE_NOT_CODE;
	}
	return frame;
}

size_t process_table_locate(struct process_table *table, const struct process_key *key,
			    uint64_t time_ns, const uint64_t *addresses, size_t count,
			    bool is_interrupted_leaf, struct located_frame *out)
{
	size_t in_code = count;

	(void)table;
	(void)key;
	(void)time_ns;
	for (size_t i = 0; i < count; i++) {
		out[i] = locate(addresses[i] - (i > 0 || !is_interrupted_leaf));
		if (out[i].place == PLACE_NOT_CODE && in_code == count)
			in_code = i;
	}
	return in_code;
}

size_t process_table_locate_kernel(struct process_table *table, const uint64_t *addresses,
				   size_t count, bool is_interrupted_leaf,
				   struct located_frame *out)
{
	(void)table;
	(void)is_interrupted_leaf;
	for (size_t i = 0; i < count; i++)
		out[i] = (struct located_frame){
			.place = PLACE_FILE, .executable = &vmlinux, .address = addresses[i]};
	return count;
}

static struct process_lifetime *shown_lifetime; /* NULL: none */
static const char *shown_name = "";

const struct process_info *process_table_info(struct process_table *table,
					      const struct process_key *key, uint64_t time_ns)
{
	static struct process_info info = {"/bin/program", "", "unit", "", "", "", NULL};

	(void)table;
	(void)key;
	(void)time_ns;
	info.lifetime = shown_lifetime;
	info.name = shown_name;
	return &info;
}

void process_table_set_reader(struct process_table *table, const struct file_reader *reader)
{
	(void)table, (void)reader;
}

void process_table_file(struct process_table *table, uint32_t number,
			const struct file_content *content, bool is_hung)
{
	(void)table, (void)number, (void)content, (void)is_hung;
}

bool process_table_reopen(struct process_table *table, uint32_t index)
{
	(void)table;
	(void)index;
	return false;
}

void process_table_announced(struct process_table *table, uint32_t index)
{
	(void)table, (void)index;
}

uint32_t process_table_take_forgotten(struct process_table *table)
{
	(void)table;
	return 0;
}

const struct executable *process_table_executable(struct process_table *table, uint32_t index)
{
	(void)table;
	(void)index;
	return NULL;
}

/* --- interpreters: none --- */

struct runtime_stacks *runtime_stacks_new(struct runtimes *runtimes, struct error *err)
{
	(void)runtimes, (void)err;
	return NULL;
}

void runtime_stacks_free(struct runtime_stacks *stacks)
{
	(void)stacks;
}

const char *runtime_stacks_thread_name(struct runtime_stacks *stacks,
				       const struct sample_event *sample)
{
	(void)stacks, (void)sample;
	return NULL;
}

bool runtime_stacks_is_lock(const struct runtime_stacks *stacks, const struct sample_event *sample)
{
	(void)stacks, (void)sample;
	return false;
}

struct counted_frame runtime_lock_frame(void)
{
	return (struct counted_frame){.kind = PROFILE_FRAME_NAMED};
}

size_t runtime_stacks_lock_leaves(const struct runtime_stacks *stacks,
				  const struct located_frame *located, size_t count)
{
	(void)stacks, (void)located, (void)count;
	return 0;
}

void runtime_stacks_tell(struct runtime_stacks *stacks, const struct runtime_code_event *told)
{
	(void)stacks, (void)told;
}

void runtime_stacks_see(struct runtime_stacks *stacks, const struct sample_event *sample)
{
	(void)stacks, (void)sample;
}

size_t runtime_stacks_join(struct runtime_stacks *stacks, struct runtime_join *join,
			   struct counted_frame *frames, size_t count, size_t room,
			   enum frame_merge_result *result)
{
	(void)stacks, (void)join, (void)frames, (void)room;
	*result = MERGE_none;
	return count;
}

void runtime_stacks_counters(const struct runtime_stacks *stacks,
			     struct runtime_stacks_counters *out)
{
	(void)stacks, (void)out;
}

/* --- nor of HotSpot's --- */

struct java_frames *java_frames_new(struct runtimes *runtimes, struct error *err)
{
	(void)runtimes, (void)err;
	return NULL;
}

void java_frames_free(struct java_frames *java)
{
	(void)java;
}

struct counted_frame java_frame_of(const struct located_frame *located)
{
	return (struct counted_frame){.kind = PROFILE_FRAME_NAMED, .address = located->address};
}

size_t java_frames_name(struct java_frames *java, const struct sample_event *sample,
			struct counted_frame *frames, size_t count, size_t room)
{
	(void)java, (void)sample, (void)frames, (void)room;
	return count;
}

size_t java_frames_group(const struct java_frames *java, const struct sample_event *sample,
			 struct counted_frame *frames, size_t count, size_t room)
{
	(void)java, (void)sample, (void)frames, (void)room;
	return count;
}

const char *java_frames_thread_name(struct java_frames *java, const struct sample_event *sample,
				    const char *kernel)
{
	(void)java, (void)sample, (void)kernel;
	return NULL;
}

void java_frames_counters(const struct java_frames *java, struct java_frames_counters *out)
{
	(void)java, (void)out;
}

/* --- aggregate: remembers the last one --- */

static struct {
	struct counted_process process;
	struct counted_frame frames[8];
	size_t depth;
	char incomplete[80], thread[20], name[20], attributes[400];
	char waker[20];
	bool refuse;
	uint32_t type, thread_id;
	uint64_t value;
} last;

bool stack_counts_add(struct stack_counts *counts, const struct counted_process *process,
		      const struct counted_thread *thread, const struct counted_frame *frames,
		      size_t depth, const char *incomplete, uint64_t count, uint64_t value)
{
	(void)counts;
	(void)count;
	(void)value;
	last.process = *process;
	last.depth = depth;
	memcpy(last.frames, frames, depth * sizeof *frames);
	snprintf(last.incomplete, sizeof last.incomplete, "%s", incomplete);
	snprintf(last.thread, sizeof last.thread, "%s", thread->name);
	last.thread_id = thread->id;
	snprintf(last.name, sizeof last.name, "%s", process->name);
	snprintf(last.waker, sizeof last.waker, "%s", process->waker ? process->waker : "");
	last.attributes[0] = '\0';
	for (size_t i = 0, used = 0; i < thread->attribute_count; i++)
		used += (size_t)snprintf(last.attributes + used, sizeof last.attributes - used,
					 "%s=%s ", thread->attributes[i].key,
					 thread->attributes[i].value);
	return !last.refuse;
}

bool stack_counts_add_type(struct stack_counts *counts, uint32_t type,
			   const struct counted_process *process,
			   const struct counted_thread *thread, const struct counted_frame *frames,
			   size_t depth, const char *incomplete, uint64_t count, uint64_t value)
{
	last.type = type;
	last.value = value;
	return stack_counts_add(counts, process, thread, frames, depth, incomplete, count, value);
}

void stack_counts_add_time(struct stack_counts *counts, uint64_t time_ns)
{
	(void)counts;
	(void)time_ns;
}

/* --- what programs publish --- */

void requests_describe(struct requests *requests, const struct sample_event *sample,
		       struct counted_process *process, struct counted_thread *thread)
{
	(void)requests;
	(void)sample;
	(void)process;
	(void)thread;
}

/* --- the cases --- */

/* The first ones of the cases. */
enum { ANONYMOUS, WITH_KERNEL, CHANGED };
enum { GUESS = SAMPLE_FRAME_GUESSED | SAMPLE_END_GUESSED };

static const struct {
	uint64_t user[4];
	uint16_t user_count, kernel_count, flags;
	uint8_t result;
	size_t depth; /* counted */
	enum walk_result judged;
	uint32_t generation; /* of the mappings that the kernel side walked by */
} cases[] = {
	/* anonymous and unknown code count as frames */
	[ANONYMOUS] = {{0xa500, 0xe500, 0x1022}, 3, 0, 0, WALK_complete, 3, WALK_complete},
	/* kernel frames first */
	[WITH_KERNEL] = {{0x1500, 0x1022}, 2, 2, SAMPLE_IN_KERNEL, WALK_complete, 4, WALK_complete},
	/* walked by what was mapped before: only frames that were found from current ones count */
	[CHANGED] = {{0x1500, 0x3500, 0x1022}, 3, 0, 0, WALK_complete, 2, WALK_mappings_changed, 6},
	/* the end by a row is believed wherever it is */
	{{0x1500, 0x1022}, 2, 0, 0, WALK_complete, 2, WALK_complete},
	{{0x1500, 0x2500}, 2, 0, 0, WALK_complete, 2, WALK_complete},
	/* a zero frame pointer, and the outermost frame is called from the entry point */
	{{0x1500, 0x1022}, 2, 0, GUESS, WALK_complete, 2, WALK_complete},
	{{0x1500, 0x1001}, 2, 0, GUESS, WALK_complete, 2, WALK_complete},
	/* … is not near it: believed by the kernel side only */
	{{0x1500, 0x1042}, 2, 0, GUESS, WALK_complete, 2, WALK_no_table},
	{{0x1500, 0x2500}, 2, 0, GUESS, WALK_complete, 2, WALK_no_table},
	{{0x1500, 0x2000}, 2, 0, GUESS, WALK_complete, 2, WALK_no_table},
	{{0x1500, 0xa500}, 2, 0, GUESS, WALK_complete, 2, WALK_no_frame_pointer},
	/* the dynamic linker starts at its own */
	{{0x2500, 0x2014}, 2, 0, GUESS, WALK_complete, 2, WALK_complete},
	/* the same with mappings of now, unknown ones, and without such frames walked from */
	{{0x1500, 0x3500, 0x1022}, 3, 0, 0, WALK_complete, 3, WALK_complete, 7},
	{{0x1500, 0x3500, 0x1022}, 3, 0, 0, WALK_complete, 3, WALK_complete, 0},
	{{0x1500, 0x1022, 0x3500}, 3, 0, 0, WALK_complete, 3, WALK_complete, 6 + 1},
	{{0x3500, 0x1022}, 2, 0, 0, WALK_too_deep, 1, WALK_mappings_changed, UINT32_MAX},
	/* … be it the last one: how it ended is what the old mapping said */
	{{0x1500, 0x3500}, 2, 0, 0, WALK_complete, 2, WALK_mappings_changed, 6},
	{{0x1500, 0x3500}, 2, 0, 0, WALK_bad_address, 2, WALK_mappings_changed, 6},
	/* … the walk stopped there, nothing was looked for by it */
	{{0x1500, 0x3500}, 2, 0, 0, WALK_not_loaded, 2, WALK_not_loaded, 6},
	/* cut where it leaves code; what the walk said itself stays */
	{{0x1500, 0xd000, 0x1022}, 3, 0, 0, WALK_complete, 1, WALK_not_code},
	{{0xd000, 0x1022}, 2, 0, 0, WALK_complete, 0, WALK_leaf_not_code},
	{{0x1500, 0xd000, 0x1022}, 3, 0, 0, WALK_read_fault, 1, WALK_read_fault},
	{{0x1500, 0x1400}, 2, 0, 0, WALK_too_deep, 2, WALK_too_deep},
	{{0x1500, 0xe500}, 2, 0, 0, WALK_complete, 2, WALK_no_mapping},
	{{0x1500, 0xa500}, 2, 0, 0, WALK_complete, 2, WALK_complete},
	/* kernel threads have no user part */
	{{0}, 0, 2, SAMPLE_IN_KERNEL | SAMPLE_KERNEL_THREAD, WALK_complete, 2, WALK_complete},
	{{0}, 0, 0, 0, WALK_no_registers, 0, WALK_no_registers},
	{{0}, 0, 0, 0, WALK_complete, 0, WALK_no_frame_pointer},
	/* a result from a newer kernel side */
	{{0x1500}, 1, 0, 0, 200, 1, WALK_no_frame_pointer},
};

static struct sample_event *sample_of(size_t i)
{
	static uint64_t room[64];
	struct sample_event *sample = (struct sample_event *)room;
	uint64_t *frames = (uint64_t *)sample->frames;

	memset(room, 0, sizeof room);
	sample->type = EVENT_SAMPLE_CPU;
	sample->tid = 7;
	memcpy(sample->comm, "sixteen bytes ok", COMM_LENGTH);
	memcpy(sample->process_comm, "main", 5);
	sample->flags = cases[i].flags;
	sample->result = cases[i].result;
	sample->kernel_count = cases[i].kernel_count;
	sample->user_count = cases[i].user_count;
	sample->tick.period_ns = 1000;
	sample->generation = cases[i].generation;
	for (unsigned k = 0; k < cases[i].kernel_count; k++)
		frames[k] = 0x100 + k;
	memcpy(frames + cases[i].kernel_count, cases[i].user, cases[i].user_count * sizeof *frames);
	return sample;
}

static void check_cases(struct samples *samples)
{
	struct sample_counters before, after;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		samples_counters(samples, &before);
		samples_add(samples, sample_of(i));
		samples_counters(samples, &after);
		CHECK_TEXT(last.incomplete, walk_result_sentence(cases[i].judged));
		CHECK_NUMBER(last.depth, cases[i].depth);
		CHECK_NUMBER(after.by_result[cases[i].judged],
			     before.by_result[cases[i].judged] + 1);
		CHECK_NUMBER(after.added, before.added + 1);
		CHECK_NUMBER(after.incomplete, before.incomplete + (cases[i].judged != 0));
		CHECK_NUMBER(after.guessed, before.guessed + (cases[i].judged == WALK_complete &&
							      cases[i].flags == GUESS));
	}
	CHECK_TEXT(last.thread, "sixteen bytes ok");
}

/* What a process is is told with its first sample, and with the first of each hour. */
static void check_processes(struct samples *samples)
{
	static const char whole[] =
		"farflame.lifetime=7.ab process.command_line=web --shard 1 "
		"process.executable.path=/bin/program systemd.unit=web.service "
		"process.linux.cgroup=/web process.owner=www process.parent_pid=1 "
		"process.creation.time=2026-01-02T03:04:05.00Z farflame.program=shop.py ";
	static const char brief[] = "farflame.lifetime=7.ab ";
	const uint64_t hour_ns = 3600000000000;
	struct process_lifetime many[1100];
	struct sample_counters counters;
	unsigned told = 0;

	shown_lifetime = many;
	for (size_t i = 0; i < sizeof many / sizeof *many; i++)
		many[i] = (struct process_lifetime){
			"7.ab", "web --shard 1",           "web.service", "/web", "www",
			"1",    "2026-01-02T03:04:05.00Z", "shop.py",     0};
	for (int hour = 0; hour < 3; hour++) {
		samples_begin_report(samples, 480000 * hour_ns + hour * hour_ns);
		samples_add(samples, sample_of(ANONYMOUS));
		CHECK_TEXT(last.attributes, whole);
		samples_add(samples, sample_of(ANONYMOUS));
		CHECK_TEXT(last.attributes, brief);
		samples_begin_report(samples, 480000 * hour_ns + hour * hour_ns + hour_ns / 2);
		samples_add(samples, sample_of(ANONYMOUS));
		CHECK_TEXT(last.attributes, brief);
	}
	/* of thousands at once some */
	for (size_t i = 1; i < sizeof many / sizeof *many; i++) {
		shown_lifetime = &many[i];
		samples_add(samples, sample_of(ANONYMOUS));
		told += !strcmp(last.attributes, whole);
	}
	samples_counters(samples, &counters);
	CHECK(told < sizeof many / sizeof *many - 1);
	CHECK_NUMBER(counters.processes_untold, sizeof many / sizeof *many - 1 - told);
	samples_begin_report(samples, 480003 * hour_ns); /* who was left out is told of later */
	samples_add(samples, sample_of(ANONYMOUS));
	CHECK_TEXT(last.attributes, whole);
	/* a name that the kernel cut, of a program that still has it */
	shown_name = "mainly-for-tests";
	samples_add(samples, sample_of(ANONYMOUS));
	CHECK_TEXT(last.name, "mainly-for-tests");
	shown_name = "another-program-of-before";
	samples_add(samples, sample_of(ANONYMOUS));
	CHECK_TEXT(last.name, "main");
	shown_name = "";
	shown_lifetime = NULL;
}

/* A switch's stack without what the scheduler did: kernel frames are 0x100, 0x101 … */
static void check_held(struct samples *samples)
{
	const struct sample_event waker = {
		.type = EVENT_SAMPLE_WAKER, .tid = 9, .comm = "hand", .process_comm = "waker"};
	const struct sample_worth worth = {SAMPLE_TYPE_off_cpu, 7000, &waker, 0};
	struct sample_counters counters;
	struct sample_event *sample = sample_of(WITH_KERNEL);

	sample->type = EVENT_SAMPLE_SWITCH;
	samples_add_held(samples, sample, 1, &worth);
	CHECK_NUMBER(last.depth, 4); /* nobody knows where the scheduler is */
	samples_set_scheduler(samples, &(struct kernel_scheduler){0x100, 0x101, 0, 0});
	samples_add_held(samples, sample, 1, &worth);
	CHECK_NUMBER(last.depth, 3);
	CHECK_NUMBER(last.type, SAMPLE_TYPE_off_cpu);
	CHECK_NUMBER(last.value, 7000);
	CHECK_TEXT(last.waker, "waker");
	CHECK_TEXT(last.attributes, "waker.thread.id=9 waker.thread.name=hand ");
	CHECK(!last.process.wait);
	samples_set_scheduler(samples, &(struct kernel_scheduler){
					       0x101, 0x102, 0, 0}); /* and what ran on top of it */
	samples_add_held(samples, sample, 1, &worth);
	CHECK_NUMBER(last.depth, 2);
	samples_set_scheduler(samples, &(struct kernel_scheduler){0x200, 0x300, 0, 0});
	samples_add_held(samples, sample, 1, &worth);
	CHECK_NUMBER(last.depth, 4);
	sample->type = EVENT_SAMPLE_WAKER; /* it is not the scheduler that this is about */
	samples_set_scheduler(samples, &(struct kernel_scheduler){0x100, 0x102, 0, 0});
	samples_add_held(samples, sample, 1, &worth);
	CHECK_NUMBER(last.depth, 4);
	samples_set_scheduler(samples, &(struct kernel_scheduler){0, 0, 0x101, 0x102});
	samples_add_held(samples, sample, 1, &worth);
	CHECK_NUMBER(last.depth, 3);
	samples_counters(samples, &counters);
	CHECK_NUMBER(counters.held_added, 6);
	samples_set_scheduler(samples, &(struct kernel_scheduler){0});
	samples_add(samples, sample); /* nobody holds it: not ours */
	samples_counters(samples, &counters);
	CHECK_NUMBER(counters.lost, 0);
	CHECK_NUMBER(counters.held_lost, 1);
}

/* A timer's function is at 0x100, its way into the kernel at 0x101, one that waits for a pipe at
 * 0x200. */
static void check_wakers(struct samples *samples)
{
	static struct kernel_waits kernel;
	struct sample_worth worth = {.type = SAMPLE_TYPE_waker, .value = 10};
	uint64_t room[64] = {0};
	struct sample_event *sample, *other = (struct sample_event *)room;

	fake_file("proc/kallsyms", "0000000000000100 T hrtimer_interrupt\n"
				   "0000000000000101 T asm_sysvec_apic_timer_interrupt\n"
				   "0000000000000102 T do_it\n"
				   "0000000000000200 T pipe_read\n"
				   "0000000000000300 T _etext\n");
	kernel_waits_find(fake_proc, &kernel);
	samples_set_waits(samples, &kernel);
	strcpy(other->process_comm, "other");
	strcpy(other->comm, "other thread");
	worth.other = other;

	/* the waker is a timer: who was interrupted has no part in it */
	sample = sample_of(WITH_KERNEL);
	sample->type = EVENT_SAMPLE_WAKER;
	((uint64_t *)sample->frames)[1] = 0x102; /* a return address */
	samples_add_held(samples, sample, 1, &worth);
	CHECK_TEXT(last.name, "timer");
	CHECK_TEXT(last.thread, "timer");
	CHECK_NUMBER(last.thread_id, 0);
	CHECK_NUMBER(last.depth, 2);
	CHECK_TEXT(last.incomplete, "");
	CHECK(!last.process.executable);
	CHECK_TEXT(last.attributes, "woken.process=other woken.thread.name=other thread ");

	/* … and this is what who waited is told */
	other->type = EVENT_SAMPLE_WAKER;
	other->tid = 5;
	other->kernel_count = 2;
	((uint64_t *)other->frames)[0] = 0x100;
	((uint64_t *)other->frames)[1] = 0x102;
	sample->type = EVENT_SAMPLE_SWITCH;
	((uint64_t *)sample->frames)[1] = 0x250;
	worth.type = SAMPLE_TYPE_off_cpu;
	samples_add_held(samples, sample, 1, &worth);
	CHECK_TEXT(last.name, "main");
	CHECK_TEXT(last.waker, "timer");
	CHECK_TEXT(last.process.wait, "pipe");
	CHECK_TEXT(last.attributes, "");
	((uint64_t *)other->frames)[0] = 0x103;
	((uint64_t *)other->frames)[1] = 0x104;
	samples_add_held(samples, sample, 1, &worth);
	CHECK_TEXT(last.waker, "other");
	other->tid = 0; /* an idle CPU */
	samples_add_held(samples, sample, 1, &worth);
	CHECK_TEXT(last.waker, "interrupt");
	samples_set_waits(samples, NULL);
}

static void check_frames(struct samples *samples)
{
	samples_add(samples, sample_of(ANONYMOUS));
	CHECK_NUMBER(last.frames[0].kind, PROFILE_FRAME_ANONYMOUS);
	CHECK_NUMBER(last.frames[0].address, 0);
	CHECK_NUMBER(last.frames[1].kind, PROFILE_FRAME_NATIVE);
	CHECK_NUMBER(last.frames[1].mapping, 0);
	CHECK_NUMBER(last.frames[2].mapping, 1);
	CHECK_NUMBER(last.frames[2].address, 0x1021);
	samples_add(samples, sample_of(WITH_KERNEL));
	CHECK_NUMBER(last.frames[0].kind, PROFILE_FRAME_KERNEL);
	CHECK_NUMBER(last.frames[0].address, 0x100);
	CHECK_NUMBER(last.frames[2].kind, PROFILE_FRAME_NATIVE);
	CHECK_NUMBER(last.frames[2].address, 0x1500); /* the leaf is exact */
	CHECK_TEXT(last.process.service, "unit");
	CHECK_TEXT(last.process.executable, "/bin/program");
}

/* The last frame that the kernel side found was walked on from by its mapping of now. */
static void check_finished(struct samples *samples)
{
	static const struct {
		size_t kernel_side;
		uint32_t generation;
		size_t depth;
		enum walk_result judged;
	} rows[] = {
		{1, 6, 3, WALK_complete},
		{2, 6, 3, WALK_complete},
		{3, 6, 2, WALK_mappings_changed},
		{3, 7, 3, WALK_complete},
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct sample_event *sample = sample_of(CHANGED);

		sample->generation = rows[i].generation;
		samples_add_finished(samples, sample, rows[i].kernel_side);
		CHECK_NUMBER(last.depth, rows[i].depth);
		CHECK_TEXT(last.incomplete, walk_result_sentence(rows[i].judged));
	}
}

static void check_losses(struct samples *samples)
{
	struct sample_counters before, after;
	struct sample_event *wrong = sample_of(0);

	samples_counters(samples, &before);
	last.refuse = true;
	samples_add(samples, sample_of(0));
	last.refuse = false;
	wrong = sample_of(0);
	wrong->user_count = USER_FRAMES_MAX + 1;
	samples_add(samples, wrong);
	samples_counters(samples, &after);
	CHECK_NUMBER(after.lost, before.lost + 1);
	CHECK_NUMBER(after.malformed, before.malformed + 1);
	CHECK_NUMBER(after.added, before.added);
}

int main(void)
{
	struct error err = {0};
	struct module_announcer *modules = module_announcer_new(NULL, false, &err);
	struct samples_sources from = {.modules = modules};
	struct samples *samples = samples_new(&from, &err);

	check_cases(samples);
	check_processes(samples);
	check_held(samples);
	fake_make();
	check_wakers(samples);
	fake_clean();
	check_frames(samples);
	check_finished(samples);
	check_losses(samples);
	samples_free(samples);
	from.service = "shop";
	samples = samples_new(&from, &err);
	samples_add(samples, sample_of(0));
	CHECK_TEXT(last.process.service, "shop");
	samples_free(samples);
	module_announcer_free(modules);
	return checks_done();
}
