/* SPDX-License-Identifier: Apache-2.0 */
/* Native frames and lists of an interpreter's as frames that are counted: order, marks, names, and
 * why a list is not there. Which file is an interpreter, and what its code objects are called, is
 * made up; how the two are joined is frame_merge.h's, and its test's. */
#include "node-agent/stacks/runtime_stack.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bpf/runtime_frames.h"
#include "node-agent/kernel/stranger_reader.h"
#include "node-agent/processes/process_files.h"
#include "node-agent/runtimes/python_thread_names.h"
#include "tests/check.h"

enum { OWN = 7, OTHER = 8, LOOP = 0x1000, REST = 0x2000, GONE = 0x9000, UNREAD = 0xa000 };

static const struct executable own = {.index = OWN}, other = {.index = OTHER};

/* --- interpreters --- */

static enum frame_merge_result why;
static bool is_unsure, has_layout;

bool runtimes_is_file(const struct runtimes *runtimes, uint32_t executable)
{
	(void)runtimes;
	return executable == OWN;
}

bool runtimes_is_loop(const struct runtimes *runtimes, uint32_t executable, uint64_t address)
{
	(void)runtimes;
	return executable == OWN && address == LOOP;
}

bool runtimes_has_greenlets(struct runtimes *runtimes, uint32_t executable)
{
	(void)runtimes, (void)executable;
	return false;
}

bool runtimes_is_lock(const struct runtimes *runtimes, const struct process_key *process,
		      uint64_t address)
{
	(void)runtimes, (void)process, (void)address;
	return false;
}

uint64_t runtimes_state(const struct runtimes *runtimes, const struct process_key *process)
{
	(void)runtimes, (void)process;
	return 0;
}

bool runtimes_layout(const struct runtimes *runtimes, const struct process_key *process,
		     struct python_layout *layout)
{
	(void)runtimes, (void)process;
	*layout = (struct python_layout){.version = 3};
	return has_layout;
}

bool runtimes_place(struct runtimes *runtimes, const struct process_key *process,
		    struct runtime_place *place, uint32_t *version)
{
	(void)runtimes, (void)process;
	*place = (struct runtime_place){.language = RUNTIME_CPYTHON};
	*version = 3;
	return has_layout;
}

bool runtimes_is_unsure(struct runtimes *runtimes, const struct process_key *process,
			const struct located_frame *frames, size_t count)
{
	(void)runtimes, (void)process, (void)frames, (void)count;
	return is_unsure;
}

enum frame_merge_result runtimes_why(const struct runtimes *runtimes,
				     const struct process_key *process, uint64_t time_ns)
{
	(void)runtimes, (void)process;
	CHECK_NUMBER(time_ns, 4711);
	return why;
}

/* --- names of threads: none --- */

struct python_thread_names *python_thread_names_new(void)
{
	return (struct python_thread_names *)&why;
}

void python_thread_names_free(struct python_thread_names *names)
{
	(void)names;
}

const char *python_thread_names_find(struct python_thread_names *names,
				     const struct python_thread *thread)
{
	(void)names, (void)thread;
	return NULL;
}

/* --- code objects, lent for one stack: named after their address, each line ten bytes --- */

static struct lent {
	struct python_code code;
	char name[20];
} lent[RUNTIME_FRAMES_MAX];
static size_t lent_count;

struct python_codes *python_codes_new(size_t limit_bytes)
{
	(void)limit_bytes;
	return (struct python_codes *)lent;
}

void python_codes_free(struct python_codes *codes)
{
	(void)codes;
}

void python_codes_begin(struct python_codes *codes)
{
	(void)codes;
	lent_count = 0;
}

void python_codes_counters(const struct python_codes *codes, struct python_codes_counters *out)
{
	(void)codes;
	*out = (struct python_codes_counters){.read = 5};
}

void python_codes_tell(struct python_codes *codes, const struct process_key *process,
		       const struct python_memory *memory, const struct python_layout *layout,
		       const struct runtime_code_event *told, uint64_t now_ns)
{
	(void)codes, (void)process, (void)memory, (void)layout, (void)told, (void)now_ns;
}

const struct python_code *python_codes_find(struct python_codes *codes,
					    const struct process_key *process,
					    const struct python_memory *memory,
					    const struct python_layout *layout, uint64_t address,
					    uint16_t cookie, uint64_t now_ns)
{
	struct lent *one = &lent[lent_count++ % RUNTIME_FRAMES_MAX];
	uint8_t byte;

	(void)codes, (void)now_ns;
	if (process->tgid != 99 || layout->version != 3 || cookie != 17 || address == GONE)
		return NULL;
	if (address >= UNREAD && !memory->read(memory->context, address, &byte, 1))
		return NULL;
	snprintf(one->name, sizeof one->name, "%x", (unsigned)address);
	one->code = (struct python_code){.name = one->name, .file = "a.py"};
	return &one->code;
}

uint32_t python_code_line(const struct python_code *code, uint32_t position)
{
	(void)code;
	return position / 10;
}

/* --- the process' memory --- */

static int opened, directory;
static bool is_gone;

int process_directory_open(const char *proc, uint32_t tgid, uint64_t start_time_ns)
{
	CHECK(!strcmp(proc, "/proc") && tgid == 99 && start_time_ns == 55);
	opened++;
	directory = is_gone ? -1 : open("/", O_PATH | O_CLOEXEC);
	return directory;
}

bool stranger_memory_read(int at, uint64_t address, void *to, size_t bytes)
{
	CHECK(at == directory && address >= UNREAD);
	memset(to, 1, bytes);
	return true;
}

bool stranger_code_read(int at, const struct runtime_layout *kernel_layout,
			struct runtime_code_event *told)
{
	(void)kernel_layout;
	CHECK(at == directory && told->address >= UNREAD);
	return false;
}

/* --- stacks as letters --- */

enum { MOST = USER_FRAMES_MAX + RUNTIME_FRAMES_MAX };

static struct runtime_stacks *stacks;
static struct located_frame located[USER_FRAMES_MAX];
static struct counted_frame frames[MOST];
static union {
	struct sample_event event;
	uint8_t room[sizeof(struct sample_event) + SAMPLE_WORDS_MAX * 8];
} sample;

/* o another file, r the interpreter's, L its loop, a no file; of no file and named: t by CPython
 * itself, j by another runtime. */
static size_t put_native(const char *native)
{
	size_t count = 0;

	for (; native[count]; count++) {
		const char kind = native[count];
		struct located_frame *frame = &located[count];

		*frame = (struct located_frame){.place = PLACE_ANONYMOUS};
		frames[count] = (struct counted_frame){.kind = PROFILE_FRAME_ANONYMOUS};
		if (kind == 't' || kind == 'j')
			frames[count] = (struct counted_frame){.kind = PROFILE_FRAME_NAMED,
							       .function = "made",
							       .type = kind == 't' ? "cpython"
										   : "v8js"};
		if (strchr("atj", kind))
			continue;
		frame->place = PLACE_FILE;
		frame->executable = kind == 'o' ? &other : &own;
		frame->address = kind == 'L' ? LOOP : REST;
		frames[count] = (struct counted_frame){.kind = PROFILE_FRAME_NATIVE,
						       .mapping = frame->executable->index,
						       .address = frame->address};
	}
	return count;
}

/* p a frame, P one with an entry, g one whose object is gone, u one that has to be read; C U O W:
 * its end is not there. The first has its object at 0x100, the next at 0x200; its line is the
 * third. */
static void put_list(const char *list)
{
	uint64_t *words = (uint64_t *)sample.event.frames + sample.event.user_count;
	static const char ends[] = "CUOW";
	uint64_t address = 0x100;

	sample.event.runtime_count = 0;
	for (; *list; list++, address += 0x100) {
		const char *end = strchr(ends, *list);

		if (end) {
			words[sample.event.runtime_count++] =
				runtime_frame_end((enum runtime_end)(end - ends + 1));
			continue;
		}
		words[sample.event.runtime_count++] = runtime_frame_code(*list == 'g'   ? GONE
									 : *list == 'u' ? UNREAD
											: address);
		words[sample.event.runtime_count++] = runtime_frame_place(30, 17, *list == 'P');
	}
}

/* Named ones by the first digit of their name, n without one; m and M: marked r and L. */
static char letter_of(const struct counted_frame *frame)
{
	switch (frame->kind) {
	case PROFILE_FRAME_NAMED:
		if (!strcmp(frame->function, "made"))
			return !strcmp(frame->type, "cpython") ? 't' : 'j';
		CHECK(!strcmp(frame->type, "cpython"));
		if (!strcmp(frame->function, "[no name]"))
			return frame->file || frame->line ? '?' : 'n';
		CHECK(!strcmp(frame->file, "a.py") && frame->line == 3);
		return frame->function[0];
	case PROFILE_FRAME_RUNTIME:
		return frame->mapping != OWN ? '?' : frame->address == LOOP ? 'M' : 'm';
	case PROFILE_FRAME_NATIVE:
		return frame->mapping == OTHER ? 'o' : frame->address == LOOP ? 'L' : 'r';
	default:
		return 'a';
	}
}

static size_t join(size_t count, size_t room, bool is_whole, enum frame_merge_result *result)
{
	struct runtime_join joined = {
		.sample = &sample.event, .located = located, .is_whole = is_whole};

	return runtime_stacks_join(stacks, &joined, frames, count, room, result);
}

static enum frame_merge_result joined(const char *native, const char *list, bool is_whole,
				      char text[MOST + 1])
{
	enum frame_merge_result result = MERGE_COUNT;
	size_t count;

	memset(&sample, 0, sizeof sample);
	sample.event.tgid = 99;
	sample.event.start_time_ns = 55;
	sample.event.time_ns = 4711;
	sample.event.user_count = (uint16_t)strlen(native);
	put_list(list);
	count = join(put_native(native), MOST, is_whole, &result);
	for (size_t i = 0; i < count; i++)
		text[i] = letter_of(&frames[i]);
	text[count] = '\0';
	return result;
}

/* --- tests --- */

static const struct row {
	const char *what, *native, *list, *joined;
	enum frame_merge_result result;
	bool is_cut; /* the native part */
} rows[] = {
	{"the leaf in the loop", "Lroo", "pP", "12Mmoo", MERGE_joined, false},
	{"a library that the interpreter calls", "orLro", "P", "or1Mmo", MERGE_joined, false},
	{"Python, C, Python", "LroLro", "PpP", "1Mmo23Mmo", MERGE_joined, false},
	{"a program without an interpreter", "ooo", "", "ooo", MERGE_none, false},
	{"a thread of the interpreter's that runs no Python", "rro", "", "rro", MERGE_none, false},
	{"no thread", "", "", "", MERGE_none, false},
	{"what calls the loop for -X perf is said once", "LtLtro", "PP", "1M2Mmo", MERGE_joined,
	 false},
	{"… and only that", "toLjLaro", "PP", "to1Mj2Mamo", MERGE_joined, false},
	{"a native part that is cut", "LrL", "PpP", "1Mm23M", MERGE_joined, true},
	{"… before its first loop", "oo", "pPP", "oo123", MERGE_joined, true},
	{"a list that is cut", "LrLrLro", "PpC", "1Mm2MmMmo", MERGE_list_cut, false},
	{"… and a native part too", "LrL", "PpC", "1Mm2M", MERGE_list_cut, true},
	{"a list that is not there", "Lro", "U", "Lro", MERGE_list_unread, false},
	{"… from its middle on", "LrLro", "pPU", "12MmMmo", MERGE_list_unread, false},
	{"a list in a circle", "Lro", "ppO", "12Mmo", MERGE_list_wrong, false},
	{"a list of another thread", "LrLrLro", "P", "LrLrLro", MERGE_differ, false},
	{"an object that is gone", "Lro", "pgP", "1n3Mmo", MERGE_joined, false},
};

static void test_rows(void)
{
	static char text[MOST + 1];

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct row *row = &rows[i];
		const enum frame_merge_result result = joined(row->native, row->list, !row->is_cut,
							      text);

		if (!CHECK(result == row->result && !strcmp(text, row->joined)))
			printf("# %s: %s, want %s; result %s\n", row->what, text, row->joined,
			       frame_merge_name(result));
	}
	CHECK_NUMBER(opened, 0); /* all objects were known */
}

static void test_reasons(void)
{
	static char text[MOST + 1];
	static const enum frame_merge_result reasons[] = {MERGE_no_list, MERGE_early, MERGE_unknown,
							  MERGE_no_place, MERGE_not_by_perf};

	for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++) {
		why = reasons[i];
		CHECK_NUMBER(joined("oLro", "", true, text), reasons[i]);
		CHECK(!strcmp(text, "oLro") && *frame_merge_sentence(reasons[i]));
	}
	is_unsure = true;
	CHECK_NUMBER(joined("ooo", "", true, text), MERGE_unsure);
	CHECK_NUMBER(joined("oLo", "", true, text), MERGE_not_by_perf); /* that much is known */
	CHECK_NUMBER(joined("Lo", "P", true, text), MERGE_joined);
	is_unsure = false;
}

static struct runtime_stacks_counters counters(void)
{
	struct runtime_stacks_counters now;

	runtime_stacks_counters(stacks, &now);
	return now;
}

/* It is opened once a stack, where it is needed, and closed. */
static void test_memory(void)
{
	static char text[MOST + 1];

	opened = 0;
	CHECK_NUMBER(joined("Lro", "uupP", true, text), MERGE_joined);
	CHECK(!strcmp(text, "aa34Mmo"));
	CHECK_NUMBER(opened, 1);
	CHECK(fcntl(directory, F_GETFD) < 0 && errno == EBADF);
	is_gone = true;
	CHECK_NUMBER(joined("Lro", "uuP", true, text), MERGE_joined);
	CHECK(!strcmp(text, "nn3Mmo"));
	CHECK_NUMBER(opened, 2);
	is_gone = false;
}

/* Each of the list's, before anything is joined; without a list nothing is looked at. */
static void test_seen(void)
{
	opened = 0;
	put_list("uupPC");
	python_codes_begin(NULL);
	runtime_stacks_see(stacks, &sample.event);
	CHECK_NUMBER(lent_count, 4);
	CHECK_NUMBER(opened, 1);
	CHECK(fcntl(directory, F_GETFD) < 0 && errno == EBADF);
	put_list("");
	lent_count = 0;
	runtime_stacks_see(stacks, &sample.event);
	CHECK_NUMBER(lent_count, 0);
	CHECK_NUMBER(opened, 1);
}

static void test_counts(void)
{
	static char text[MOST + 1];
	const struct runtime_stacks_counters before = counters();

	joined("Lro", "pgP", true, text);
	has_layout = false;
	CHECK_NUMBER(joined("Lro", "pP", true, text), MERGE_joined);
	CHECK(!strcmp(text, "nnMmo"));
	has_layout = true;
	CHECK_NUMBER(counters().frames - before.frames, 5);
	CHECK_NUMBER(counters().nameless - before.nameless, 3);
	CHECK_NUMBER(counters().merged[MERGE_joined] - before.merged[MERGE_joined], 2);
	CHECK_NUMBER(counters().codes.read, 5);
}

/* The deepest of both; and without room for it, the native ones stay as they are. */
static void test_room(void)
{
	static char native[USER_FRAMES_MAX + 1], list[RUNTIME_FRAMES_MAX + 2], text[MOST + 1];
	enum frame_merge_result result;
	size_t count;

	memset(native, 'o', USER_FRAMES_MAX);
	memset(native + USER_FRAMES_MAX - 300, 'L', 256);
	memset(list, 'P', RUNTIME_FRAMES_MAX);
	list[RUNTIME_FRAMES_MAX] = 'C';
	CHECK_NUMBER(joined(native, list, true, text), MERGE_list_cut);
	CHECK_NUMBER(strlen(text), MOST);
	count = put_native("Lro");
	sample.event.user_count = (uint16_t)count;
	put_list("pP");
	CHECK_NUMBER(join(count, count + 1, true, &result), count);
	CHECK_NUMBER(result, MERGE_none);
	CHECK_NUMBER(join(count, count + 2, true, &result), count + 2);
}

int main(void)
{
	static int something;
	struct error err = {0};

	has_layout = true;
	stacks = runtime_stacks_new((struct runtimes *)&something, &err);
	if (CHECK(stacks)) {
		test_rows();
		test_reasons();
		test_memory();
		test_seen();
		test_counts();
		test_room();
	}
	runtime_stacks_free(stacks);
	runtime_stacks_free(NULL);
	return checks_done();
}
