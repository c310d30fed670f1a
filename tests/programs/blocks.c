/* SPDX-License-Identifier: Apache-2.0 */
/* Threads whose waiting the kernel itself accounts for. At its end each says, of the time in which
 * it worked: "NAME WALL CPU DELAY VOLUNTARY INVOLUNTARY", nanoseconds by CLOCK_MONOTONIC and the
 * fields 1 and 2 of /proc/thread-self/schedstat, switches of /proc/thread-self/status.
 *
 * blocks work SECONDS FILE: direct reads of FILE, three threads that queue for a mutex, one that is
 * sent to another CPU whenever it sleeps, one that shares a CPU with a real-time thread.
 * blocks exit|exec: a thread waits, and does when its process ends, or becomes "sleep 1".
 * Begins with a byte, or the end, of its standard input. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, THREADS = 8 };

static uint64_t end_ns;
static const char *file;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int moving_tid;

struct account {
	uint64_t wall, cpu, delay, voluntary, involuntary;
};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static int is_over(void)
{
	return now_ns() >= end_ns;
}

static void sleep_ns(long ns)
{
	struct timespec time = {ns / 1000000000, ns % 1000000000};

	nanosleep(&time, NULL);
}

static uint64_t number_after(const char *text, const char *name)
{
	const char *at = strstr(text, name);

	return at ? strtoull(at + strlen(name), NULL, 10) : 0;
}

static struct account account_now(void)
{
	struct account account = {.wall = now_ns()};
	char text[4096] = "";
	FILE *in = fopen("/proc/thread-self/status", "r");

	if (in) {
		text[fread(text, 1, sizeof text - 1, in)] = '\0';
		account.voluntary = number_after(text, "\nvoluntary_ctxt_switches:");
		account.involuntary = number_after(text, "\nnonvoluntary_ctxt_switches:");
		fclose(in);
	}
	in = fopen("/proc/thread-self/schedstat", "r");
	if (in) {
		if (fscanf(in, "%lu %lu", &account.cpu, &account.delay) != 2)
			account.cpu = 0;
		fclose(in);
	}
	return account;
}

static __attribute__((noinline)) void read_direct(void)
{
	char *page;
	int fd = open(file, O_RDONLY | O_DIRECT);

	if (fd < 0 || posix_memalign((void **)&page, PAGE, PAGE))
		return;
	for (unsigned i = 0; !is_over(); i++) {
		if (pread(fd, page, PAGE, (off_t)(i * 37 % 1024) * PAGE) != PAGE)
			break;
		sleep_ns(500000);
	}
	close(fd);
	free(page);
}

static __attribute__((noinline)) void queue_for_lock(void)
{
	while (!is_over()) {
		pthread_mutex_lock(&lock);
		sleep_ns(1000000);
		pthread_mutex_unlock(&lock);
		sched_yield();
	}
}

static __attribute__((noinline)) void sleep_and_move(void)
{
	__atomic_store_n(&moving_tid, (int)syscall(SYS_gettid), __ATOMIC_RELEASE);
	while (!is_over())
		sleep_ns(20000000);
}

static void use_cpu(int tid, int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(tid, sizeof set, &set);
}

static void move_sleeper(void)
{
	for (int i = 0; !is_over(); i++) {
		int tid = __atomic_load_n(&moving_tid, __ATOMIC_ACQUIRE);

		if (tid)
			use_cpu(tid, i % (int)sysconf(_SC_NPROCESSORS_ONLN));
		sleep_ns(7000000);
	}
}

static void spin(uint64_t ns)
{
	uint64_t until = now_ns() + ns;

	while (now_ns() < until)
		;
}

static __attribute__((noinline)) void spin_behind(void)
{
	use_cpu(0, 0);
	while (!is_over())
		spin(1000000);
}

static void spin_before(void)
{
	const struct sched_param high = {.sched_priority = 10};

	use_cpu(0, 0);
	if (sched_setscheduler(0, SCHED_FIFO, &high))
		return;
	while (!is_over()) {
		spin(10000000);
		sleep_ns(15000000);
	}
}

static const struct kind {
	const char *name;
	void (*run)(void);
} kinds[THREADS] = {
	{"read_direct", read_direct}, {"convoy_a", queue_for_lock}, {"convoy_b", queue_for_lock},
	{"convoy_c", queue_for_lock}, {"moves", sleep_and_move},    {"mover", move_sleeper},
	{"behind", spin_behind},      {"before", spin_before},
};

static void *run(void *context)
{
	const struct kind *kind = context;
	struct account from, to;

	pthread_setname_np(pthread_self(), kind->name);
	from = account_now();
	kind->run();
	to = account_now();
	printf("%s %lu %lu %lu %lu %lu\n", kind->name, to.wall - from.wall, to.cpu - from.cpu,
	       to.delay - from.delay, to.voluntary - from.voluntary,
	       to.involuntary - from.involuntary);
	return NULL;
}

static __attribute__((noinline)) void *wait_for_ever(void *unused)
{
	for (;;)
		pause();
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];
	char begin;

	if (argc < 2 || read(STDIN_FILENO, &begin, 1) < 0)
		return 1;
	if (strcmp(argv[1], "work") != 0) {
		pthread_create(&threads[0], NULL, wait_for_ever, NULL);
		sleep_ns(1500000000);
		if (!strcmp(argv[1], "exec"))
			execlp("sleep", "sleep", "1", (char *)NULL);
		return 0;
	}
	if (argc < 4)
		return 1;
	end_ns = now_ns() + strtoull(argv[2], NULL, 10) * 1000000000;
	file = argv[3];
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, run, (void *)&kinds[i]);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
