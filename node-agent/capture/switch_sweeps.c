/* SPDX-License-Identifier: Apache-2.0 */
#include "node-agent/capture/switch_sweeps.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "bpf/results.h"
#include "common/log.h"
#include "node-agent/kernel/bpf_map.h"

enum {
	RECORDS_AT_ONCE = 8,
	RED_ZONE = 128, /* System V ABI for x86-64, 3.2.2 */
	FIRST_BYTES = 16 << 10,
	USUAL_OF = 8,
};

#define SWEEP_NS     (SWITCH_SWEEP_MS * UINT64_C(1000000))
#define SWEEP_NS_MAX (10 * UINT64_C(1000000000))

struct switch_sweeps {
	const struct kernel_programs *programs;
	const struct capture_callbacks *callbacks;
	double share;
	int link;
	uint64_t due_ns;
	uint64_t usual_ns; /* CPU time of the last ones */
	uint64_t done, stacks, cpu_ns;
	bool has_failed;
	union {
		struct sample_event event;
		uint64_t room[sizeof(struct sample_event) / 8 + SWITCH_KERNEL_FRAMES_MAX + 1];
	} sample;
	struct switch_sweep_record records[RECORDS_AT_ONCE];
	union {
		struct stack_copy_event event;
		uint8_t room[sizeof(struct stack_copy_event) + STACK_COPY_BYTES_MAX];
	} copy;
};

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

struct switch_sweeps *switch_sweeps_open(const struct kernel_programs *programs,
					 const struct capture_callbacks *callbacks, double share,
					 struct error *err)
{
	struct switch_sweeps *sweeps;

	if (programs->programs[KERNEL_PROGRAM_SWEEP] < 0)
		return NULL;
	sweeps = calloc(1, sizeof *sweeps);
	if (!sweeps) {
		error_set(err, ERROR_MEMORY, "no memory for sweeps");
		return NULL;
	}
	sweeps->programs = programs;
	sweeps->callbacks = callbacks;
	sweeps->share = share;
	sweeps->link = kernel_sweep_attach(programs, err);
	if (sweeps->link >= 0)
		return sweeps;
	free(sweeps);
	return NULL;
}

void switch_sweeps_close(struct switch_sweeps *sweeps)
{
	if (!sweeps)
		return;
	close(sweeps->link);
	free(sweeps);
}

int switch_sweeps_wait(const struct switch_sweeps *sweeps, uint64_t now_ns, int most_ms)
{
	uint64_t wait_ms;

	if (!sweeps)
		return most_ms;
	wait_ms = sweeps->due_ns > now_ns ? (sweeps->due_ns - now_ns) / 1000000 + 1 : 0;
	return wait_ms < (uint64_t)most_ms ? (int)wait_ms : most_ms;
}

/* --- one thread --- */

/* False: not all of it. */
static uint32_t read_memory(uint32_t tid, uint64_t from, void *to, uint32_t bytes)
{
	struct iovec local = {to, bytes}, remote = {(void *)(uintptr_t)from, bytes};
	ssize_t got = process_vm_readv((pid_t)tid, &local, 1, &remote, 1, 0);

	return got > 0 ? (uint32_t)got : 0;
}

/* The instruction that waits: a system call's is the one before. */
static uint64_t instruction_of(const struct switch_sweep_record *record)
{
	static const uint8_t syscall[2] = {0x0f, 0x05};
	uint8_t code[sizeof syscall];

	if (record->is_system_call &&
	    read_memory(record->tid, record->ip - sizeof code, code, sizeof code) == sizeof code &&
	    !memcmp(code, syscall, sizeof code))
		return record->ip - sizeof code;
	return record->ip;
}

static uint32_t read_stack(const struct switch_sweep_record *record, uint8_t *to)
{
	const uint64_t from = record->sp - RED_ZONE;
	uint32_t bytes = read_memory(record->tid, from, to, FIRST_BYTES);

	if (bytes == FIRST_BYTES)
		bytes += read_memory(record->tid, from + bytes, to + bytes,
				     STACK_COPY_BYTES_MAX - FIRST_BYTES);
	return bytes;
}

void switch_sweep_describe(const struct switch_sweep_record *record, uint64_t ip, uint64_t now_ns,
			   struct sample_event *sample, struct stack_copy_event *copy,
			   uint32_t bytes)
{
	uint64_t *frames = (uint64_t *)sample->frames;
	uint32_t kernel_count = record->kernel_count < SWITCH_KERNEL_FRAMES_MAX
					? record->kernel_count
					: SWITCH_KERNEL_FRAMES_MAX;

	*sample = (struct sample_event){
		.type = EVENT_SAMPLE_SWITCH,
		.flags = SAMPLE_IN_KERNEL | (record->is_32bit ? 0 : SAMPLE_HAS_COPY),
		.time_ns = now_ns,
		.start_time_ns = record->start_time_ns,
		.tgid = record->tgid,
		.tid = record->tid,
		.exec_id = record->exec_id,
		.cpu_ring_full = record->since_ns,
		.value = record->tid,
		.kernel_count = (uint16_t)kernel_count,
		.user_count = 1,
		.result = record->is_32bit ? WALK_compat_32bit : WALK_not_loaded,
		.state = record->state,
		.is_swept = 1,
		.block = record->block,
	};
	memcpy(sample->comm, record->comm, COMM_LENGTH);
	memcpy(sample->process_comm, record->process_comm, COMM_LENGTH);
	memcpy(frames, record->kernel_frames, kernel_count * sizeof *frames);
	frames[kernel_count] = ip;
	sample->size = (uint32_t)(sizeof *sample + (kernel_count + 1) * sizeof *frames);
	*copy = (struct stack_copy_event){
		.type = EVENT_STACK_COPY,
		.is_interrupted = 1,
		.size = (uint32_t)sizeof *copy + bytes,
		.stack_bytes = bytes,
		.stack_gap = -RED_ZONE,
		.tls = record->tls,
		.known = record->known | 1ULL << UNWIND_REGISTER_FP,
		.ip = ip,
		.sp = record->sp,
		.fp = record->fp,
	};
	memcpy(copy->registers, record->registers, sizeof copy->registers);
}

/* It has not run since the kernel side looked: what was read meanwhile is of one moment. */
static bool still_waits(const struct switch_sweeps *sweeps,
			const struct switch_sweep_record *record)
{
	struct thread_switch thread;

	return bpf_map_read(sweeps->programs->maps[KERNEL_MAP_THREADS], &record->tid, &thread,
			    NULL) &&
	       thread.block == record->block && thread.since_ns == record->since_ns;
}

static void take(struct switch_sweeps *sweeps, const struct switch_sweep_record *record)
{
	uint64_t ip = instruction_of(record);
	uint32_t bytes = record->is_32bit ? 0 : read_stack(record, sweeps->copy.event.stack);

	if (!still_waits(sweeps, record))
		return;
	switch_sweep_describe(record, ip, clock_ns(CLOCK_MONOTONIC), &sweeps->sample.event,
			      &sweeps->copy.event, bytes);
	sweeps->stacks++;
	sweeps->callbacks->on_sample(sweeps->callbacks->context, &sweeps->sample.event,
				     record->is_32bit ? NULL : &sweeps->copy.event);
}

/* --- all of them --- */

/* False: not to its end. */
static bool read_all(struct switch_sweeps *sweeps, int fd)
{
	for (;;) {
		ssize_t got = read(fd, sweeps->records, sizeof sweeps->records);

		if (got < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (got <= 0)
			return got == 0;
		if ((size_t)got % sizeof *sweeps->records)
			return false;
		for (size_t i = 0; i < (size_t)got / sizeof *sweeps->records; i++)
			take(sweeps, &sweeps->records[i]);
	}
}

void switch_sweeps_run(struct switch_sweeps *sweeps, uint64_t now_ns)
{
	uint64_t cpu_ns, pause_ns;
	struct error err = {0};
	bool is_whole;
	int fd;

	if (!sweeps || now_ns < sweeps->due_ns)
		return;
	cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	fd = kernel_sweep_open(sweeps->link, &err);
	is_whole = fd >= 0 && read_all(sweeps, fd);
	if (fd >= 0)
		close(fd);
	if (is_whole && sweeps->callbacks->on_sweep)
		sweeps->callbacks->on_sweep(sweeps->callbacks->context, now_ns,
					    clock_ns(CLOCK_MONOTONIC));
	if (!is_whole && !sweeps->has_failed)
		log_warn("threads not swept", "why=\"%s\"",
			 fd < 0 ? err.message : "the list ends early");
	sweeps->has_failed = !is_whole;
	cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns;
	/* The first one takes all that have been waiting, later ones what is new. */
	sweeps->usual_ns += (int64_t)(cpu_ns - sweeps->usual_ns) / USUAL_OF;
	pause_ns = (uint64_t)((double)sweeps->usual_ns / sweeps->share);
	pause_ns = pause_ns < SWEEP_NS       ? SWEEP_NS
		   : pause_ns > SWEEP_NS_MAX ? SWEEP_NS_MAX
					     : pause_ns;
	sweeps->due_ns = now_ns + pause_ns;
	sweeps->done++;
	sweeps->cpu_ns += cpu_ns;
}

void switch_sweeps_total(const struct switch_sweeps *sweeps, struct switch_totals *totals)
{
	if (!sweeps)
		return;
	totals->sweeps = sweeps->done;
	totals->sweep_stacks = sweeps->stacks;
	totals->sweep_cpu_ns = sweeps->cpu_ns;
}
