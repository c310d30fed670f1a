/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/allocations/probe_price.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bpf/alloc.h"
#include "common/clock.h"
#include "node-agent/kernel/bpf_map.h"
#include "node-agent/kernel/uprobe.h"
#include "node-agent/processes/memory_map.h"

enum {
	FIRST_CALLS = 4096,
	CALLS = 288,
	STEPPED_CALLS = 72,
	FEWER_FROM_NS = 1000, /* as long as those that are as far apart */
	BLOCKS = 9, /* of calls without a probe and with one, in turn; the middle one counts */
	GUESSED_NS = 2000,
	COMPANY = 4,
	SENTINELS = 8, /* as many as above */
	SENTINEL_BYTES = 16,
};

/* An instruction that the kernel knows how to do itself, as it does what most functions begin with;
 * and one that it has to step over, which takes a second trap. The third never has a probe. */
void probe_price_own_known(uint64_t size);
void probe_price_own_stepped(uint64_t size);
void probe_price_own_free(uint64_t size);
/* Nobody calls these. */
void probe_price_own_sentinels(uint64_t size);
#if defined(__x86_64__)
#define KNOWN   "push %rbx\n\tpop %rbx"
#define STEPPED "xorl %eax, %eax\n\tret\n"
#else
#define KNOWN   "nop"
#define STEPPED "mov x0, x1\n\tret\n"
#endif
__asm__(".pushsection .text\n"
	".type probe_price_own_known, %function\n"
	"probe_price_own_known:\n\t" KNOWN "\n\tret\n"
	".size probe_price_own_known, . - probe_price_own_known\n"
	".type probe_price_own_stepped, %function\n"
	"probe_price_own_stepped:\n\t" STEPPED
	".size probe_price_own_stepped, . - probe_price_own_stepped\n"
	".type probe_price_own_free, %function\n"
	"probe_price_own_free:\n\t" KNOWN "\n\tret\n"
	".size probe_price_own_free, . - probe_price_own_free\n"
	".balign 16\n"
	".type probe_price_own_sentinels, %function\n"
	"probe_price_own_sentinels:\n"
	".rept 8\n\t" KNOWN "\n\tret\n"
	".balign 16\n"
	".endr\n"
	".size probe_price_own_sentinels, . - probe_price_own_sentinels\n"
	".popsection\n");

typedef void (*own_function)(uint64_t size);

static uint64_t less(uint64_t with, uint64_t without)
{
	return with > without ? with - without : 0;
}

/* Of our programs, in this process. */
static uint64_t program_ns(int counts_map)
{
	const uint32_t self = (uint32_t)getpid();
	struct alloc_window_counts counts;

	return bpf_map_read(counts_map, &self, &counts, NULL) ? counts.ns : 0;
}

/* Of the kind that a trap slows down in a usual program: what was just written is read again. */
static void work(uint64_t rounds)
{
	for (volatile uint64_t i = 0; i < rounds; i = i + 1)
		;
}

static uint64_t calls_ns(own_function own, unsigned calls, uint64_t rounds)
{
	const uint64_t before = clock_ns(CLOCK_THREAD_CPUTIME_ID);

	for (unsigned i = 0; i < calls; i++) {
		own(0); /* of no bytes: no stack is taken */
		work(rounds);
	}
	return clock_ns(CLOCK_THREAD_CPUTIME_ID) - before;
}

/* What one call's trap costs, without our programs; who is interrupted meanwhile does not count. */
static uint64_t trap_ns(const struct probe_meter *meter, own_function own, unsigned calls,
			uint64_t rounds)
{
	uint64_t traps[BLOCKS], programs, without, ns;

	calls /= BLOCKS;
	for (unsigned i = 0, at; i < BLOCKS; i++) {
		without = calls_ns(probe_price_own_free, calls, rounds);
		programs = program_ns(meter->counts_map);
		ns = calls_ns(own, calls, rounds);
		ns = less(ns, without + program_ns(meter->counts_map) - programs) / calls;
		for (at = i; at > 0 && traps[at - 1] > ns; at--)
			traps[at] = traps[at - 1];
		traps[at] = ns;
	}
	return traps[BLOCKS / 2];
}

/* Where in our own file the function lies. */
static bool find_own(own_function own, uint64_t *offset)
{
	const uint64_t address = (uintptr_t)own;
	struct memory_row row;
	char line[512];
	bool found = false;
	FILE *maps = fopen("/proc/self/maps", "re");

	while (maps && !found && fgets(line, sizeof line, maps)) {
		const char *at = line;

		if (memory_map_next(&at, line + strlen(line), &row) == MEMORY_ROW &&
		    address >= row.start && address < row.end) {
			*offset = row.file_offset + address - row.start;
			found = true;
		}
	}
	if (maps)
		fclose(maps);
	return found;
}

static int own_probe(own_function own, uint32_t tgid, int program, struct error *err)
{
	int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), probe = -1;
	uint64_t offset;

	if (file < 0 || !find_own(own, &offset))
		error_set(err, ERROR_NOT_FOUND, "this program does not find itself");
	else
		probe = uprobe_open_process(file, offset, tgid, program, err);
	if (file >= 0)
		close(file);
	return probe;
}

/* Probes for the first process, which never comes here. */
static void company_measure(struct probe_meter *meter, int program)
{
	int probes[COMPANY];
	bool are_there = true;
	struct error why = {0};

	for (unsigned i = 0; i < COMPANY; i++) {
		probes[i] = own_probe(probe_price_own_known, 1, program, &why);
		are_there &= probes[i] >= 0;
	}
	if (are_there)
		meter->company_ns = less(trap_ns(meter, probe_price_own_known, FIRST_CALLS, 0),
					 meter->first.ns) /
				    COMPANY;
	for (unsigned i = 0; i < COMPANY; i++)
		uprobe_close(probes[i]);
}

void probe_meter_open(struct probe_meter *meter, int windows_map, int counts_map, int program,
		      struct error *err)
{
	const struct alloc_window settings = {.is_open = 1, .mean = 1 << 30};
	const struct alloc_window_counts none = {0};
	const uint32_t self = (uint32_t)getpid();

	*meter = (struct probe_meter){.probe = -1,
				      .stepped = -1,
				      .counts_map = counts_map,
				      .first = {GUESSED_NS, 2 * GUESSED_NS}};
	meter->work_ns = calls_ns(probe_price_own_free, 1, PROBE_WORK_ROUNDS);
	if (!bpf_map_write(windows_map, &self, &settings, err) ||
	    !bpf_map_write(counts_map, &self, &none, err))
		return;
	meter->probe = own_probe(probe_price_own_known, self, program, err);
	if (meter->probe < 0)
		return;
	meter->first.ns = trap_ns(meter, probe_price_own_known, FIRST_CALLS, 0);
	company_measure(meter, program);
	meter->stepped = own_probe(probe_price_own_stepped, self, program, err);
	if (meter->stepped >= 0)
		meter->first.stepped_ns = trap_ns(meter, probe_price_own_stepped, CALLS, 0);
}

void probe_meter_close(struct probe_meter *meter)
{
	if (meter->probe >= 0)
		close(meter->probe);
	if (meter->stepped >= 0)
		close(meter->stepped);
	meter->probe = meter->stepped = -1;
}

struct probe_price probe_price_now(const struct probe_meter *meter, bool is_stepped,
				   uint64_t apart_ns)
{
	static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
	struct probe_price price = meter->first;
	uint64_t rounds, ns, stepped_ns = 0;
	unsigned calls = CALLS;

	if (apart_ns > PROBE_APART_NS_MAX)
		apart_ns = PROBE_APART_NS_MAX;
	if (apart_ns > FEWER_FROM_NS)
		calls = calls * FEWER_FROM_NS / (unsigned)apart_ns;
	rounds = meter->work_ns ? apart_ns * PROBE_WORK_ROUNDS / meter->work_ns : 0;
	if (meter->probe < 0 || !meter->first.ns)
		return price;
	pthread_mutex_lock(&one_at_a_time); /* the programs' time is that of the process */
	ns = trap_ns(meter, probe_price_own_known, calls, rounds);
	if (is_stepped && meter->stepped >= 0)
		stepped_ns = trap_ns(meter, probe_price_own_stepped, STEPPED_CALLS, rounds);
	pthread_mutex_unlock(&one_at_a_time);
	if (!ns)
		return price;
	price.ns = ns;
	price.stepped_ns = stepped_ns ? stepped_ns : price.stepped_ns * price.ns / meter->first.ns;
	return price;
}

void probe_price_share(struct probe_price *price, const struct probe_meter *meter, uint32_t others)
{
	price->ns += others * meter->company_ns;
	price->stepped_ns += others * meter->company_ns;
}

void probe_price_mean(struct probe_price *price, struct probe_price other)
{
	price->ns = (price->ns + other.ns) / 2;
	price->stepped_ns = (price->stepped_ns + other.stepped_ns) / 2;
}

/* --- sentinels --- */

static pthread_mutex_t sentinels_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned sentinels; /* bit n: number n is taken */

static uintptr_t sentinel_at(int number)
{
	return (uintptr_t)probe_price_own_sentinels + (uintptr_t)number * SENTINEL_BYTES;
}

int probe_sentinel_open(int program, int *fd)
{
	struct error why = {0};
	int number = 0;

	pthread_mutex_lock(&sentinels_lock);
	while (number < SENTINELS && sentinels >> number & 1)
		number++;
	if (number < SENTINELS)
		sentinels |= 1U << number;
	pthread_mutex_unlock(&sentinels_lock);
	if (number == SENTINELS)
		return -1;
	*fd = own_probe((own_function)sentinel_at(number), (uint32_t)getpid(), program, &why);
	if (*fd >= 0)
		return number;
	probe_sentinel_leave(number);
	return -1;
}

bool probe_sentinel_is_there(int number)
{
	return *(const volatile uint8_t *)sentinel_at(number) !=
	       *(const volatile uint8_t *)(uintptr_t)probe_price_own_free;
}

void probe_sentinel_leave(int number)
{
	pthread_mutex_lock(&sentinels_lock);
	sentinels &= ~(1U << number);
	pthread_mutex_unlock(&sentinels_lock);
}
