/* SPDX-License-Identifier: Apache-2.0 */
/* perf_event_open(2): the timer of one CPU, samples without BPF, and rings of samples and of
 * process events. Layouts: <linux/perf_event.h>, struct perf_event_mmap_page. */
#ifndef NODE_AGENT_KERNEL_PERF_EVENT_H
#define NODE_AGENT_KERNEL_PERF_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

/* A disabled cpu-clock timer that runs the program every period on that CPU, idle or not. −1: no. A
 * CPU that went offline is ERROR_NOT_FOUND. */
int perf_timer_open(unsigned cpu, uint64_t period_ns, int program_fd, struct error *err);
bool perf_timer_enable(int fd, bool is_enabled, struct error *err);
/* Nanoseconds the timer has counted on its CPU; 0 when it cannot be read. */
uint64_t perf_timer_count(int fd);

/* Every period-th page fault of any process on that CPU runs the program, minor or major (the page
 * had to be read from a disk); counted from the start. Errors as above. */
int perf_faults_open(unsigned cpu, bool is_major, uint64_t period, int program_fd,
		     struct error *err);
/* All of them so far. */
uint64_t perf_faults_count(int fd);

/* Whose events: everything on a CPU (needs privileges), or one thread's and of those it starts. */
enum { PERF_EVERY_THREAD = -1 };

/* A cpu-clock timer that writes a sample itself: PERF_SAMPLE_ of IP, TID, TIME (CLOCK_MONOTONIC),
 * CALLCHAIN (the kernel's part only), REGS_USER and STACK_USER. Nothing newer than Linux 4.1. */
struct perf_sampler {
	unsigned cpu;
	int thread; /* or PERF_EVERY_THREAD */
	uint64_t period_ns;
	uint32_t stack_bytes; /* of each user stack; a multiple of 8, below PERF_RECORD_BYTES_MAX */
	uint32_t wakeup_bytes; /* of records wake the reader */
	bool is_user_only;     /* no ticks of kernel code */
};

/* Registers in each sample, bits enum perf_event_…_regs of <asm/perf_regs.h>, in that order. */
#if defined(__x86_64__)
#define PERF_USER_REGISTERS UINT64_C(0xff07ff) /* ax to r15, ip, flags, cs; no other segments */
#else
#define PERF_USER_REGISTERS UINT64_C(0x1ffffffff) /* x0 to x29, lr, sp, pc */
#endif

/* Disabled; perf_timer_enable() and perf_timer_count() are for it as well. −1: no. ERROR_NOT_FOUND:
 * the CPU went offline, or the thread is gone. ERROR_UNSUPPORTED: not permitted. */
int perf_sampler_open(const struct perf_sampler *sampler, struct error *err);
/* Another period from now on, the first one too. */
bool perf_sampler_set_period(int fd, uint64_t period_ns, struct error *err);

struct perf_ring {
	int fd;        /* readable when a part is full, or at once: who opened it decides */
	uint8_t *base; /* the control page, then the data; NULL: closed */
	size_t bytes;  /* of the data */
	uint64_t head,
		tail;    /* what the kernel has written up to the last look; what we have read */
	uint8_t *record; /* a copy of the record that wraps around the end */
};

enum { PERF_RECORD_BYTES_MAX = 1 << 16 }; /* perf_event_header.size is 16 bits */

/* Process events of one CPU: exec, executable mappings, fork, exit of every process that is on it,
 * with CLOCK_MONOTONIC times; every new record wakes the reader. pages: a power of two.
 * *has_build_ids is tried when true and set to false on kernels before 5.12. */
bool perf_ring_open(struct perf_ring *ring, unsigned cpu, unsigned pages, bool *has_build_ids,
		    struct error *err);
/* The same for one thread's. A ring is for perf_ring_attach() or perf_ring_join(). −1: no. */
int perf_process_events_open(unsigned cpu, int thread, bool *has_build_ids, struct error *err);

/* A ring of its own for an event; takes the descriptor, also when it fails. */
bool perf_ring_attach(struct perf_ring *ring, int fd, unsigned pages, struct error *err);
/* An event of the same CPU writes into that ring too; the descriptor stays the caller's. */
bool perf_ring_join(const struct perf_ring *ring, int fd, struct error *err);
void perf_ring_close(struct perf_ring *ring); /* also what is closed */

/* Takes note of how far the kernel has written: perf_ring_next() reads up to here. */
void perf_ring_look(struct perf_ring *ring);
/* The oldest record with its header, borrowed until perf_ring_release(). NULL: none. */
const void *perf_ring_next(struct perf_ring *ring, size_t *length);
void perf_ring_release(struct perf_ring *ring, size_t length);

#endif
