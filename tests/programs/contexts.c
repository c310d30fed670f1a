/* SPDX-License-Identifier: Apache-2.0 */
/* A small server: contexts REQUESTS MILLISECONDS [LIBRARY [wait [PROGRAM]]]. Four threads serve so
 * many requests, each of its own trace and span id, by one of four functions for so long of CPU
 * time, then wait a millisecond in it. Between requests a thread works for nobody, for a tenth as
 * long. Prints "N high low function route" for each: the bytes that differ between ids. The writer
 * is linked, or loaded from LIBRARY. With "wait" it works for nobody until a SIGUSR1 comes, before
 * it loads the writer and before it serves. Amid a last request, of all bytes 0xee, it leaves a
 * child behind, "ctx_forked", that works for a second, and becomes PROGRAM, another of these
 * that waits. */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "tests/programs/context_writer.h"

enum { THREADS = 4 };

static int requests, next_request;
static volatile sig_atomic_t told;
static uint64_t cpu_ns;
static volatile uint64_t sink;

static int (*publish)(const char *service);
static void (*begin)(const unsigned char trace[16], const unsigned char span[8], const char *route,
		     const char *number);
static void (*end)(void);

static inline uint64_t used_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static inline __attribute__((always_inline)) void spin(uint64_t ns)
{
	const uint64_t until = used_ns() + ns;

	while (used_ns() < until)
		for (int i = 0; i < 2000; i++)
			sink += (uint64_t)i;
}

#define SERVE(name_)                                             \
	__attribute__((noinline)) static void name_(uint64_t ns) \
	{                                                        \
		const struct timespec wait = {0, 1000000};       \
                                                                 \
		spin(ns);                                        \
		nanosleep(&wait, NULL);                          \
		sink++;                                          \
	}
SERVE(serve_basket)
SERVE(serve_search)
SERVE(serve_login)
SERVE(serve_pictures)

__attribute__((noinline)) static void serve_nobody(uint64_t ns)
{
	spin(ns);
	sink++;
}

static const struct {
	const char *name, *route;
	void (*serve)(uint64_t ns);
} functions[] = {
	{"serve_basket", "/basket", serve_basket},
	{"serve_search", "/search/{word}", serve_search},
	{"serve_login", "/login", serve_login},
	{"serve_pictures", "/pictures", serve_pictures},
};

static void *serve_all(void *nothing)
{
	for (;;) {
		int number = __atomic_add_fetch(&next_request, 1, __ATOMIC_RELAXED);
		unsigned char trace[16], span[8];
		char text[16];

		if (number > requests)
			return nothing;
		/* Ids alike in every byte but two. */
		memset(trace, 0xa5, sizeof trace);
		memset(span, 0x5a, sizeof span);
		trace[3] = span[6] = (unsigned char)(number >> 8);
		trace[12] = span[1] = (unsigned char)number;
		snprintf(text, sizeof text, "%d", number % 10);
		begin(trace, span, functions[number % 4].route, text);
		functions[number % 4].serve(cpu_ns);
		end();
		serve_nobody(cpu_ns / 10);
	}
}

#if !defined(WITH_WRITER)
static void load(const char *library)
{
	void *handle;

	handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	if (!handle) {
		fprintf(stderr, "contexts: %s\n", dlerror());
		exit(1);
	}
	publish = (int (*)(const char *))dlsym(handle, "context_publish");
	begin = (void (*)(const unsigned char *, const unsigned char *, const char *,
			  const char *))dlsym(handle, "context_begin");
	end = (void (*)(void))dlsym(handle, "context_end");
}

#endif

/* Works for nobody meanwhile. */
static void await(int signals)
{
	while (told < signals)
		serve_nobody(10000000);
}

static void on_signal(int number)
{
	(void)number;
	told++;
}

static void become(const char *program)
{
	unsigned char all[16];

	fflush(stdout);
	memset(all, 0xee, sizeof all);
	begin(all, all, "/last", "9");
	serve_basket(200000000);
	if (!fork()) {
		prctl(PR_SET_NAME, "ctx_forked");
		serve_nobody(1000000000);
		_exit(0);
	}
	execl(program, program, "0", "0", "", "wait", (char *)NULL);
	_exit(1);
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];
	int wanted = 0;

	signal(SIGUSR1, on_signal);
	requests = argc > 1 ? atoi(argv[1]) : 0;
	cpu_ns = argc > 2 ? (uint64_t)atoi(argv[2]) * 1000000 : 0;
#if defined(WITH_WRITER)
	publish = context_publish;
	begin = context_begin;
	end = context_end;
#else
	await(argc > 4 ? ++wanted : 0);
	load(argc > 3 ? argv[3] : "");
#endif
	if (!publish || !publish("shop"))
		return 1;
	await(argc > 4 ? ++wanted : 0);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, serve_all, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 1; i <= requests; i++)
		printf("%d %02x %02x %s %s\n", i, i >> 8, i & 0xff, functions[i % 4].name,
		       functions[i % 4].route);
	if (argc > 5)
		become(argv[5]);
	return 0;
}
