/* SPDX-License-Identifier: Apache-2.0 */
/* Waits of known kind and length, each from a function of its own; its own clock says how long each
 * took, as "NAME TIMES NANOSECONDS TID" lines at the end.
 *
 * waits SECONDS [NAME…]: nanosleep 1, 5, 20 and 150 ms, a futex, a child of vfork, an answer from
 * another process, one by a socket, a futex that the thread "unlocker" ends; a spinning thread and
 * one that gives way never wait. Begins with a byte, or the end, of its standard input. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static uint64_t end_ns;

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

struct tally {
	const char *name;
	uint64_t times, ns;
	int tid;
};

static void sleep_ns(long ns)
{
	struct timespec time = {ns / 1000000000, ns % 1000000000};

	nanosleep(&time, NULL);
}

#define SLEEPER(name_, ns_)                                              \
	static __attribute__((noinline)) void name_(struct tally *tally) \
	{                                                                \
		uint64_t from = now_ns();                                \
                                                                         \
		sleep_ns(ns_);                                           \
		tally->ns += now_ns() - from;                            \
		tally->times++;                                          \
	}
SLEEPER(sleep_1ms, 1000000)
SLEEPER(sleep_5ms, 5000000)
SLEEPER(sleep_20ms, 20000000)
SLEEPER(sleep_150ms, 150000000)

/* Nobody ever wakes it: the time-out does. */
static __attribute__((noinline)) void wait_futex(struct tally *tally)
{
	struct timespec time = {0, 3000000};
	uint32_t word = 0;
	uint64_t from = now_ns();

	syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &time, NULL, 0);
	tally->ns += now_ns() - from;
	tally->times++;
}

static __attribute__((noinline)) void wait_vfork(struct tally *tally)
{
	uint64_t from = now_ns();
	pid_t child = vfork();

	if (!child) {
		usleep(7000);
		_exit(0);
	}
	tally->ns += now_ns() - from;
	tally->times++;
	waitpid(child, NULL, 0);
}

static int to_helper[2], from_helper[2];

static __attribute__((noinline)) void read_answer(struct tally *tally)
{
	uint64_t from = now_ns();
	char byte;

	if (read(from_helper[0], &byte, 1) == 1)
		tally->times++;
	tally->ns += now_ns() - from;
}

static __attribute__((noinline)) void ask_helper(struct tally *tally)
{
	if (write(to_helper[1], "x", 1) == 1)
		read_answer(tally);
}

/* The waker: another process, whose answer ends the wait. */
static __attribute__((noinline)) void answer(void)
{
	if (write(from_helper[1], "y", 1) != 1)
		_exit(1);
}

static int socket_here, socket_there; /* of one connection by the loopback device */

static void connect_sockets(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t length = sizeof address;
	int listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	socket_here = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(listening, (struct sockaddr *)&address, length) || listen(listening, 1) ||
	    getsockname(listening, (struct sockaddr *)&address, &length) ||
	    connect(socket_here, (struct sockaddr *)&address, length))
		exit(1);
	socket_there = accept(listening, NULL, NULL);
	close(listening);
}

static __attribute__((noinline)) void read_socket(struct tally *tally)
{
	uint64_t from = now_ns();
	char byte;

	if (read(socket_here, &byte, 1) == 1)
		tally->times++;
	tally->ns += now_ns() - from;
}

static __attribute__((noinline)) void ask_socket(struct tally *tally)
{
	if (write(socket_here, "x", 1) == 1)
		read_socket(tally);
}

static void *serve_socket(void *context)
{
	char byte;

	(void)context;
	pthread_setname_np(pthread_self(), "socket_server");
	while (read(socket_there, &byte, 1) == 1) {
		sleep_ns(2000000);
		if (write(socket_there, "y", 1) != 1)
			_exit(1);
	}
	return NULL;
}

static void *help(void *context)
{
	char byte;

	(void)context;
	pthread_setname_np(pthread_self(), "pipe_writer");
	while (read(to_helper[0], &byte, 1) == 1) {
		sleep_ns(2000000);
		answer();
	}
	_exit(0);
}

static uint32_t lock_word; /* 1: locked */

static void futex(int operation, uint32_t value)
{
	syscall(SYS_futex, &lock_word, operation, value, NULL, NULL, 0);
}

static __attribute__((noinline)) void wait_unlock(struct tally *tally)
{
	uint64_t from = now_ns();

	__atomic_store_n(&lock_word, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&lock_word, __ATOMIC_SEQ_CST))
		futex(FUTEX_WAIT_PRIVATE, 1);
	tally->ns += now_ns() - from;
	tally->times++;
}

static void *unlock(void *context)
{
	(void)context;
	pthread_setname_np(pthread_self(), "unlocker");
	for (;;) {
		sleep_ns(3000000);
		__atomic_store_n(&lock_word, 0, __ATOMIC_SEQ_CST);
		futex(FUTEX_WAKE_PRIVATE, 1);
	}
	return NULL;
}

static __attribute__((noinline)) void spin_only(struct tally *tally)
{
	uint64_t from = now_ns();

	while (now_ns() - from < 10000000)
		;
	tally->times++;
}

static __attribute__((noinline)) void yield_only(struct tally *tally)
{
	uint64_t from = now_ns();

	while (now_ns() - from < 10000000)
		;
	sched_yield();
	tally->times++;
}

static struct kind {
	void (*run)(struct tally *tally);
	struct tally tally;
	pthread_t thread;
	int is_wanted;
} kinds[] = {
#define KIND(run_, name_)                              \
	{                                              \
		.run = run_, .tally = {.name = name_ } \
	}
	KIND(sleep_1ms, "sleep_1ms"),     KIND(sleep_5ms, "sleep_5ms"),
	KIND(sleep_20ms, "sleep_20ms"),   KIND(sleep_150ms, "sleep_150ms"),
	KIND(wait_futex, "wait_futex"),   KIND(wait_vfork, "wait_vfork"),
	KIND(ask_helper, "read_answer"),  KIND(ask_socket, "read_socket"),
	KIND(wait_unlock, "wait_unlock"), KIND(spin_only, "spin_only"),
	KIND(yield_only, "yield_only"),
};

static void *run(void *context)
{
	struct kind *kind = context;

	kind->tally.tid = (int)syscall(SYS_gettid);
	pthread_setname_np(pthread_self(), kind->tally.name);
	while (now_ns() < end_ns)
		kind->run(&kind->tally);
	return NULL;
}

int main(int argc, char **argv)
{
	const size_t count = sizeof kinds / sizeof *kinds;
	uint64_t seconds = argc > 1 ? strtoull(argv[1], NULL, 10) : 5;
	pthread_t unlocker;
	pid_t helper;
	char begin;

	if (pipe(to_helper) || pipe(from_helper))
		return 1;
	connect_sockets();
	helper = fork();
	if (!helper) {
		pthread_t threads[2];

		close(to_helper[1]);
		pthread_create(&threads[0], NULL, serve_socket, NULL);
		pthread_create(&threads[1], NULL, help, NULL);
		pthread_join(threads[1], NULL);
	}
	close(to_helper[0]);
	if (read(STDIN_FILENO, &begin, 1) < 0)
		return 1;
	pthread_create(&unlocker, NULL, unlock, NULL);
	end_ns = now_ns() + seconds * 1000000000;
	for (size_t i = 0; i < count; i++) {
		kinds[i].is_wanted = argc <= 2;
		for (int k = 2; k < argc; k++)
			kinds[i].is_wanted |= !strcmp(argv[k], kinds[i].tally.name);
		if (kinds[i].is_wanted)
			pthread_create(&kinds[i].thread, NULL, run, &kinds[i]);
	}
	for (size_t i = 0; i < count; i++)
		if (kinds[i].is_wanted)
			pthread_join(kinds[i].thread, NULL);
	for (size_t i = 0; i < count; i++)
		if (kinds[i].is_wanted)
			printf("%s %llu %llu %d\n", kinds[i].tally.name,
			       (unsigned long long)kinds[i].tally.times,
			       (unsigned long long)kinds[i].tally.ns, kinds[i].tally.tid);
	fflush(stdout);
	close(to_helper[1]);
	waitpid(helper, NULL, 0);
	return 0;
}
