/* SPDX-License-Identifier: Apache-2.0 */
/* looks_like_python HOW: a program with CPython 3.11's symbols. Its lists lead nowhere, or, of
 * "threads", to what each of its threads has as pthread_setspecific(), whatever C library that is
 * of. It is busy, so that it is sampled. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { /* 3.11: offsets of words */
       HEAD = 40 / 8,
       THREADS_HEAD = 16 / 8,
       NEXT = 8 / 8,
       INTERP = 16 / 8,
       THREAD_ID = 152 / 8,
       STATE_WORDS = 20,
       STATES = 100000,
       POINTERS = 4096,
};

uint64_t _PyRuntime[1024];
const unsigned long Py_Version = 0x030b02f0;
static uint64_t interpreter[64], around[2 * POINTERS];

__attribute__((noinline)) uint64_t _PyEval_EvalFrameDefault(uint64_t n)
{
	for (uint64_t i = 0; i < 1000000; i++)
		n = n * 6364136223846793005u + 1442695040888963407u;
	return n;
}

static uint64_t at(const void *pointer)
{
	return (uint64_t)(uintptr_t)pointer;
}

/* So many threads, all of them where each word leads to some memory. */
static void make_states(uint32_t count, int is_circle)
{
	uint64_t *states = calloc(count, STATE_WORDS * sizeof *states);

	for (uint32_t i = 0; states && i < count; i++) {
		uint64_t *state = states + (size_t)i * STATE_WORDS;

		state[NEXT] = i + 1 < count ? at(state + STATE_WORDS) : is_circle ? at(states) : 0;
		state[INTERP] = at(interpreter);
		state[THREAD_ID] = at(&around[POINTERS]);
	}
	for (uint32_t i = 0; i < 2 * POINTERS; i++)
		around[i] = at(&_PyRuntime[i % 900]);
	interpreter[THREADS_HEAD] = at(states);
}

/* --- real threads --- */

enum { THREADS = 4 };

static uint64_t own_states[THREADS][STATE_WORDS];
static pthread_key_t key;

static void *have_state(void *argument)
{
	uint64_t *state = argument;

	pthread_setspecific(key, state);
	state[INTERP] = at(interpreter);
	state[THREAD_ID] = (uint64_t)pthread_self();
	printf("%ld %llu\n", syscall(SYS_gettid), (unsigned long long)at(state));
	fflush(stdout);
	if (state != own_states[0])
		pause();
	return NULL;
}

/* The newest first, as CPython's. */
static void start_threads(void)
{
	pthread_key_create(&key, NULL);
	have_state(own_states[0]);
	for (int i = 1; i < THREADS; i++) {
		pthread_t thread;

		pthread_create(&thread, NULL, have_state, own_states[i]);
		while (!__atomic_load_n(&own_states[i][THREAD_ID], __ATOMIC_ACQUIRE))
			usleep(100);
		own_states[i][NEXT] = at(own_states[i - 1]);
	}
	interpreter[THREADS_HEAD] = at(own_states[THREADS - 1]);
	usleep(100000); /* they have written who they are */
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	volatile uint64_t n = 1;

	_PyRuntime[HEAD] = at(interpreter);
	if (!strcmp(how, "many"))
		make_states(STATES, 0);
	else if (!strcmp(how, "circle"))
		make_states(2, 1);
	else if (!strcmp(how, "interpreters"))
		interpreter[0] = at(interpreter);
	else if (!strcmp(how, "nowhere"))
		interpreter[THREADS_HEAD] = 0x123456789000;
	else if (!strcmp(how, "threads"))
		start_threads();
	else
		return 2;
	puts("ready");
	fflush(stdout);
	for (;;)
		n = _PyEval_EvalFrameDefault(n);
}
