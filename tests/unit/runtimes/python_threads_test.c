/* SPDX-License-Identifier: Apache-2.0 */
/* Where threads have their states: in memory that is made up, also by somebody hostile, and in the
 * interpreters that are installed here, each with some threads. */
#include "node-agent/runtimes/python_threads.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "node-agent/file_parser/unwind_file.h"
#include "tests/check.h"
#include "tests/unit/runtimes/interpreters.h"

/* --- memory that is made up: pages of words --- */

enum { PAGES = 64, PAGE = 4096 };

static struct {
	uint64_t address;
	uint64_t words[PAGE / 8];
} pages[PAGES];
static unsigned page_count, reads;

static uint64_t *page_of(uint64_t address)
{
	for (unsigned i = 0; i < page_count; i++)
		if (pages[i].address == address / PAGE * PAGE)
			return pages[i].words;
	return NULL;
}

static void put(uint64_t address, uint64_t word)
{
	uint64_t *words = page_of(address);

	if (!words) {
		memset(&pages[page_count], 0, sizeof pages[0]);
		pages[page_count].address = address / PAGE * PAGE;
		words = pages[page_count++].words;
	}
	words[address % PAGE / 8] = word;
}

static bool read_made_up(void *context, uint64_t address, void *to, size_t bytes)
{
	uint8_t *at = to;

	(void)context;
	reads++;
	for (size_t i = 0; i < bytes; i++) {
		const uint64_t *words = page_of(address + i);

		if (!words)
			return false;
		at[i] = ((const uint8_t *)words)[(address + i) % PAGE];
	}
	return true;
}

static const struct python_memory made_up = {read_made_up, NULL};

/* 3.11: heads and members as python_layout_find() has them, beside DWARF. */
enum {
	BASE = 0x10000000,
	STATE = 0x2000,
	HEAD = 40,
	CURRENT = 576,
	THREADS_HEAD = 16,
	NEXT = 8,
	INTERP = 16,
	THREAD_ID = 152,
	INTERPRETER = 0x20000000,
	STATES = 0x30000000,
	THREADS = 0x40000000,
	SLOT = 0x318,
};

static const struct runtime_symbols python_3_11 = {
	.language = RUNTIME_CPYTHON, .version = 0x030b02f0, .state = STATE, .state_bytes = 1000};

static uint64_t state_at(unsigned i)
{
	return STATES + i * 0x1000;
}

static uint64_t thread_at(unsigned i)
{
	return THREADS + i * 0x10000 + 0x740;
}

/* So many threads, each with its state in a slot. */
static void make(unsigned count)
{
	page_count = reads = 0;
	put(BASE + STATE + HEAD, INTERPRETER);
	put(BASE + STATE + CURRENT, count ? state_at(0) : 0);
	put(INTERPRETER, 0);
	put(INTERPRETER + THREADS_HEAD, count ? state_at(0) : 0);
	for (unsigned i = 0; i < count; i++) {
		put(state_at(i) + NEXT, i + 1 < count ? state_at(i + 1) : 0);
		put(state_at(i) + INTERP, INTERPRETER);
		put(state_at(i) + THREAD_ID, thread_at(i));
		put(thread_at(i), thread_at(i));
		put(thread_at(i) + SLOT, state_at(i));
	}
}

static enum python_found find(struct python_threads *out)
{
	return python_threads_find(&made_up, &python_3_11, BASE, out);
}

static void test_slot(void)
{
	struct python_threads out;

	make(3);
	CHECK_NUMBER(find(&out), PYTHON_FOUND);
	CHECK_NUMBER(out.states, 3);
	CHECK_NUMBER(out.placed, 3);
	CHECK_NUMBER(out.place.language, RUNTIME_CPYTHON);
	CHECK_NUMBER(out.place.current_at, BASE + STATE + CURRENT);
	CHECK_NUMBER(out.place.thread_at, SLOT);
	CHECK_NUMBER(out.place.thread_in, -1);
	CHECK_NUMBER(out.place.first_interpreter, INTERPRETER);
	CHECK_NUMBER(out.place.other_at, 0);
	CHECK_NUMBER(out.place.layout.tstate_thread_id, THREAD_ID);
	CHECK_NUMBER(out.place.layout.frame_previous, 48);
	CHECK(reads < 20);

	/* Another slot has it, too; what one has by chance counts for less. */
	for (unsigned i = 0; i < 3; i++)
		put(thread_at(i) + SLOT + 32, state_at(i));
	put(thread_at(2) - 64, state_at(2));
	CHECK_NUMBER(find(&out), PYTHON_FOUND);
	CHECK_NUMBER(out.place.thread_at, SLOT);
	CHECK_NUMBER(out.place.other_at, SLOT + 32);

	/* One ends: its memory is gone. */
	make(3);
	put(state_at(1) + THREAD_ID, 0x77777000);
	CHECK_NUMBER(find(&out), PYTHON_FOUND);
	CHECK_NUMBER(out.states, 3);
	CHECK_NUMBER(out.placed, 2);
	CHECK_NUMBER(out.place.thread_at, SLOT);
}

/* arm64: the C library's words of the thread, of which pthread_self() is the first, end at the
 * thread pointer, and thread-local variables are above. */
static void test_below(void)
{
	enum { THREAD_BYTES = 1888, SLOT_AT = SLOT - THREAD_BYTES };
	struct runtime_symbols arm64 = python_3_11;
	struct python_threads out;

	arm64.thread_bytes = THREAD_BYTES;
	make(2);
	CHECK_NUMBER(python_threads_find(&made_up, &arm64, BASE, &out), PYTHON_NO_PLACE);
	for (unsigned i = 0; i < 2; i++)
		put(thread_at(i) + THREAD_BYTES, 0x50000000);
	CHECK_NUMBER(python_threads_find(&made_up, &arm64, BASE, &out), PYTHON_FOUND);
	CHECK_NUMBER(out.placed, 2);
	CHECK_NUMBER(out.place.thread_id_minus_tp, -THREAD_BYTES);
	CHECK_NUMBER(out.place.thread_at, SLOT_AT);
	CHECK_NUMBER(out.place.other_at, 0);
	for (unsigned i = 0; i < 2; i++)
		put(thread_at(i) + THREAD_BYTES + 24, state_at(i));
	CHECK_NUMBER(python_threads_find(&made_up, &arm64, BASE, &out), PYTHON_FOUND);
	CHECK_NUMBER(out.place.thread_at, SLOT_AT);
	CHECK_NUMBER(out.place.other_at, 24);
}

/* A variable of the thread's is null while it waits; alone it is worse than a slot. */
static void test_variable(void)
{
	struct python_threads out;

	make(1);
	put(thread_at(0) - 16, state_at(0));
	CHECK_NUMBER(find(&out), PYTHON_FOUND);
	CHECK_NUMBER(out.place.thread_at, SLOT);
	CHECK_NUMBER(out.place.other_at, -16);
	put(thread_at(0) + SLOT, 0);
	CHECK_NUMBER(find(&out), PYTHON_FOUND);
	CHECK_NUMBER(out.place.thread_at, -16);
	CHECK_NUMBER(out.place.other_at, 0);
}

/* musl's slots, and glibc's from the 32nd on, are in a block of their own. */
static void test_block(void)
{
	struct python_threads out;

	make(2);
	for (unsigned i = 0; i < 2; i++) {
		const uint64_t block = 0x50000000 + i * 0x3000;

		put(thread_at(i) + SLOT, 0);
		put(thread_at(i) + 0x80, block);
		put(block + 24, state_at(i));
	}
	CHECK_NUMBER(find(&out), PYTHON_FOUND);
	CHECK_NUMBER(out.placed, 2);
	CHECK_NUMBER(out.place.thread_at, 0x80);
	CHECK_NUMBER(out.place.thread_in, 24);
	/* What a thread's stack has by chance is not in the first thread's memory. */
	put(thread_at(0) - 0x3c8, state_at(0));
	CHECK_NUMBER(find(&out), PYTHON_FOUND);
	CHECK_NUMBER(out.place.thread_at, 0x80);
	CHECK_NUMBER(out.place.other_at, 0);
}

static void test_not_yet(void)
{
	struct python_threads out;
	struct runtime_symbols other = python_3_11;

	page_count = 0;
	CHECK_NUMBER(find(&out), PYTHON_NOT_STARTED);
	make(0);
	CHECK_NUMBER(find(&out), PYTHON_NOT_STARTED);
	make(1);
	put(thread_at(0) + SLOT, 0);
	CHECK_NUMBER(find(&out), PYTHON_NO_PLACE);
	put(BASE + STATE + CURRENT, 0x1234567); /* 3.7.0 has it elsewhere: it is not used then */
	put(thread_at(0) + SLOT, state_at(0));
	CHECK_NUMBER(find(&out), PYTHON_FOUND);
	CHECK_NUMBER(out.place.current_at, 0);

	static const uint32_t unknown[] = {0,          0x03050000, 0x030b00a3,
					   0x030b00b1, 0x030f00f0, 0x04000000};

	for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
		other.version = unknown[i];
		CHECK(python_threads_find(&made_up, &other, BASE, &out) != PYTHON_FOUND);
	}
	other = python_3_11;
	other.version = 0x031000f0;
	CHECK_NUMBER(python_threads_find(&made_up, &other, BASE, &out), PYTHON_TOO_NEW);
	other.version = 0x030f00b1;
	CHECK_NUMBER(python_threads_find(&made_up, &other, BASE, &out), PYTHON_UNRELEASED);
	for (int i = 0; i < PYTHON_FOUND_COUNT; i++)
		CHECK(*python_found_text((enum python_found)i));
}

/* It costs so many reads, and is declared or is what it says. */
static void test_hostile(void)
{
	struct python_threads out;

	make(3); /* a circle */
	put(state_at(2) + NEXT, state_at(0));
	find(&out);
	CHECK(out.states <= PYTHON_THREADS_MAX && reads <= PYTHON_READS_MAX);
	make(2); /* interpreters in a circle */
	put(INTERPRETER, INTERPRETER);
	find(&out);
	CHECK(out.states <= PYTHON_THREADS_MAX && reads <= PYTHON_READS_MAX);
	make(2); /* of nobody */
	put(state_at(1) + INTERP, 0x66);
	CHECK_NUMBER(find(&out), PYTHON_CONTRADICTED);
	make(2);
	put(state_at(0) + NEXT, UINT64_MAX - 7);
	CHECK_NUMBER(find(&out), PYTHON_CONTRADICTED);
	make(2);
	put(BASE + STATE + HEAD, 8);
	CHECK_NUMBER(find(&out), PYTHON_CONTRADICTED);
	/* Every word around the thread leads to memory, none of it to the state. */
	make(1);
	put(thread_at(0) + SLOT, 0);
	for (unsigned i = 1; i < 200; i++)
		put(thread_at(0) + i * 8, 0x50000000 + i * 8);
	CHECK_NUMBER(find(&out), PYTHON_NO_PLACE);
	CHECK(out.reads <= PYTHON_READS_MAX);
	/* A thread at the end of all memory. */
	make(1);
	put(state_at(0) + THREAD_ID, UINT64_MAX - 7);
	CHECK_NUMBER(find(&out), PYTHON_NO_PLACE);
	put(state_at(0) + THREAD_ID, 64);
	CHECK_NUMBER(find(&out), PYTHON_NO_PLACE);
}

/* --- real ones --- */

static bool read_real(void *context, uint64_t address, void *to, size_t bytes)
{
	return pread(*(const int *)context, to, bytes, (off_t)address) == (ssize_t)bytes;
}

/* Its own threads wait, while the first one runs. */
static const char program[] =
	"import threading\n"
	"go = threading.Event()\n"
	"for i in range(4): threading.Thread(target=go.wait, daemon=True).start()\n"
	"print('ready', flush=True)\n"
	"while True: pass\n";

static pid_t start(const char *python, int *out)
{
	int from[2];
	pid_t pid;

	if (pipe2(from, O_CLOEXEC))
		return -1;
	pid = fork();
	if (!pid) {
		dup2(from[1], 1);
		execl(python, python, "-c", program, (char *)NULL);
		_exit(127);
	}
	close(from[1]);
	*out = from[0];
	return pid;
}

/* The first of its files that is a runtime, and where it lies. */
static bool find_file(pid_t pid, struct runtime_symbols *symbols, uint64_t *base)
{
	char path[64], line[4096], name[4096];
	bool is_found = false;
	FILE *maps;

	snprintf(path, sizeof path, "/proc/%d/maps", pid);
	maps = fopen(path, "r");
	while (!is_found && maps && fgets(line, sizeof line, maps)) {
		unsigned long long begin, offset;
		struct unwind_file *file;
		int fd;

		if (sscanf(line, "%llx-%*x %*s %llx %*s %*s %4095s", &begin, &offset, name) != 3 ||
		    offset || name[0] != '/')
			continue;
		fd = open(name, O_RDONLY | O_CLOEXEC);
		file = fd < 0 ? NULL : unwind_file_open(fd);
		if (!file)
			continue;
		unwind_file_runtime(file, symbols);
		unwind_file_close(file);
		is_found = symbols->language;
		*base = symbols->state < begin ? begin : 0; /* a library, or not movable */
	}
	if (maps)
		fclose(maps);
	return is_found;
}

static void check_real(const char *python)
{
	struct runtime_symbols symbols;
	struct python_threads found = {0};
	enum python_found result = PYTHON_NOT_STARTED;
	char path[64], ready;
	int out, fd;
	uint64_t base;
	pid_t pid = start(python, &out);

	if (!CHECK(pid > 0 && read(out, &ready, 1) == 1))
		return;
	snprintf(path, sizeof path, "/proc/%d/mem", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (CHECK(fd >= 0 && find_file(pid, &symbols, &base))) {
		const struct python_memory memory = {read_real, &fd};

		/* 3.6 tells of its list while somebody runs */
		for (int i = 0; i < 1000; i++) {
			result = python_threads_find(&memory, &symbols, base, &found);
			if (result != PYTHON_NOT_STARTED)
				break;
			usleep(1000);
		}
		printf("# %s: %x %s, %u of %u at %" PRId64 " %d, or at %" PRId64 " %d, %u reads\n",
		       python, found.version, python_found_text(result), found.placed, found.states,
		       (int64_t)found.place.thread_at, found.place.thread_in,
		       (int64_t)found.place.other_at, found.place.other_in, found.reads);
		CHECK_NUMBER(result, PYTHON_FOUND);
		CHECK_NUMBER(found.states, 5);
		CHECK_NUMBER(found.placed, 5);
		CHECK(!found.place.current_at == (symbols.version >= 0x030c0000));
	}
	close(fd);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(out);
}

int main(void)
{
#if !defined(__x86_64__)
	SKIP("arm64's are tests/arm64/python_test.c's");
	return checks_done();
#endif
	test_slot();
	test_below();
	test_variable();
	test_block();
	test_not_yet();
	test_hostile();
	test_interpreters(check_real);
	return checks_done();
}
