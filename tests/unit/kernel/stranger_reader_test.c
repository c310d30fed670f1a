/* SPDX-License-Identifier: Apache-2.0 */
/* The reader of strangers at work, and held: stopped here, as by a page fault that is never served
 * (tests/attacks/agent_reads_test.py has the real ones). */
#include "tests/check.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bpf/events.h"
#include "node-agent/kernel/stranger_reader.h"

enum { READS = 2000, STRANGERS = 20 };

static const char text[] = "what is here";

static int64_t now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static int open_process(pid_t pid)
{
	char path[32];

	snprintf(path, sizeof path, "/proc/%d", (int)pid);
	return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static bool is_read(int directory)
{
	char got[sizeof text] = "";

	return stranger_memory_read(directory, (uintptr_t)text, got, sizeof got) &&
	       !strcmp(got, text);
}

static struct stranger_reader_counters counters(void)
{
	struct stranger_reader_counters now;

	stranger_reader_counters(&now);
	return now;
}

/* --- at work --- */

static void check_files(void)
{
	char name[] = "/tmp/farflame-reader-XXXXXX", got[sizeof text];
	struct file_search search = {.owner = OWNER_ANYBODY};
	int file = mkstemp(name), folder = open("/tmp", O_PATH | O_DIRECTORY | O_CLOEXEC), found,
	    fd;

	CHECK(file >= 0 && write(file, text, sizeof text) == sizeof text);
	found = stranger_find(folder, strrchr(name, '/'), &search);
	fd = stranger_reopen(found);
	CHECK(found >= 0 && fd >= 0 && read(fd, got, sizeof got) == sizeof text);
	CHECK(stranger_file_read(fd, 5, got, 3) && !memcmp(got, text + 5, 3));
	CHECK(!stranger_file_read(fd, sizeof text, got, 1));
	CHECK(stranger_file_system(fd) != 0);
	unlink(name);
	CHECK(stranger_find(folder, strrchr(name, '/'), &search) < 0);
	close(fd);
	close(found);
	close(folder);
	close(file);
}

static void check_maps(int self)
{
	struct stranger_maps maps;
	char line[64];
	unsigned lines = 0;
	bool has_stack = false;

	stranger_maps_begin(&maps, self);
	while (stranger_maps_line(&maps, line, sizeof line)) {
		unsigned long start, end;

		lines += sscanf(line, "%lx-%lx", &start, &end) == 2;
		has_stack |= start <= (uintptr_t)&maps && (uintptr_t)&maps < end;
	}
	stranger_maps_end(&maps);
	CHECK(lines > 10 && has_stack && !maps.is_cut && !maps.has_failed);
}

static void check_threads(void)
{
	static uint8_t stack[STACK_COPY_BYTES_MAX];
	struct stranger_thread threads[2] = {{.tgid = (uint32_t)getpid(),
					      .tid = (uint32_t)getpid(),
					      .has_stack = true,
					      .code_at = (uintptr_t)text,
					      .stack_at = (uintptr_t)&threads,
					      .stack = stack},
					     {.tid = (uint32_t)getpid(), .has_stack = true}};
	uint64_t cost_ns;

	stranger_threads_read(threads, 2, &cost_ns);
	CHECK(threads[0].has_code && !memcmp(threads[0].code, text, 2));
	CHECK(threads[0].stack_bytes > sizeof threads[0]);
	CHECK(!memcmp(stack, &threads[0].tgid, sizeof threads[0].tgid));
	CHECK(!threads[1].has_code && !threads[1].stack_bytes);
}

/* As many as are asked for at a time, with what there is of a stack. */
static void read_threads(void)
{
	static uint8_t stacks[STRANGER_THREADS_MAX][STACK_COPY_BYTES_MAX];
	struct stranger_thread threads[STRANGER_THREADS_MAX];
	uint64_t cost_ns;

	for (int i = 0; i < STRANGER_THREADS_MAX; i++)
		threads[i] = (struct stranger_thread){.tid = (uint32_t)getpid(),
						      .has_stack = true,
						      .code_at = (uintptr_t)text,
						      .stack_at = (uintptr_t)&threads,
						      .stack = stacks[i]};
	stranger_threads_read(threads, STRANGER_THREADS_MAX, &cost_ns);
}

/* Two frames as CPython 3.8 has them, in our own memory: each word at 8 times its number. */
static uint32_t read_interpreter(uint64_t words[RUNTIME_WORDS_MAX])
{
	static const uint64_t thread = 0x1234;
	static uint64_t frames[2][16], state[32], code[8], current = (uintptr_t)state;
	struct stranger_thread of = {.tid = (uint32_t)getpid(),
				     .has_runtime = true,
				     .pointer = thread,
				     .runtime = {.language = RUNTIME_CPYTHON,
						 .current_at = (uintptr_t)&current,
						 .layout = {.tstate_thread_id = 176,
							    .tstate_frame = 24,
							    .cframe_frame = RUNTIME_OFFSET_NONE,
							    .frame_code = 32,
							    .frame_previous = 24,
							    .frame_instr = 104,
							    .frame_entry = RUNTIME_OFFSET_NONE,
							    .code_argcount = 16,
							    .code_kwonly = 24,
							    .code_flags = 36,
							    .code_firstline = 40}},
				     .runtime_frames = words};
	uint64_t cost_ns;

	state[22] = thread;
	state[3] = (uintptr_t)frames[0];
	frames[0][3] = (uintptr_t)frames[1];
	frames[0][4] = frames[1][4] = (uintptr_t)code;
	frames[0][13] = 6;
	CHECK(runtime_layout_spans(&of.runtime.layout));
	stranger_threads_read(&of, 1, &cost_ns);
	return of.runtime_words;
}

static void check_interpreter(void)
{
	const uint16_t cookie = runtime_cookie(0, 0, 0, 0, runtime_texts(0, 0, 0));
	uint64_t words[RUNTIME_WORDS_MAX];

	CHECK_NUMBER(read_interpreter(words), 4);
	CHECK_NUMBER(words[0], words[2]);
	CHECK_NUMBER(words[1], runtime_frame_place(6, cookie, 1));
	CHECK_NUMBER(words[3], runtime_frame_place(0, cookie, 1));
}

/* A code object in our own memory, whole and with a name that is not there. */
static void check_code(int self)
{
	static uint64_t code[16] = {3}, name[16], other[16];
	const struct runtime_layout layout = {.code_from = 16,
					      .code_read = 112,
					      .code_name = 112,
					      .code_filename = 104,
					      .code_lines = 120,
					      .text_length = 16,
					      .text_state = 32,
					      .text_kind = 2,
					      .text_data = 72};
	struct runtime_code_event told = {.address = (uintptr_t)code};

	code[14] = (uintptr_t)name;
	code[13] = code[15] = (uintptr_t)other;
	name[2] = 20;
	name[4] = 1 << 2;
	memcpy(&name[6], "of twenty characters", 20);
	CHECK(stranger_code_read(self, &layout, &told));
	CHECK(told.head_bytes == 128 && !memcmp(told.head, code, 128));
	CHECK(told.name_at == (uintptr_t)name && told.name_bytes == 92 &&
	      !memcmp(told.name, name, 92));
	CHECK(told.file_bytes == 72 && told.lines_bytes == 72);
	code[14] = 16;
	CHECK(stranger_code_read(self, &layout, &told) && told.name_at == 16 && !told.name_bytes);
	told.address = 16;
	CHECK(!stranger_code_read(self, &layout, &told));
}

static void check_work(int self)
{
	int64_t begin;

	CHECK(is_read(self));
	CHECK(!stranger_memory_read(self, 8, &begin, sizeof begin));
	check_files();
	check_maps(self);
	check_threads();
	check_interpreter();
	check_code(self);
	begin = now_us();
	for (int i = 0; i < READS; i++)
		is_read(self);
	printf("# %.1f us a read\n", (double)(now_us() - begin) / READS);
	begin = now_us();
	for (int i = 0; i < READS / STRANGER_THREADS_MAX; i++)
		read_threads();
	printf("# %.1f us a thread\n", (double)(now_us() - begin) / READS);
}

/* --- held --- */

/* The reader; 0: there is none. */
static pid_t reader(void)
{
	FILE *children = fopen("/proc/thread-self/children", "re"), *file;
	char path[40], name[32];
	pid_t found = 0;
	int pid;

	while (!found && children && fscanf(children, "%d", &pid) == 1) {
		snprintf(path, sizeof path, "/proc/%d/cmdline", pid);
		file = fopen(path, "re");
		if (file && fgets(name, sizeof name, file) && !strcmp(name, "farflame-reader"))
			found = pid;
		if (file)
			fclose(file);
	}
	if (children)
		fclose(children);
	return found;
}

/* Reads of it, by a reader that stands still. Microseconds that it took. */
static int64_t hang(int directory)
{
	int64_t begin;
	pid_t pid;

	stranger_file_system(directory); /* there is one */
	pid = reader();
	CHECK(pid > 0 && !kill(pid, SIGSTOP));
	begin = now_us();
	CHECK(!is_read(directory));
	kill(pid, SIGCONT);
	return now_us() - begin;
}

static void check_held(int self)
{
	struct stranger_reader_counters before = counters();
	pid_t other = fork();
	int directory;

	if (!other)
		for (;;)
			pause();
	directory = open_process(other);
	CHECK(is_read(directory));
	CHECK(hang(directory) < 5000000);
	CHECK_NUMBER(counters().hung, before.hung + 1);
	CHECK(is_read(self)); /* others are read by the next one */
	CHECK(!is_read(directory));
	CHECK_NUMBER(counters().hung, before.hung + 1);
	CHECK(counters().refused > before.refused);
	close(directory);
	kill(other, SIGKILL);
	waitpid(other, NULL, 0);
}

/* Ended from outside: nobody is blamed, and another goes on a second later. */
static void check_end(int self)
{
	const struct stranger_reader_counters before = counters();
	const struct timespec pause = {.tv_sec = 1, .tv_nsec = 200000000};
	uint64_t words[RUNTIME_WORDS_MAX];

	CHECK(is_read(self) && !kill(reader(), SIGKILL));
	CHECK(!is_read(self) && !is_read(self));
	CHECK_NUMBER(read_interpreter(words), 1);
	CHECK_NUMBER(words[0], runtime_frame_end(RUNTIME_END_UNREAD));
	CHECK_NUMBER(counters().died, before.died + 1);
	CHECK_NUMBER(counters().hung, before.hung);
	nanosleep(&pause, NULL);
	CHECK(is_read(self));
}

/* However many there are, each new: they cost a second, and then nothing of theirs is read. Files
 * are. */
static void check_many(int self)
{
	const uint64_t before = counters().hung;
	pid_t strangers[STRANGERS];

	for (int i = 0; i < STRANGERS; i++) {
		int directory;

		strangers[i] = fork();
		if (!strangers[i])
			for (;;)
				pause();
		directory = open_process(strangers[i]);
		hang(directory);
		close(directory);
	}
	CHECK(counters().hung - before < STRANGERS && counters().hung > before);
	CHECK(!is_read(self));
	CHECK(stranger_file_system(self) != 0);
	for (int i = 0; i < STRANGERS; i++) {
		kill(strangers[i], SIGKILL);
		waitpid(strangers[i], NULL, 0);
	}
}

int main(int argc, char **argv)
{
	int status = stranger_reader_main(argc, argv), self;
	struct error err = {0};

	if (status >= 0)
		return status;
	self = open_process(getpid());
	check_work(self);
	if (geteuid()) {
		SKIP("a child that reads its parent's memory: needs root");
		return checks_done();
	}
	CHECK(stranger_reader_start(&err));
	check_work(self);
	check_held(self);
	check_end(self);
	check_many(self);
	stranger_reader_stop();
	close(self);
	return checks_done();
}
