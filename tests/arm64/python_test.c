/* SPDX-License-Identifier: Apache-2.0 */
/* CPython's threads and their frames on arm64, where pthread_self() is not the thread pointer: each
 * of several threads runs Python down to a function in C, which looks for its own state and list as
 * the agent and its BPF programs do, and compares that with what CPython's interface says.
 *
 *	python_test LIBC	the C library's file */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "node-agent/file_parser/unwind_file.h"
#include "node-agent/runtimes/python_code.h"
#include "node-agent/runtimes/python_threads.h"
#include "tests/check.h"

static int memory_read(void *to, uint64_t bytes, uint64_t from)
{
	memcpy(to, (const void *)from, bytes);
	return 0;
}
#define RUNTIME_READ(to, bytes, from) memory_read(to, bytes, from)
#define PYTHON_FOUND                  STATE_FOUND /* python_threads.h has another one */
#include "bpf/python_walk.bpf.h"
#undef PYTHON_FOUND

/* Of CPython's interface, as its manual has it. */
typedef void *object;
struct method {
	const char *name;
	object (*call)(object self, object arguments);
	int flags;
	const char *doc;
};
extern const unsigned long Py_Version;
extern char _PyRuntime;
void Py_Initialize(void);
int PyRun_SimpleString(const char *text);
object PyImport_AddModule(const char *name);
object PyCFunction_NewEx(struct method *method, object self, object module);
int PyObject_SetAttrString(object of, const char *name, object value);
object PyLong_FromLong(long value);
int PyGILState_Ensure(void);
void PyGILState_Release(int state);
void *PyEval_SaveThread(void);
object PyThreadState_GetFrame(object state);
object PyThreadState_Get(void);
object PyFrame_GetBack(object frame);
object PyFrame_GetCode(object frame);
int PyFrame_GetLasti(object frame);
int PyFrame_GetLineNumber(object frame);

enum { THREADS = 4, WORDS = SAMPLE_WORDS_MAX, METH_NOARGS = 4 };

static struct runtime_symbols symbols;
static int checks_made;

/* By way of a pipe: not all of what is looked at is there, and the kernel says so. */
static bool read_own(void *context, uint64_t address, void *to, size_t bytes)
{
	static int ends[2];
	ssize_t done;

	(void)context;
	if (!ends[1] && pipe2(ends, O_NONBLOCK))
		return false;
	done = write(ends[1], (const void *)address, bytes);
	return done > 0 && read(ends[0], to, (size_t)done) == done && done == (ssize_t)bytes;
}

static const struct python_memory memory = {read_own, NULL};

/* As the agent names them; the innermost one is where PyFrame_GetLasti() says. */
static void compare(const struct python_threads *found, const __u64 *words, uint32_t count)
{
	object frame = PyThreadState_GetFrame(PyThreadState_Get());
	struct python_code *code;
	uint32_t at = 0;

	for (; frame && at + 1 < count; frame = PyFrame_GetBack(frame), at += 2) {
		const uint64_t place = words[at + 1];

		CHECK(stack_frame_address(words[at]) == (uintptr_t)PyFrame_GetCode(frame));
		CHECK_NUMBER(runtime_frame_position(place), PyFrame_GetLasti(frame));
		if (!CHECK(python_code_read(&memory, &found->layout, stack_frame_address(words[at]),
					    runtime_frame_cookie(place),
					    &code) == PYTHON_CODE_READ))
			continue;
		CHECK_NUMBER(python_code_line(code, runtime_frame_position(place)),
			     PyFrame_GetLineNumber(frame));
		free(code);
	}
	CHECK(!frame && at == count);
}

static void walk(const struct python_threads *found, const struct runtime_place *place)
{
	static struct runtime_walk walk;
	static __u64 words[WORDS];

	walk = (struct runtime_walk){.limit = RUNTIME_FRAMES_MAX};
	if (!CHECK(!python_walk_begin(&walk, words, place, (uintptr_t)__builtin_thread_pointer())))
		return;
	while (!python_walk_step(&walk, words))
		;
	CHECK(walk.frames > 2);
	compare(found, words, walk.count);
}

static object look(object self, object arguments)
{
	struct python_threads found;
	struct runtime_place place;

	(void)self;
	(void)arguments;
	const enum python_found result = python_threads_find(
		&memory, &symbols, (uintptr_t)&_PyRuntime - symbols.state, &found);

	if (CHECK(result == PYTHON_FOUND)) {
		printf("# %u of %u at %ld\n", found.placed, found.states,
		       (long)found.place.thread_at);
		CHECK_NUMBER(found.place.thread_id_minus_tp,
			     (int64_t)pthread_self() - (int64_t)__builtin_thread_pointer());
		walk(&found, &found.place);
		place = found.place;
		place.current_at = 0; /* as without the lock */
		walk(&found, &place);
		checks_made++;
	} else {
		printf("# %s\n", python_found_text(result));
	}
	return PyLong_FromLong(0);
}

static void *run(void *nothing)
{
	const int state = PyGILState_Ensure();

	CHECK(PyRun_SimpleString("outer(3)") == 0);
	PyGILState_Release(state);
	return nothing;
}

static bool read_files(const char *libc)
{
	const char *python = getenv("PYTHON_LIBRARY");
	struct runtime_symbols of_libc;
	struct unwind_file *file = unwind_file_open(open(python, O_RDONLY));

	if (!CHECK(file))
		return false;
	unwind_file_runtime(file, &symbols);
	unwind_file_close(file);
	file = unwind_file_open(open(libc, O_RDONLY));
	if (!CHECK(file))
		return false;
	unwind_file_runtime(file, &of_libc);
	unwind_file_close(file);
	symbols.thread_bytes = of_libc.thread_bytes;
	CHECK(!of_libc.language && of_libc.thread_bytes);
	return CHECK(symbols.version == Py_Version);
}

int main(int argc, char **argv)
{
	static struct method method = {"look", look, METH_NOARGS, NULL};
	pthread_t threads[THREADS];

	if (argc < 2 || !read_files(argv[1]))
		return 1;
	Py_Initialize();
	object module = PyImport_AddModule("__main__");
	PyObject_SetAttrString(module, "look", PyCFunction_NewEx(&method, NULL, NULL));
	CHECK(PyRun_SimpleString("def inner(n):\n"
				 "    return sum(map(lambda x: look() + x, [n]))\n"
				 "def outer(n):\n"
				 "    if n:\n"
				 "        return outer(n - 1)\n"
				 "    return [inner(x) for x in (1, 2)]\n"
				 "outer(2)\n") == 0);
	PyEval_SaveThread();
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, run, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	CHECK_NUMBER(checks_made, 2 * (THREADS + 1));
	return checks_done();
}
